//! The executor: PID 1 of the untrusted container, runs what it is told under limits
