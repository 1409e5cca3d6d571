//! One try: a request, and its answer read to the end.

use super::access::Access;
use super::fault::{self, Fault, Next, Said};
use super::http::{Client, is_allowed};
use super::limits::{ERROR_BODY, Patience};
use super::reader::{MAX_STREAM, Reader, Reply};
use super::sse::Events;
use super::texts::Texts;
use crate::text::chain;
use agentrun_protocol::chat::ModelFailureCode;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// What one try needs.
pub(super) struct Try<'a> {
    pub(super) client: &'a Client,
    pub(super) access: &'a Access,
    pub(super) body: Bytes,
    pub(super) patience: &'a Patience,
    /// Tools were offered.
    pub(super) offered: bool,
    /// Ids of calls that the conversation has.
    pub(super) ids: &'a BTreeSet<&'a str>,
}

impl Try<'_> {
    /// Asks. What the endpoint says about failures is told without the key.
    pub(super) async fn ask(&self, texts: &mut Texts) -> Result<Reply, Fault> {
        let latest = Instant::now() + self.patience.total;
        let asked = timeout_at(latest, self.send_and_read(texts)).await;
        let asked =
            asked.unwrap_or_else(|_| Err(self.too_slow("the answer was not whole", self.patience.total)));
        asked.map_err(|mut fault| {
            fault.message = self.access.secrets.blot(&fault.message);
            fault
        })
    }

    async fn send_and_read(&self, texts: &mut Texts) -> Result<Reply, Fault> {
        let first = Instant::now() + self.patience.first;
        let response = timeout_at(first, self.send()).await;
        let response = response
            .unwrap_or_else(|_| Err(self.too_slow("the endpoint said nothing", self.patience.first)))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let is_stream = !is_json(response.headers());
        let mut reader = Reader::default();
        if is_stream {
            self.stream(response.into_body(), &mut reader, first, texts)
                .await?;
        } else {
            let body = self.whole(response.into_body(), first).await?;
            texts.push(&reader.whole(&body)?);
        }
        texts.send();
        reader.finish(self.offered, self.ids)
    }

    async fn send(&self) -> Result<Response<Incoming>, Fault> {
        let host = self.access.uri.host().unwrap_or_default();
        let literal = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>();
        if literal.is_ok_and(|address| !is_allowed(address)) {
            let message = format!("no model may be at the address {host}");
            return Err(Fault::new(
                ModelFailureCode::Unreachable,
                Next::Elsewhere,
                message,
            ));
        }
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.access.uri.clone();
        *request.headers_mut() = self.access.headers.clone();
        let headers = request.headers_mut();
        let text = header::HeaderValue::from_static;
        headers.insert(header::CONTENT_TYPE, text("application/json"));
        headers
            .entry(header::ACCEPT)
            .or_insert(text("text/event-stream, application/json"));
        let agent = concat!("agentrun-gateway/", env!("CARGO_PKG_VERSION"));
        headers.entry(header::USER_AGENT).or_insert(text(agent));
        self.client
            .request(request)
            .await
            .map_err(|error| self.no_connection(&error))
    }

    fn no_connection(&self, error: &hyper_util::client::legacy::Error) -> Fault {
        let place = self.place();
        if !error.is_connect() {
            return Fault::unreachable(format!("the connection to {place} broke: {}", chain(error)));
        }
        let cause = chain(error);
        let hint = match cause.contains("certificate") {
            true => "name the authority of its certificate in `caBundleRef`",
            false => "check `endpoint`, and that the network policy of the gateway lets it there",
        };
        Fault::unreachable(format!("{place} cannot be reached: {cause}: {hint}"))
    }

    async fn refused(&self, response: Response<Incoming>) -> Fault {
        let status = response.status();
        let after = retry_after(response.headers(), Timestamp::now());
        let body = timeout(self.patience.connect, bounded(response.into_body(), ERROR_BODY)).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        fault::of_status(status, &Said::read(&body), after)
    }

    async fn stream(
        &self,
        mut body: Incoming,
        reader: &mut Reader,
        first: Instant,
        texts: &mut Texts,
    ) -> Result<(), Fault> {
        let mut events = Events::default();
        let (mut bytes, mut spoke) = (0, false);
        while !reader.is_done() {
            let latest = match spoke {
                true => Instant::now() + self.patience.between,
                false => first,
            };
            let frame = timeout_at(latest, body.frame()).await;
            let frame = match frame {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => break,
                Ok(Some(Err(_))) | Err(_) if reader.has_finished() => break,
                Ok(Some(Err(error))) => {
                    return Err(Fault::bad_answer(format!(
                        "the stream broke off: {}",
                        chain(&error)
                    )));
                }
                Err(_) if spoke => return Err(self.too_slow("the answer stood still", self.patience.between)),
                Err(_) => return Err(self.too_slow("the endpoint said nothing", self.patience.first)),
            };
            let Some(data) = frame.data_ref() else { continue };
            bytes += data.len();
            if bytes > MAX_STREAM {
                return Err(endless());
            }
            for event in events
                .push(data)
                .map_err(|error| Fault::bad_answer(error.to_string()))?
            {
                spoke = true;
                texts.push(&reader.event(&event)?);
            }
        }
        match events.finish() {
            Some(event) => reader.event(&event).map(|text| texts.push(&text)),
            None => Ok(()),
        }
    }

    async fn whole(&self, body: Incoming, first: Instant) -> Result<Bytes, Fault> {
        match timeout_at(first, bounded(body, MAX_STREAM)).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(Some(error))) => Err(Fault::bad_answer(format!(
                "the answer broke off: {}",
                chain(&error)
            ))),
            Ok(Err(None)) => Err(endless()),
            Err(_) => Err(self.too_slow("the answer was not whole", self.patience.first)),
        }
    }

    fn too_slow(&self, what: &str, after: Duration) -> Fault {
        let place = self.place();
        Fault::unreachable(format!("{what} after {} s ({place})", after.as_secs_f32()))
    }

    /// Scheme, host and port: the rest of an address may hold a key.
    fn place(&self) -> String {
        let uri = &self.access.uri;
        let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        let scheme = uri.scheme_str().unwrap_or_default();
        format!("{scheme}://{}{port}", uri.host().unwrap_or_default())
    }
}

fn endless() -> Fault {
    let message = format!(
        "the model wrote more than {MAX_STREAM} bytes without an end: set `maxOutputTokens` of the Model"
    );
    Fault::new(ModelFailureCode::BadAnswer, Next::Elsewhere, message)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim().to_ascii_lowercase().starts_with("application/json"))
}

/// A body of at most `most` bytes; `Err(None)` for a longer one.
async fn bounded(mut body: Incoming, most: usize) -> Result<Bytes, Option<hyper::Error>> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame.map_err(Some)?.data_ref() {
            if all.len() + data.len() > most {
                return Err(None);
            }
            all.extend_from_slice(data);
        }
    }
    Ok(all.into())
}

/// What the answer says about when to come again: seconds, milliseconds or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    let said = text("retry-after")?;
    if let Ok(seconds) = said.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(said).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(name: &'static str, value: &str) -> Option<Duration> {
        let now = "2030-01-01T00:00:00Z".parse().unwrap();
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
        retry_after(&headers, now)
    }

    #[test]
    fn every_form_of_retry_after_is_read() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(after("retry-after", "7"), seconds(7));
        assert_eq!(after("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(after("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(after("retry-after", "Tue, 01 Jan 2030 00:00:20 GMT"), seconds(20));
        assert_eq!(after("retry-after", "Mon, 31 Dec 2029 23:00:00 GMT"), seconds(0));
        assert_eq!(after("retry-after", "soon"), None);
        assert_eq!(after("retry-after", "-1"), None);
    }
}
