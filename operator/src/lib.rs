//! The operator: observes, executes plans, says what it saw.
//!
//! `reconcile` is how every kind is reconciled, `controller` runs that, `context` is what each reconcile may use,
//! `cache` what was observed, `live` reads what the cache is not believed for, `execute` has the writes. Of several
//! operators one leads (`leader`), and only that one's controllers run.

pub mod addon;
pub mod backup_storage;
pub mod bootstrap_token;
pub mod cache;
#[cfg(test)]
mod cases;
pub mod client;
pub mod cluster;
pub mod cluster_addon;
pub mod cluster_deployment;
pub mod context;
pub mod controller;
pub mod decoding;
pub mod error;
pub mod etcd_backup;
pub mod etcd_backup_schedule;
pub mod etcd_restore;
pub mod events;
pub mod execute;
mod executor_job;
#[cfg(test)]
pub(crate) mod fake_api;
mod former;
pub mod health;
pub mod host;
pub mod host_pool;
pub mod karmada_deployment;
mod key_transfer;
pub mod kubeconfig;
pub mod leader;
pub mod live;
pub mod machine;
pub mod machine_request;
pub mod machine_set;
pub mod metrics;
mod objects;
mod owned;
mod pace;
mod permission;
pub mod pki;
pub mod playbook_run;
pub mod reconcile;
pub mod remediation_policy;
pub mod remote;
mod scrape;
pub mod settings;
pub mod stop;
pub mod telemetry;
mod tries;

// One line for each controller and each part of them, in alphabetical order.

use crds::Reason;
use std::sync::Arc;
use std::time::Duration;

use plan::leader::Loss;
use tokio::sync::watch;
use tokio::task::JoinSet;

use context::Context;
use controller::panic_message;
use error::{Error, ResultExt};
use leader::Election;
use settings::Settings;

/// How long passes under way may take to end.
const PASSES_END: Duration = Duration::from_secs(20);

/// Runs until SIGTERM or SIGINT, or until another operator leads.
pub fn run(settings: Settings) -> Result<(), Error> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().doing(|| "start the runtime".into())?;
    let ended = runtime.block_on(async {
        let asked_to_stop = stop_signal()?;
        serve(Context::find_metadata_cluster().await?, settings, spawn_controllers, asked_to_stop).await
    });
    // Nothing that still runs is waited for.
    runtime.shutdown_background();
    ended
}

/// Leads with these controllers in the metadata cluster that this configuration leads to: until asked to stop, or until
/// another operator leads.
pub async fn serve(
    metadata_cluster: kube::Config,
    settings: Settings,
    controllers: impl FnOnce(&Arc<Context>, &mut JoinSet<()>),
    asked_to_stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let mut asked_to_stop = std::pin::pin!(asked_to_stop);
    let (ctx, stop, mut election) = Context::connect(metadata_cluster, settings)?;
    tokio::spawn(health::listen(ctx.clone()).await?);
    if let Some(scraped) = scrape::listen(ctx.clone()).await? {
        tokio::spawn(scraped);
    }
    tokio::select! {
        () = election.win() => {}
        () = &mut asked_to_stop => {
            // It may have been won a moment ago.
            election.release().await;
            return Ok(());
        }
    }
    let mut tasks = JoinSet::new();
    controllers(&ctx, &mut tasks);
    ctx.follow(&mut tasks);
    if let Some(lease) = election.lease().cloned() {
        let (ctx, note) = (ctx.clone(), format!("{} leads", election.me()));
        tokio::spawn(async move { ctx.events.normal(&lease, Reason::LeaderElection, &note).await });
    }
    let ended = lead(&mut election, asked_to_stop, &stop, &mut tasks).await;
    tasks.abort_all();
    match ended {
        Ok(true) => election.release().await,
        Ok(false) => tracing::warn!("passes did not end in time: the lease is left to run out"),
        Err(End::Lost(loss)) => {
            return Err(Error::Failed {
                action: format!("keep Lease {}: all work is dropped", election.place()),
                source: Box::new(loss),
            });
        }
        // The others may be in the middle of their work: the lease is left to run out.
        Err(End::Broken(why)) => {
            return Err(Error::Failed {
                action: "keep every controller and watch going: all work is dropped".into(),
                source: why.into(),
            });
        }
    }
    Ok(())
}

/// Leads until asked to stop; says whether all passes ended then. The lease is kept until they have.
async fn lead(
    election: &mut Election,
    asked_to_stop: impl Future<Output = ()>,
    stop: &watch::Sender<bool>,
    tasks: &mut JoinSet<()>,
) -> Result<bool, End> {
    let mut lost = std::pin::pin!(election.keep());
    tokio::select! {
        loss = &mut lost => return Err(End::Lost(loss)),
        why = first_to_end(tasks) => return Err(End::Broken(why)),
        () = asked_to_stop => {}
    }
    tracing::info!("asked to stop: passes under way end first");
    // The receivers end with the tasks; that nobody listens any more is no error.
    let _ = stop.send(true);
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    tokio::select! {
        loss = &mut lost => Err(End::Lost(loss)),
        ended = tokio::time::timeout(PASSES_END, all_ended) => Ok(ended.is_ok()),
    }
}

fn spawn_controllers(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    // One line for each controller, in alphabetical order.
    addon::spawn(ctx, tasks);
    backup_storage::spawn(ctx, tasks);
    cluster::spawn(ctx, tasks);
    cluster_addon::spawn(ctx, tasks);
    cluster_deployment::spawn(ctx, tasks);
    etcd_backup::spawn(ctx, tasks);
    etcd_backup_schedule::spawn(ctx, tasks);
    etcd_restore::spawn(ctx, tasks);
    host::spawn(ctx, tasks);
    host_pool::spawn(ctx, tasks);
    karmada_deployment::spawn(ctx, tasks);
    machine::spawn(ctx, tasks);
    machine_request::spawn(ctx, tasks);
    machine_set::spawn(ctx, tasks);
    playbook_run::spawn(ctx, tasks);
    remediation_policy::spawn(ctx, tasks);
}

/// Why an operator leads no more, without having been asked to stop.
enum End {
    /// The Lease is lost.
    Lost(Loss),
    /// A controller or a watch has ended.
    Broken(String),
}

/// Ends when the first controller or watch does, which none of them should; how it did. Where nothing runs, nothing
/// ends.
async fn first_to_end(tasks: &mut JoinSet<()>) -> String {
    match tasks.join_next().await {
        Some(Ok(())) => "a controller or a watch ended".into(),
        Some(Err(error)) => match error.try_into_panic() {
            Ok(panic) => format!("a controller or a watch panicked: {}", panic_message(&*panic)),
            Err(error) => format!("a controller or a watch ended: {error}"),
        },
        None => std::future::pending().await,
    }
}

/// Ends at SIGTERM or SIGINT; they are listened to from now on.
fn stop_signal() -> Result<impl Future<Output = ()>, Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).doing(|| "listen for SIGTERM".into())?;
    let mut interrupt = signal(SignalKind::interrupt()).doing(|| "listen for SIGINT".into())?;
    Ok(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    })
}

#[cfg(test)]
mod tests {
    use super::{End, lead};
    use crate::fake_api::FakeApi;
    use crate::leader::{Clock, Election, Gate};
    use tokio::task::JoinSet;

    #[tokio::test]
    async fn an_operator_of_which_one_controller_has_ended_leads_no_more() {
        let api = FakeApi::default();
        let (ctx, stop) = api.running();
        let times = ctx.settings.lease_times().unwrap();
        let check = async |task: fn(), expected: &str| {
            let gate = Gate::closed(Clock::of_the_machine());
            let mut election = Election::new(api.client(), "fleet", "lease", "me", times, gate);
            election.win().await;
            let mut tasks = JoinSet::new();
            tasks.spawn(std::future::pending());
            tasks.spawn(async move { task() });
            let ended = lead(&mut election, std::future::pending(), &stop, &mut tasks).await;
            match ended {
                Err(End::Broken(why)) => assert_eq!(why, expected),
                Err(End::Lost(loss)) => panic!("{loss}"),
                Ok(all_ended) => panic!("asked to stop: {all_ended}"),
            }
            election.release().await;
        };
        check(|| panic!("boom"), "a controller or a watch panicked: boom").await;
        check(|| {}, "a controller or a watch ended").await;
    }
}
