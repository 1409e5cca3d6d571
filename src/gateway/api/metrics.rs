//! What the public API counts.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// The API's metrics; clones share the counters.
#[derive(Clone, Debug)]
pub(crate) struct ApiMetrics {
    /// Answered requests, by route, method and status.
    pub(crate) requests: IntCounterVec,
    /// Streams that are open now.
    pub(crate) streams: IntGauge,
    /// Connections that were cut off since they took nothing.
    pub(crate) stalled: IntCounter,
}

impl ApiMetrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let requests = Opts::new("api_requests_total", "answered requests to the public API");
        let requests = IntCounterVec::new(requests, &["method", "route", "status"])?;
        registry.register(Box::new(requests.clone()))?;
        let streams = IntGauge::new("api_streams", "streams of events that are open now")?;
        registry.register(Box::new(streams.clone()))?;
        let stalled = IntCounter::new(
            "api_stalled_connections_total",
            "connections to the public API that were cut off since they took nothing",
        )?;
        registry.register(Box::new(stalled.clone()))?;
        Ok(Self {
            requests,
            streams,
            stalled,
        })
    }
}
