//! What a request asks the API server for, and which requests a fault means.

use http::{Method, Request};

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is done.
    pub verb: Verb,
    /// Plural of the resource, with `/status` or another subresource; empty for paths that name none.
    pub resource: String,
    /// Namespace, for what has one.
    pub namespace: Option<String>,
    /// Name; a create has none in its path.
    pub name: Option<String>,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// GET of one object.
    Get,
    /// GET of many.
    List,
    /// A watch.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl Verb {
    /// Whether it changes anything.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl Call {
    /// Reads `/api/v1/…` or `/apis/GROUP/VERSION/…`, then `[namespaces/NS/]RESOURCE[/NAME[/SUB]]`.
    pub fn of<B>(request: &Request<B>) -> Self {
        let uri = request.uri();
        let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => &[],
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, inner @ ..] if !inner.is_empty() => {
                (Some((*namespace).to_owned()), inner)
            }
            rest => (None, rest),
        };
        let resource = match rest {
            [] => String::new(),
            [resource, _, sub, ..] => format!("{resource}/{sub}"),
            [resource, ..] => (*resource).to_owned(),
        };
        let name = rest.get(1).map(|name| (*name).to_owned());
        let query = uri.query().unwrap_or_default();
        let is_watch = query
            .split('&')
            .any(|pair| matches!(pair, "watch=true" | "watch=1"));
        let verb = match *request.method() {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ if is_watch => Verb::Watch,
            _ if name.is_some() => Verb::Get,
            _ => Verb::List,
        };
        Self {
            verb,
            resource,
            namespace,
            name,
        }
    }
}

/// Which requests a fault means.
#[derive(Clone, Debug)]
pub struct Matcher {
    verbs: fn(Verb) -> bool,
    resource: Option<String>,
}

impl Matcher {
    /// Everything that changes something. Events are left out: they are published for people, and nothing follows
    /// from them.
    pub fn writes() -> Self {
        Self {
            verbs: Verb::writes,
            resource: None,
        }
    }

    /// GET of one object or many; no watches.
    pub fn reads() -> Self {
        Self {
            verbs: |verb| matches!(verb, Verb::Get | Verb::List),
            resource: None,
        }
    }

    /// Watches.
    pub fn watches() -> Self {
        Self {
            verbs: |verb| verb == Verb::Watch,
            resource: None,
        }
    }

    /// Of these, only requests for one resource, for example `pods` or `subtasks/status`.
    #[must_use]
    pub fn of(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Whether it means this request.
    pub fn matches(&self, call: &Call) -> bool {
        (self.verbs)(call.verb)
            && match &self.resource {
                Some(resource) => *resource == call.resource,
                None => call.resource != "events",
            }
    }
}
