//! What the executor's Pod of one purpose may do: granted once, and withdrawn.

use k8s_openapi::api::core::v1::{LocalObjectReference, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use plan::job::permission::Permission;

use crate::context::Context;
use crate::error::Error;
use crate::execute;
use crate::owned::drop_owned;

/// Makes the ServiceAccount, the Role and the RoleBinding; one that belongs to another is never adopted.
pub(crate) async fn permit(ctx: &Context, permission: &Permission) -> Result<(), Error> {
    let account = pulling(&permission.service_account, &ctx.settings.executor_pull_secrets);
    execute::create_ours(ctx, &account).await?;
    execute::create_ours(ctx, &permission.role).await?;
    execute::create_ours(ctx, &permission.role_binding).await
}

/// The account with these Secrets, which Kubernetes gives to its Pods that name none themselves.
fn pulling(account: &ServiceAccount, secrets: &[String]) -> ServiceAccount {
    let named = secrets.iter().map(|name| LocalObjectReference { name: name.clone() });
    let named = (!secrets.is_empty()).then(|| named.collect());
    ServiceAccount { image_pull_secrets: named, ..account.clone() }
}

/// Takes back what was granted under this name to what belongs to the object with this UID: the right first.
pub(crate) async fn withdraw(ctx: &Context, namespace: &str, name: &str, uid: Option<&str>) -> Result<(), Error> {
    drop_owned::<RoleBinding>(ctx, namespace, name, uid).await?;
    drop_owned::<Role>(ctx, namespace, name, uid).await?;
    drop_owned::<ServiceAccount>(ctx, namespace, name, uid).await
}

#[cfg(test)]
mod tests {
    use super::pulling;
    use k8s_openapi::api::core::v1::ServiceAccount;

    #[test]
    fn the_account_of_a_run_has_the_secrets_that_the_operator_was_given() {
        let check = |secrets: &[&str], expected: Option<Vec<&str>>| {
            let secrets: Vec<String> = secrets.iter().map(|name| (*name).to_owned()).collect();
            let account = pulling(&ServiceAccount::default(), &secrets);
            let names = account.image_pull_secrets.as_ref();
            let names = names.map(|secrets| secrets.iter().map(|secret| secret.name.as_str()).collect());
            assert_eq!(names, expected);
        };
        check(&[], None);
        check(&["registry", "mirror"], Some(vec!["registry", "mirror"]));
    }
}
