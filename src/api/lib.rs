//! The custom resources and every condition, reason, label, finalizer and path constant
