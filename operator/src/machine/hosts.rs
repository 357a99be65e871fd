//! The Hosts that a Machine's plan depends on, read from the API: those that it holds, and those that it is about to
//! claim or to let go. Of all others the cache is enough, since a Host is only written as it was read.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::{Host, Machine, ObjectExt};
use kube::api::ListParams;
use plan::claims::{holds, is_one_machine};
use plan::machine::Action;

use crate::context::Context;
use crate::error::Error;
use crate::live;

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
