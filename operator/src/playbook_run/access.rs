//! What an executor may do in a namespace: report on its runs, and nothing else.

use crds::PlaybookRun;
use crds::names::FIELD_MANAGER;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use plan::job::SERVICE_ACCOUNT;

use crate::context::Context;
use crate::error::Error;
use crate::execute;

/// The ClusterRole, installed with the operator, that may patch the status of PlaybookRuns.
const ROLE: &str = "clusterwright-executor";

/// Makes the ServiceAccount and binds its role, as often as it is asked.
pub(super) async fn permit(ctx: &Context, run: &PlaybookRun) -> Result<(), Error> {
    let namespace = run.namespace().unwrap_or_default();
    let metadata = || ObjectMeta {
        name: Some(SERVICE_ACCOUNT.into()),
        namespace: Some(namespace.clone()),
        labels: Some(
            [(
                "app.kubernetes.io/managed-by".to_owned(),
                FIELD_MANAGER.to_owned(),
            )]
            .into(),
        ),
        ..ObjectMeta::default()
    };
    execute::apply(
        ctx,
        &ServiceAccount {
            metadata: metadata(),
            ..ServiceAccount::default()
        },
    )
    .await?;
    let binding = RoleBinding {
        metadata: metadata(),
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".into(),
            kind: "ClusterRole".into(),
            name: ROLE.into(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".into(),
            name: SERVICE_ACCOUNT.into(),
            namespace: Some(namespace.clone()),
            api_group: None,
        }]),
    };
    execute::apply(ctx, &binding).await?;
    Ok(())
}
