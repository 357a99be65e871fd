//! The authorities and keys of its cluster that runs have brought to a machine.

use std::collections::BTreeMap;

use crds::step::{Role, Step};
use crds::{Machine, PlaybookRun};

use super::done::{Done, how_done, joins_by, settings_of};
use crate::rotation::{JOINED, MEMBER, PLUGIN, PODS, STORED, Stage, Subject};

/// What machines of a role have.
pub const fn of_role(role: Role) -> &'static [Subject] {
    match role {
        Role::ControlPlane => &Subject::ALL,
        Role::Worker => &[Subject::Ca],
        Role::Etcd => &[Subject::EtcdCa],
    }
}

/// The step that brings it to a machine that is part of its cluster.
pub const fn step_of(role: Role) -> Step {
    match role {
        Role::ControlPlane | Role::Worker => Step::CertificateAuthorities,
        Role::Etcd => Step::Etcd,
    }
}

/// Steps of a control plane after which etcd may have what it had before: it was restored, or goes on with a member
/// that was behind, and with a dedicated etcd its API server with that.
const SETS_BACK: [Step; 3] = [Step::ReleaseControlPlane, Step::RecoverEtcd, Step::EtcdEndpoints];

/// Adds what the run has brought.
pub(super) fn bring(applied: &mut BTreeMap<String, String>, machine: &Machine, run: &PlaybookRun, host: &str) {
    let frozen = settings_of(run).map(|settings| &settings.authorities);
    if SETS_BACK.into_iter().any(|step| how_done(run, host, step).is_some()) {
        applied.remove(STORED);
    }
    let Some(frozen) = frozen.filter(|frozen| !frozen.is_empty()) else { return };
    let role = machine.spec.role;
    let subjects = || of_role(role).iter().map(|subject| subject.name());
    if how_done(run, host, joins_by(role)) == Some(Done::Played) {
        for name in subjects() {
            let joined = || frozen.get(name).map(|has| if is_settled(has) { has.clone() } else { JOINED.to_owned() });
            let missing = (!applied.contains_key(name)).then(joined).flatten();
            applied.extend(missing.map(|has| (name.to_owned(), has)));
        }
    }
    // It may be asked again for another change.
    if !frozen.contains_key(PLUGIN) && how_done(run, host, step_of(role)).is_some() {
        applied.remove(PLUGIN);
    }
    // The probes compare with what this run has: where a step was passed over, the machine has just that.
    let mut bring = |step, names: &mut dyn Iterator<Item = &str>| {
        if how_done(run, host, step).is_some() {
            applied.extend(names.filter_map(|name| Some((name.to_owned(), frozen.get(name)?.clone()))));
        }
    };
    bring(step_of(role), &mut subjects());
    if role == Role::ControlPlane {
        bring(Step::Etcd, &mut [MEMBER].into_iter());
    }
    bring(Step::RestartPods, &mut [PODS].into_iter());
    bring(Step::KmsPlugin, &mut [PLUGIN].into_iter());
    bring(Step::RewriteSecrets, &mut [STORED].into_iter());
}

fn is_settled(digest: &str) -> bool {
    Stage::in_digest(digest) == Some(Stage::Settled)
}
