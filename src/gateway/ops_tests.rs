use super::*;
use crate::fixtures::Api;

fn get(gateway: &Gateway, path: &str) -> (u16, String) {
    let response = answer(gateway, &Request::builder().uri(path).body(()).unwrap());
    (response.status().as_u16(), response.into_body())
}

#[tokio::test]
async fn probes_and_metrics_answer() {
    let gateway = Api::default().gateway();
    gateway.metrics.results.with_label_values(&["Success"]).inc();
    assert_eq!(get(&gateway, "/health").0, 200);
    assert_eq!(get(&gateway, "/ready").0, 200);
    let (code, metrics) = get(&gateway, "/metrics");
    assert_eq!(code, 200);
    assert!(
        metrics.contains("agentrun_gateway_results_total{outcome=\"Success\"} 1"),
        "{metrics}"
    );
    gateway.health.stopping();
    assert_eq!(
        get(&gateway, "/ready"),
        (503, "not ready: shutting down\n".into())
    );
    assert_eq!(get(&gateway, "/else").0, 404);
}
