//! A Karmada plane on machines, without Kubernetes under it: from one machine to three, to the next minor, and without
//! the machine that was its first; then all of them are given back, and another plane begins on them with its backup.
//! Before, it is set back to a backup in its place; it has a member for a while, and gets another authority.
//! The programs are Karmada's own where they are given (`make karmada`). Where they are not, stand-ins show units,
//! ports, certificates and order, and nothing of Karmada.

mod member;
mod restore;

use std::time::Duration;

use age::secrecy::ExposeSecret;
use anyhow::{Context, Result, ensure};
use crds::karmada_deployment::KarmadaDeploymentStatus;
use crds::names::{annotation, condition};
use crds::{Conditions, Host, KarmadaDeployment, Machine};
use e2e::backups;
use e2e::eventually::{Look, eventually};
use e2e::karmada::on_machines::OnMachines;
use e2e::karmada::progress::{self, is_ready, until};
use e2e::karmada::works::{every_api_is_available, it_does_its_work};
use e2e::lifecycle::stage::{host_of, is_available};
use e2e::lifecycle::whole::list_members;
use e2e::lifecycle::writer::Writer;
use e2e::objects::VERSION as KUBERNETES;
use e2e::plane_backup::{self, PlaneBackup};
use e2e::scenario::{Scenario, scenario};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use lab::machines;
use serde_json::{Value, json};
use tokio::task::block_in_place;

/// Which of the machines serves it.
const ADDRESS: &str = "172.30.0.240";
const NAME: &str = "k2";
/// The plane that begins with its backup.
const ANEW: &str = "k3";
const READY: Duration = Duration::from_secs(420);
/// Each part on each machine is brought twice before that.
const ROTATED: Duration = Duration::from_secs(900);
const GONE: Duration = Duration::from_secs(180);
/// Services of a machine: nine components, and the balancer before those of them that the API server asks.
const UNITS: usize = 10;
/// The same of one whose backup has not been approved: the balancer, both API servers and the webhook.
const SERVING: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_plane_grows_is_upgraded_loses_its_first_machine_and_another_begins_with_its_backup() {
    scenario("plane", async |scenario: &Scenario| {
        let programs = OnMachines::serve(7084).await?;
        scenario.say(match programs.are_karmadas {
            true => "the programs are Karmada's own",
            false => "Karmada's programs are stood in for: nothing is proved of what they do",
        });
        let machines = scenario.machines(&["a", "b", "c", "d"]).await?;
        let mut story = Story { scenario, programs: &programs, machines, wish: wish(&programs), name: NAME };
        story.begins_on_one_machine().await?;
        story.grows_to_three().await?;
        story.comes_to_the_next_minor().await?;
        let backup = story.is_backed_up().await?;
        if programs.are_karmadas {
            let member = story.has_a_member().await?;
            story.is_set_back_in_its_place(&backup, Some(&member)).await?;
            story.rotates_its_authority(&member).await?;
            story.has_no_member(&member).await?;
        } else {
            story.is_set_back_in_its_place(&backup, None).await?;
        }
        story.loses_its_first_machine().await?;
        story.gives_its_machines_back().await?;
        story.begins_with(&backup).await?;
        story.gives_its_machines_back().await?;
        backup.taken.volume.remove(scenario).await
    })
    .await;
}

fn wish(programs: &OnMachines) -> Value {
    let bundle = json!({"url": programs.bundle.url, "indexSHA256": programs.bundle.index_sha256});
    let kubernetes = json!({"version": KUBERNETES});
    json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment",
        "metadata": {"namespace": "plane", "name": NAME},
        "spec": {
            "version": programs.versions[0], "mode": "Binary",
            "binary": {
                // The others come when the first one is to be the first.
                "controlPlane": {"replicas": 1, "hosts": ["plane-a"]},
                "endpoint": {"host": ADDRESS, "provider": "Keepalived"},
                "artifacts": bundle,
            },
            "crds": {"bundle": bundle},
            "apiServer": kubernetes, "kubeControllerManager": kubernetes,
            "search": {}, "descheduler": {}, "metricsAdapter": {},
        },
    })
}

struct Story<'a> {
    scenario: &'a Scenario,
    programs: &'a OnMachines,
    machines: Vec<machines::Machine>,
    wish: Value,
    /// The plane that is there.
    name: &'static str,
}

/// A backup of the first plane.
struct Backup {
    taken: PlaneBackup,
    /// The UID of what the client had written.
    written: Option<String>,
}

impl Story<'_> {
    async fn begins_on_one_machine(&self) -> Result<()> {
        self.scenario.apply(&self.wish).await?;
        self.ready(1).await?;
        self.stands_on(&[0]).await?;
        self.works().await
    }

    async fn grows_to_three(&mut self) -> Result<()> {
        let writer = Writer::to(self.scenario, NAME).await?;
        self.wish["spec"]["binary"]["controlPlane"] = json!({"replicas": 3});
        self.scenario.apply(&self.wish).await?;
        self.ready(3).await?;
        self.told(&writer, "three machines");
        Ok(())
    }

    async fn comes_to_the_next_minor(&mut self) -> Result<()> {
        // Each part on each machine in its turn takes minutes: of stand-ins they would show little.
        let Some(version) = self.programs.versions.get(1).filter(|_| self.programs.are_karmadas) else {
            self.scenario.say("it stays at its version: Karmada's programs of another one are not given");
            return Ok(());
        };
        let writer = Writer::to(self.scenario, NAME).await?;
        self.wish["spec"]["version"] = json!(version);
        self.scenario.apply(&self.wish).await?;
        let status = self.ready(3).await?;
        ensure!(status.version.as_deref() == Some(*version), "it has {:?}", status.version);
        self.told(&writer, version);
        self.works().await
    }

    /// By a run on one of its machines.
    async fn is_backed_up(&self) -> Result<Backup> {
        let taken = plane_backup::take(self.scenario, NAME, backups::OF_PLANE_ON_MACHINES).await?;
        Ok(Backup { taken, written: self.written().await? })
    }

    /// Another plane, on the three machines that are left: what had been written is there, and nothing acts before that
    /// is approved.
    async fn begins_with(&mut self, backup: &Backup) -> Result<()> {
        self.name = ANEW;
        let identity = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": self.scenario.name, "name": "identity"},
            "stringData": {"identity": backup.taken.identity.to_string().expose_secret()},
        });
        self.scenario.apply(&identity).await?;
        self.wish["metadata"]["name"] = json!(ANEW);
        self.wish["spec"]["restoreFrom"] = json!({
            "source": {"stored": {"storageRef": {"name": plane_backup::STORAGE}, "location": backup.taken.location}},
            "identityRef": {"name": "identity"},
        });
        self.scenario.apply(&self.wish).await?;
        let value = self.asks_for_approval(READY).await?;
        for machine in &self.machines[1..] {
            let units = self.units(machine).await?;
            ensure!(units.lines().count() == SERVING, "{} runs {units}", machine.name());
        }
        let found = self.written().await?;
        ensure!(found.is_some() && found == backup.written, "it was {:?}, and is {found:?}", backup.written);
        self.annotate(annotation::APPROVE, &value).await?;
        let status = self.ready(3).await?;
        let record = status.restored_from.context("no record of the restore")?;
        ensure!(record.step.is_none() && record.restored_at.is_some(), "{record:?}");
        self.stands_on(&[1, 2, 3]).await?;
        let members = self.scenario.ssh(&self.machines[1], &list_members()).await?;
        ensure!(members.matches("started").count() == 3, "three members of etcd are started: {members}");
        ensure!(self.written().await? == backup.written, "what had been written is another one");
        self.works().await
    }

    /// Waits until it asks for approval; the value to write.
    async fn asks_for_approval(&self, deadline: Duration) -> Result<String> {
        let asks = format!("{}=", annotation::APPROVE);
        until(self.scenario, self.name, "asks for approval", deadline, async |plane| {
            let said = plane.condition(condition::READY).map(|said| said.message.clone()).unwrap_or_default();
            let value = said.split_once(&asks).and_then(|(_, rest)| rest.split(' ').next());
            Ok(value.map(|value| Look::Done(value.trim_end_matches('.').to_owned())).unwrap_or(Look::Waiting(said)))
        })
        .await
    }

    async fn annotate(&self, key: &str, value: &str) -> Result<()> {
        let word = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        let planes = self.scenario.api::<KarmadaDeployment>();
        planes.patch(self.name, &PatchParams::default(), &word).await?;
        Ok(())
    }

    /// The UID of what the client has written into the plane; none: it is not there.
    async fn written(&self) -> Result<Option<String>> {
        let maps: Api<ConfigMap> = Api::namespaced(self.scenario.cluster_client(self.name).await?, "default");
        Ok(maps.get_opt("written").await?.and_then(|found| found.uid()))
    }

    async fn loses_its_first_machine(&self) -> Result<()> {
        let first = self.members().await?.into_iter().find(|machine| host_of(machine) == Some("plane-a"));
        let first = first.context("no Machine is on plane-a")?;
        let writer = Writer::to(self.scenario, NAME).await?;
        self.scenario.say("plane-a loses its power");
        block_in_place(|| self.machines[0].kill())?;
        let machines = self.scenario.api::<Machine>();
        machines.delete(&first.name_any(), &DeleteParams::default()).await?;
        let generation = machines.get(&first.name_any()).await?.metadata.generation.unwrap_or_default();
        let word = json!({"metadata": {"annotations": {annotation::FORCE_REMOVE: generation.to_string()}}});
        machines.patch(&first.name_any(), &PatchParams::default(), &Patch::Merge(&word)).await?;
        eventually("another machine in its place", READY, async || {
            let members = self.members().await?;
            let names: Vec<&str> = members.iter().filter_map(host_of).collect();
            let is_replaced = names.len() == 3 && !names.contains(&"plane-a");
            Ok(if is_replaced { Look::Done(()) } else { Look::Waiting(names.join(", ")) })
        })
        .await?;
        self.ready(3).await?;
        self.told(&writer, "another machine in place of the first");
        self.stands_on(&[1, 2, 3]).await?;
        let members = self.scenario.ssh(&self.machines[1], &list_members()).await?;
        ensure!(members.matches("started").count() == 3, "three members of etcd are started: {members}");
        self.works().await
    }

    async fn gives_its_machines_back(&self) -> Result<()> {
        progress::delete(self.scenario, self.name, GONE).await?;
        eventually("Hosts Available", GONE, async || {
            let hosts = self.scenario.api::<Host>().list(&ListParams::default()).await?;
            let free: Vec<String> = hosts.iter().filter(|host| is_available(host)).map(ResourceExt::name_any).collect();
            let are_all = ["plane-b", "plane-c", "plane-d"].iter().all(|name| free.iter().any(|host| host == name));
            Ok(if are_all { Look::Done(()) } else { Look::Waiting(free.join(", ")) })
        })
        .await?;
        for machine in &self.machines[1..] {
            let left = "ls -d /etc/karmada /var/lib/karmada /opt/clusterwright/karmada /var/lib/etcd/* \
                        /etc/systemd/system/clusterwright-karmada-* 2>/dev/null || true";
            let left = self.scenario.ssh(machine, left).await?;
            ensure!(left.is_empty(), "{} has {left}", machine.name());
        }
        Ok(())
    }

    /// Waits until all of it is as it is wished, on so many machines.
    async fn ready(&self, machines: usize) -> Result<KarmadaDeploymentStatus> {
        until(self.scenario, self.name, &format!("Ready on {machines} machines"), READY, async |plane| {
            let count = self.members().await?.len();
            let is_there = is_ready(&plane) && count == machines;
            let status = plane.status.unwrap_or_default();
            Ok(match is_there {
                true => Look::Done(status),
                false => Look::Waiting(format!("{count} machines; {:?}", status.conditions)),
            })
        })
        .await
    }

    async fn members(&self) -> Result<Vec<Machine>> {
        let all = self.scenario.api::<Machine>().list(&ListParams::default()).await?;
        Ok(all.into_iter().filter(|machine| machine.spec.cluster_name == self.name).collect())
    }

    /// Those of the lab that it has.
    async fn its_machines(&self) -> Result<Vec<&machines::Machine>> {
        let members = self.members().await?;
        let hosts: Vec<&str> = members.iter().filter_map(host_of).collect();
        Ok(self.machines.iter().filter(|machine| hosts.contains(&machine.name())).collect())
    }

    fn told(&self, writer: &Writer, what: &str) {
        self.scenario.say(&format!("{what}; {}", writer.written().told()));
    }

    /// Each of these machines has every service, and keys that only it reads.
    async fn stands_on(&self, machines: &[usize]) -> Result<()> {
        for machine in machines.iter().map(|at| &self.machines[*at]) {
            let units = self.units(machine).await?;
            ensure!(units.lines().count() == UNITS, "{} runs {units}", machine.name());
            let open = self.scenario.ssh(machine, "find /etc/karmada/pki -type f -perm /o=rwx").await?;
            ensure!(open.is_empty(), "anybody on {} reads {open}", machine.name());
        }
        Ok(())
    }

    /// The services of a machine that run but its estimators, a line each.
    async fn units(&self, machine: &machines::Machine) -> Result<String> {
        let units = "systemctl list-units --plain --no-legend --state=active 'clusterwright-karmada-*' | \
                     grep -v -- -estimator- || true";
        self.scenario.ssh(machine, units).await
    }

    /// Its APIs are served at its endpoint; and, where the programs are Karmada's, they do what a plane is for.
    async fn works(&self) -> Result<()> {
        let plane = self.scenario.cluster_client(self.name).await?;
        every_api_is_available(&plane).await?;
        if !self.programs.are_karmadas {
            return Ok(());
        }
        it_does_its_work(&plane).await
    }
}
