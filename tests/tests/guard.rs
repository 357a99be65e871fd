//! The guard on a machine with systemd, reached by SSH: what no directory on the developer's own machine can show.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use guard::log_audit;
use lab::Lab;
use lab::command::{Invocation, Output};
use lab::machines::{Machine, MachineOptions};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(30);

#[test]
fn what_clears_its_environment_is_found_in_its_scope() -> Result<()> {
    on_a_machine("guard-scope", |machine| {
        begin(machine, 1, 45)?;
        let leave = "env -i setsid sleep 1000 </dev/null >/dev/null 2>&1 &";
        ensure!(step(machine, 1, leave)?.ok(), "the command runs");
        let scopes = succeed(machine, "systemctl list-units --type=scope --plain --no-legend")?;
        ensure!(scopes.contains("clusterwright-1-1-"), "a scope holds it: {scopes}");
        let ended = begin(machine, 2, 1)?["ended"].clone();
        ensure!(ended[0]["command"] == "sleep", "it was ended: {ended}");
        ensure!(!succeed(machine, "ps -eo args")?.contains("sleep 1000"), "it is gone");
        let scopes = succeed(machine, "systemctl list-units --all --type=scope --plain --no-legend")?;
        ensure!(!scopes.contains("clusterwright-1-1-"), "so is its scope: {scopes}");
        Ok(())
    })
}

#[test]
fn a_systemd_that_does_not_answer_costs_a_moment_and_no_command() -> Result<()> {
    on_a_machine("guard-deaf", |machine| {
        begin(machine, 1, 45)?;
        succeed(machine, "mv /run/systemd/private /run/systemd/away")?;
        let output = step(machine, 1, "echo done")?;
        ensure!(output.stdout == "done\n" && output.stderr.is_empty(), "{output:?}");

        // One that listens and says nothing.
        let deaf = "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('/run/systemd/private'); s.listen(); time.sleep(600)";
        succeed(machine, &format!("python3 -c \"{deaf}\" </dev/null >/dev/null 2>&1 & sleep 0.5"))?;
        let since = Instant::now();
        let output = step(machine, 1, "echo done")?;
        ensure!(output.stdout == "done\n" && output.stderr.is_empty(), "{output:?}");
        ensure!(since.elapsed() < Duration::from_secs(300), "it took {:?}", since.elapsed());
        Ok(())
    })
}

#[test]
fn a_connection_that_breaks_leaves_the_command_its_end() -> Result<()> {
    on_a_machine("guard-cut", |machine| {
        begin(machine, 1, 45)?;
        let mut ssh = Command::new("ssh")
            .args(machine.ssh_target().arguments())
            .args(["--", &format!("{}/runs/1-1/etcd -c 'echo there; sleep 3; echo more'", guard::DIRECTORY)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("failed to start ssh")?;
        while !log(machine)?.contains("\"begin\"") {
            ensure!(ssh.try_wait()?.is_none(), "the command is at work");
        }
        ssh.kill()?;
        ssh.wait()?;
        let answer = begin(machine, 2, 45)?;
        ensure!(answer["ended"] == Value::Array(vec![]), "it was waited for: {answer}");
        ensure!(answer["waitedMilliseconds"].as_u64() > Some(500), "it went on: {answer}");
        ensure!(log(machine)?.contains("\"event\":\"end\""), "its end is written");
        Ok(())
    })
}

#[test]
fn a_restart_within_a_command_keeps_the_fence_and_hangs_nothing() -> Result<()> {
    on_a_machine("guard-boot", |machine| {
        begin(machine, 3, 45)?;
        step(machine, 3, "(sleep 1000; true) </dev/null >/dev/null 2>&1 & trap '' TERM; systemctl reboot; sleep 1000")
            .ok();
        let since = Instant::now();
        machine.wait()?;
        ensure!(
            // What ignores SIGTERM is waited for 90 seconds.
            since.elapsed() < Duration::from_secs(85),
            "the machine was back after {:?}",
            since.elapsed()
        );
        ensure!(step(machine, 2, "true")?.code != 0, "a lower fence is still refused");
        refuses(machine, 2)?;
        begin(machine, 4, 45)?;
        ensure!(step(machine, 4, "true")?.ok(), "the next run works");
        Ok(())
    })
}

#[test]
fn a_loss_of_power_keeps_the_fence() -> Result<()> {
    on_a_machine("guard-power", |machine| {
        begin(machine, 3, 45)?;
        step(machine, 3, "sleep 1000 </dev/null >/dev/null 2>&1 &")?;
        machine.kill()?;
        machine.start()?;
        refuses(machine, 2)?;
        let answer = begin(machine, 4, 45)?;
        ensure!(answer["ended"] == Value::Array(vec![]), "nothing survived: {answer}");
        ensure!(step(machine, 4, "true")?.ok(), "the next run works");
        Ok(())
    })
}

/// A fresh machine with a guard; afterwards the audit of its log finds nothing wrong.
fn on_a_machine(name: &str, body: impl FnOnce(&Machine) -> Result<()>) -> Result<()> {
    let lab = Lab::open().context("the lab is not ready; `make lab-up` starts it")?;
    if let Ok(left) = lab.machine(name) {
        left.remove()?;
    }
    let machine = lab.add_machine(MachineOptions::named(name))?;
    let held = installed(&machine).and_then(|()| body(&machine)).and_then(|()| {
        let report = log_audit::read("", &log(&machine)?);
        ensure!(report.violations.is_empty(), "{:?}\n{}", report.violations, log(&machine)?);
        Ok(())
    });
    let removed = machine.remove();
    held.and(removed)
}

fn installed(machine: &Machine) -> Result<()> {
    let program = Invocation::new(lab::project::path("hack/guard")).within(Duration::from_secs(300)).run()?;
    let place = guard::DIRECTORY;
    machine
        .ssh_target()
        .invocation(&format!(
            "mkdir -p {place} && cat >{place}/guard.new && chmod 755 {place}/guard.new && mv {place}/guard.new {place}/guard"
        ))
        .input_file(program.trim().as_ref())?
        .within(SOON)
        .run()?;
    Ok(())
}

fn guard(machine: &Machine, arguments: &str) -> Result<Output> {
    machine.ssh(&format!("{}/guard {arguments}", guard::DIRECTORY), Duration::from_secs(90))
}

fn begin(machine: &Machine, token: i64, wait_seconds: u64) -> Result<Value> {
    let output = guard(
        machine,
        &format!(
            "begin --epoch 1 --token {token} --cluster a --host h --run ns/r{token} --attempt 0 --steps etcd \
             --wait-seconds {wait_seconds} --kill-after-seconds 2"
        ),
    )?;
    ensure!(output.ok(), "the run begins: {output:?}");
    serde_json::from_str(&output.stdout).context("the answer is JSON")
}

/// A run of this token may not begin any more.
fn refuses(machine: &Machine, token: i64) -> Result<()> {
    let arguments =
        format!("begin --epoch 1 --token {token} --cluster a --host h --run ns/r{token} --attempt 0 --steps etcd");
    let lower = guard(machine, &arguments)?;
    ensure!(lower.code == i32::from(guard::REFUSED), "a lower fence is still refused: {lower:?}");
    Ok(())
}

/// A command of the step `etcd`.
fn step(machine: &Machine, token: i64, command: &str) -> Result<Output> {
    let quoted = command.replace('\'', r"'\''");
    machine.ssh(&format!("{}/runs/1-{token}/etcd -c '{quoted}'", guard::DIRECTORY), SOON)
}

fn succeed(machine: &Machine, command: &str) -> Result<String> {
    machine.ssh_target().succeed(command, SOON)
}

fn log(machine: &Machine) -> Result<String> {
    succeed(machine, &format!("cat {}/log", guard::DIRECTORY))
}
