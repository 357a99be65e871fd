//! One chart on one cluster.

use crds::chart::{ChartInputs, ChartReport, ChartVerb, INPUTS_FILE};
use crds::cluster_addon::{AppliedObject, ChartFailure, ChartRelease};
use crds::{Addon, Cluster, ClusterAddon, Reason};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::prepared::prepare_chart;
use super::{ChartSeen, Operation, PreparedChart, Release};
use crate::addon::chart::FrozenChart;
use crate::addon::revision::Revision;
use crate::cluster_addon::action::{Action, Planned};
use crate::cluster_addon::conflict::FieldConflict;
use crate::cluster_addon::observed::{Contact, DocumentSeen, Observed, Seen, State, Trial, Wanted};
use crate::cluster_addon::plan;

const NOW: &str = "2026-01-01T01:00:00Z";

/// Seconds before now.
fn ago(seconds: i64) -> Timestamp {
    NOW.parse::<Timestamp>().unwrap().checked_sub(SignedDuration::from_secs(seconds)).unwrap()
}

fn prepared(version: &str) -> PreparedChart {
    let chart = serde_json::from_value(json!({"oci": "oci://r/charts/agent", "version": version})).unwrap();
    let frozen = FrozenChart::new(&chart, Vec::new(), None).unwrap();
    let revision = Revision {
        version: Some(version.into()),
        template: false,
        files: Vec::new(),
        chart: Some(frozen.clone()),
        health_checks: Vec::new(),
    };
    prepare_chart("agent", &format!("r{version}"), &revision, &frozen, ("a", &Default::default()))
}

struct World {
    object: ClusterAddon,
    addon: Addon,
    seen: Seen,
    chart: ChartSeen,
}

impl World {
    /// Chart 1.0.0 is wanted, and nothing is there.
    fn new() -> Self {
        let object = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterAddon",
            "metadata": {"name": "agent-a", "namespace": "fleet", "uid": "u", "generation": 1, "finalizers": ["clusterwright.dev/objects-removed"]},
            "spec": {"addonRef": {"name": "agent"}, "clusterRef": {"name": "a"}, "revision": "r"},
        });
        let addon = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Addon", "metadata": {"name": "agent", "namespace": "fleet"},
            "spec": {"clusterSelector": {}, "source": {"chart": {"oci": "oci://r/charts/agent", "version": "1.0.0", "timeoutSeconds": 60}}},
        });
        Self {
            object: serde_json::from_value(object).unwrap(),
            addon: serde_json::from_value(addon).unwrap(),
            seen: Seen::default(),
            chart: ChartSeen { image: "executor".into(), kubeconfig: Some("k".into()), ..ChartSeen::default() },
        }
    }

    /// The release has this revision: who made it, and how it is.
    fn has(mut self, revision: i64, status: &str, version: &str, description: &str, object: State) -> Self {
        let release = Release::parse(&json!({
            "name": "agent", "namespace": "default", "version": revision,
            "manifest": "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}",
            "info": {"status": status, "description": description, "last_deployed": ago(30).to_string()},
            "chart": {"metadata": {"name": "agent", "version": version}},
        }));
        let id = AppliedObject {
            version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("default".into()),
            name: "c".into(),
            ..AppliedObject::default()
        };
        let documents = vec![DocumentSeen { object: Some(id), state: object }];
        self.seen = Seen { documents, leftovers: Vec::new(), release };
        self
    }

    /// The release is as 1.0.0 makes it.
    fn installed(self, object: State) -> Self {
        let description = prepared("1.0.0").description("agent");
        self.has(1, "deployed", "1.0.0", &description, object)
    }

    fn release(mut self, release: ChartRelease) -> Self {
        let name = ChartRelease { name: "agent".into(), namespace: "default".into(), ..release };
        self.object.status.get_or_insert_default().release = Some(name);
        self
    }

    /// Its last Job ended so long ago, and failed so often.
    fn failed(self, seconds: i64, attempts: i32, reason: Reason, wanted: &str) -> Self {
        let failure = ChartFailure {
            wanted: wanted.into(),
            attempts,
            reason: reason.into(),
            message: "hook failed".into(),
            retry: None,
        };
        self.release(ChartRelease {
            tried_at: Some(Time(ago(seconds))),
            failure: Some(failure),
            ..ChartRelease::default()
        })
    }

    fn tried(self, seconds: i64) -> Self {
        self.release(ChartRelease { tried_at: Some(Time(ago(seconds))), ..ChartRelease::default() })
    }

    /// The Job of this operation is there; its Pod ended with this.
    fn job(mut self, operation: &Operation, said: Option<&str>) -> Self {
        let mut job: Job = operation.job.clone();
        job.metadata.uid = Some("job".into());
        let labels = job.metadata.labels.clone();
        let state = said.map(|said| json!({"terminated": {"exitCode": 0, "message": said}}));
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"labels": labels, "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "job", "controller": true}]},
            "status": {"containerStatuses": [{
                "name": "executor", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "state": state.unwrap_or_else(|| json!({"running": {}})),
            }]},
        }))
        .unwrap();
        self.chart.jobs = vec![job];
        self.chart.pods = vec![pod];
        self
    }

    /// What the plan has written down is what was.
    fn after(mut self, plan: &Planned) -> Self {
        self.object.status = Some(plan.status.clone());
        self
    }

    fn wanted(&self, version: &str) -> Planned {
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "a", "namespace": "fleet"},
            "spec": {"kubeconfigRef": {"name": "a-kubeconfig"}},
        }))
        .unwrap();
        plan(&Observed {
            now: NOW.parse().unwrap(),
            object: &self.object,
            addon: Some(&self.addon),
            cluster: Some(&cluster),
            others: &[],
            wanted: &Wanted::Chart(Box::new(prepared(version))),
            contact: &Contact::Made(self.seen.clone()),
            chart: &self.chart,
        })
    }
}

fn short(plan: &Planned) -> Vec<String> {
    let short = |action: &Action| match action {
        Action::AddFinalizer => "finalizer".to_owned(),
        Action::RecordRelease(release) => format!("record {}", release.job.is_some()),
        Action::Run(operation) => format!("run {:?}", inputs(operation).verb),
        Action::DropInputs(_) => "drop".to_owned(),
        Action::RemoveFinalizer => "release".to_owned(),
        Action::Record(_) | Action::Adopt { .. } | Action::Apply { .. } | Action::Delete(_) => panic!("{action:?}"),
    };
    plan.actions.iter().map(short).collect()
}

fn inputs(operation: &Operation) -> ChartInputs {
    serde_json::from_slice(&operation.secret.data.as_ref().unwrap()[INPUTS_FILE].0).unwrap()
}

fn operation(plan: &Planned) -> &Operation {
    let mut runs = plan.actions.iter().filter_map(|action| match action {
        Action::Run(operation) => Some(&**operation),
        _ => None,
    });
    runs.next().expect("a Job")
}

fn check(plan: &Planned, actions: &[&str], reason: Reason, part: &str) {
    let ready = &plan.status.conditions[0];
    assert_eq!(
        (short(plan), ready.reason.as_str()),
        (actions.iter().map(|a| (*a).to_owned()).collect(), reason.as_str()),
        "{}",
        ready.message
    );
    assert!(ready.message.contains(part), "{}", ready.message);
}

fn there(trial: Trial) -> State {
    State::There { live: Box::new(json!({"apiVersion": "v1", "kind": "ConfigMap"})), trial }
}

fn said(report: ChartReport) -> String {
    serde_json::to_string(&report).unwrap()
}

const BEGINS: &[&str] = &["record true", "run Upgrade"];

#[test]
fn a_chart_that_is_not_there_is_installed_by_a_job_that_follows_from_what_was_seen() {
    let world = World::new();
    let plan = world.wanted("1.0.0");
    check(&plan, BEGINS, Reason::Applying, "installs release agent with chart agent 1.0.0");
    assert_eq!(operation(&plan), operation(&world.wanted("1.0.0")));
    let Operation { secret, job } = operation(&plan);
    let name = job.metadata.name.clone();
    assert_eq!((&secret.metadata.name, &plan.status.release.as_ref().unwrap().job), (&name, &name));
    assert_eq!(job.metadata.owner_references.as_ref().unwrap()[0].kind, "ClusterAddon");
    let spec = job.spec.as_ref().unwrap();
    assert_eq!((spec.backoff_limit, spec.active_deadline_seconds), (Some(0), Some(420)));
    let pod = spec.template.spec.as_ref().unwrap();
    assert_eq!(pod.automount_service_account_token, Some(false));
    let given = inputs(operation(&plan));
    assert_eq!((given.verb, given.timeout_seconds, given.force_conflicts), (ChartVerb::Upgrade, 60, false));

    // The Job runs, and then is over.
    let world = world.after(&plan).job(operation(&plan), None);
    check(&world.wanted("1.0.0"), &[], Reason::Applying, "runs Helm for chart agent 1.0.0");
    let done = said(ChartReport { succeeded: true, digest: Some("sha256:00".into()), ..ChartReport::default() });
    let world = world.job(operation(&plan), Some(&done)).installed(there(Trial::Same));
    let over = world.wanted("1.0.0");
    check(&over, &["drop"], Reason::Applied, "release agent has revision 1 with chart agent 1.0.0: 1 object as wanted");
    let status = &over.status;
    let release = status.release.as_ref().unwrap();
    assert_eq!((release.job.as_ref(), release.digest.as_deref(), release.revision), (None, Some("sha256:00"), Some(1)));
    assert_eq!(
        (status.revision.as_deref(), status.version.as_deref(), status.objects),
        (Some("r1.0.0"), Some("1.0.0"), 1)
    );
    let rest = world.after(&over).wanted("1.0.0");
    assert!(rest.actions.is_empty() && rest.waits_for.is_none(), "{rest:?}");
}

#[test]
fn another_version_is_an_upgrade_and_the_same_digest_of_another_revision_is_none() {
    let world = World::new().installed(there(Trial::Same)).tried(1000);
    check(
        &world.wanted("1.1.0"),
        BEGINS,
        Reason::Applying,
        "installs release agent with chart agent 1.1.0: it is not as it is wanted",
    );
    let plan = world.wanted("1.0.0");
    check(&plan, &[], Reason::Applied, "as wanted");
    // By hand it was rolled back, or upgraded.
    let by_hand = World::new().has(3, "deployed", "1.0.0", "Rollback to 1", there(Trial::Same)).tried(1000);
    check(&by_hand.wanted("1.0.0"), BEGINS, Reason::Applying, "it is not as it is wanted");
}

#[test]
fn a_bad_version_is_rolled_back_told_and_tried_three_times() {
    let first = World::new().installed(there(Trial::Same)).tried(1000);
    let plan = first.wanted("2.0.0");
    let failed = said(ChartReport {
        reason: Some("ReleaseFailed".into()),
        message: Some("hook failed".into()),
        ..ChartReport::default()
    });
    let world = first.after(&plan).job(operation(&plan), Some(&failed)).has(
        3,
        "deployed",
        "1.0.0",
        "Rollback to 1",
        there(Trial::Same),
    );
    let over = world.wanted("2.0.0");
    let sentence = "chart agent 2.0.0 failed and was rolled back; revision 3 with chart 1.0.0 serves: hook failed; the next attempt is at";
    check(&over, &["drop"], Reason::ReleaseRolledBack, sentence);
    assert!(over.status.conditions.iter().any(|there| there.type_ == "Stalled" && there.status == "True"));
    let wanted = prepared("2.0.0").digest;
    let again = |seconds, attempts| {
        World::new().has(3, "deployed", "1.0.0", "Rollback to 1", there(Trial::Same)).failed(
            seconds,
            attempts,
            Reason::ReleaseFailed,
            &wanted,
        )
    };
    check(&again(10, 1).wanted("2.0.0"), &[], Reason::ReleaseRolledBack, "next attempt is at");
    check(&again(20, 1).wanted("2.0.0"), BEGINS, Reason::Applying, "it is not as it is wanted");
    check(&again(9000, 3).wanted("2.0.0"), &[], Reason::ReleaseRolledBack, "clusterwright.dev/retry=1");
    let mut asked = again(9000, 3);
    asked.object.metadata.annotations = Some([("clusterwright.dev/retry".to_owned(), "1".to_owned())].into());
    let plan = asked.wanted("2.0.0");
    check(&plan, BEGINS, Reason::Applying, "it is not as it is wanted");
    assert_eq!(plan.status.release.as_ref().unwrap().failure.as_ref().unwrap().retry.as_deref(), Some("1"));
    let world = asked.after(&plan);
    check(
        &world.wanted("2.0.0"),
        &["drop", "record true", "run Upgrade"],
        Reason::Applying,
        "it is not as it is wanted",
    );
    // Another wish is worth another attempt, and so is one that was fulfilled before.
    check(&again(1, 3).wanted("1.0.0"), BEGINS, Reason::Applying, "chart agent 1.0.0");
}

#[test]
fn what_cannot_be_fetched_is_tried_for_ever_and_what_never_served_says_so() {
    let wanted = prepared("1.0.0").digest;
    let world = |seconds, reason| World::new().failed(seconds, 30, reason, &wanted);
    check(&world(599, Reason::ChartNotFetched).wanted("1.0.0"), &[], Reason::ChartNotFetched, "next attempt is at");
    check(&world(601, Reason::ChartNotFetched).wanted("1.0.0"), BEGINS, Reason::Applying, "it is not there");
    check(&world(9000, Reason::ReleaseFailed).wanted("1.0.0"), &[], Reason::ReleaseFailed, "for another attempt");
    check(
        &world(9000, Reason::ChartDigestMismatch).wanted("1.0.0"),
        &[],
        Reason::ChartDigestMismatch,
        "for another attempt",
    );
}

#[test]
fn a_job_that_says_nothing_or_is_gone_is_tried_again() {
    let plan = World::new().wanted("1.0.0");
    let world = World::new().after(&plan).job(operation(&plan), Some("Killed"));
    check(&world.wanted("1.0.0"), &["drop"], Reason::ReleaseFailed, "the executor's Pod ended with code 0: Killed");
    // Nobody saw how it ended: it has done its work, or it has not.
    let gone = World::new().after(&plan);
    check(&gone.wanted("1.0.0"), &["drop", "record true", "run Upgrade"], Reason::Applying, "it is not there");
    let done = World::new().after(&plan).installed(there(Trial::Same));
    check(&done.wanted("1.0.0"), &["drop"], Reason::Applied, "as wanted");
}

#[test]
fn what_is_missing_or_was_changed_by_hand_is_put_back_and_what_others_have_set_is_not() {
    let by = |manager: &str| {
        let field = FieldConflict::new(&format!("conflict with \"{manager}\" using v1"), ".data.x");
        there(Trial::Conflicts(vec![field]))
    };
    let world = |state: State, seconds| World::new().installed(state).tried(seconds);
    check(&world(State::Missing, 30).wanted("1.0.0"), BEGINS, Reason::Applying, ": ConfigMap default/c is gone");
    check(&world(State::Missing, 3).wanted("1.0.0"), &[], Reason::Applying, "Helm runs again soon");
    let plan = world(by("kubectl-edit"), 30).wanted("1.0.0");
    check(&plan, BEGINS, Reason::Applying, "was changed by hand");
    assert!(inputs(operation(&plan)).force_conflicts);
    assert!(inputs(operation(&world(by("kubectl-edit"), 30).wanted("1.1.0"))).force_conflicts);
    let upgrade = world(by("autoscaler"), 30).wanted("1.1.0");
    assert!(!inputs(operation(&upgrade)).force_conflicts && !inputs(operation(&upgrade)).take_ownership);
    check(&world(by("autoscaler"), 30).wanted("1.0.0"), &[], Reason::FieldConflict, "autoscaler has set .data.x");
    let mut forced = world(by("autoscaler"), 30);
    forced.addon.spec.conflicts = crds::addon::ConflictPolicy::Force;
    let given = inputs(operation(&forced.wanted("1.0.0")));
    assert!(given.force_conflicts && given.take_ownership);
    // What differs right after Helm has run is an admission webhook's.
    check(&world(there(Trial::Differs), 30).wanted("1.0.0"), &[], Reason::Applied, "as wanted");
    check(
        &world(there(Trial::Differs), 700).wanted("1.0.0"),
        BEGINS,
        Reason::Applying,
        "ConfigMap default/c was changed",
    );
    let mut paused = world(State::Missing, 700);
    paused.addon.spec.paused = true;
    check(&paused.wanted("1.0.0"), &[], Reason::Paused, "Helm runs once spec.paused");
}

#[test]
fn a_release_of_others_is_left_alone_and_an_interrupted_helm_is_given_its_time() {
    let foreign = || World::new().has(4, "deployed", "1.0.0", "Install complete", there(Trial::Same));
    let plan = foreign().wanted("1.0.0");
    check(&plan, &[], Reason::ReleaseTaken, "with revision 4, and this Addon has not made it");
    assert!(plan.status.release.is_none() && plan.status.inventory.is_empty());
    let mut forced = foreign();
    forced.addon.spec.conflicts = crds::addon::ConflictPolicy::Force;
    check(&forced.wanted("1.0.0"), BEGINS, Reason::Applying, "it is not as it is wanted");
    let mut pending =
        World::new().has(2, "pending-upgrade", "1.0.0", "Preparing upgrade", there(Trial::Same)).tried(1000);
    check(&pending.wanted("1.0.0"), &[], Reason::ReleasePending, "revision 2 of release agent is pending-upgrade");
    pending.seen.release.as_mut().unwrap().deployed_at = Some(ago(181));
    let plan = pending.wanted("1.0.0");
    check(&plan, BEGINS, Reason::Applying, "an interrupted Helm is put in order");
    assert!(inputs(operation(&plan)).recover);
}

#[test]
fn credentials_and_authorities_that_are_missing_are_named() {
    let with = |more: Value| {
        let mut world = World::new();
        let mut chart = serde_json::to_value(world.addon.spec.source.chart.as_ref().unwrap()).unwrap();
        chart.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        world.addon.spec.source.chart = Some(serde_json::from_value(chart).unwrap());
        world
    };
    check(
        &with(json!({"credentialsRef": {"name": "login"}})).wanted("1.0.0"),
        &[],
        Reason::SecretNotFound,
        "Secret login of spec.source.chart.credentialsRef",
    );
    check(
        &with(json!({"caRef": {"name": "ca"}})).wanted("1.0.0"),
        &[],
        Reason::ConfigMapNotFound,
        "ConfigMap ca of spec.source.chart.caRef",
    );
    let mut world = World::new();
    world.chart.kubeconfig = None;
    check(&world.wanted("1.0.0"), &[], Reason::SecretNotFound, "kubeconfig of Cluster a");
}

#[test]
fn a_release_that_goes_is_uninstalled_and_then_it_is_released() {
    let leaving = |mut world: World| {
        world.object.metadata.deletion_timestamp = Some(Time(ago(5)));
        world
    };
    let world = leaving(World::new().installed(there(Trial::Same)).tried(1000));
    let plan = world.wanted("1.0.0");
    check(&plan, &["record true", "run Uninstall"], Reason::RemovingObjects, "uninstalls release agent");
    let failed = said(ChartReport {
        reason: Some("UninstallFailed".into()),
        message: Some("no".into()),
        ..ChartReport::default()
    });
    let world = world.after(&plan).job(operation(&plan), Some(&failed));
    let over = world.wanted("1.0.0");
    check(&over, &["drop"], Reason::UninstallFailed, "could not uninstall release agent: no; the next attempt is at");
    let gone = leaving(World::new().tried(1000));
    check(&gone.wanted("1.0.0"), &["release"], Reason::RemovingObjects, "release agent is gone");
    let mut kept = leaving(World::new().installed(there(Trial::Same)).tried(1000));
    kept.object.spec.deletion_policy = crds::addon::AddonDeletionPolicy::Orphan;
    assert_eq!(short(&kept.wanted("1.0.0")), ["release"]);
    // A release that was never this Addon's stays.
    let foreign = leaving(World::new().has(4, "deployed", "1.0.0", "Install complete", there(Trial::Same)));
    assert_eq!(short(&foreign.wanted("1.0.0")), ["release"]);
}
