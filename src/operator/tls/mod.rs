//! The gateway's certificate: made and renewed by the leading operator, in two Secrets of its own namespace.
//!
//! `agentrun-ca` holds the authority with its key, and during a rotation the next one; only the operator reads it.
//! `agentrun-gateway-tls` holds what the gateway serves with. Deleting `agentrun-ca` is a rotation without overlap:
//! sandboxes that run do not reconnect.

mod decide;
mod issue;

use agentrun_api::names::objects::{CA_SECRET, GATEWAY_TLS_SECRET};
use decide::{AUTHORITY_LIFE, AuthorityStep, SERVING_LIFE, Serving, Span, authority_step, serving_is_due};
use issue::Pair;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt as _};
use std::collections::BTreeMap;

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const NEXT_CERTIFICATE: &str = "next.crt";
const NEXT_KEY: &str = "next.key";
const BUNDLE: &str = "ca.crt";
const FROM: &str = "agentrun.dev/not-before";
const TO: &str = "agentrun.dev/not-after";
const NEXT_FROM: &str = "agentrun.dev/next-not-before";
const NEXT_TO: &str = "agentrun.dev/next-not-after";
const ISSUER: &str = "agentrun.dev/issuer";

/// The certificates cannot be made or stored; the next round tries again.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The API server refused or does not answer.
    #[error("secret {name}: {source}")]
    Secret {
        /// Name of the Secret.
        name: &'static str,
        /// What it said.
        source: kube::Error,
    },
    /// A certificate cannot be made.
    #[error("a certificate cannot be made: {0}")]
    Issue(#[from] rcgen::Error),
}

/// An authority as it is stored.
#[derive(Clone)]
struct Authority {
    pair: Pair,
    span: Span,
}

impl Authority {
    fn make(now: Timestamp) -> Result<Self, rcgen::Error> {
        let span = Span::starting(now, AUTHORITY_LIFE);
        Ok(Self {
            pair: issue::authority(span)?,
            span,
        })
    }
}

/// Makes and renews what has to be; returns the authorities in PEM, as sandboxes get them.
pub async fn ensure(client: &Client, namespace: &str, now: Timestamp) -> Result<String, TlsError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let (active, next) = ensure_authorities(&secrets, now).await?;
    let bundle = match &next {
        Some(next) => format!("{}{}", active.pair.certificate, next.pair.certificate),
        None => active.pair.certificate.clone(),
    };
    ensure_serving(&secrets, &active, &bundle, now).await?;
    Ok(bundle)
}

async fn ensure_authorities(
    secrets: &Api<Secret>,
    now: Timestamp,
) -> Result<(Authority, Option<Authority>), TlsError> {
    let fail = |source| TlsError::Secret {
        name: CA_SECRET,
        source,
    };
    let found = secrets.get_opt(CA_SECRET).await.map_err(fail)?;
    let active = found
        .as_ref()
        .and_then(|secret| stored(secret, (CERTIFICATE, KEY), (FROM, TO)));
    let next = found
        .as_ref()
        .and_then(|secret| stored(secret, (NEXT_CERTIFICATE, NEXT_KEY), (NEXT_FROM, NEXT_TO)));
    let step = authority_step(
        active.as_ref().map(|one| one.span),
        next.as_ref().map(|one| one.span),
        now,
    );
    let (active, next) = match (step, active, next) {
        (AuthorityStep::Keep, Some(active), next) => return Ok((active, next)),
        (AuthorityStep::Prepare, Some(active), _) => (active, Some(Authority::make(now)?)),
        (AuthorityStep::Promote, _, Some(next)) => (next, None),
        _ => (Authority::make(now)?, None),
    };
    tracing::info!(?step, "the authority of the gateway's certificates changes");
    let secret = authority_secret(&active, next.as_ref());
    store(secrets, CA_SECRET, found, secret).await.map_err(fail)?;
    Ok((active, next))
}

async fn ensure_serving(
    secrets: &Api<Secret>,
    authority: &Authority,
    bundle: &str,
    now: Timestamp,
) -> Result<(), TlsError> {
    let fail = |source| TlsError::Secret {
        name: GATEWAY_TLS_SECRET,
        source,
    };
    let issuer = agentrun_core::names::h(20, &[&authority.pair.certificate]);
    let found = secrets.get_opt(GATEWAY_TLS_SECRET).await.map_err(fail)?;
    let serving = found.as_ref().and_then(|secret| {
        let stored = stored(secret, (CERTIFICATE, KEY), (FROM, TO))?;
        let issuer = secret.annotations().get(ISSUER)?.clone();
        Some(Serving {
            span: stored.span,
            issuer,
            bundle: text(secret, BUNDLE)?,
        })
    });
    if !serving_is_due(serving.as_ref(), &issuer, bundle, now) {
        return Ok(());
    }
    let span = Span::starting(now, SERVING_LIFE);
    let pair = issue::serving(span, &authority.pair.key, authority.span)?;
    let data = [
        (CERTIFICATE, pair.certificate),
        (KEY, pair.key),
        (BUNDLE, bundle.to_owned()),
    ];
    let annotations = [
        (FROM, span.from.to_string()),
        (TO, span.to.to_string()),
        (ISSUER, issuer),
    ];
    let secret = secret(GATEWAY_TLS_SECRET, "kubernetes.io/tls", data, annotations);
    store(secrets, GATEWAY_TLS_SECRET, found, secret)
        .await
        .map_err(fail)?;
    tracing::info!(until = %span.to, "the gateway has a new certificate");
    Ok(())
}

fn authority_secret(active: &Authority, next: Option<&Authority>) -> Secret {
    let of = |one: &Authority| (one.pair.certificate.clone(), one.pair.key.clone());
    let (certificate, key) = of(active);
    let mut data = vec![(CERTIFICATE, certificate), (KEY, key)];
    let mut annotations = vec![
        (FROM, active.span.from.to_string()),
        (TO, active.span.to.to_string()),
    ];
    if let Some(next) = next {
        let (certificate, key) = of(next);
        data.extend([(NEXT_CERTIFICATE, certificate), (NEXT_KEY, key)]);
        annotations.extend([
            (NEXT_FROM, next.span.from.to_string()),
            (NEXT_TO, next.span.to.to_string()),
        ]);
    }
    secret(CA_SECRET, "Opaque", data, annotations)
}

fn secret(
    name: &str,
    kind: &str,
    data: impl IntoIterator<Item = (&'static str, String)>,
    annotations: impl IntoIterator<Item = (&'static str, String)>,
) -> Secret {
    use agentrun_api::names::labels::{MANAGED_BY, MANAGED_BY_VALUE};
    let annotations = annotations
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let data = data
        .into_iter()
        .map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())))
        .collect();
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([(
                MANAGED_BY.to_owned(),
                MANAGED_BY_VALUE.to_owned(),
            )])),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        type_: Some(kind.to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}

/// Creates it, or replaces exactly what was found.
async fn store(
    secrets: &Api<Secret>,
    name: &str,
    found: Option<Secret>,
    mut secret: Secret,
) -> Result<(), kube::Error> {
    let params = PostParams::default();
    let Some(found) = found else {
        return secrets.create(&params, &secret).await.map(drop);
    };
    secret.metadata.resource_version = found.metadata.resource_version;
    // The type of a Secret cannot be changed.
    secret.type_ = found.type_;
    secrets.replace(name, &params, &secret).await.map(drop)
}

fn stored(secret: &Secret, keys: (&str, &str), times: (&str, &str)) -> Option<Authority> {
    let time = |key: &str| secret.annotations().get(key)?.parse().ok();
    let pair = Pair {
        certificate: text(secret, keys.0)?,
        key: text(secret, keys.1)?,
    };
    Some(Authority {
        pair,
        span: Span {
            from: time(times.0)?,
            to: time(times.1)?,
        },
    })
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_survive_their_secret() {
        let now: Timestamp = "2026-11-30T10:00:00.5Z".parse().unwrap();
        let (active, next) = (Authority::make(now).unwrap(), Authority::make(now).unwrap());
        let secret = authority_secret(&active, Some(&next));
        let read = stored(&secret, (CERTIFICATE, KEY), (FROM, TO)).unwrap();
        assert!(read.pair == active.pair && read.span == active.span);
        let read = stored(&secret, (NEXT_CERTIFICATE, NEXT_KEY), (NEXT_FROM, NEXT_TO)).unwrap();
        assert!(read.pair == next.pair);
        assert!(
            stored(
                &authority_secret(&active, None),
                (NEXT_CERTIFICATE, NEXT_KEY),
                (NEXT_FROM, NEXT_TO)
            )
            .is_none()
        );
    }

    #[test]
    fn a_secret_that_someone_has_damaged_counts_as_missing() {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let mut secret = authority_secret(&Authority::make(now).unwrap(), None);
        secret
            .metadata
            .annotations
            .as_mut()
            .unwrap()
            .insert(FROM.to_owned(), "yesterday".to_owned());
        assert!(stored(&secret, (CERTIFICATE, KEY), (FROM, TO)).is_none());
    }
}
