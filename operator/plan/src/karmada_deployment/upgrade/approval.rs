//! Approval of an upgrade: of this one, in this generation of the object.

use crds::KarmadaDeployment;
use crds::commands::{self, Target};
use crds::karmada_deployment::KarmadaUpgradeStatus;
use crds::names::annotation;

use crate::approval::{self, What};

/// What stands for it.
pub(super) fn digest(object: &KarmadaDeployment, record: &KarmadaUpgradeStatus) -> String {
    let acts: Vec<String> =
        record.changes.iter().map(|change| format!("{} {} {}", change.name, change.from, change.to)).collect();
    digest_acts(object, &acts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// What stands for going on although there are fewer Works than before.
pub(super) fn digest_of_loss(object: &KarmadaDeployment, record: &KarmadaUpgradeStatus, works: usize) -> String {
    digest_acts(object, &[&record.digest, "works", &works.to_string()])
}

fn digest_acts(object: &KarmadaDeployment, acts: &[&str]) -> String {
    approval::digest_of(&approval::value(What::Upgrade, &object.metadata, acts))
}

/// Whether the object carries it.
pub(super) fn is_given(object: &KarmadaDeployment, digest: &str) -> bool {
    approval::is_given(&object.metadata, &What::Upgrade.value(digest))
}

/// What a person types to give it.
pub(super) fn command(object: &KarmadaDeployment, digest: &str) -> String {
    let value = approval::to_write(&object.metadata, &What::Upgrade.value(digest));
    commands::annotate(Target::KarmadaDeployment, &object.metadata, annotation::APPROVE, value)
}
