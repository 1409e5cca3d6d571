//! How a model is reached: its address, headers and authorities, read from the objects that the Model names.

use super::fault::{Fault, Next};
use crate::board::Name;
use crate::gateway::Gateway;
use crate::objects::Age;
use crate::skills;
use crate::text::chain;
use agentrun_api::{KeyRef, Model, ModelSpec, ReadyReason};
use agentrun_core::redact::Secrets;
use agentrun_protocol::chat::ModelFailureCode;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use kube::ResourceExt as _;

/// Everything that a request needs besides its body.
#[derive(Debug)]
pub(super) struct Access {
    /// Where the request goes.
    pub(super) uri: Uri,
    /// Its headers, the key among them.
    pub(super) headers: HeaderMap,
    /// Authorities to trust, in PEM; the system's when absent.
    pub(super) authorities: Option<Vec<u8>>,
    /// What must be told to nobody.
    pub(super) secrets: Secrets,
}

impl Access {
    /// Whether a request by this one would be the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.uri == other.uri && self.headers == other.headers && self.authorities == other.authorities
    }
}

/// Why a model cannot be reached as it is described.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAccess {
    #[error("`endpoint` is no address of an API: {0}")]
    Endpoint(String),
    #[error(
        "the header `{0}` cannot be sent: names are letters, digits and dashes, values are one line of text"
    )]
    Header(String),
    #[error("there is no key `{}` in the Secret `{}`", .0.key, .0.name)]
    Secret(KeyRef),
    #[error(
        "the gateway may not read the Secret `{name}`: bind the ClusterRole agentrun-secrets to it in the namespace \
         {namespace}"
    )]
    Forbidden { name: String, namespace: String },
    #[error("there is no key `{}` in the ConfigMap `{}`", .0.key, .0.name)]
    ConfigMap(KeyRef),
    #[error("the API server could not be asked for what the Model names")]
    Api(#[source] Box<kube::Error>),
}

impl NoAccess {
    /// The reason of the condition `Ready`; `None` where nothing is known yet.
    pub(super) fn reason(&self) -> Option<ReadyReason> {
        match self {
            Self::Endpoint(_) | Self::Header(_) => Some(ReadyReason::Invalid),
            Self::Secret(_) => Some(ReadyReason::SecretNotFound),
            Self::Forbidden { .. } => Some(ReadyReason::AuthFailed),
            Self::ConfigMap(_) => Some(ReadyReason::ConfigMapNotFound),
            Self::Api(_) => None,
        }
    }
}

impl From<NoAccess> for Fault {
    fn from(no: NoAccess) -> Self {
        let (code, next) = match &no {
            NoAccess::Endpoint(_) | NoAccess::Header(_) | NoAccess::ConfigMap(_) => {
                (ModelFailureCode::Unreachable, Next::Elsewhere)
            }
            NoAccess::Secret(_) | NoAccess::Forbidden { .. } => {
                (ModelFailureCode::AuthFailed, Next::Elsewhere)
            }
            NoAccess::Api(_) => (ModelFailureCode::Unreachable, Next::Again(None)),
        };
        Fault::new(code, next, chain(&no))
    }
}

/// Reads what the Model names.
pub(super) async fn access(gateway: &Gateway, model: &Model, age: Age) -> Result<Access, NoAccess> {
    let namespace = model.namespace().unwrap_or_default();
    let spec = &model.spec;
    let uri = address(&spec.endpoint).map_err(NoAccess::Endpoint)?;
    let mut headers = HeaderMap::new();
    let mut secrets = Vec::new();
    if let Some(key) = &spec.secret_ref {
        let key = secret(gateway, &namespace, key, age).await?;
        let value = format!("Bearer {}", String::from_utf8_lossy(&key));
        headers.insert(
            header::AUTHORIZATION,
            value_of("authorization", value.as_bytes())?,
        );
        secrets.push(key);
    }
    for header in &spec.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let name = name.map_err(|_| NoAccess::Header(header.name.clone()))?;
        let value = match &header.secret_ref {
            Some(key) => {
                let value = secret(gateway, &namespace, key, age).await?;
                secrets.push(value.clone());
                value
            }
            None => header.value.clone().unwrap_or_default().into_bytes(),
        };
        headers.insert(name, value_of(&header.name, &value)?);
    }
    Ok(Access {
        uri,
        headers,
        authorities: authorities(gateway, &namespace, spec, age).await?,
        secrets: Secrets::new(secrets.iter().map(Vec::as_slice)),
    })
}

fn value_of(name: &str, value: &[u8]) -> Result<HeaderValue, NoAccess> {
    let mut value = HeaderValue::from_bytes(value).map_err(|_| NoAccess::Header(name.to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

async fn secret(gateway: &Gateway, namespace: &str, key: &KeyRef, age: Age) -> Result<Vec<u8>, NoAccess> {
    let name = named(namespace, &key.name);
    let found = gateway
        .objects
        .secret(&name, age)
        .await
        .map_err(|error| match error {
            kube::Error::Api(status) if status.code == 403 => NoAccess::Forbidden {
                name: key.name.clone(),
                namespace: namespace.to_owned(),
            },
            error => NoAccess::Api(Box::new(error)),
        })?;
    let value = found
        .as_ref()
        .and_then(|secret| secret.data.as_ref()?.get(&key.key));
    // Files that become Secrets end with a new line more often than not.
    let value = value.map(|value| value.0.trim_ascii().to_vec());
    value
        .filter(|value| !value.is_empty())
        .ok_or_else(|| NoAccess::Secret(key.clone()))
}

async fn authorities(
    gateway: &Gateway,
    namespace: &str,
    spec: &ModelSpec,
    age: Age,
) -> Result<Option<Vec<u8>>, NoAccess> {
    let Some(key) = &spec.ca_bundle_ref else {
        return Ok(None);
    };
    let found = gateway
        .objects
        .config_map(&named(namespace, &key.name), age)
        .await;
    let found = found.map_err(|error| NoAccess::Api(Box::new(error)))?;
    let pem = found.and_then(|config_map| skills::value(&config_map, &key.key));
    pem.map(Some).ok_or_else(|| NoAccess::ConfigMap(key.clone()))
}

fn named(namespace: &str, name: &str) -> Name {
    Name {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// The address of the chat completions below an endpoint, whose query (some clouds have one) is kept.
fn address(endpoint: &str) -> Result<Uri, String> {
    let uri: Uri = endpoint
        .parse()
        .map_err(|error: http::uri::InvalidUri| error.to_string())?;
    let (Some("http" | "https"), Some(_)) = (uri.scheme_str(), uri.authority()) else {
        return Err("it has to begin with http:// or https:// and a name".to_owned());
    };
    let mut path = format!("{}/chat/completions", uri.path().trim_end_matches('/'));
    if let Some(query) = uri.query() {
        path = format!("{path}?{query}");
    }
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).map_err(|error| error.to_string())?);
    Uri::from_parts(parts).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Answer, Api};
    use serde_json::{Value, json};

    const SECRET: &str = "GET /api/v1/namespaces/team-a/secrets/keys";

    fn model(change: impl FnOnce(&mut Value)) -> Model {
        let mut object = json!({
            "apiVersion": "agentrun.dev/v1alpha1", "kind": "Model",
            "metadata": {"name": "m", "namespace": "team-a"},
            "spec": {"endpoint": "https://models.example/v1/", "model": "m", "secretRef": {"name": "keys", "key": "api"}},
        });
        change(&mut object);
        serde_json::from_value(object).unwrap()
    }

    fn keys() -> Answer {
        // "s3cret-key\n"
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"api": "czNjcmV0LWtleQo="}});
        Answer::ok(&secret)
    }

    async fn reached(api: Api, change: impl FnOnce(&mut Value)) -> Result<Access, NoAccess> {
        access(&api.gateway(), &model(change), Age::Recent).await
    }

    #[test]
    fn the_address_is_below_the_endpoint_and_keeps_its_query() {
        for (endpoint, expected) in [
            ("http://x", "http://x/chat/completions"),
            ("https://x/v1/", "https://x/v1/chat/completions"),
            (
                "https://x/deployments/d?api-version=1",
                "https://x/deployments/d/chat/completions?api-version=1",
            ),
        ] {
            assert_eq!(address(endpoint).unwrap().to_string(), expected);
        }
        for endpoint in ["ftp://x", "http://", "/v1", "http://a b/"] {
            assert!(address(endpoint).is_err(), "{endpoint}");
        }
    }

    #[tokio::test]
    async fn the_key_is_sent_without_the_line_end_and_is_told_to_nobody() {
        let api = Api::default().on(SECRET, [keys()]);
        let access = reached(api, |_| ()).await.unwrap();
        let sent = &access.headers[header::AUTHORIZATION];
        assert_eq!(sent, "Bearer s3cret-key");
        assert!(sent.is_sensitive());
        assert_eq!(access.secrets.blot("no s3cret-key here"), "no *** here");
    }

    #[tokio::test]
    async fn headers_come_from_the_model_or_from_a_secret() {
        let api = Api::default().on(SECRET, [keys()]);
        let access = reached(api, |o| {
            o["spec"]["headers"] = json!([
                {"name": "x-team", "value": "a"}, {"name": "api-key", "secretRef": {"name": "keys", "key": "api"}},
            ]);
        });
        let access = access.await.unwrap();
        assert_eq!(
            (&access.headers["x-team"], &access.headers["api-key"]),
            (&"a".parse().unwrap(), &"s3cret-key".parse().unwrap())
        );
    }

    #[tokio::test]
    async fn what_is_missing_is_named_with_what_to_do() {
        let forbidden = Api::default().on(SECRET, [Answer::refusal(403)]);
        let no = reached(forbidden, |_| ()).await.unwrap_err();
        assert_eq!(no.reason(), Some(ReadyReason::AuthFailed));
        assert!(no.to_string().contains("agentrun-secrets") && no.to_string().contains("team-a"));
        let no = reached(Api::default(), |_| ()).await.unwrap_err();
        assert_eq!(no.reason(), Some(ReadyReason::SecretNotFound));
        let api = Api::default().on(SECRET, [keys()]);
        let no = reached(api, |o| o["spec"]["secretRef"]["key"] = json!("other"))
            .await
            .unwrap_err();
        assert!(no.to_string().contains("`other` in the Secret `keys`"), "{no}");
        let api = Api::default().on(SECRET, [keys()]);
        let no = reached(api, |o| {
            o["spec"]["caBundleRef"] = json!({"name": "ca", "key": "ca.crt"});
        });
        assert_eq!(
            no.await.unwrap_err().reason(),
            Some(ReadyReason::ConfigMapNotFound)
        );
        let down = Api::default().on(SECRET, [Answer::refusal(500)]);
        assert_eq!(reached(down, |_| ()).await.unwrap_err().reason(), None);
    }
}
