//! Fixtures, a faulty API transport, cluster access; for tests only
