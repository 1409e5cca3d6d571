//! What the gateway counts.

use prometheus::{IntCounterVec, IntGauge, Opts, Registry, TextEncoder};

/// The gateway's metrics; clones share the counters.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Runtimes that said hello and are connected now.
    pub(crate) runtimes: IntGauge,
    /// Ends that came over the channel, by how they ended.
    pub(crate) results: IntCounterVec,
    /// Writes to the Kubernetes API, by verb, kind and answer.
    pub(crate) writes: IntCounterVec,
    /// Connections and requests that were not served, by code.
    pub(crate) refusals: IntCounterVec,
    /// Failures of watches, by kind.
    pub(crate) watch_failures: IntCounterVec,
}

impl Metrics {
    /// Registers everything in a registry of its own.
    pub(crate) fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new_custom(Some("agentrun_gateway".into()), None)?;
        let runtimes = IntGauge::new("connected_runtimes", "runtimes that are connected now")?;
        registry.register(Box::new(runtimes.clone()))?;
        let counter = |name: &str, help: &str, labels: &[&str]| -> Result<IntCounterVec, prometheus::Error> {
            let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        Ok(Self {
            results: counter("results_total", "ends that came over the channel", &["outcome"])?,
            writes: counter(
                "api_writes_total",
                "writes to the Kubernetes API",
                &["verb", "kind", "answer"],
            )?,
            refusals: counter(
                "channel_refusals_total",
                "connections that were not served",
                &["code"],
            )?,
            watch_failures: counter("watch_failures_total", "failures of watches", &["kind"])?,
            runtimes,
            registry,
        })
    }

    /// Everything in Prometheus' text format.
    pub(crate) fn text(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}
