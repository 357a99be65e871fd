//! What is measured: one call of one planner for the last object of a fleet.

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;

use crds::{ClusterDeployment, Host, Machine, MachineSet, ObjectExt};
use jiff::Timestamp;
use plan::claims::{Share, Shares};
use plan::host::HostObserved;
use plan::{claims, cluster_deployment, host, machine, machine_set};

use crate::addons;
use crate::fleet::{Fleet, Phase, Shape};

/// What is measured.
pub type Call = Box<dyn Fn()>;

/// One planner with fleets of one shape.
pub struct Case {
    pub name: &'static str,
    pub build: fn(usize) -> Result<Call, Box<dyn Error>>,
}

const BY_RACK: &str = ", spreadBy: [rack]";
const CLAIMING: Shape = Shape { phase: Phase::Claiming, cluster_size: Some(10), request: "" };
const RUNNING: Shape = Shape { phase: Phase::Running, ..CLAIMING };

/// One call places the whole fleet.
pub const CASES: &[Case] = &[
    Case { name: "addon::plan, two Addons on all clusters", build: |size| addons::first_of_two(size, false) },
    Case { name: "addon::plan, two Addons being deleted", build: |size| addons::first_of_two(size, true) },
    Case { name: "claims::Shares, clusters of 10", build: |size| shares(CLAIMING, size) },
    Case {
        name: "claims::Shares, clusters of 10, spread by rack",
        build: |size| shares(Shape { request: BY_RACK, ..CLAIMING }, size),
    },
    Case {
        name: "claims::Shares, clusters of 10, spread by zone and rack",
        build: |size| shares(Shape { request: ", spreadBy: [zone, rack]", ..CLAIMING }, size),
    },
    Case {
        name: "claims::Shares, clusters of 10, a selector each",
        build: |size| shares(Shape { request: ", hostSelector: {matchLabels: {pool: CLUSTER}}", ..CLAIMING }, size),
    },
    Case {
        name: "claims::Shares, one cluster, spread by rack",
        build: |size| shares(Shape { request: BY_RACK, cluster_size: None, ..CLAIMING }, size),
    },
    Case {
        name: "machine::plan, clusters of 10, claiming by rack",
        build: |size| machine(Shape { request: BY_RACK, ..CLAIMING }, size),
    },
    Case { name: "machine::plan, clusters of 10, running", build: |size| machine(RUNNING, size) },
    Case {
        name: "machine::plan, one cluster, running",
        build: |size| machine(Shape { cluster_size: None, ..RUNNING }, size),
    },
    Case { name: "machine_set::plan, clusters of 10, claiming", build: |size| machine_set(CLAIMING, size) },
    Case { name: "machine_set::plan, clusters of 10, running", build: |size| machine_set(RUNNING, size) },
    Case {
        name: "machine_set::plan, one cluster, claiming",
        build: |size| machine_set(Shape { cluster_size: None, ..CLAIMING }, size),
    },
    Case {
        name: "machine_set::plan, one cluster, running",
        build: |size| machine_set(Shape { cluster_size: None, ..RUNNING }, size),
    },
    Case {
        name: "cluster_deployment::plan, clusters of 10, claiming",
        build: |size| cluster_deployment(CLAIMING, size),
    },
    Case { name: "cluster_deployment::plan, clusters of 10, running", build: |size| cluster_deployment(RUNNING, size) },
    Case {
        name: "cluster_deployment::plan, one cluster, claiming",
        build: |size| cluster_deployment(Shape { cluster_size: None, ..CLAIMING }, size),
    },
    Case {
        name: "cluster_deployment::plan, one cluster, running",
        build: |size| cluster_deployment(Shape { cluster_size: None, ..RUNNING }, size),
    },
    Case { name: "host_pool::plan, clusters of 10, one pool for all", build: |size| host_pool(RUNNING, size) },
    Case {
        name: "host_pool::plan, clusters of 10, a selector each",
        build: |size| host_pool(Shape { request: ", hostSelector: {matchLabels: {pool: CLUSTER}}", ..RUNNING }, size),
    },
    Case { name: "host::host, spare", build: |size| host(CLAIMING, size) },
    Case { name: "host::host, claimed", build: |size| host(RUNNING, size) },
];

/// A fleet that lives as long as the program: calls borrow from it.
fn fleet(shape: Shape, size: usize) -> Result<&'static Fleet, Box<dyn Error>> {
    Ok(Box::leak(Box::new(Fleet::new(shape, size)?)))
}

fn now() -> Result<Timestamp, Box<dyn Error>> {
    Ok("2026-01-02T00:00:00Z".parse()?)
}

fn last<T>(objects: &[T]) -> Result<&T, Box<dyn Error>> {
    Ok(objects.last().ok_or("the fleet is empty")?)
}

fn deployment<'a>(fleet: &'a Fleet, name: &str) -> Option<&'a ClusterDeployment> {
    let mut deployments = fleet.deployments.iter();
    deployments.find(|deployment| deployment.metadata.name.as_deref() == Some(name))
}

fn shares(shape: Shape, size: usize) -> Result<Call, Box<dyn Error>> {
    let fleet = fleet(shape, size)?;
    let machines: Vec<&Machine> = fleet.machines.iter().collect();
    let hosts: Vec<&Host> = fleet.hosts.iter().collect();
    Ok(Box::new(move || {
        black_box(claims::Shares::new(&machines, &hosts));
    }))
}

fn machine(shape: Shape, size: usize) -> Result<Call, Box<dyn Error>> {
    let (fleet, now) = (fleet(shape, size)?, now()?);
    let machine = last(&fleet.machines)?;
    let cluster = machine.spec.cluster_name.as_str();
    let all: Vec<&Machine> = fleet.machines.iter().collect();
    let pool: Vec<&Host> = fleet.hosts.iter().collect();
    // Leaked like the fleet: a case lives as long as the bench.
    let shares: &Shares = Box::leak(Box::new(Shares::new(&all, &pool)));
    let share = shares.share(machine);
    let taken = |host: &&&Host| share == Some(Share::Host(host.name())) || claims::holds(machine, host);
    let hosts: Vec<&Host> = pool.iter().filter(taken).copied().collect();
    let (machines, runs) = fleet.of_cluster(cluster);
    let deployment = deployment(fleet, cluster);
    Ok(Box::new(move || {
        black_box(machine::plan(&machine::Observed {
            now,
            resumed_at: None,
            machine,
            formed: deployment.map(Into::into),
            machines: &machines,
            hosts: &hosts,
            share,
            runs: &runs,
            nodes: None,
            cluster: None,
            node_answer: None,
            drain: None,
        }));
    }))
}

fn machine_set(shape: Shape, size: usize) -> Result<Call, Box<dyn Error>> {
    let (fleet, now) = (fleet(shape, size)?, now()?);
    let set = last(&fleet.sets)?;
    let (machines, runs) = fleet.of_cluster(&set.spec.cluster_name);
    let hosts: Vec<&Host> = fleet.hosts.iter().collect();
    let deployment = deployment(fleet, &set.spec.cluster_name);
    Ok(Box::new(move || {
        black_box(machine_set::plan(&machine_set::Observed {
            now,
            set,
            has_pool: true,
            formed: deployment.map(Into::into),
            machines: &machines,
            hosts: &hosts,
            runs: &runs,
        }));
    }))
}

fn cluster_deployment(shape: Shape, size: usize) -> Result<Call, Box<dyn Error>> {
    let (fleet, now) = (fleet(shape, size)?, now()?);
    let deployment = last(&fleet.deployments)?;
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let (machines, runs) = fleet.of_cluster(name);
    let sets: Vec<&MachineSet> = fleet.sets.iter().collect();
    let hosts: Vec<&Host> = fleet.hosts.iter().collect();
    let deployments: Vec<&ClusterDeployment> = fleet.deployments.iter().collect();
    Ok(Box::new(move || {
        let restoring = Default::default();
        black_box(cluster_deployment::plan(&cluster_deployment::Observed {
            now,
            resumed_at: None,
            deployment,
            sets: &sets,
            machines: &machines,
            hosts: &hosts,
            runs: &runs,
            library: None,
            deployments: &deployments,
            policies: &[],
            restores: &[],
            planes: &[],
            schedules: &[],
            backups: &[],
            restoring: &restoring,
            cluster: None,
            addon: None,
            forgotten_nodes: None,
            manifests: &fleet.manifests,
            etcd_client: None,
            pki: true,
            kubeconfig: true,
            own_authorities: None,
            kubeconfig_authority: None,
            authorities: &plan::rotation::Authorities::default(),
        }));
    }))
}

/// The pool of the last set.
fn host_pool(shape: Shape, size: usize) -> Result<Call, Box<dyn Error>> {
    let (fleet, now) = (fleet(shape, size)?, now()?);
    let selector = plan::host_pool::selector_of_set(last(&fleet.sets)?).ok_or("the set names its Hosts")?;
    let pool = plan::host_pool::automatic_pool("fleet", selector);
    let sets: Vec<&MachineSet> = fleet.sets.iter().collect();
    let hosts: Vec<&Host> = fleet.hosts.iter().collect();
    Ok(Box::new(move || {
        let observed = plan::host_pool::Observed { now, pool: &pool, hosts: &hosts, sets: &sets, requests: &[] };
        black_box(plan::host_pool::plan(&observed));
    }))
}

fn host(shape: Shape, size: usize) -> Result<Call, Box<dyn Error>> {
    let (fleet, now) = (fleet(shape, size)?, now()?);
    let host = last(&fleet.hosts)?;
    Ok(Box::new(move || {
        let problems = BTreeMap::new();
        black_box(host::host(&HostObserved {
            host,
            now,
            schedule: host::ProbeSchedule { interval_seconds: 600, resumed_at: None },
            hosts: &fleet.shared_hosts,
            probes: &[],
            runs: &[],
            problems: &problems,
            holder_is_gone: false,
        }));
    }))
}
