//! A Karmada plane in Pods of a cluster that was built here, so with a kubelet, a container runtime that pulls images,
//! a Pod network and its DNS; and another such cluster as its member, first Push, then Pull. `make karmada` runs it
//! where Karmada's programs are given.

mod host;
mod members;
mod reference;
mod restore;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use crds::karmada_deployment::KarmadaDeploymentStatus;
use e2e::eventually::Look;
use e2e::karmada::VERSION;
use e2e::karmada::in_pods::InPods;
use e2e::karmada::progress::{self, is_ready, until};
use e2e::karmada::works::{every_api_is_available, it_does_its_work};
use e2e::lifecycle::writer::Writer;
use e2e::objects::VERSION as KUBERNETES;
use e2e::report;
use e2e::scenario::{Scenario, scenario};
use e2e::{backups, plane_backup};
use serde_json::{Value, json};

use host::HostCluster;
use members::MemberCluster;

const NAME: &str = "k3";
/// Where its Pods are. It is not the namespace that Karmada's programs expect.
const NAMESPACE: &str = "planes";
const INSTALL: Duration = Duration::from_secs(600);
const READY: Duration = Duration::from_secs(300);
const SEEN: Duration = Duration::from_secs(180);
/// A member is given up three minutes after its Pod was ready last.
const REPLACED: Duration = Duration::from_secs(480);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Karmada's programs: make karmada"]
async fn a_plane_in_pods_of_a_real_cluster_runs_pods_of_a_member_is_repaired_and_leaves_nothing() {
    scenario("pods", async |scenario: &Scenario| {
        let programs = InPods::serve(7085, 7086).await?;
        scenario.say("the images are made");
        let machines = scenario.machines(&["host", "member"]).await?;
        let [host, member] = machines.as_slice() else { anyhow::bail!("{} machines", machines.len()) };
        host::wish(scenario, &programs, "host", host, "10.248.0.0/16").await?;
        host::wish(scenario, &programs, "member", member, "10.249.0.0/16").await?;
        let host = HostCluster::open(scenario, host).await?;
        let member = MemberCluster::open(scenario).await?;
        let wish = wish(&programs, &host);
        let mut story = Story { scenario, programs: &programs, host, member, wish };
        let played = story.play().await;
        if played.is_err() {
            report::print_pods(&story.host.client, NAMESPACE).await;
            report::print_pods(&story.member.client, "karmada-system").await;
        }
        played
    })
    .await;
}

fn wish(programs: &InPods, host: &HostCluster) -> Value {
    let bundle = json!({"url": programs.bundle.url, "indexSHA256": programs.bundle.index_sha256});
    let storage = json!({"className": host::STORAGE_CLASS, "size": "1Gi"});
    json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment",
        "metadata": {"namespace": "pods", "name": NAME},
        "spec": {
            "version": VERSION, "hostClusterRef": {"name": "host"}, "hostNamespace": NAMESPACE,
            "images": programs.spec(), "crds": {"bundle": bundle},
            "etcd": {"local": {"version": programs.etcd, "storage": storage}},
            "apiServer": {
                "version": KUBERNETES, "serviceType": "NodePort",
                "loadBalancerApiserverIp": host.machine.address().to_string(),
            },
            "kubeControllerManager": {"version": KUBERNETES},
            "unjoinPolicy": "Preserve", "members": [],
        },
    })
}

struct Story<'a> {
    scenario: &'a Scenario,
    programs: &'a InPods,
    host: HostCluster<'a>,
    member: MemberCluster,
    wish: Value,
}

impl Story<'_> {
    async fn play(&mut self) -> Result<()> {
        let install = self.begins().await?;
        self.has_all_that_it_may_have().await?;
        self.runs_pods_of_a_push_member().await?;
        self.runs_pods_of_a_pull_member().await?;
        self.has_several_pods_of_a_component().await?;
        self.has_three_members_of_etcd_and_one_again().await?;
        self.is_put_back().await?;
        self.names_an_image_that_is_not_there().await?;
        self.leaves_nothing().await?;
        self.is_compared(install).await
    }

    /// With its images there already, as its time says nothing of a network otherwise. How long it takes.
    async fn begins(&self) -> Result<Duration> {
        self.host.pull(&self.programs.of_host()).await?;
        self.scenario.say("the host has the images");
        self.apply_until_ready("it").await
    }

    async fn has_all_that_it_may_have(&mut self) -> Result<()> {
        for component in ["search", "descheduler", "metricsAdapter", "estimator"] {
            self.wish["spec"][component] = json!({});
        }
        self.apply_until_ready("it with all that it may have").await?;
        self.host.started_everything_once().await?;
        let plane = self.scenario.cluster_client(NAME).await?;
        every_api_is_available(&plane).await?;
        it_does_its_work(&plane).await?;
        self.scenario.say("its APIs are served, policies pass its webhooks, its leaders lead");
        Ok(())
    }

    /// Applies it, and says how long it takes.
    async fn apply_until_ready(&self, what: &str) -> Result<Duration> {
        let begun = Instant::now();
        self.apply().await?;
        self.ready().await?;
        let took = begun.elapsed();
        self.scenario.say(&format!("{what} is Ready {:.1} s after it was applied", took.as_secs_f32()));
        Ok(took)
    }

    async fn has_several_pods_of_a_component(&mut self) -> Result<()> {
        for component in ["webhook", "scheduler"] {
            self.wish["spec"][component] = json!({"replicas": 2});
        }
        self.apply().await?;
        let status = self.ready().await?;
        for name in ["karmada-webhook", "karmada-scheduler"] {
            let found = status.components.iter().find(|component| component.name == name);
            ensure!(found.is_some_and(|found| found.ready_replicas == 2), "{name}: {found:?}");
            ensure!(self.host.pods_of(name).await?.len() == 2, "{name} has other than two Pods");
        }
        self.scenario.say("two Pods of the webhook and of the scheduler are ready");
        Ok(())
    }

    /// Members come and go one at a time, while a client writes.
    async fn has_three_members_of_etcd_and_one_again(&mut self) -> Result<()> {
        for members in [3, 1] {
            let writer = Writer::to(self.scenario, NAME).await?;
            let begun = Instant::now();
            self.wish["spec"]["etcd"]["local"]["replicas"] = json!(members);
            self.apply().await?;
            self.ready().await?;
            let (count, took) = (self.host.pods_of("etcd").await?.len(), begun.elapsed());
            ensure!(count == members, "{count} Pods of etcd");
            let (seconds, written) = (took.as_secs_f32(), writer.written().told());
            self.scenario.say(&format!("etcd has {members} members after {seconds:.1} s; {written}"));
            if members == 3 {
                self.replaces_a_member_that_has_lost_its_volume().await?;
                // By a run in the metadata cluster, which reaches etcd through the API of the host alone.
                let backup = plane_backup::take(self.scenario, NAME, backups::OF_PLANE_IN_PODS).await?;
                backup.volume.remove(self.scenario).await?;
                self.is_set_back_in_its_place().await?;
            }
        }
        Ok(())
    }

    /// One that is neither the first nor the last, whose data nobody has any more.
    async fn replaces_a_member_that_has_lost_its_volume(&self) -> Result<()> {
        let writer = Writer::to(self.scenario, NAME).await?;
        let begun = Instant::now();
        let before = self.host.volume_of_member(1).await?;
        self.host.lose_volume_of_member(1).await?;
        until(self.scenario, NAME, "has another member", REPLACED, async |plane| {
            let volume = self.host.volume_of_member(1).await?;
            let is_whole = self.host.ready_pods_of("etcd").await? == 3 && is_ready(&plane);
            let message = plane.status.and_then(|status| status.message).unwrap_or_default();
            Ok(match volume.is_some() && volume != before && is_whole {
                true => Look::Done(()),
                false => Look::Waiting(message),
            })
        })
        .await?;
        let (took, written) = (begun.elapsed().as_secs_f32(), writer.written().told());
        self.scenario.say(&format!("a member of etcd that lost its volume is replaced after {took:.1} s; {written}"));
        Ok(())
    }

    /// A Pod that somebody deletes, and programs that are killed: what etcd had is there.
    async fn is_put_back(&self) -> Result<()> {
        let before = self.host.pods_of("karmada-webhook").await?;
        self.host.delete_pod(before.first().map(String::as_str).unwrap_or_default()).await?;
        until(self.scenario, NAME, "has another Pod", SEEN, async |plane| {
            let pods = self.host.pods_of("karmada-webhook").await?;
            let is_other = pods.len() == 2 && pods != before;
            Ok(if is_other && is_ready(&plane) { Look::Done(()) } else { Look::Waiting(pods.join(", ")) })
        })
        .await?;
        for program in ["etcd", "karmada-controller-manager"] {
            let restarts = self.host.restarts_of(program).await?;
            self.host.kill(program).await?;
            until(self.scenario, NAME, &format!("has {program} again"), SEEN, async |plane| {
                let now = self.host.restarts_of(program).await?;
                Ok(match now > restarts && is_ready(&plane) {
                    true => Look::Done(()),
                    false => Look::Waiting(format!("{now} restarts")),
                })
            })
            .await?;
        }
        self.scenario.say("a Pod that was deleted and programs that were killed are back");
        self.sees_them_ready(members::OF_PULL).await
    }

    /// The Pod of before goes on: the plane works meanwhile.
    async fn names_an_image_that_is_not_there(&mut self) -> Result<()> {
        self.wish["spec"]["scheduler"]["version"] = json!("1.18.99");
        self.apply().await?;
        until(self.scenario, NAME, "names the image", SEEN, async |plane| {
            let message = plane.status.and_then(|status| status.message).unwrap_or_default();
            let is_named = message.contains("Pull") && message.contains("karmada-scheduler:v1.18.99");
            Ok(if is_named { Look::Done(()) } else { Look::Waiting(message) })
        })
        .await?;
        self.wish["spec"]["scheduler"] = json!({});
        self.apply().await?;
        self.ready().await.map(drop)
    }

    /// On the host nothing of it is left but the namespace and etcd's volume; the member keeps what it runs.
    async fn leaves_nothing(&self) -> Result<()> {
        let before = (self.member.runs(members::OF_PUSH).await?, self.member.runs(members::OF_PULL).await?);
        progress::delete(self.scenario, NAME, READY).await?;
        host::has_nothing_left(&self.host.client).await?;
        host::has_nothing_left(&self.member.client).await?;
        let after = (self.member.runs(members::OF_PUSH).await?, self.member.runs(members::OF_PULL).await?);
        ensure!(before == after, "{before:?} became {after:?}");
        Ok(())
    }

    /// With upstream's installer, on the host that is free of it again.
    async fn is_compared(&self, install: Duration) -> Result<()> {
        self.scenario.say(&match reference::init(self.scenario, self.programs, &self.host).await? {
            None => "not compared with karmadactl init: karmadactl is not given".to_owned(),
            Some(reference) => format!(
                "karmadactl init takes {:.1} s; ratio {:.2}",
                reference.as_secs_f32(),
                install.as_secs_f32() / reference.as_secs_f32()
            ),
        });
        Ok(())
    }

    async fn apply(&self) -> Result<()> {
        self.scenario.apply(&self.wish).await.map(drop)
    }

    /// Waits until all of it is as it is wished.
    async fn ready(&self) -> Result<KarmadaDeploymentStatus> {
        until(self.scenario, NAME, "Ready", READY, async |plane| {
            let is_there = is_ready(&plane);
            let status = plane.status.unwrap_or_default();
            Ok(if is_there { Look::Done(status) } else { Look::Waiting(format!("{:?}", status.conditions)) })
        })
        .await
    }
}
