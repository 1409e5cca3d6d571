//! Faults in the stream of a watch: one JSON document a line.

use super::Action;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use kube::client::DynBody;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tower::BoxError;

/// The API server's word that a watch cannot go on from where it was.
const EXPIRED: &str = r#"{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","code":410,"reason":"Expired","message":"too old resource version, on purpose"}}"#;

type Line = (Instant, Result<Bytes, BoxError>);

/// Reads the body as fast as it comes, and hands on what the fault lets through.
pub(super) fn faulty(body: Box<DynBody>, action: Action) -> Box<DynBody> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(pump(body, action, sender));
    let lines = futures::stream::unfold(receiver, |mut receiver| async move {
        let (due, line): Line = receiver.recv().await?;
        tokio::time::sleep_until(due).await;
        Some((line.map(Frame::data), receiver))
    });
    Box::new(StreamBody::new(lines.boxed()))
}

/// Ends with the body, with the fault, or when nobody reads any more.
async fn pump(mut body: Box<DynBody>, action: Action, sender: mpsc::UnboundedSender<Line>) {
    let (mut rest, mut events) = (BytesMut::new(), 0);
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = sender.closed() => return,
        };
        match frame {
            None => return,
            Some(Err(error)) => {
                let _ = sender.send((Instant::now(), Err(error)));
                return;
            }
            Some(Ok(frame)) => rest.extend(frame.into_data().unwrap_or_default()),
        }
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = rest.split_to(end + 1).freeze();
            events += 1;
            if pass(line, events, &action, &sender).await.is_break() {
                return;
            }
        }
    }
}

async fn pass(
    line: Bytes,
    events: usize,
    action: &Action,
    sender: &mpsc::UnboundedSender<Line>,
) -> std::ops::ControlFlow<()> {
    let send = |due: Instant, line: Bytes| {
        let _ = sender.send((due, Ok(line)));
    };
    let now = Instant::now();
    match action {
        Action::Delay(delay) => send(now + *delay, line),
        Action::Repeat => {
            send(now, line.clone());
            send(now, line);
        }
        Action::CutAfter(most) => {
            send(now, line);
            if events >= *most {
                let _ = sender.send((now, Err("the watch broke".into())));
                return std::ops::ControlFlow::Break(());
            }
        }
        Action::Gap { events: most, hidden } => {
            send(now, line);
            if events >= *most {
                tokio::time::sleep(*hidden).await;
                send(Instant::now(), Bytes::from(format!("{EXPIRED}\n")));
                return std::ops::ControlFlow::Break(());
            }
        }
        _ => send(now, line),
    }
    std::ops::ControlFlow::Continue(())
}
