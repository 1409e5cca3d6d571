//! What the gateway counts.

use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};

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
    /// Calls of models.
    pub(crate) models: ModelMetrics,
}

/// What is counted of calls of models.
#[derive(Clone, Debug)]
pub(crate) struct ModelMetrics {
    /// Tries, by namespace, Model and how they ended.
    pub(crate) calls: IntCounterVec,
    /// How long tries took.
    pub(crate) seconds: Histogram,
    /// Tokens, by namespace, Model, role and direction.
    pub(crate) tokens: IntCounterVec,
    /// Millionths of the Model's currency, by namespace, Model and role.
    pub(crate) cost_micros: IntCounterVec,
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
        let seconds = HistogramOpts::new("model_call_seconds", "how long tries of model calls took")
            .buckets(vec![0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]);
        let seconds = Histogram::with_opts(seconds)?;
        registry.register(Box::new(seconds.clone()))?;
        let models = ModelMetrics {
            calls: counter(
                "model_calls_total",
                "tries of model calls",
                &["namespace", "model", "answer"],
            )?,
            seconds,
            tokens: counter(
                "model_tokens_total",
                "tokens of answered model calls",
                &["namespace", "model", "role", "direction"],
            )?,
            cost_micros: counter(
                "model_cost_micros_total",
                "cost of answered model calls, in millionths of the Model's currency",
                &["namespace", "model", "role"],
            )?,
        };
        Ok(Self {
            models,
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

    /// Where a part of the gateway registers what it counts.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Everything in Prometheus' text format.
    pub(crate) fn text(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}
