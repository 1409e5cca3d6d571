//! What a user's namespace needs before its first Pod: the account without rights, and the policy of each egress set.
//! They have no owner, since runs share them.

use crate::error::ReconcileError;
use crate::policies;
use crate::world::World;
use agentrun_api::EgressRule;
use agentrun_api::names::labels;
use agentrun_api::names::objects::SANDBOX_SERVICE_ACCOUNT;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{Patch, PatchParams};
use std::collections::BTreeMap;

/// Makes what is missing. The inner error is a mistake in `egress` that no retry mends.
pub async fn ensure(
    world: &World,
    namespace: &str,
    egress: &[EgressRule],
) -> Result<Result<(), String>, ReconcileError> {
    let name = policies::policy_name(egress);
    let (account_made, policy_made) = (
        world.memory.is_made(namespace, SANDBOX_SERVICE_ACCOUNT),
        world.memory.is_made(namespace, &name),
    );
    if account_made && policy_made {
        return Ok(Ok(()));
    }
    let installation = world.installation()?;
    let policy = match policies::build_policy(namespace, egress, &installation.gateway, &installation.denied)
    {
        Ok(policy) => policy,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let params = PatchParams::apply(labels::OPERATOR).force();
    if !account_made {
        let api: Api<ServiceAccount> = Api::namespaced(world.operator.client.clone(), namespace);
        api.patch(
            SANDBOX_SERVICE_ACCOUNT,
            &params,
            &Patch::Apply(account(namespace)),
        )
        .await?;
        world.memory.made(namespace, SANDBOX_SERVICE_ACCOUNT);
    }
    let api: Api<NetworkPolicy> = Api::namespaced(world.operator.client.clone(), namespace);
    api.patch(&name, &params, &Patch::Apply(policy)).await?;
    world.memory.made(namespace, &name);
    Ok(Ok(()))
}

fn account(namespace: &str) -> ServiceAccount {
    ServiceAccount {
        metadata: ObjectMeta {
            name: Some(SANDBOX_SERVICE_ACCOUNT.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(
                labels::MANAGED_BY.to_owned(),
                labels::MANAGED_BY_VALUE.to_owned(),
            )])),
            ..ObjectMeta::default()
        },
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}
