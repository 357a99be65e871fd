//! One run from its inputs to its final report. Every way out passes the same end: termination message, status,
//! exit code.

mod comparison;
mod ended;
mod endpoints;
mod error;
mod final_report;
mod work;

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crds::playbook_run::RunOutcome;
use crds::step::Step;
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
use crate::etcd_backup::{self, SpoolPlaces, Spooling};
use crate::fold::{Fold, Snapshot};
use crate::guard::call::Root;
use crate::guard::machines::{Machines, fence};
use crate::guard::{self, RUN_VARIABLE, run_directory};
use crate::inputs::{self, Inputs, InputsError};
use crate::inventory::Inventory;
use crate::inventory_check;
use crate::outcome;
use crate::play::AnsibleRunner;
use crate::playbooks;
use crate::read_kubeconfigs;
use crate::redact::Redactor;
use crate::report::Reporter;
use crate::ssh::{self, Ssh};
use crate::stop::{Stop, Stops};
use crate::terminal::Terminal;
use crate::workdir::Workdir;
use ended::Ended;
use error::{RunError, system};
use final_report::{reporter, write_termination_message};
use work::{Guarding, RunSignals, Work};

/// How long all of ssh's masters may take to end.
const MASTERS: Duration = Duration::from_secs(5);

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
    info!(run = args.run, attempt = args.attempt, token = args.token, "executor started");

    let inputs = read(args);
    let first = match &inputs {
        Ok(inputs) => Fold::new(&inputs.model, &inputs.digest).snapshot(),
        Err(_) => Snapshot::default(),
    };
    let (shown, watching) = watch::channel(first);
    let reporter = reporter(args, watching.clone()).await;
    let terminal = args.run.is_none().then(|| tokio::spawn(follow(watching)));

    let ended = match inputs {
        Ok(inputs) => {
            let mut signals = RunSignals {
                stops: &mut stops,
                report_early: &|outcome| write_termination_message(args, outcome),
                shown: &shown,
                pauses: reporter.as_ref().map(Reporter::pauses).unwrap_or_default(),
            };
            work(args, &inputs, &mut signals).await
        }
        Err(error) => {
            Ended::not_played(&error.into(), shown.borrow().clone(), args.digest.as_deref().unwrap_or_default())
        }
    };
    shown.send_replace(ended.snapshot.clone());
    drop(shown);
    if let Some(terminal) = terminal {
        // Only prints: a panic of it is on the terminal already.
        let _ = terminal.await;
    }
    final_report::send(args, &ended, reporter, &stops).await;
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
async fn work(args: &Run, inputs: &Inputs, signals: &mut RunSignals<'_>) -> Ended {
    let mut fold = Fold::new(&inputs.model, &inputs.digest);
    let over_endpoints = inputs.model.backup.as_ref().filter(|backup| backup.etcd.is_some());
    let played = match over_endpoints {
        Some(backup) => endpoints::played(inputs, backup, signals, &mut fold).await,
        None => played(args, inputs, signals, &mut fold).await,
    };
    match played {
        Ok((outcome, stop)) => Ended::played(fold.snapshot(), outcome, stop),
        Err(error) => Ended::not_played(&error, fold.snapshot(), &inputs.digest),
    }
}

async fn played(
    args: &Run,
    inputs: &Inputs,
    signals: &mut RunSignals<'_>,
    fold: &mut Fold,
) -> Result<(RunOutcome, Option<Stop>), RunError> {
    let action = format!("use the collection {}", args.ansible.display());
    let directory = ansible::directory(&args.ansible).map_err(system(action))?;
    let guarding = Guarding::for_run(args, inputs)?;
    let workdir = Workdir::make(&memory_candidates())?;
    read_kubeconfigs::prepare(&workdir, &inputs.model, args.run.as_deref())?;
    let custom = Custom::write(&workdir, &inputs.model).map_err(system("write the custom playbooks"))?;
    let playbooks = playbooks::order(&directory, &custom, &inputs.model.steps)?;
    let ssh = plan_ssh(args, inputs, &guarding, &workdir);
    prepare_backup(args, &workdir, inputs, &guarding, &ssh).map_err(system("write what the backup is made by"))?;
    prepare_staging(args, &workdir, inputs, &guarding, &ssh).map_err(system("write what the backup is staged by"))?;
    let inventory = furnish(&workdir, inputs, &ssh).map_err(system("write the run's files"))?;

    let path = std::env::var("PATH").unwrap_or_default();
    let ansible = Ansible { directory, path, settings: custom::settings(&inputs.model) };
    let runner = AnsibleRunner {
        ansible: &ansible,
        workdir: &workdir,
        redactor: Arc::new(Redactor::new(&inputs.secrets)),
        echo: args.run.is_some() || args.verbose,
        pauses: signals.pauses.clone(),
    };
    let listed = runner.list(&inventory.file).await.map_err(system("run ansible-inventory"))?;
    inventory_check::compare(&inventory.meant, &listed)?;

    for (host, why) in bastions::open(&ansible, &workdir, &ssh).await {
        fold.blocked(&host, why);
    }
    let machines = Machines {
        ansible: &ansible,
        workdir: &workdir,
        ssh: &ssh,
        inputs,
        uid: args.uid.as_deref(),
        token: args.token,
        attempt: args.attempt,
        directory: &args.guard_directory,
    };
    let work = Work {
        runner: &runner,
        machines: &machines,
        guarding: &guarding,
        inventory: &inventory.file,
        playbooks: &playbooks,
    };
    let ended = work.run(fold, signals).await;
    if !etcd_backup::gone(workdir.path()).await {
        warn!("the program that makes or stages the backup did not end: parts of it may be left where it goes");
    }
    // A master that does not end in time is killed with the process namespace.
    let _ = timeout(MASTERS, runner.end_masters()).await;
    let (ending, stop) = ended.map_err(system("run ansible-playbook"))?;
    record_first_keys(&ssh, fold);
    // Before the run is reported as done.
    if stop.is_none() {
        read_kubeconfigs::keep(&workdir, &inputs.model, args.run.as_deref()).await?;
    }
    Ok((fold.end(ending), stop))
}

/// The SSH files and variables of all hosts, with the directory of the guard's shells where the run is guarded.
fn plan_ssh(args: &Run, inputs: &Inputs, guarding: &Guarding, workdir: &Workdir) -> Ssh {
    let mut ssh = ssh::plan(&inputs.model, &inputs.secrets, workdir.path());
    if guarding.guards() {
        for (name, variables) in &mut ssh.variables {
            let shells = run_directory(&args.guard_directory, fence(&inputs.model, name, args.token));
            variables.insert(RUN_VARIABLE.to_owned(), shells.into());
        }
    }
    ssh
}

/// Records the host keys that were trusted on first use.
fn record_first_keys(ssh: &Ssh, fold: &mut Fold) {
    for (host, file) in &ssh.first_use {
        if let Some(key) = std::fs::read_to_string(file).ok().and_then(|text| ssh::first_key(&text)) {
            fold.host_key(host, &key);
        }
    }
}

/// The inventory as it is meant, and where Ansible finds it.
struct Furnished {
    meant: Inventory,
    file: PathBuf,
}

fn furnish(workdir: &Workdir, inputs: &Inputs, ssh: &Ssh) -> io::Result<Furnished> {
    ssh.write(workdir)?;
    symlink(std::env::current_exe()?, workdir.path().join(capped_ssh::NAME))?;
    let secrets_dir = workdir.directory("secrets")?;
    for (name, content) in inputs.secrets.of_roles() {
        workdir.write(Path::new("secrets").join(name), content)?;
    }
    let meant = Inventory::new(&inputs.model, ssh, &secrets_dir);
    // A directory of its own, and another for the playbooks: Ansible looks for group_vars beside both.
    let file = workdir.write("inventory/hosts.yml", meant.text().as_bytes())?;
    Ok(Furnished { meant, file })
}

/// Puts the program that makes the backup where its playbook finds it, and beside it its settings. Nothing where no
/// backup is wanted.
fn prepare_backup(args: &Run, workdir: &Workdir, inputs: &Inputs, guarding: &Guarding, ssh: &Ssh) -> io::Result<()> {
    let Some(backup) = &inputs.model.backup else {
        return Ok(());
    };
    let connect = ssh.routes.iter().map(|(host, route)| {
        let shells = run_directory(&args.guard_directory, fence(&inputs.model, host, args.token));
        let shell = format!("{shells}/{}", Step::BackupEtcd);
        let remote = guard::call::connect(&args.guard_directory, &shell, &args.etcd_address);
        let remote = guarding.guards().then_some(remote.as_str());
        (host.clone(), etcd_backup::connecting(route, remote, &args.etcd_address))
    });
    let places = SpoolPlaces {
        directory: &args.spool_directory,
        etcdctl: &args.etcdctl,
        address: &args.etcd_address,
        pki: &args.etcd_pki_directory,
    };
    let spool = ssh.routes.iter().filter(|_| backup.spool).map(|(host, route)| {
        let shells = run_directory(&args.guard_directory, fence(&inputs.model, host, args.token));
        let guarded = format!("{shells}/{}", Step::BackupEtcd);
        let shell = if guarding.guards() { guarded.as_str() } else { "/bin/sh" };
        let credential = inputs.model.hosts.get(host).map(|host| format!("become-password.{}", host.credential));
        (host.clone(), Spooling::new(route, shell, &places, credential))
    });
    let settings = etcd_backup::Settings {
        inputs: backup.clone(),
        secrets: std::path::absolute(&args.inputs)?.join("secrets"),
        url: format!("https://{}", args.etcd_address),
        connect: connect.collect(),
        spool: spool.collect(),
    };
    workdir.write(etcd_backup::FILE, &serde_json::to_vec(&settings)?)?;
    symlink(std::env::current_exe()?, workdir.path().join(etcd_backup::NAME))
}

/// Puts the program that stages a backup where its playbook finds it, and beside it its settings. Nothing where none is
/// to be staged.
fn prepare_staging(args: &Run, workdir: &Workdir, inputs: &Inputs, guarding: &Guarding, ssh: &Ssh) -> io::Result<()> {
    let Some(staging) = &inputs.model.staging else {
        return Ok(());
    };
    let file = etcd_backup::snapshot_file(&args.etcd_data_directory, &staging.id);
    let send = ssh.routes.iter().map(|(host, route)| {
        let shells = run_directory(&args.guard_directory, fence(&inputs.model, host, args.token));
        let guarded = format!("{shells}/{}", Step::StageBackup);
        let shell = if guarding.guards() { guarded.as_str() } else { "/bin/sh" };
        let words = etcd_backup::over_ssh(route, &guard::call::receive(&route.root, shell, &file));
        let credential = inputs.model.hosts.get(host).map(|host| format!("become-password.{}", host.credential));
        let sudo_password = credential.filter(|_| matches!(route.root, Root::Sudo(Some(_))));
        (host.clone(), etcd_backup::Sending { words, sudo_password })
    });
    let settings = etcd_backup::StagingSettings {
        inputs: staging.clone(),
        secrets: std::path::absolute(&args.inputs)?.join("secrets"),
        send: send.collect(),
    };
    workdir.write(etcd_backup::STAGING_FILE, &serde_json::to_vec(&settings)?)?;
    symlink(std::env::current_exe()?, workdir.path().join(etcd_backup::NAME))
}

/// Directories that may be in memory: the Pod's emptyDir first.
fn memory_candidates() -> Vec<PathBuf> {
    let named = ["TMPDIR", "HOME", "XDG_RUNTIME_DIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    named.chain([PathBuf::from("/dev/shm")]).collect()
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
