//! How a restore goes on: keys, data, what serves, the report and its approval, what acts.

use crds::Reason;
use crds::cluster_deployment::RestoreFrom;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::action::Action;
use super::super::machines::{Machines, RestoreRun};
use super::super::observed::Observed;
use super::super::restoring::{Restoring, is_in_place_on_machines, is_turned, record};
use super::gate::restoring;
use super::handed::source;
use super::member_report::report;
use super::mounted::not_mounted;
use super::record::{differences, settled};
use super::scene::Scene;
use super::stop::stop;
use super::undo::turned;
use super::{approval, gate, on_machines};
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
    pub(super) fn before(self) -> Self {
        Self { is_before: true, ..self }
    }

    fn with(self, actions: Vec<Action>) -> Self {
        Self { actions, ..self }
    }

    /// At another step from now on.
    pub(super) fn moved(record: KarmadaRestoredFrom, message: &str) -> Self {
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
    let is_before_data = step <= Step::Data;
    if observed.object.spec.paused {
        let message = "paused: it goes on once spec.paused is false".to_owned();
        let paused = Outcome::waits(Some(record), titled(record, Problem { reason: Reason::Paused, message }));
        // Of machines nothing else is to be said before they have their data.
        return if scene.machines.is_some() && is_before_data { paused.before() } else { paused };
    }
    if let Some(turned) = turned(observed.object, record, observed.restores, observed.now) {
        return Outcome::moved(turned, "going back to the data of before").before();
    }
    if is_turned(record) {
        return back(scene, record);
    }
    if is_before_data && has_its_data(scene, record) {
        // What makes data would make it anew beneath etcd.
        return to(record, Step::Serve, "starting what serves").before();
    }
    if let Some(differences) = differences(observed.object, record).filter(|_| is_before_data) {
        let how = match record.restore_ref {
            None => "delete this KarmadaDeployment, and make it so",
            Some(_) => "set it so",
        };
        let message = format!("it cannot be restored here: {differences}; {how}");
        let problem = titled(record, Problem { reason: Reason::BackupDoesNotFit, message });
        return Outcome::waits(Some(record), problem).before();
    }
    match step {
        Step::Stage => match scene.machines.and_then(Machines::staged) {
            Some(staged) => {
                let (bump, staged) = (Some(staged.bump), Some(staged));
                to(&KarmadaRestoredFrom { bump, staged, ..record.clone() }, Step::Stop, "stopping what acts").before()
            }
            // The run that brings it reads what it needs itself.
            None => on_machines(scene, record).with(left(observed)),
        },
        Step::Stop if scene.machines.is_some() => on_machines(scene, record),
        Step::Stop => match stop(observed) {
            Some((problem, actions)) => Outcome::waits(Some(record), titled(record, problem)).before().with(actions),
            None => to(record, Step::Data, "making etcd's data").before(),
        },
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

/// What goes on with the machines of a plane that is set back, or what is in the way.
fn on_machines(scene: &Scene<'_>, record: &KarmadaRestoredFrom) -> Outcome {
    let problem = scene.machines.and_then(on_machines::problem);
    let problem = problem.unwrap_or_else(|| restoring("looking at the machines".to_owned()));
    Outcome::waits(Some(record), titled(record, problem)).before()
}

/// The plane stops once more, unless etcd is still there as it was; then it starts as any plane does.
fn back(scene: &Scene<'_>, record: &KarmadaRestoredFrom) -> Outcome {
    let observed = scene.observed;
    let stopping = match scene.machines {
        Some(machines) => (!machines.are_back()).then(|| on_machines(scene, record)),
        None => stop(observed)
            .filter(|_| !has_its_data(scene, record))
            .map(|(problem, actions)| Outcome::waits(Some(record), titled(record, problem)).before().with(actions)),
    };
    match stopping {
        Some(outcome) => outcome,
        None => {
            let undone_at = Some(Time(observed.now));
            let record = KarmadaRestoredFrom { step: None, undone_at, members: Vec::new(), ..record.clone() };
            Outcome {
                record: Some(record),
                has_moved: true,
                is_before: true,
                actions: left(observed),
                ..Outcome::default()
            }
        }
    }
}

/// The keys of the backup; with them comes that of its snapshot.
fn keys(observed: &Observed<'_>, from: &RestoreFrom, record: Option<&KarmadaRestoredFrom>) -> Outcome {
    let object = observed.object;
    let waits = |reason: Reason, message: String| Outcome::waits(record, Problem { reason, message }).before();
    if let Some(message) = not_mounted(object, observed.restore.keys.storage.as_ref()) {
        let message = format!("{message}, and make this KarmadaDeployment with that one");
        return waits(Reason::BackupNotSupported, message);
    }
    let receiver = match record.and_then(|record| record.restore_ref.as_ref()) {
        None => Receiver::plane(object, from),
        Some(_) => Receiver::plane_in_place(object, from),
    };
    match key_progress(&receiver, &observed.restore.keys, observed.now) {
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

fn data(scene: &Scene<'_>, record: &KarmadaRestoredFrom) -> Outcome {
    let observed = scene.observed;
    if let Some(machines) = scene.machines {
        return match on_machines::data(machines) {
            // The run that brings it reads what it needs itself.
            Some(problem) => Outcome::waits(Some(record), titled(record, problem)).before().with(left(observed)),
            None => to(record, Step::Serve, "starting what serves"),
        };
    }
    if observed.material.restore.is_none() {
        // The key of the snapshot is fetched again.
        return match source(observed.object, observed.restores) {
            Some(from) => keys(observed, &from, Some(record)),
            None => Outcome::waits(Some(record), titled(record, gone(record))).before(),
        };
    }
    match gate::data(scene) {
        Some((problem, again)) => Outcome::waits(Some(record), titled(record, problem)).with(again),
        None => to(record, Step::Serve, "starting etcd"),
    }
}

/// What is said where nothing names the identity any more that decrypts the backup.
fn gone(record: &KarmadaRestoredFrom) -> Problem {
    let name = record.restore_ref.as_ref().map(|restore| restore.name.as_str()).unwrap_or_default();
    let message = format!(
        "EtcdRestore {name} is gone, and with it which identity decrypts the backup: make a new EtcdRestore of this plane"
    );
    Problem { reason: Reason::WaitingForBackup, message }
}

/// Whether etcd is there with the data that was made for this very restore.
fn has_its_data(scene: &Scene<'_>, record: &KarmadaRestoredFrom) -> bool {
    if let Some(machines) = scene.machines {
        return is_in_place_on_machines(record) && machines.has(RestoreRun::Restore);
    }
    let workload = scene.observed.facts.etcd.workload.as_ref();
    workload.is_some_and(|workload| record.claims.as_ref() == Some(&workload.claims))
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
