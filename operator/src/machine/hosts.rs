//! The Hosts that a Machine's plan depends on: those that it holds, names, or may take, and those that may be the same
//! machine. Before it claims one or lets it go they are read from the API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::{Host, Machine, ObjectExt};
use kube::api::ListParams;
use plan::claims::{self, Share, Shares, holds, is_one_machine};
use plan::machine::Action;

use crate::cache::IndexKey;
use crate::context::Context;
use crate::error::Error;
use crate::live;

/// As the cache shows them, with the pool shared out where the Machine looks for a Host.
pub(super) fn look(ctx: &Context, machine: &Machine) -> (Vec<Arc<Host>>, Option<Arc<Shares>>) {
    let (cache, namespace) = (&ctx.cache, machine.namespace());
    let held = cache.hosts.with(namespace, &IndexKey::Holder(machine.uid().to_owned()));
    let named = machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
    if held.iter().any(|host| named.is_none_or(|named| named == host.name())) {
        return (held, None);
    }
    let shares = claims::is_looking(machine).then(|| cache.shares(namespace));
    let share = match shares.as_ref().and_then(|shares| shares.share(machine)) {
        Some(Share::Host(name)) => Some(name),
        Some(Share::Nothing(_)) | None => None,
    };
    let wanted = named.or(share).and_then(|name| cache.hosts.get(namespace, name));
    let doubles = wanted.iter().flat_map(|host| cache.hosts.one_machine(host));
    let hosts: BTreeMap<String, Arc<Host>> =
        held.into_iter().chain(doubles).map(|host| (host.name().to_owned(), host)).collect();
    (hosts.into_values().collect(), shares)
}

/// Puts those Hosts among the cached ones as they are.
pub(super) async fn read_again(
    ctx: &Context,
    machine: &Machine,
    actions: &[Action],
    hosts: &mut Vec<Arc<Host>>,
) -> Result<(), Error> {
    let (namespace, cluster) = (machine.namespace(), &machine.spec.cluster_name);
    let claimed = ListParams::default().fields(&format!("spec.claimRef.uid={}", machine.uid()));
    let mut live: Vec<Arc<Host>> = live::list_for_cluster(ctx, namespace, cluster, &claimed).await?;
    for name in concerned(machine, actions, hosts) {
        if live.iter().all(|host| host.name() != name) {
            live.extend(live::get::<Host>(ctx, namespace, &name).await?.map(Arc::new));
        }
        hosts.retain(|host| host.name() != name);
    }
    hosts.retain(|cached| live.iter().all(|host| host.name() != cached.name()));
    hosts.extend(live);
    hosts.sort_by(|one, other| one.name().cmp(other.name()));
    Ok(())
}

/// Names of the Hosts that the Machine holds by the cache, that its plan writes, and that may be the same machine.
fn concerned(machine: &Machine, actions: &[Action], hosts: &[Arc<Host>]) -> BTreeSet<String> {
    let written = actions.iter().filter_map(|action| match action {
        Action::Claim { host, .. } | Action::Release { host, .. } => Some(&**host),
        _ => None,
    });
    let written: Vec<&Host> = written.collect();
    let reference = machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
    let is_concerned = |host: &&Arc<Host>| {
        holds(machine, host)
            || reference == Some(host.name())
            || written.iter().any(|written| is_one_machine(written, host))
    };
    let cached = hosts.iter().filter(is_concerned).map(|host| host.name().to_owned());
    cached.chain(written.iter().map(|host| host.name().to_owned())).collect()
}
