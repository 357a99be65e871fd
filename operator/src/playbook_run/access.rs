//! What the executor of a run may do: granted once, and withdrawn.

use crds::PlaybookRun;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use plan::playbook_run::Permission;

use super::ownership::drop_ours;
use crate::context::Context;
use crate::error::Error;
use crate::execute;

/// Makes the ServiceAccount, the Role and the RoleBinding; one that belongs to another is never adopted.
pub(super) async fn permit(ctx: &Context, permission: &Permission) -> Result<(), Error> {
    execute::create_ours(ctx, &permission.service_account).await?;
    execute::create_ours(ctx, &permission.role).await?;
    execute::create_ours(ctx, &permission.role_binding).await
}

/// Takes back what the executor may do: the right first.
pub(super) async fn withdraw(ctx: &Context, run: &PlaybookRun) -> Result<(), Error> {
    drop_ours::<RoleBinding>(ctx, run).await?;
    drop_ours::<Role>(ctx, run).await?;
    drop_ours::<ServiceAccount>(ctx, run).await
}
