//! The messages between runtime, gateway and executor, the result envelope and the version rule
