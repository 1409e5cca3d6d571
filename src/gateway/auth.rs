//! Who is on the other end of a connection.

use crate::bounds;
use agentrun_api::names::objects::SANDBOX_SERVICE_ACCOUNT;
use agentrun_protocol::channel::AUDIENCE;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use kube::api::{Api, PostParams};
use std::future::Future;
use tokio::sync::Semaphore;

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";

/// A sandbox Pod, as the API server vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodIdentity {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its UID: a Pod of the same name made later is another one.
    pub(crate) uid: String,
}

/// Why a token gives no identity.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthError {
    /// The token proves nothing that is accepted here; another try with it is of no use.
    #[error("{0}")]
    Rejected(String),
    /// The API server could not be asked; the runtime tries again.
    #[error("the API server could not review the token")]
    Unavailable(#[source] Box<kube::Error>),
}

/// Turns a bearer token into the Pod that holds it.
pub(crate) trait Reviewer: Send + Sync + 'static {
    /// Reviews one token.
    fn review(&self, token: &str) -> impl Future<Output = Result<PodIdentity, AuthError>> + Send;
}

/// Reviews by the API server's TokenReview.
#[derive(Debug)]
pub(crate) struct TokenReviewer {
    api: Api<TokenReview>,
    places: Semaphore,
}

impl TokenReviewer {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self {
            api: Api::all(client),
            places: Semaphore::new(bounds::REVIEWS),
        }
    }
}

impl Reviewer for TokenReviewer {
    async fn review(&self, token: &str) -> Result<PodIdentity, AuthError> {
        let status = token_review(&self.api, &self.places, token, AUDIENCE).await;
        identity(status.map_err(|error| AuthError::Unavailable(Box::new(error)))?)
    }
}

/// Asks the API server about one token for `audience`, where one of `places` is free.
pub(crate) async fn token_review(
    api: &Api<TokenReview>,
    places: &Semaphore,
    token: &str,
    audience: &str,
) -> kube::Result<TokenReviewStatus> {
    let spec = TokenReviewSpec {
        token: Some(token.to_owned()),
        audiences: Some(vec![audience.to_owned()]),
    };
    let review = TokenReview {
        spec,
        ..TokenReview::default()
    };
    // Closed never: the error arm only satisfies the type.
    let _place = places.acquire().await.ok();
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.unwrap_or_default())
}

/// What a review proves. Only a Pod-bound token of the sandbox account for our audience is an identity.
fn identity(status: TokenReviewStatus) -> Result<PodIdentity, AuthError> {
    let rejected = |text: &str| Err(AuthError::Rejected(text.to_owned()));
    if status.authenticated != Some(true) {
        let cause = status
            .error
            .unwrap_or_else(|| "it is not authentic or has expired".into());
        return Err(AuthError::Rejected(format!("the token is refused: {cause}")));
    }
    if !status
        .audiences
        .unwrap_or_default()
        .iter()
        .any(|audience| audience == AUDIENCE)
    {
        return rejected("the token is for another audience, expected agentrun-gateway");
    }
    let user = status.user.unwrap_or_default();
    let account = user.username.unwrap_or_default();
    let account: Vec<&str> = account.split(':').collect();
    let ["system", "serviceaccount", namespace, SANDBOX_SERVICE_ACCOUNT] = account[..] else {
        return rejected("the token is of another account, expected service account agentrun-sandbox");
    };
    let extra = user.extra.unwrap_or_default();
    let one = |key: &str| extra.get(key).and_then(|values| values.first()).cloned();
    let (Some(name), Some(uid)) = (one(POD_NAME), one(POD_UID)) else {
        return rejected("the token is not bound to a Pod, expected a projected token");
    };
    Ok(PodIdentity {
        namespace: namespace.to_owned(),
        name,
        uid,
    })
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
