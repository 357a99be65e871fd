//! What the executor's Pod of one purpose may do: granted once, and withdrawn.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use plan::job::permission::Permission;

use crate::context::Context;
use crate::error::Error;
use crate::execute;
use crate::owned::drop_owned;

/// Makes the ServiceAccount, the Role and the RoleBinding; one that belongs to another is never adopted.
pub(crate) async fn permit(ctx: &Context, permission: &Permission) -> Result<(), Error> {
    execute::create_ours(ctx, &permission.service_account).await?;
    execute::create_ours(ctx, &permission.role).await?;
    execute::create_ours(ctx, &permission.role_binding).await
}

/// Takes back what was granted under this name to what belongs to the object with this UID: the right first.
pub(crate) async fn withdraw(ctx: &Context, namespace: &str, name: &str, uid: Option<&str>) -> Result<(), Error> {
    drop_owned::<RoleBinding>(ctx, namespace, name, uid).await?;
    drop_owned::<Role>(ctx, namespace, name, uid).await?;
    drop_owned::<ServiceAccount>(ctx, namespace, name, uid).await
}
