//! Who calls, and what they may do: Kubernetes decides both.

use super::problem::{Code, Problem};
use super::recent::Recent;
use crate::auth::token_review;
use crate::bounds::{REVIEWS, TOKEN};
use agentrun_core::digest::sha256_hex;
use agentrun_core::names::h;
use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::TokenReviewStatus;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The audience that a token for this API must have: `kubectl create token NAME --audience agentrun-api`.
pub(crate) const AUDIENCE: &str = "agentrun-api";

/// The longest `userData.user`.
const LONGEST_USER: usize = 128;

/// A user, as the API server vouches for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Digest of the token: who it is for caches, without the token.
    token: String,
    /// Name of the user.
    pub(crate) name: String,
    uid: Option<String>,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Caller {
    /// The user as `userData.user` takes it: the name, or its hash if that is too long.
    pub(crate) fn user(&self) -> String {
        if self.name.chars().count() <= LONGEST_USER {
            return self.name.clone();
        }
        format!("user-{}", h(32, &[&self.name]))
    }
}

/// What a route does, in the words of Kubernetes' authorisation. The resource is always `agentruns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    /// Makes a run.
    Create,
    /// Reads one run.
    Get,
    /// Reads all.
    List,
    /// Cancels a run.
    Update,
}

impl Verb {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::List => "list",
            Self::Update => "update",
        }
    }

    /// A role of every cluster that allows it.
    const fn role(self) -> &'static str {
        match self {
            Self::Create | Self::Update => "edit",
            Self::Get | Self::List => "view",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    token: String,
    namespace: String,
    verb: Verb,
    name: Option<String>,
}

/// Asks Kubernetes, and remembers the answers for a moment.
pub(crate) struct Doorkeeper {
    client: Client,
    places: Semaphore,
    callers: Recent<String, Result<Arc<Caller>, Problem>>,
    answers: Recent<Question, Result<(), Problem>>,
}

impl Doorkeeper {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            places: Semaphore::new(REVIEWS),
            callers: Recent::default(),
            answers: Recent::default(),
        }
    }

    /// The caller, if they may do `verb` to the run called `name`, or to runs at all, in `namespace`.
    pub(crate) async fn admit(
        &self,
        headers: &HeaderMap,
        namespace: &str,
        verb: Verb,
        name: Option<&str>,
    ) -> Result<Arc<Caller>, Problem> {
        let caller = self.caller(headers).await?;
        let question = Question {
            token: caller.token.clone(),
            namespace: namespace.to_owned(),
            verb,
            name: name.map(str::to_owned),
        };
        if let Some(answer) = self.answers.get(&question) {
            return answer.map(|()| caller);
        }
        let allowed = self.is_allowed(&caller, &question).await?;
        let answer = allowed.then_some(()).ok_or_else(|| forbidden(&caller, &question));
        self.answers.put(question, answer.clone());
        answer.map(|()| caller)
    }

    async fn caller(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Problem> {
        let token = bearer(headers)?;
        let key = sha256_hex(token.as_bytes());
        if let Some(known) = self.callers.get(&key) {
            return known;
        }
        let status = token_review(&Api::all(self.client.clone()), &self.places, token, AUDIENCE).await;
        let status = status.map_err(|error| unanswered("review the token", &error))?;
        let caller = identity(status, key.clone()).map(Arc::new);
        self.callers.put(key, caller.clone());
        caller
    }

    async fn is_allowed(&self, caller: &Caller, question: &Question) -> Result<bool, Problem> {
        let attributes = ResourceAttributes {
            group: Some(agentrun_api::GROUP.to_owned()),
            version: Some(agentrun_api::VERSION.to_owned()),
            resource: Some("agentruns".to_owned()),
            namespace: Some(question.namespace.clone()),
            verb: Some(question.verb.as_str().to_owned()),
            name: question.name.clone(),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: Some(caller.name.clone()),
            uid: caller.uid.clone(),
            groups: Some(caller.groups.clone()),
            extra: Some(caller.extra.clone()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview {
            spec,
            ..SubjectAccessReview::default()
        };
        let _place = self.places.acquire().await.ok();
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let answer = answer.map_err(|error| unanswered("ask what the user may do", &error))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

/// The gateway's own trouble with a review says nothing about the caller.
fn unanswered(action: &str, error: &kube::Error) -> Problem {
    tracing::warn!(
        error = crate::text::chain(error),
        action,
        "the API server gave no review"
    );
    let message = format!("cannot {action}: the Kubernetes API server gives no answer, try again");
    Problem::new(Code::Unavailable, message)
}

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let missing = || {
        let how = "send `Authorization: Bearer TOKEN` with a token from `kubectl create token NAME --audience agentrun-api`";
        Problem::new(Code::Unauthenticated, format!("there is no bearer token: {how}"))
    };
    let value = headers.get(header::AUTHORIZATION).ok_or_else(missing)?;
    let (scheme, token) = value
        .to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .ok_or_else(missing)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(missing());
    }
    if token.len() > TOKEN {
        let message = format!("the token has {} bytes, at most {TOKEN} are taken", token.len());
        return Err(Problem::new(Code::Unauthenticated, message));
    }
    Ok(token)
}

/// What a review proves. An authenticator that does not know audiences names none, and is not believed.
fn identity(status: TokenReviewStatus, token: String) -> Result<Caller, Problem> {
    let refused = |cause: &str| {
        let fix = "get one with `kubectl create token NAME --audience agentrun-api`";
        Err(Problem::new(
            Code::Unauthenticated,
            format!("the token is refused: {cause}; {fix}"),
        ))
    };
    if status.authenticated != Some(true) {
        let cause = status.error.unwrap_or_default();
        return refused(if cause.is_empty() {
            "it is not authentic, has expired or is for another audience than agentrun-api"
        } else {
            &cause
        });
    }
    let audiences = status.audiences.unwrap_or_default();
    if !audiences.iter().any(|audience| audience == AUDIENCE) {
        return refused("it is for another audience, expected agentrun-api");
    }
    let user = status.user.unwrap_or_default();
    let Some(name) = user.username.filter(|name| !name.is_empty()) else {
        return refused("it names no user");
    };
    Ok(Caller {
        token,
        name,
        uid: user.uid,
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
    })
}

fn forbidden(caller: &Caller, question: &Question) -> Problem {
    let (verb, role, namespace) = (question.verb.as_str(), question.verb.role(), &question.namespace);
    let message = format!(
        "{} may not {verb} agentruns.agentrun.dev in namespace {namespace}: bind a role that allows it there, such as the ClusterRole {role}",
        caller.name
    );
    Problem::new(Code::Forbidden, message)
}
