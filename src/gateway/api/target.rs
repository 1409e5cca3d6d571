//! What the path, the query and the body of a request say, checked before anything is done with it.

use super::bounds;
use super::problem::{Code, Problem};
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What stands in a path. Routes without a namespace are about the configured one.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Params {
    namespace: Option<String>,
    id: Option<String>,
    skill: Option<String>,
    function: Option<String>,
}

/// Parameters as they were extracted.
pub(crate) type InPath = Result<Path<Params>, PathRejection>;
/// A query as it was extracted.
pub(crate) type InQuery<T> = Result<Query<T>, QueryRejection>;

impl Params {
    /// The parameters of a request.
    pub(crate) fn of(found: InPath) -> Result<Self, Problem> {
        let found = found.map_err(|error| Problem::new(Code::BadRequest, error.body_text()));
        found.map(|Path(params)| params)
    }

    /// The namespace that the request is about.
    pub(crate) fn namespace(&self, default: Option<&str>) -> Result<String, Problem> {
        let Some(namespace) = self.namespace.as_deref().or(default) else {
            let message =
                "no namespace is configured for the short form, use /api/namespaces/NAMESPACE/… instead";
            return Err(Problem::new(Code::NotFound, message));
        };
        if !is_label(namespace) {
            let message =
                format!("{namespace:?} is no name of a namespace: it takes a-z, 0-9 and -, at most 63");
            return Err(Problem::new(Code::NotFound, message));
        }
        Ok(namespace.to_owned())
    }

    /// The task's id: the name of its AgentRun.
    pub(crate) fn id(&self) -> Result<String, Problem> {
        name(self.id.as_deref(), "task")
    }

    /// The skill, where the path has one.
    pub(crate) fn skill(&self) -> Result<Option<String>, Problem> {
        let skill = self.skill.as_deref();
        skill.map(|_| name(skill, "skill")).transpose()
    }

    /// The function.
    pub(crate) fn function(&self) -> String {
        self.function.clone().unwrap_or_default()
    }
}

fn name(found: Option<&str>, kind: &str) -> Result<String, Problem> {
    let found = found.unwrap_or_default();
    if is_name(found) {
        return Ok(found.to_owned());
    }
    let message = format!("{found:?} is no {kind}: a name has a-z, 0-9, - and ., at most 253 characters");
    Err(Problem::new(Code::NotFound, message))
}

/// A DNS label (RFC 1123).
fn is_label(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inside)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A DNS subdomain, as names of objects are.
fn is_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

/// A query with nothing unknown in it.
pub(crate) fn query<T>(found: InQuery<T>) -> Result<T, Problem> {
    let found = found.map_err(|error| Problem::new(Code::BadRequest, error.body_text()));
    found.map(|Query(query)| query)
}

/// Reads a JSON body of at most `most` bytes.
pub(crate) async fn body<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    most: usize,
) -> Result<T, Problem> {
    is_json(headers)?;
    // One that says how large it is need not be read.
    if body.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
        return Err(too_large(most));
    }
    let reading = Limited::new(body, most).collect();
    let read = tokio::time::timeout(bounds::BODY_TIME, reading).await;
    let read = read.map_err(|_| {
        let limit = bounds::BODY_TIME.as_secs();
        Problem::new(
            Code::RequestTimeout,
            format!("the body did not arrive within {limit} s, send it faster"),
        )
    })?;
    let bytes = read.map_err(|error| unread(&*error, most))?.to_bytes();
    serde_json::from_slice(&bytes).map_err(|error| unexpected(&error))
}

/// The body is JSON of another shape, or none at all.
pub(crate) fn unexpected(error: &serde_json::Error) -> Problem {
    let message = format!("the body is not what is expected here: {error}");
    Problem::new(Code::BadRequest, message)
}

fn unread(error: &(dyn std::error::Error + Send + Sync + 'static), most: usize) -> Problem {
    if error.is::<LengthLimitError>() {
        return too_large(most);
    }
    Problem::new(Code::BadRequest, "the body broke off")
}

fn too_large(most: usize) -> Problem {
    let message = format!("the body is larger than {most} bytes, which is the limit here");
    Problem::new(Code::TooLarge, message)
}

fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let kind = kind.to_str().unwrap_or_default();
    let essence = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    // What `curl -d` says when nobody tells it otherwise. No browser sends a token by itself, so that a foreign page's
    // form can do nothing with it.
    let unsaid = essence == "application/x-www-form-urlencoded";
    if unsaid
        || essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
    {
        return Ok(());
    }
    let message = format!("the body is said to be {kind:?}, send JSON with `Content-Type: application/json`");
    Err(Problem::new(Code::UnsupportedMediaType, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_json_unless_it_is_said_to_be_something_else() {
        let kind = |kind: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
            is_json(&headers).is_ok()
        };
        assert!(is_json(&HeaderMap::new()).is_ok());
        for good in [
            "application/json; charset=utf-8",
            "application/merge-patch+json",
            "application/x-www-form-urlencoded",
        ] {
            assert!(kind(good), "{good}");
        }
        for bad in ["text/plain", "multipart/form-data; boundary=x", "application/xml"] {
            assert!(!kind(bad), "{bad}");
        }
    }

    #[test]
    fn names_that_would_change_a_path_are_no_names() {
        for bad in [
            "",
            "..",
            ".",
            "a/b",
            "a%2fb",
            "A",
            "-a",
            "a-",
            "a..b",
            "ä",
            "a b",
            &"a".repeat(254),
        ] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(is_name("run-1.b") && is_label("team-a") && !is_label("a.b"));
    }

    #[test]
    fn the_short_form_needs_a_configured_namespace() {
        let params = Params::default();
        assert_eq!(params.namespace(Some("team-a")).unwrap(), "team-a");
        assert_eq!(params.namespace(None).unwrap_err().code, Code::NotFound);
    }
}
