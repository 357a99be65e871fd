//! The Secret that takes what a run reads of secrets on its machines: it is there for nothing else, its name follows
//! from the run's, and it goes with the run. What is read is in no status and in no log.

use crds::PlaybookRun;
use crds::names::read_kubeconfigs_secret;
use crds::{ObjectExt, step::Step};
use k8s_openapi::api::core::v1::Secret;

use crate::job;

/// The Secret, empty; `None`: the run reads nothing that is secret.
pub(super) fn receiver(run: &PlaybookRun) -> Option<Secret> {
    run.spec.steps.contains(&Step::ReadKubeconfig).then(|| Secret {
        metadata: job::metadata(run, &read_kubeconfigs_secret(run.name())),
        type_: Some("Opaque".into()),
        ..Secret::default()
    })
}
