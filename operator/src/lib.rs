//! The operator: observes, executes plans, says what it saw.
//!
//! `controller` is the frame that every controller runs in, `context` what each pass may use, `cache` what was
//! observed, `execute` how steps are carried out.

pub mod bootstrap_token;
pub mod cache;
pub mod cluster;
pub mod cluster_deployment;
pub mod context;
pub mod controller;
pub mod error;
pub mod events;
pub mod execute;
#[cfg(test)]
pub(crate) mod fake_api;
pub mod health;
pub mod host;
pub mod kubeconfig;
pub mod machine;
pub mod machine_set;
pub mod metrics;
pub mod pki;
pub mod playbook_run;
pub mod remote;
pub mod settings;
pub mod telemetry;

// One line for each controller and each part of them, in alphabetical order.

use std::sync::Arc;

use tokio::task::JoinSet;

use context::Context;
use error::{Doing, Error};
use settings::Settings;

/// Runs until SIGTERM or SIGINT.
pub fn run(settings: Settings) -> Result<(), Error> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .doing(|| "start the runtime".into())?
        .block_on(serve(settings))
}

async fn serve(settings: Settings) -> Result<(), Error> {
    let (ctx, stop) = Context::connect(settings).await?;
    let mut tasks = JoinSet::new();
    spawn_controllers(&ctx, &mut tasks);
    ctx.cache.follow(&ctx, &mut tasks);
    let health = health::listen(ctx.clone()).await?;
    tasks.spawn(health);
    stop_signal().await?;
    tracing::info!("asked to stop: passes under way end first");
    // The receivers end with the tasks; that nobody listens any more is no error.
    let _ = stop.send(true);
    let _ = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        while tasks.join_next().await.is_some() {}
    })
    .await;
    Ok(())
}

fn spawn_controllers(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    // One line for each controller, in alphabetical order.
    cluster::spawn(ctx, tasks);
    cluster_deployment::spawn(ctx, tasks);
    host::spawn(ctx, tasks);
    machine::spawn(ctx, tasks);
    machine_set::spawn(ctx, tasks);
    playbook_run::spawn(ctx, tasks);
}

async fn stop_signal() -> Result<(), Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).doing(|| "listen for SIGTERM".into())?;
    let mut interrupt = signal(SignalKind::interrupt()).doing(|| "listen for SIGINT".into())?;
    tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    Ok(())
}
