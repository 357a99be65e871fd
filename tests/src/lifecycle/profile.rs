//! Clusters that scenarios are played on, one after the other; what comes after a scenario that failed gets a new one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use lab::Lab;
use lab::endpoint::Endpoint;
use lab::machines::Machine;
use serde_json::json;

use super::scenario::LifecycleScenario;
use super::stage::Stage;
use super::table::Row;
use crate::objects::{OLD_PATCH, OLDER};
use crate::own_network;
use crate::scenario::{Scenario, within};

/// Where the load balancer's stand-in listens.
const BALANCER: u16 = 7021;
/// An address of the lab's network that no machine gets.
const VIRTUAL_ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 241);

/// A kind of cluster, with the pool around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// One control plane and one worker; three spare machines.
    Workers,
    /// Three machines, and no cluster yet.
    Race,
    /// Two machines, and no cluster yet.
    Addons,
    /// One control plane and one worker; two spare machines.
    Loss,
    /// One control plane behind a load balancer; four spare machines.
    ControlPlane,
    /// Three control planes behind a load balancer, etcd on a machine of its own; three spare machines.
    Dedicated,
    /// Three control planes that hold the endpoint themselves.
    Keepalived,
    /// One control plane and one worker, which are backed up; a spare machine.
    Restores,
    /// One control plane and one worker, etcd on three machines of its own, which are backed up, and a network of the
    /// owner's without kube-proxy.
    DedicatedRestores,
    /// One control plane and one worker, which are backed up; two spare machines.
    Beginnings,
    /// Three control planes behind a load balancer and two workers, with the lab's oldest version of Kubernetes.
    OlderMinor,
    /// One control plane and one worker, etcd on three machines of its own, with the lab's older minor of Kubernetes,
    /// and a network of the owner's without kube-proxy.
    OlderDedicated,
    /// Three control planes behind a load balancer and two workers.
    Changes,
    /// Three control planes that hold the endpoint themselves, for changes.
    KeepalivedChanges,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 14] = [
        Profile::Workers,
        Profile::Race,
        Profile::Addons,
        Profile::Loss,
        Profile::ControlPlane,
        Profile::Dedicated,
        Profile::Keepalived,
        Profile::Restores,
        Profile::DedicatedRestores,
        Profile::Beginnings,
        Profile::OlderMinor,
        Profile::OlderDedicated,
        Profile::Changes,
        Profile::KeepalivedChanges,
    ];

    fn namespace(self) -> &'static str {
        match self {
            Self::Workers => "lifecycle-workers",
            Self::Race => "lifecycle-race",
            Self::Addons => "lifecycle-addons",
            Self::Loss => "lifecycle-loss",
            Self::ControlPlane => "lifecycle-planes",
            Self::Dedicated => "lifecycle-etcd",
            Self::Keepalived => "lifecycle-keepalived",
            Self::Restores => "lifecycle-restores",
            Self::DedicatedRestores => "lifecycle-dedicated",
            Self::Beginnings => "lifecycle-beginnings",
            Self::OlderMinor => "lifecycle-older",
            Self::OlderDedicated => "lifecycle-older-etcd",
            Self::Changes => "lifecycle-changes",
            Self::KeepalivedChanges => "lifecycle-held",
        }
    }

    /// The machines share one network: two clusters with one Pod network would answer for each other's Pods.
    fn pod_network(self) -> String {
        let second = match self {
            Self::Workers => 116,
            // And twenty more: it makes two clusters.
            Self::Race => 117,
            // Two more: it makes two clusters.
            Self::Addons => 133,
            Self::Loss => 118,
            Self::ControlPlane => 119,
            Self::Dedicated => 121,
            Self::Keepalived => 120,
            Self::Restores => 122,
            Self::DedicatedRestores => 123,
            Self::Beginnings => 128,
            Self::OlderMinor => 129,
            Self::OlderDedicated => 130,
            Self::Changes => 131,
            Self::KeepalivedChanges => 132,
        };
        format!("10.{second}.0.0/16")
    }

    /// Whether what is measured here would not hold beside another cluster on two cores.
    pub fn goes_alone(self) -> bool {
        matches!(self, Self::ControlPlane | Self::Dedicated | Self::Keepalived) || self.is_of_changes()
    }

    /// Whether it is about backups: these have a run of their own.
    pub fn is_of_backups(self) -> bool {
        matches!(self, Self::Restores | Self::DedicatedRestores | Self::Beginnings)
    }

    /// Whether it needs what `make addons` builds.
    pub fn is_of_addons(self) -> bool {
        self == Self::Addons
    }

    /// Whether it is about changes of a running cluster: these have a run of their own.
    pub fn is_of_changes(self) -> bool {
        matches!(self, Self::OlderMinor | Self::OlderDedicated | Self::Changes | Self::KeepalivedChanges)
    }

    /// Makes the cluster. What is given beside it has to live as long.
    async fn set<'a>(self, scenario: &'a Scenario) -> Result<(Stage<'a>, Option<Endpoint>)> {
        let machines: &[&str] = match self {
            Self::Workers => &["a", "b", "c", "d", "e"],
            Self::Addons => &["a", "b"],
            Self::Race | Self::Keepalived | Self::KeepalivedChanges | Self::Restores => &["a", "b", "c"],
            Self::Loss | Self::Beginnings => &["a", "b", "c", "d"],
            Self::ControlPlane | Self::DedicatedRestores | Self::OlderMinor | Self::Changes => {
                &["a", "b", "c", "d", "e"]
            }
            // One is spare.
            Self::OlderDedicated => &["a", "b", "c", "d", "e", "f"],
            Self::Dedicated => &["a", "b", "c", "d", "e", "f", "g"],
        };
        let mut stage = Stage::set(scenario, machines, &self.pod_network()).await?;
        let mut balancer = None;
        let spec = &mut stage.wish["spec"];
        match self {
            Self::Workers | Self::Loss | Self::Restores | Self::Beginnings => spec["workers"][0]["replicas"] = json!(1),
            Self::Race | Self::Addons => return Ok((stage, None)),
            Self::ControlPlane => {
                balancer = Some(balance(&stage.machines)?);
                spec["controlPlane"]["endpoint"] = json!({"host": "172.30.0.1", "port": BALANCER});
            }
            Self::Dedicated => {
                balancer = Some(balance(&stage.machines)?);
                spec["controlPlane"]["endpoint"] = json!({"host": "172.30.0.1", "port": BALANCER});
                spec["controlPlane"]["replicas"] = json!(3);
                spec["etcd"] = json!({"topology": "Dedicated", "replicas": 1});
            }
            Self::OlderMinor => {
                balancer = Some(balance(&stage.machines)?);
                spec["kubernetesVersion"] = json!(OLD_PATCH);
                spec["artifacts"]["url"] = json!(Lab::upgrades_bundle_url());
                spec["controlPlane"]["endpoint"] = json!({"host": "172.30.0.1", "port": BALANCER});
                spec["controlPlane"]["replicas"] = json!(3);
                spec["workers"][0]["replicas"] = json!(2);
            }
            Self::Changes => {
                balancer = Some(balance(&stage.machines)?);
                spec["controlPlane"]["endpoint"] = json!({"host": "172.30.0.1", "port": BALANCER});
                spec["controlPlane"]["replicas"] = json!(3);
                spec["workers"][0]["replicas"] = json!(2);
            }
            Self::OlderDedicated => {
                spec["kubernetesVersion"] = json!(OLDER);
                spec["artifacts"]["url"] = json!(Lab::upgrades_bundle_url());
                spec["workers"][0]["replicas"] = json!(1);
                // With one worker, its Pods have nowhere else to go.
                spec["workers"][0]["maxSurge"] = json!(1);
                spec["etcd"] = json!({"topology": "Dedicated", "replicas": 3});
                own_network::bring(scenario, &stage.machines).await?;
                own_network::wish(&mut stage.wish);
            }
            Self::DedicatedRestores => {
                spec["workers"][0]["replicas"] = json!(1);
                spec["etcd"] = json!({"topology": "Dedicated", "replicas": 3});
                own_network::bring(scenario, &stage.machines).await?;
                own_network::wish(&mut stage.wish);
            }
            Self::Keepalived | Self::KeepalivedChanges => {
                spec["controlPlane"]["replicas"] = json!(3);
                spec["controlPlane"]["endpoint"] =
                    json!({"host": VIRTUAL_ADDRESS.to_string(), "port": 8443, "provider": "Keepalived"});
            }
        }
        stage.apply().await?;
        let planes = stage.wish["spec"]["controlPlane"]["replicas"].as_u64();
        let planes = usize::try_from(planes.unwrap_or_default()).unwrap_or_default();
        stage.ready(planes + stage.workers_wished()).await?;
        Ok((stage, balancer))
    }

    /// Plays the scenarios, and says how each went.
    pub async fn play(self, scenarios: &[LifecycleScenario]) -> Vec<Row> {
        let rows = Mutex::new(Vec::<Row>::new());
        let count = || rows.lock().unwrap_or_else(PoisonError::into_inner).len();
        while count() < scenarios.len() {
            let (before, begun) = (count(), Instant::now());
            let left = &scenarios[before..];
            let ended = within(self.namespace(), async |scenario| {
                let (mut stage, _balancer) = self.set(scenario).await?;
                for chosen in left {
                    scenario.say(&format!("{}: {}", chosen.name(), chosen.promise()));
                    let (row, error) = played(*chosen, &mut stage).await;
                    scenario.say(&format!("{}: {:?}", chosen.name(), row.seen));
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
                    if let Some(error) = error {
                        return Err(error);
                    }
                }
                stage.connected().await
            })
            .await;
            let Err(error) = ended else {
                continue;
            };
            let why = format!("{error:#}");
            println!("{}: {error:?}", self.namespace());
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            if rows.len() == before {
                // It would not come to be another time either.
                rows.extend(left.iter().map(|chosen| Row {
                    scenario: *chosen,
                    seen: Err(format!("its cluster did not come to be: {why}")),
                    took: begun.elapsed(),
                }));
            } else if let Some(row) = rows.last_mut() {
                row.seen = Err(why);
            }
        }
        rows.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

fn balance(machines: &[Machine]) -> Result<Endpoint> {
    let backends = machines.iter().map(|machine| SocketAddr::new(machine.address().into(), 6443));
    let listen = SocketAddr::new(Ipv4Addr::new(172, 30, 0, 1).into(), BALANCER);
    Lab::endpoint(listen, backends.collect())
}

async fn played(chosen: LifecycleScenario, stage: &mut Stage<'_>) -> (Row, Option<anyhow::Error>) {
    let begun = Instant::now();
    let row = |seen, took: Duration| Row { scenario: chosen, seen, took };
    match chosen.play(stage).await {
        Ok(seen) => (row(Ok(seen.text), seen.took), None),
        Err(error) => (row(Err(format!("{error:#}")), begun.elapsed()), Some(error)),
    }
}
