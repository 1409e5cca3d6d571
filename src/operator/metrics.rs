//! What the operator counts. Labels come from closed lists only: no name of an object, no text of an error.

use prometheus::core::Collector;
use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use std::sync::Arc;
use std::time::Duration;

/// Upper bounds of reconciles, in seconds.
const RECONCILE: &[f64] = &[
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];
/// Upper bounds of sub-tasks and starts, in seconds: warm calls take milliseconds, agents hours.
const WORK: &[f64] = &[
    0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0,
];

/// The metrics of one operator process; clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    queue_depth: IntGaugeVec,
    reconcile_seconds: HistogramVec,
    subtask_seconds: HistogramVec,
    sandbox_start_seconds: HistogramVec,
    subtask_failures: IntCounterVec,
    leases: IntGauge,
    api_requests: IntCounterVec,
    leader: IntGauge,
}

impl Metrics {
    /// Registers every metric. An error means that two have the same name.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let inner = Inner {
            queue_depth: gauge(
                &registry,
                "queue_depth",
                "Objects that wait for a reconcile.",
                &["controller"],
            )?,
            reconcile_seconds: histogram(
                &registry,
                "reconcile_seconds",
                "Duration of reconciles by controller and category of result.",
                &["controller", "result"],
                RECONCILE,
            )?,
            subtask_seconds: histogram(
                &registry,
                "subtask_seconds",
                "Time from a sub-task's creation to its outcome.",
                &["role", "outcome"],
                WORK,
            )?,
            sandbox_start_seconds: histogram(
                &registry,
                "sandbox_start_seconds",
                "Time from the creation of a sandbox Pod until both containers run.",
                &["kind"],
                WORK,
            )?,
            subtask_failures: counter(
                &registry,
                "subtask_failures_total",
                "Sub-tasks that did not succeed, by skill and reason.",
                &["skill", "reason"],
            )?,
            leases: single(
                &registry,
                "leases",
                "Sub-tasks that hold a sandbox and user data.",
            )?,
            api_requests: counter(
                &registry,
                "api_requests_total",
                "Requests to the Kubernetes API.",
                &["resource", "verb", "code"],
            )?,
            leader: single(&registry, "leader", "1 while this process leads.")?,
            registry,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Objects that wait for a reconcile of `controller`.
    pub fn queue_depth(&self, controller: &str, depth: usize) {
        let depth = i64::try_from(depth).unwrap_or(i64::MAX);
        self.0.queue_depth.with_label_values(&[controller]).set(depth);
    }

    /// One reconcile ended. `result` is a category: `done`, `waiting`, or an error's `category()`.
    pub fn reconciled(&self, controller: &str, result: &str, took: Duration) {
        self.0
            .reconcile_seconds
            .with_label_values(&[controller, result])
            .observe(took.as_secs_f64());
    }

    /// One sub-task got its outcome.
    pub fn subtask_finished(&self, role: &str, outcome: &str, took: Duration) {
        self.0
            .subtask_seconds
            .with_label_values(&[role, outcome])
            .observe(took.as_secs_f64());
    }

    /// One sub-task did not succeed. `skill` is the Skill's name, `none` for a command.
    pub fn subtask_failed(&self, skill: &str, reason: &str) {
        self.0.subtask_failures.with_label_values(&[skill, reason]).inc();
    }

    /// A sandbox became ready. `kind` is `cold` or `warm`.
    pub fn sandbox_started(&self, kind: &str, took: Duration) {
        self.0
            .sandbox_start_seconds
            .with_label_values(&[kind])
            .observe(took.as_secs_f64());
    }

    /// Sub-tasks that hold a lease now.
    pub fn leases(&self, held: usize) {
        self.0.leases.set(i64::try_from(held).unwrap_or(i64::MAX));
    }

    /// One request to the API server was answered, or was not (`code` is `none`).
    pub fn api_request(&self, resource: &str, verb: &str, code: &str) {
        self.0
            .api_requests
            .with_label_values(&[resource, verb, code])
            .inc();
    }

    /// Requests to the API server so far of one kind and verb, whatever came back.
    pub fn api_requests(&self, resource: &str, verb: &str) -> u64 {
        let families = self.0.api_requests.collect();
        let series = families
            .iter()
            .flat_map(prometheus::proto::MetricFamily::get_metric);
        let labelled = |name: &str, value: &str, metric: &prometheus::proto::Metric| {
            metric
                .get_label()
                .iter()
                .any(|label| label.name() == name && label.value() == value)
        };
        let wanted =
            series.filter(|metric| labelled("resource", resource, metric) && labelled("verb", verb, metric));
        // Counters of this type hold whole numbers.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        wanted.map(|metric| metric.get_counter().get_value() as u64).sum()
    }

    /// Whether this process leads.
    pub fn leader(&self, leads: bool) {
        self.0.leader.set(i64::from(leads));
    }

    /// All of them in the text format of Prometheus.
    pub fn text(&self) -> Result<String, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.0.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    metric: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(format!("agentrun_operator_{name}"), help)
}

fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    registered(registry, IntGaugeVec::new(opts(name, help), labels)?)
}

fn single(registry: &Registry, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
    registered(registry, IntGauge::with_opts(opts(name, help))?)
}

fn counter(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    registered(registry, IntCounterVec::new(opts(name, help), labels)?)
}

fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: &[f64],
) -> Result<HistogramVec, prometheus::Error> {
    let opts = HistogramOpts::from(opts(name, help)).buckets(buckets.to_vec());
    registered(registry, HistogramVec::new(opts, labels)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_in_the_text_once_it_was_used() {
        let metrics = Metrics::new().unwrap();
        metrics.queue_depth("run", 3);
        metrics.reconciled("run", "done", Duration::from_millis(3));
        metrics.subtask_finished("Task", "Success", Duration::from_secs(2));
        metrics.subtask_failed("grader", "Timeout");
        metrics.sandbox_started("cold", Duration::from_secs(1));
        metrics.leases(2);
        metrics.api_request("pods", "create", "201");
        metrics.leader(true);
        let text = metrics.text().unwrap();
        for line in [
            r#"agentrun_operator_queue_depth{controller="run"} 3"#,
            r#"agentrun_operator_reconcile_seconds_count{controller="run",result="done"} 1"#,
            r#"agentrun_operator_subtask_seconds_count{outcome="Success",role="Task"} 1"#,
            r#"agentrun_operator_subtask_failures_total{reason="Timeout",skill="grader"} 1"#,
            r#"agentrun_operator_sandbox_start_seconds_count{kind="cold"} 1"#,
            "agentrun_operator_leases 2",
            r#"agentrun_operator_api_requests_total{code="201",resource="pods",verb="create"} 1"#,
            "agentrun_operator_leader 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn writes_of_a_kind_can_be_counted() {
        let metrics = Metrics::new().unwrap();
        metrics.api_request("pods", "create", "201");
        metrics.api_request("pods", "create", "409");
        metrics.api_request("pods", "delete", "200");
        assert_eq!(metrics.api_requests("pods", "create"), 2);
    }
}
