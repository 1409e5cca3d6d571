//! The trusted container: channel to the gateway, evidence, results
