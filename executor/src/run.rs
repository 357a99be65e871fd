//! One run from its inputs to its last word. Every way out passes the same end: termination message, status,
//! exit code.

mod error;
mod last_word;
mod work;

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crds::playbook_run::{HostFailure, Progress, RunOutcome, StepPhase};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{error, info, warn};

use crate::ansible::{self, Ansible};
use crate::bastions;
use crate::capped_ssh;
use crate::children;
use crate::cli::Run;
use crate::core_dumps;
use crate::custom::{self, Custom};
use crate::fold::{Fold, Snapshot};
use crate::guard::machines::{Machines, fence};
use crate::guard::{RUN_VARIABLE, run_directory};
use crate::inputs::{self, Inputs, InputsError};
use crate::inventory::Inventory;
use crate::inventory_check;
use crate::outcome;
use crate::place::Place;
use crate::play::Stage;
use crate::playbooks;
use crate::report::Reporter;
use crate::scrub::Scrubber;
use crate::ssh::{self, Ssh};
use crate::stop::{Stop, Stops};
use crate::terminal::Terminal;
use error::{RunError, system};
use last_word::{reporter, say, write_termination_message};
use work::{Guarding, Heard, Work};

/// What ssh's masters have to end, together.
const MASTERS: Duration = Duration::from_secs(5);

/// What is known once a run has ended.
struct Ended {
    snapshot: Snapshot,
    outcome: RunOutcome,
    exit_code: u8,
}

/// Runs to the end; the answer is the exit code.
pub async fn run(args: &Run) -> u8 {
    let stops = Stops::listen(args.deadline_seconds.map(Duration::from_secs));
    let (mut stops, reaping) = match (stops, children::reap_orphans()) {
        (Ok(stops), reaping) => (stops, reaping),
        (Err(error), _) => {
            error!(%error, "failed to listen to signals");
            return outcome::INTERNAL;
        }
    };
    if let Err(error) = core_dumps::forbid() {
        warn!(%error, "core dumps are not off");
    }
    if let Err(error) = reaping {
        warn!(%error, "orphans will not be reaped");
    }
    info!(
        run = args.run,
        attempt = args.attempt,
        token = args.token,
        "executor started"
    );

    let inputs = read(args);
    let first = match &inputs {
        Ok(inputs) => Fold::new(&inputs.model, &inputs.digest).snapshot(),
        Err(_) => Snapshot {
            progress: Progress::default(),
            steps: Vec::new(),
            hosts: Vec::new(),
            components: Vec::new(),
            outcome: None,
        },
    };
    let (shown, watching) = watch::channel(first);
    let reporter = reporter(args, watching.clone()).await;
    let terminal = args.run.is_none().then(|| tokio::spawn(follow(watching)));

    let ended = match inputs {
        Ok(inputs) => {
            let mut heard = Heard {
                stops: &mut stops,
                first_word: &|outcome| write_termination_message(args, outcome),
                shown: &shown,
                pauses: reporter.as_ref().map(Reporter::pauses).unwrap_or_default(),
            };
            work(args, &inputs, &mut heard).await
        }
        Err(error) => not_played(
            &error.into(),
            shown.borrow().clone(),
            args.digest.as_deref().unwrap_or_default(),
        ),
    };
    shown.send_replace(ended.snapshot.clone());
    drop(shown);
    if let Some(terminal) = terminal {
        // Only prints: what it could say of a panic is on the terminal already.
        let _ = terminal.await;
    }
    say(args, &ended, reporter, &stops).await;
    ended.exit_code
}

fn read(args: &Run) -> Result<Inputs, InputsError> {
    let inputs = inputs::read(&args.inputs, args.digest.as_deref())?;
    if let Some(run) = &args.run {
        inputs.belong_to(run)?;
    }
    Ok(inputs)
}

/// Plays, and states how it ended.
async fn work(args: &Run, inputs: &Inputs, heard: &mut Heard<'_>) -> Ended {
    let mut fold = Fold::new(&inputs.model, &inputs.digest);
    match played(args, inputs, heard, &mut fold).await {
        Ok((outcome, stop)) => {
            let snapshot = fold.snapshot();
            let exit_code = outcome::exit_code(&outcome, &snapshot.hosts, stop);
            Ended {
                snapshot,
                outcome,
                exit_code,
            }
        }
        Err(error) => not_played(&error, fold.snapshot(), &inputs.digest),
    }
}

async fn played(
    args: &Run,
    inputs: &Inputs,
    heard: &mut Heard<'_>,
    fold: &mut Fold,
) -> Result<(RunOutcome, Option<Stop>), RunError> {
    let action = format!("use the collection {}", args.ansible.display());
    let directory = ansible::directory(&args.ansible).map_err(system(action))?;
    let guarding = Guarding::of(args, inputs)?;
    let place = Place::make(&memory_candidates())?;
    let custom = Custom::write(&place, &inputs.model).map_err(system("write the custom playbooks"))?;
    let playbooks = playbooks::order(&directory, &custom, &inputs.model.steps)?;
    let mut ssh = ssh::plan(&inputs.model, &inputs.secrets, place.path());
    if guarding.guards() {
        for (name, variables) in &mut ssh.variables {
            let shells = run_directory(&args.guard_directory, fence(&inputs.model, name, args.token));
            variables.insert(RUN_VARIABLE.to_owned(), shells.into());
        }
    }
    let inventory = furnish(&place, inputs, &ssh).map_err(system("write the run's files"))?;

    let ansible = Ansible {
        directory,
        path: std::env::var("PATH").unwrap_or_default(),
        settings: custom::settings(&inputs.model),
    };
    let stage = Stage {
        ansible: &ansible,
        place: &place,
        scrubber: Arc::new(Scrubber::new(&inputs.secrets)),
        echo: args.run.is_some() || args.verbose,
        pauses: heard.pauses.clone(),
    };
    let listed = stage
        .list(&inventory.file)
        .await
        .map_err(system("run ansible-inventory"))?;
    inventory_check::compare(&inventory.meant, &listed)?;

    for (host, why) in bastions::open(&ansible, &place, &ssh).await {
        fold.blocked(&host, why);
    }
    let machines = Machines {
        ansible: &ansible,
        place: &place,
        ssh: &ssh,
        inputs,
        token: args.token,
        attempt: args.attempt,
        directory: &args.guard_directory,
    };
    let work = Work {
        stage: &stage,
        machines: &machines,
        guarding: &guarding,
        inventory: &inventory.file,
        playbooks: &playbooks,
    };
    let ended = work.whole(fold, heard).await;
    // What does not end in time goes with the process namespace.
    let _ = timeout(MASTERS, stage.end_masters()).await;
    let (ending, stop) = ended.map_err(system("run ansible-playbook"))?;
    for (host, file) in &ssh.first_use {
        if let Some(key) = std::fs::read_to_string(file)
            .ok()
            .and_then(|text| ssh::first_key(&text))
        {
            fold.host_key(host, &key);
        }
    }
    Ok((fold.end(ending), stop))
}

/// The inventory as it is meant, and where Ansible finds it.
struct Furnished {
    meant: Inventory,
    file: PathBuf,
}

fn furnish(place: &Place, inputs: &Inputs, ssh: &Ssh) -> io::Result<Furnished> {
    ssh.write(place)?;
    symlink(std::env::current_exe()?, place.path().join(capped_ssh::NAME))?;
    let secrets_dir = place.directory("secrets")?;
    for (name, content) in inputs.secrets.of_roles() {
        place.write(Path::new("secrets").join(name), content)?;
    }
    let meant = Inventory::new(&inputs.model, ssh, &secrets_dir);
    // A directory of its own, and another for the playbooks: Ansible looks for group_vars beside both.
    let file = place.write("inventory/hosts.yml", meant.text().as_bytes())?;
    Ok(Furnished { meant, file })
}

/// Directories that may be in memory: the Pod's emptyDir first.
fn memory_candidates() -> Vec<PathBuf> {
    let named = ["TMPDIR", "HOME", "XDG_RUNTIME_DIR"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from);
    named.chain([PathBuf::from("/dev/shm")]).collect()
}

fn not_played(error: &RunError, mut snapshot: Snapshot, digest: &str) -> Ended {
    let (exit_code, chain) = (error.exit_code(), error.chain());
    error!(error = chain, "the run was not played");
    let retriable = exit_code == outcome::INTERNAL;
    let outcome = outcome::nothing_done(error.reason(), &chain, digest, snapshot.hosts.len(), retriable);
    // No host is done, and each says so.
    for host in snapshot.hosts.iter_mut().filter(|host| host.failure.is_none()) {
        host.failure = Some(HostFailure {
            step: String::new(),
            task: String::new(),
            reason: outcome.reason.clone(),
            message: outcome.message.clone(),
        });
    }
    for step in snapshot
        .steps
        .iter_mut()
        .filter(|step| step.phase == StepPhase::Pending)
    {
        step.phase = StepPhase::Skipped;
    }
    snapshot.outcome = Some(outcome.clone());
    Ended {
        snapshot,
        outcome,
        exit_code,
    }
}

async fn follow(mut watching: watch::Receiver<Snapshot>) {
    let mut terminal = Terminal::new(io::stdout());
    loop {
        let snapshot = watching.borrow_and_update().clone();
        terminal.show(&snapshot);
        if watching.changed().await.is_err() {
            return;
        }
    }
}
