//! What each machine is to have of each part now, and what a run must know to bring it.

use crds::cluster_deployment::EtcdTopology;
use serde_json::{Map, Value, json};

use super::super::component::Component;
use super::super::endpoint::PORT;
use super::super::place::Stage;
use super::super::restoring::is_later;
use super::super::seats::Seat;
use super::super::upgrade::Due;
use super::balancer::frontends;
use super::estimators;
use super::order::{Part, parts};
use super::part_wanted::{Basis, PartWanted, working};
use super::placed::{placed, version};
use super::service::{Service, Site, digest_of, files_on, secret_key, service};
use super::state::PlaneState;
use super::turn::Placed;
use crate::cluster_machine::ClusterMachine;
use crate::naming::short_hash;
use crate::rotation::{Authorities, Ring, Subject};
use crate::settings::{BACKENDS, stopped};

/// All parts in their order; none: a file of one is not there yet.
pub(in super::super) fn wanted_parts(state: &PlaneState<'_>, basis: &Basis<'_>) -> Option<Vec<PartWanted>> {
    let mut wanted = Vec::new();
    for (stage, part) in parts(&basis.object.spec) {
        match part {
            Part::Balancer => wanted.push(balancer(basis, stage)),
            Part::LoadBalancer => wanted.push(load_balancer(basis, stage)),
            Part::Etcd => wanted.push(etcd(state, basis, stage)),
            Part::Component(component) => wanted.extend(component_part(state, basis, stage, component)?),
            Part::Estimators if is_later(basis.object, &basis.seats.versions, Component::Estimator) => {}
            Part::Estimators => wanted.extend(estimators::part(state, basis)),
        }
    }
    Some(wanted)
}

fn addresses<'a>(basis: &Basis<'a>) -> Vec<&'a str> {
    working(basis).map(|seat| seat.address.as_str()).collect()
}

fn same_on_all(basis: &Basis<'_>, stage: Stage, part: Part, digest: &str) -> PartWanted {
    let digests = working(basis).map(|seat| (seat.machine.clone(), digest.to_owned())).collect();
    PartWanted { digests, ..PartWanted::new(stage, part) }
}

fn balancer(basis: &Basis<'_>, stage: Stage) -> PartWanted {
    let frontend =
        |one: super::Frontend| json!({ "name": one.component.name(), "port": one.port, "backends": one.backends });
    let frontends: Vec<Value> = frontends(&basis.object.spec, &addresses(basis)).into_iter().map(frontend).collect();
    let digest = short_hash(&[&json!(frontends).to_string()], 16);
    let vars = [("karmada_balancer".to_owned(), json!({ "digest": digest, "frontends": frontends }))].into();
    PartWanted { vars, ..same_on_all(basis, stage, Part::Balancer, &digest) }
}

/// Who is behind the endpoint; the rest that it takes is in the inputs of the run.
fn load_balancer(basis: &Basis<'_>, stage: Stage) -> PartWanted {
    let mut addresses = addresses(basis);
    addresses.sort_unstable();
    let backend = |address: &&str| match address.contains(':') {
        true => json!(format!("[{address}]:{PORT}")),
        false => json!(format!("{address}:{PORT}")),
    };
    let backends: Value = addresses.iter().map(backend).collect();
    // It believes an API server by its certificate.
    let trust = basis.material.authorities.rings.get(&Subject::Ca).map(Ring::trust).unwrap_or_default();
    let digest = short_hash(&[&backends.to_string(), &trust], 16);
    PartWanted {
        vars: [(BACKENDS.to_owned(), backends)].into(),
        ..same_on_all(basis, stage, Part::LoadBalancer, &digest)
    }
}

/// The member of etcd in its version, with certificates of their time and authority: each is renewed once so many have
/// passed.
fn etcd(state: &PlaneState<'_>, basis: &Basis<'_>, stage: Stage) -> PartWanted {
    let version = Component::Etcd.version(&basis.object.spec, basis.release);
    let (due, is_held) = match basis.upgrade.map(|upgrade| upgrade.due(basis.object, Component::Etcd)) {
        Some(Due::Kept(kept) | Due::Stopped(kept)) => (kept, true),
        Some(Due::Now | Due::Later) | None => (version, false),
    };
    let digest = |machine: &ClusterMachine<'_>| {
        let digest = etcd_digest(&due, periods(state, machine), &basis.material.authorities);
        let now = placed(machine, Part::Etcd, state.seen.runs).filter(|_| is_held);
        (machine.name().to_owned(), now.map_or(digest, |placed| placed.digest))
    };
    let machines = state.working(Part::Etcd.role(&basis.object.spec));
    let members = state.membership().members();
    PartWanted {
        digests: machines.map(|machine| digest(&machine)).collect(),
        vars: state.etcd_variables(&members),
        is_held,
        ..PartWanted::new(stage, Part::Etcd)
    }
}

/// `3.6.16-0.0123456789`: the version, the times that certificates were due, and who is believed and signs.
pub(super) fn etcd_digest(version: &str, periods: i64, authorities: &Authorities) -> String {
    let ring = authorities.rings.get(&Subject::EtcdCa).map(Ring::digest).unwrap_or_default();
    format!("{version}-{periods}.{}", short_hash(&[&ring], 10))
}

/// How many times the certificates of a machine's member were due since it joined.
fn periods(state: &PlaneState<'_>, machine: &ClusterMachine<'_>) -> i64 {
    let certificates = &state.object.spec.certificates;
    let validity = i64::from(certificates.validity_days);
    let before = certificates.renew_before_days.map_or(validity / 3, i64::from);
    let joined = machine.machine.status.as_ref().and_then(|status| status.provisioned_at.as_ref());
    let days = joined.map_or(0, |joined| state.now.duration_since(joined.0).as_hours() / 24);
    days / (validity - before).max(1)
}

/// The service of a component on each machine; no such part: an upgrade comes to it later, or it would act by a backup
/// that is not approved. None: a file is not there.
fn component_part(
    state: &PlaneState<'_>,
    basis: &Basis<'_>,
    stage: Stage,
    component: Component,
) -> Option<Option<PartWanted>> {
    let object = basis.object;
    if is_later(object, &basis.seats.versions, component) {
        return Some(None);
    }
    let due = basis.upgrade.map_or(Due::Now, |upgrade| upgrade.due(object, component));
    let (due_version, is_stopped, is_held) = match due {
        Due::Now => (component.version(&object.spec, basis.release), false, false),
        Due::Kept(version) => (version, false, true),
        Due::Stopped(version) => (version, true, false),
        Due::Later => return Some(None),
    };
    on_each(state, basis, (stage, component), &How { version: due_version, is_stopped, is_held }).map(Some)
}

/// How a component is wanted.
struct How {
    version: String,
    /// It is to be there, and not to run.
    is_stopped: bool,
    /// An upgrade has yet to come to it.
    is_held: bool,
}

/// The service of a component on each machine; none: a file is not there.
fn on_each(
    state: &PlaneState<'_>,
    basis: &Basis<'_>,
    (stage, component): (Stage, Component),
    how: &How,
) -> Option<PartWanted> {
    let (object, part) = (basis.object, Part::Component(component));
    let mut wanted = PartWanted { is_held: how.is_held, ..PartWanted::new(stage, part) };
    for seat in working(basis) {
        let files = files_on(object, basis.material, seat, component)?;
        let etcd = match object.spec.etcd_topology() {
            EtcdTopology::Dedicated => basis.seats.etcd.clone(),
            EtcdTopology::Stacked | EtcdTopology::External => vec!["https://127.0.0.1:2379".to_owned()],
        };
        let site = Site { address: &seat.address, etcd: &etcd };
        let mut service = service(object, basis.release, (component, &how.version), &site, &digest_of(&files));
        if how.is_stopped {
            service.digest = stopped(&how.version);
        }
        // What an upgrade has yet to come to stays as it is; one that is gone comes back in its version.
        let now = placed_on(state, part, seat).filter(|_| how.is_held);
        let digest = now.map_or_else(|| service.digest.clone(), |placed| placed.digest);
        wanted.digests.insert(seat.machine.clone(), digest);
        let keys = files.iter().map(|file| file.flat_name());
        let keys = keys.map(|name| (name.clone(), json!(secret_key(&seat.host, component, &name))));
        let variables = variables(&service, keys.collect(), how.is_stopped);
        wanted.services.insert(seat.host.clone(), variables);
    }
    wanted.program = Some(json!({ "name": component.name(), "version": how.version }));
    Some(wanted)
}

fn placed_on(state: &PlaneState<'_>, part: Part, seat: &Seat) -> Option<Placed> {
    let member = state.live.iter().find(|member| member.name() == seat.machine);
    member.and_then(|member| placed(member, part, state.seen.runs))
}

/// All components that machines have, as services that are to be there and not to run, in the versions that they have:
/// in the order in which they stop, what acts first and the API server last. Estimators stay: they answer, and ask
/// members alone. None: a file is not there.
pub(super) fn stopped_parts(state: &PlaneState<'_>, basis: &Basis<'_>) -> Option<Vec<PartWanted>> {
    let mut wanted = Vec::new();
    for (stage, part) in parts(&basis.object.spec).into_iter().rev() {
        let Part::Component(component) = part else { continue };
        let has = working(basis).filter_map(|seat| placed_on(state, part, seat));
        let Some(version) = has.filter_map(|placed| version(&placed.digest).map(str::to_owned)).min() else { continue };
        let how = How { version, is_stopped: true, is_held: false };
        wanted.push(on_each(state, basis, (stage, component), &how)?);
    }
    Some(wanted)
}

fn variables(service: &Service, files: Map<String, Value>, is_stopped: bool) -> Value {
    let mut variables = service.variables(service.component.suffix(), files);
    variables["state"] = json!(if is_stopped { "stopped" } else { "started" });
    variables["health"] = service.health.clone();
    variables
}
