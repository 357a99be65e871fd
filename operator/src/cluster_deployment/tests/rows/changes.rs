//! An upgrade, a setting that is rolled out, a renewal and a rotation: what their executors do, and what must have come
//! of it.

use crds::conditions;
use crds::names::{annotation, condition};
use crds::playbook_run::RunPhase;
use crds::step::{Intent, Role};
use crds::{ClusterDeployment, Machine, ObjectExt, PlaybookRun};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use plan::cluster_deployment::pki::TABLE;
use plan::rotation::{Authorities, Subject};
use plan::settings::Contents;
use serde_json::{Value, json};

use super::backups::delete_namespace;
use super::faults::{self, Fault};
use super::{DEPLOYMENT, Deed, TURNS, Told, World, same_end};
use crate::pki;

const OF_CHANGES: [Deed; 4] = [Deed::Upgrade, Deed::Configure, Deed::Renew, Deed::Rotate];
const NEXT: &str = "1.36.0";

/// Whether runs of an intent change machines that stay.
fn is_change(intent: Intent) -> bool {
    [Intent::Prefetch, Intent::Upgrade, Intent::Configure, Intent::Renew].contains(&intent)
}

fn hours_from_now(hours: i64) -> Value {
    let at = Timestamp::now() + SignedDuration::from_hours(hours);
    json!(Timestamp::from_second(at.as_second()).unwrap().to_string())
}

impl World {
    pub(super) fn ask_for_change(&self, deed: Deed) {
        match deed {
            Deed::Renew => self.let_certificates_end(),
            Deed::Rotate => self.ours.edit(DEPLOYMENT, |deployment| {
                deployment["metadata"]["annotations"] = json!({ annotation::ROTATE: "front-proxy-ca.1" });
            }),
            _ => self.ours.edit(DEPLOYMENT, |deployment| {
                if matches!(deed, Deed::Upgrade) {
                    deployment["spec"]["kubernetesVersion"] = json!(NEXT);
                } else {
                    let mirror = json!({ "prefix": "registry.k8s.io", "endpoints": ["http://mirror:5000"] });
                    deployment["spec"]["containerRuntime"] = json!({ "registryMirrors": [mirror] });
                }
                deployment["metadata"]["generation"] = json!(2);
            }),
        }
    }

    /// The control plane was asked for its certificates an hour ago: they end in an hour.
    fn let_certificates_end(&self) {
        let machines = self.ours.list::<Machine>("machines").into_iter();
        for machine in machines.filter(|machine| machine.spec.role == Role::ControlPlane) {
            self.ours.edit(&format!("machines/fleet/{}", machine.name()), |machine| {
                let end = hours_from_now(1);
                machine["status"]["certificates"] = json!([{ "name": "apiserver", "expiresAt": end }]);
                machine["status"]["certificatesExpireAt"] = end;
                machine["status"]["certificatesSeenAt"] = hours_from_now(-1);
            });
        }
    }

    fn authorities(&self) -> Authorities {
        let secret =
            self.ours.get("secrets/fleet/a-pki").and_then(|secret| serde_json::from_value::<Secret>(secret).ok());
        secret.map(|secret| pki::rotation::seen(&secret, TABLE)).unwrap_or_default()
    }

    /// The version of a Kubelet that is installed now.
    pub(super) fn version(&self) -> String {
        let deployment = self.ours.get(DEPLOYMENT).unwrap_or_default();
        let begun = deployment["status"]["startedKubernetesVersion"].as_str();
        begun.or(deployment["spec"]["kubernetesVersion"].as_str()).unwrap_or_default().to_owned()
    }

    /// What the inputs of runs are frozen with, and what executors have done of runs that succeeded.
    pub(super) fn time_of_changes(&self) {
        let Some(deployment) = self.ours.list::<ClusterDeployment>("clusterdeployments").pop() else { return };
        for run in self.ours.list::<PlaybookRun>("playbookruns") {
            let (key, status) = (format!("playbookruns/fleet/{}", run.name()), run.status.clone().unwrap_or_default());
            let intent = run.spec.intent;
            if status.phase.is_some() && status.settings.is_none() && !intent.changes_nothing() {
                let authorities = self.authorities();
                let settings = plan::settings::frozen(&deployment, intent, &Contents::default(), &authorities);
                self.ours.edit(&key, |run| run["status"]["settings"] = json!(settings));
            }
            if status.phase == Some(RunPhase::Succeeded) && status.steps.is_empty() {
                self.ours.edit(&key, |object| end(&run, object));
                if intent == Intent::Upgrade {
                    self.start_kubelets(&run);
                }
            }
        }
    }

    fn start_kubelets(&self, run: &PlaybookRun) {
        let version = run.status.as_ref().and_then(|status| status.settings.as_ref()?.kubernetes_version).unwrap();
        for host in &run.spec.hosts {
            self.theirs.edit(&format!("nodes//{host}"), |node| {
                node["status"]["nodeInfo"]["kubeletVersion"] = json!(format!("v{version}"));
            });
        }
    }

    pub(super) fn told_of_changes(&self) -> Vec<String> {
        let Some(deployment) = self.ours.list::<ClusterDeployment>("clusterdeployments").pop() else {
            return Vec::new();
        };
        let authorities = self.authorities();
        let ring = authorities.rings.get(&Subject::FrontProxyCa);
        let mut told: Vec<String> = self.ours.list::<Machine>("machines").iter().map(|machine| {
            let status = machine.status.clone().unwrap_or_default();
            let applied = status.applied.unwrap_or_default();
            let has = applied.authorities.get(Subject::FrontProxyCa.name());
            let is_last = has.is_none_or(|has| ring.is_some_and(|ring| ring.digest() == *has));
            let host = machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
            let far = status.certificates_expire_at.is_none_or(|end| end.0 > Timestamp::now() + SignedDuration::from_hours(24));
            format!(
                "{host:?} has {:?} and mirrors {:?}, is drained for {:?}, has the authority that there is: {is_last}, certificates for long: {far}",
                status.kubernetes_version, applied.registry_mirrors, machine.spec.drain_for
            )
        }).collect();
        told.sort();
        let status = deployment.status.unwrap_or_default();
        let stated = conditions::find(&status.conditions, condition::UP_TO_DATE);
        let is_up_to_date = stated.map(|stated| (stated.status == "True", &stated.reason));
        let rings = ring.map(|ring| format!("{:?} of {}", ring.stage, ring.trusted.len()));
        let rotated = authorities.rotated.get(&Subject::FrontProxyCa);
        told.push(format!(
            "{:?}, up to date: {is_up_to_date:?}, authority {rings:?}, rotated with {rotated:?}",
            status.started_kubernetes_version.map(|version| version.to_string())
        ));
        told
    }
}

/// What an executor has put into the status of its run in the end.
fn end(run: &PlaybookRun, object: &mut Value) {
    if run.spec.intent == Intent::Renew {
        // What a machine told counts since it is part of its cluster.
        object["metadata"]["creationTimestamp"] = hours_from_now(0);
    }
    let status = &mut object["status"];
    // One without times would be one that was passed over.
    let played = |step| json!({ "name": step, "phase": "Succeeded", "changed": 0, "startedAt": status["startedAt"] });
    let steps: Vec<Value> = run.spec.steps.iter().map(played).collect();
    status["steps"] = json!(steps);
    if is_change(run.spec.intent) {
        status["finishedAt"] = hours_from_now(0);
    }
    if run.spec.intent == Intent::Renew {
        let certificates = json!([{ "name": "apiserver", "expiresAt": hours_from_now(24 * 365) }]);
        for host in status["hosts"].as_array_mut().into_iter().flatten() {
            host["certificates"] = certificates.clone();
        }
    }
}

/// What must have come of it: each machine was brought to it once, and has it.
pub(super) fn assert_done(deed: Deed, told: &Told) {
    let names = ["Prefetch", "Upgrade", "Configure", "Renew"];
    let runs = told.runs.iter().filter(|(title, _)| names.iter().any(|intent| title.starts_with(intent)));
    let runs: Vec<(&str, usize)> = runs.map(|(title, made)| (title.as_str(), *made)).collect();
    let (expected, says): (&[(&str, usize)], &str) = match deed {
        Deed::Upgrade => (
            &[("Prefetch on h1 h2", 1), ("Upgrade on h1", 1), ("Upgrade on h2", 1)],
            "Some(\"1.36.0\"), up to date: Some((true, ",
        ),
        Deed::Configure => {
            (&[("Configure on h1", 1), ("Configure on h2", 1)], "Some(\"1.35.4\"), up to date: Some((true, ")
        }
        Deed::Renew => (&[("Renew on h1", 1)], "up to date: Some((true, "),
        Deed::Rotate => (&[("Configure on h1", 3)], "authority Some(\"Settled of 1\"), rotated with Some(1)"),
        _ => unreachable!("{deed:?} is no change of machines that stay"),
    };
    assert_eq!(runs, expected, "{deed:?}: {told:#?}");
    let (last, machines) = told.changes.split_last().unwrap();
    assert!(last.contains(says), "{deed:?}: {told:#?}");
    assert_eq!(machines.len(), 2, "{deed:?}: {told:#?}");
    for machine in machines {
        assert!(
            machine.ends_with("is drained for [], has the authority that there is: true, certificates for long: true"),
            "{deed:?}: {machine}"
        );
        let version = if matches!(deed, Deed::Upgrade) { NEXT } else { "1.35.4" };
        assert!(machine.contains(&format!("has Some(\"{version}\")")), "{deed:?}: {machine}");
    }
}

#[tokio::test]
async fn a_change_whose_operator_dies_at_any_write_is_ended_by_another_the_same_rows_1_2_and_10() {
    for deed in OF_CHANGES {
        same_end(deed, faults::deaths).await;
    }
}

#[tokio::test]
async fn caches_that_are_behind_upgrade_configure_renew_and_rotate_nothing_twice_rows_3_and_4() {
    for deed in OF_CHANGES {
        same_end(deed, faults::behind).await;
        same_end(deed, faults::misses).await;
    }
}

#[tokio::test]
async fn conflicts_at_any_write_of_a_change_are_tried_again_row_5() {
    for deed in OF_CHANGES {
        same_end(deed, faults::conflicts).await;
    }
}

#[tokio::test]
async fn an_api_server_that_is_busy_away_or_refuses_holds_a_change_rows_6_7_and_8() {
    for deed in OF_CHANGES {
        same_end(deed, faults::refusals).await;
    }
}

#[tokio::test]
async fn whoever_reconciles_a_change_however_often_it_is_done_once_row_12() {
    for deed in OF_CHANGES {
        same_end(deed, |_| vec![Fault::Rival, Fault::Repeats(2)]).await;
    }
}

#[tokio::test]
async fn a_webhook_that_is_down_or_slow_holds_a_change_row_41() {
    for deed in OF_CHANGES {
        same_end(deed, faults::unanswered_webhooks).await;
    }
}

#[tokio::test]
async fn an_operator_of_another_version_goes_on_with_a_change_wherever_it_is_row_33() {
    for deed in OF_CHANGES {
        same_end(deed, faults::other_versions).await;
    }
}

#[tokio::test]
async fn what_cannot_be_decoded_is_waited_for_by_a_change_and_is_not_taken_for_gone_row_47() {
    const KINDS: [&str; 5] = ["clusterdeployments", "playbookruns", "machinesets", "machines", "hosts"];
    for deed in OF_CHANGES {
        let at = |turn| KINDS.map(|plural| Fault::Undecodable(turn, plural));
        same_end(deed, |_| (0..16).step_by(2).flat_map(at).collect()).await;
    }
}

/// Nothing can be made in it any more: machines stay as they are, and with their cluster.
#[tokio::test]
async fn a_namespace_that_is_deleted_in_a_change_cleans_nothing_and_gives_no_host_away_row_31() {
    let standing = World::standing().await;
    for deed in OF_CHANGES {
        for goes_in in (0..16).step_by(3) {
            let world = standing.copy();
            world.ask(deed);
            let ctx = world.operator();
            for _ in 0..goes_in {
                world.turn(&ctx).await;
            }
            let claimed = |world: &World| -> Vec<String> {
                let hosts = world.ours.list::<crds::Host>("hosts").into_iter();
                hosts.filter(|host| host.spec.claim_ref.is_some()).map(|host| host.name().to_owned()).collect()
            };
            let (held, before) = (claimed(&world), world.ours.names());
            assert_eq!(held, ["h1", "h2"], "{deed:?} in turn {goes_in}");
            delete_namespace(&world);
            for _ in 0..TURNS {
                world.turn(&ctx).await;
            }
            let place = format!("{deed:?} in turn {goes_in}: {:#?}", world.ours.requests());
            let made = world.ours.names().into_iter().filter(|name| !before.contains(name));
            assert_eq!(made.collect::<Vec<_>>(), [""; 0], "{place}");
            assert_eq!(claimed(&world), held, "{place}");
            assert_eq!(world.told().nodes, ["h1", "h2"], "{place}");
        }
    }
}
