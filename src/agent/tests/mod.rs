//! Tests by scripted models.
