//! How a restore goes on: keys, data, what serves, the report and its approval, what acts.

use crds::Reason;
use crds::cluster_deployment::RestoreFrom;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::{KarmadaDeployment, ObjectExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::action::Action;
use super::super::observed::Observed;
use super::super::restoring::{Restoring, record};
use super::gate::restoring;
use super::member_report::report;
use super::record::{differences, settled};
use super::scene::Scene;
use super::{approval, gate};
use crate::addon::Problem;
use crate::key_progress::{KeyProgress, key_progress};
use crate::key_transfer::{KeysSeen, Receiver};

/// Where a restore is from now on.
#[derive(Default)]
pub(in super::super) struct Outcome {
    /// As the status shows it; none: nothing is settled yet.
    pub record: Option<KarmadaRestoredFrom>,
    /// What is said of it; none: it is over.
    pub problem: Option<Problem>,
    /// What is done for it.
    pub actions: Vec<Action>,
    /// Whether nothing else is done for the plane meanwhile.
    pub is_before: bool,
    /// Whether it is at another step than before.
    pub has_moved: bool,
}

impl Outcome {
    fn waits(record: Option<&KarmadaRestoredFrom>, problem: Problem) -> Self {
        Self { record: record.cloned(), problem: Some(problem), ..Self::default() }
    }

    /// The same, before all stages.
    fn before(self) -> Self {
        Self { is_before: true, ..self }
    }

    fn with(self, actions: Vec<Action>) -> Self {
        Self { actions, ..self }
    }

    fn moved(record: KarmadaRestoredFrom, message: &str) -> Self {
        Self { has_moved: true, ..Self::waits(Some(&record.clone()), titled(&record, restoring(message.to_owned()))) }
    }
}

/// Decides. A step ends when what it is for is seen to be so, and none is left out.
pub(in super::super) fn go_on(scene: &Scene<'_>, restoring: &Restoring<'_>) -> Outcome {
    let observed = scene.observed;
    if observed.host.seen().is_none() {
        // What is there is not known: nothing is settled by that.
        return Outcome { record: record(observed.object).cloned(), ..Outcome::default() };
    }
    let (record, step) = match restoring {
        Restoring::Keys(from) => return keys(observed, from, None),
        Restoring::Under(record, step) => (*record, *step),
    };
    if observed.object.spec.paused {
        let message = "paused: it goes on once spec.paused is false".to_owned();
        return Outcome::waits(Some(record), titled(record, Problem { reason: Reason::Paused, message }));
    }
    if let Some(differences) = differences(observed.object, record).filter(|_| step == Step::Data) {
        let message =
            format!("it cannot be restored here: {differences}; delete this KarmadaDeployment, and make it so");
        let problem = titled(record, Problem { reason: Reason::BackupDoesNotFit, message });
        return Outcome::waits(Some(record), problem).before();
    }
    match step {
        Step::Data => data(scene, record),
        Step::Serve => match gate::serve(scene) {
            Some(problem) => Outcome::waits(Some(record), titled(record, problem)).with(left(observed)),
            None => to(record, Step::Compare, "comparing what is in the plane with what is in members"),
        },
        Step::Compare => compare(scene, record).unwrap_or_else(|outcome| *outcome),
        Step::Release => match gate::started(scene, step) {
            Some(problem) => Outcome::waits(Some(record), titled(record, problem)),
            None => to(record, Step::Collect, "starting kube-controller-manager"),
        },
        Step::Collect => match gate::started(scene, step) {
            Some(problem) => Outcome::waits(Some(record), titled(record, problem)),
            None => {
                let restored_at = Some(Time(observed.now));
                let record = KarmadaRestoredFrom { step: None, restored_at, ..record.clone() };
                Outcome { record: Some(record), has_moved: true, ..Outcome::default() }
            }
        },
    }
}

/// The keys of the backup; with them comes that of its snapshot.
fn keys(observed: &Observed<'_>, from: &RestoreFrom, record: Option<&KarmadaRestoredFrom>) -> Outcome {
    let object = observed.object;
    let waits = |reason: Reason, message: String| Outcome::waits(record, Problem { reason, message }).before();
    if let Some(message) = not_mounted(object, observed) {
        return waits(Reason::BackupNotSupported, message);
    }
    match key_progress(&Receiver::plane(object, from), &observed.restore.keys, observed.now) {
        KeyProgress::Waits(message) => waits(Reason::WaitingForBackup, message),
        KeyProgress::Begin(transfer, message) => {
            waits(Reason::FetchingKeys, message).with(vec![Action::FetchKeys(transfer)])
        }
        KeyProgress::Fetching(message) => waits(Reason::FetchingKeys, message),
        KeyProgress::Failed(message, at) => {
            let is_due = at <= observed.now;
            let again = is_due.then_some(Action::DropKeyTransfer).into_iter().collect();
            waits(Reason::KeysNotFetched, message).with(again)
        }
        KeyProgress::Take(message) => waits(Reason::FetchingKeys, message).with(vec![Action::TakeKeys]),
        KeyProgress::Differ(message) => waits(Reason::KeysDiffer, message),
        KeyProgress::InPlace(_, storage) if record.is_some() => {
            let message = format!("BackupStorage {}: what it refers to cannot be used; see it", storage.name);
            waits(Reason::WaitingForBackup, message)
        }
        KeyProgress::InPlace(fetched, storage) => match settled(observed.object, &fetched, storage, observed.facts) {
            Some(new) => Outcome::moved(new, "its keys are in place").before(),
            None => {
                let message = format!("the backup at {} is of no plane: name one of a plane", fetched.location);
                waits(Reason::BackupOfOtherCluster, message)
            }
        },
    }
}

/// Why Pods of the plane cannot mount the storage; none: they can, or it is a bucket.
fn not_mounted(object: &KarmadaDeployment, observed: &Observed<'_>) -> Option<String> {
    let storage = observed.restore.keys.storage.as_ref().filter(|storage| storage.spec.volume.is_some())?;
    let is_beside = object.spec.host_cluster_ref.is_none() && object.spec.host_namespace == object.namespace();
    (!is_beside).then(|| {
        format!(
            "BackupStorage {} is a volume of namespace {}, which Pods of namespace {} of the host cannot mount: copy the backup into a bucket, \
             and make this KarmadaDeployment with that one",
            storage.name(),
            object.namespace(),
            object.spec.host_namespace
        )
    })
}

fn data(scene: &Scene<'_>, record: &KarmadaRestoredFrom) -> Outcome {
    let observed = scene.observed;
    let (material, from) = (&observed.material.restore, observed.object.spec.restore_from.as_ref());
    // The key of the snapshot is fetched again.
    if let (None, Some(from)) = (material, from) {
        return keys(observed, from, Some(record));
    }
    match gate::data(scene) {
        Some((problem, again)) => Outcome::waits(Some(record), titled(record, problem)).with(again),
        None => to(record, Step::Serve, "starting etcd"),
    }
}

/// What fetched the keys: nobody needs it any more.
fn left(observed: &Observed<'_>) -> Vec<Action> {
    let is_left = observed.restore.keys.keys != KeysSeen::Absent || !observed.restore.keys.jobs.is_empty();
    is_left.then_some(Action::DropKeyTransfer).into_iter().collect()
}

/// An error holds it.
fn compare(scene: &Scene<'_>, record: &KarmadaRestoredFrom) -> Result<Outcome, Box<Outcome>> {
    let (observed, seen) = (scene.observed, scene.observed.restore);
    let waits = |problem: Problem| Box::new(Outcome::waits(Some(record), titled(record, problem)));
    if let Some(problem) = gate::serve(scene).or_else(|| gate::fence(scene, record)) {
        return Err(waits(problem));
    }
    let Some(works) = &seen.works else {
        return Err(waits(restoring("reading what the plane has for its members".to_owned())));
    };
    let report = report(works, &seen.members);
    let record = KarmadaRestoredFrom { members: report.members(), ..record.clone() };
    let value = approval::value(observed.object, &record, &report);
    if !approval::is_given(observed.object, &value) {
        let message = approval::message(observed.object, &record, (&report, &record.members), &seen.former);
        let problem = Problem { reason: Reason::WaitingForApproval, message };
        return Err(Box::new(Outcome::waits(Some(&record), problem)));
    }
    let approved = KarmadaRestoredFrom { approved_at: Some(Time(observed.now)), ..record };
    Ok(to(&approved, Step::Release, "starting what schedules and propagates"))
}

fn to(record: &KarmadaRestoredFrom, step: Step, message: &str) -> Outcome {
    Outcome::moved(KarmadaRestoredFrom { step: Some(step), ..record.clone() }, message)
}

/// `restoring backup nightly of plane k1: ...`.
fn titled(record: &KarmadaRestoredFrom, problem: Problem) -> Problem {
    let message = format!("restoring backup {} of plane {}: {}", record.backup, record.plane, problem.message);
    Problem { message, ..problem }
}
