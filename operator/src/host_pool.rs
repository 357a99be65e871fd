//! HostPool: counts the Hosts that match a selector, and lets pools of the operator's go that nobody asks for.

mod news;

use std::sync::Arc;

use crds::{Host, HostPool, MachineRequest, MachineSet};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::host_pool::{Action, Observed, counts, is_automatic, pool_name, selector_of_request, selector_of_set};
use tokio::task::JoinSet;

use crate::cache::refs;
use crate::context::Context;
use crate::controller;
use crate::error::Error;
use crate::execute;
use crate::reconcile::{PlanOf, Reconcile, now};
use news::{Concerns, HostNews, News};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (of_host, of_set, of_request) = (ctx.clone(), ctx.clone(), ctx.clone());
    let (hosts, sets, requests) = (HostNews::default(), News::default(), News::default());
    let controller = controller::new(ctx, &cache.host_pools)
        .watches_shared_stream(cache.hosts.changes(), move |host: Arc<Host>| {
            let namespace = host.namespace().unwrap_or_default();
            let is_there = of_host.cache.hosts.get(&namespace, &host.name_any()).is_some();
            let pools = &of_host.cache.host_pools;
            controller::references(&match hosts.concerns(&host, is_there) {
                Concerns::None => Vec::new(),
                Concerns::Selecting => pools.list(&namespace, |pool| counts(pool, &host)),
                Concerns::All => pools.list(&namespace, |_| true),
            })
        })
        .watches_shared_stream(cache.machine_sets.changes(), move |set: Arc<MachineSet>| {
            let namespace = set.namespace().unwrap_or_default();
            let is_there = of_set.cache.machine_sets.get(&namespace, &set.name_any()).is_some();
            let selects = is_there.then(|| selector_of_set(&set).map(|selector| pool_name(&selector)));
            let is_news = sets.is_news(&*set, selects);
            automatic(&of_set, &namespace, is_news)
        })
        .watches_shared_stream(cache.machine_requests.changes(), move |request: Arc<MachineRequest>| {
            let namespace = request.namespace().unwrap_or_default();
            let is_there = of_request.cache.machine_requests.get(&namespace, &request.name_any()).is_some();
            let sets = of_request.cache.machine_sets.of_cluster(&namespace, &request.spec.cluster_name);
            let selects = is_there.then(|| selector_of_request(&request, &refs(&sets)).as_ref().map(pool_name));
            let is_news = requests.is_news(&*request, selects);
            automatic(&of_request, &namespace, is_news)
        });
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// The pools of the namespace that the operator made, if what is asked for has changed.
fn automatic(ctx: &Context, namespace: &str, is_news: bool) -> Vec<ObjectRef<HostPool>> {
    let pools = is_news.then(|| ctx.cache.host_pools.list(namespace, is_automatic));
    controller::references(&pools.unwrap_or_default())
}

/// What is known of a HostPool.
pub(crate) struct Observation {
    now: Timestamp,
    pool: Arc<HostPool>,
    hosts: Vec<Arc<Host>>,
    sets: Vec<Arc<MachineSet>>,
    requests: Vec<Arc<MachineRequest>>,
}

impl Reconcile for Observation {
    type Object = HostPool;
    type Action = Action;

    const LAST: Option<Action> = Some(Action::Delete);

    async fn observe(ctx: &Context, pool: Arc<HostPool>) -> Result<Option<Self>, Error> {
        if pool.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let (cache, namespace) = (&ctx.cache, pool.namespace().unwrap_or_default());
        let asks = is_automatic(&pool);
        // Nobody is missing who cannot be decoded.
        if asks && (cache.lacks::<MachineSet>(&namespace) || cache.lacks::<MachineRequest>(&namespace)) {
            return Ok(None);
        }
        Ok(Some(Self {
            now: now(),
            hosts: cache.hosts.list(&namespace, |_| true),
            sets: if asks { cache.machine_sets.list(&namespace, |_| true) } else { Vec::new() },
            requests: if asks { cache.machine_requests.list(&namespace, |_| true) } else { Vec::new() },
            pool,
        }))
    }

    fn object(&self) -> &HostPool {
        &self.pool
    }

    fn plan(&self) -> PlanOf<Self> {
        plan::host_pool::plan(&Observed {
            now: self.now,
            pool: &self.pool,
            hosts: &refs(&self.hosts),
            sets: &refs(&self.sets),
            requests: &refs(&self.requests),
        })
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        match action {
            // One that is asked for again meanwhile is made again: whoever asks for it sees that it is gone.
            Action::Delete => execute::delete(ctx, &*self.pool, None).await,
        }
    }
}

#[cfg(test)]
mod tests;
