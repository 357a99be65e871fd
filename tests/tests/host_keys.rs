//! Host keys are obeyed: a machine that shows another key than the pinned one gets nothing, not even a user's name.

use std::time::Duration;

use anyhow::{Result, ensure};
use crds::playbook_run::RunPhase;
use crds::{Host, PlaybookRun};
use e2e::eventually::{Look, eventually};
use e2e::objects;
use e2e::scenario::{Scenario, scenario};
use kube::api::{Patch, PatchParams};
use lab::Lab;
use lab::machines::{Machine, MachineOptions};
use serde_json::json;
use tokio::task::block_in_place;

/// A probe begins at once for a Host that is new or changed; one is in flight at a time.
const PROBED: Duration = Duration::from_secs(60);
const RUN: Duration = Duration::from_secs(90);

/// A key of a type that no machine has.
const OTHER_TYPE: &str = "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBABDJaEzZiZbDwsTaYdLe2TC5qnEiQX+wNtkNamnaEk/Znw5qzwCAn9eCosmez0Yy/yifYtAuAdhB4rJOfAiuHlfzQFz/i749yXA3lsdqdrq4Y8ah6xpYkoRXam4AoIfvLgLNOrLm68dd6rrmLn9Wz6GpuJqSxbzBRZIB26T0AHUZc66/w==";

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_shows_another_key_than_the_pinned_one_gets_nothing() {
    scenario("keys", async |scenario: &Scenario| {
        let names = ["strict", "stranger", "first", "spare", "claimed"];
        let options = names.map(|name| MachineOptions::named(&scenario.machine_name(name)));
        let machines = block_in_place(|| scenario.lab().add_machines(options.to_vec()))?;
        let [strict, stranger, first, spare, claimed] = machines.as_slice() else {
            anyhow::bail!("{} machines", machines.len());
        };
        let since = now(strict)?;
        for machine in &machines {
            inside(
                machine,
                "echo 'LogLevel VERBOSE' >/etc/ssh/sshd_config.d/00-verbose.conf && systemctl restart ssh",
            )?;
            let mut host = Lab::host_manifest(machine, &scenario.name);
            let ssh = &mut host["spec"]["ssh"];
            if machine.name() == first.name() {
                ssh["hostKeyPolicy"] = json!("TrustOnFirstUse");
                ssh.as_object_mut().and_then(|ssh| ssh.remove("hostKeys"));
            } else if machine.name() == stranger.name() {
                ssh["hostKeys"] = json!([OTHER_TYPE]);
            }
            scenario.apply(&host).await?;
        }

        for machine in [strict, first, spare, claimed] {
            says(scenario, machine, "HostKeyVerified", "True", "").await?;
        }
        let host = scenario.api::<Host>().get(first.name()).await?;
        let pinned = host.status.unwrap_or_default().host_keys;
        ensure!(pinned == [first.host_key()], "the first key is pinned: {pinned:?}");
        says(scenario, stranger, "Reachable", "False", "HostKeyChanged").await?;
        let told = logins(stranger, &since)?;
        ensure!(told.is_empty(), "a machine of another key was told something: {told:?}");
        scenario.say("the right keys let us in, another one does not, the first one is pinned");

        let since = now(strict)?;
        for machine in [first, spare, claimed] {
            inside(
                machine,
                "cd /etc/ssh && ssh-keygen -q -t ed25519 -N '' -f new && mv new ssh_host_ed25519_key && \
                 mv new.pub ssh_host_ed25519_key.pub && systemctl restart ssh",
            )?;
        }
        // Nobody has looked since: its Host is Available, and is claimed.
        let cluster = objects::cluster(&scenario.name, "c", "10.239.0.0/16", &[claimed.name()], &[]);
        scenario.apply(&cluster).await?;
        for machine in [strict, first, spare] {
            let change = Patch::Merge(json!({"spec": {"unschedulable": true}}));
            let api = scenario.api::<Host>();
            api.patch(machine.name(), &PatchParams::default(), &change).await?;
        }
        for machine in [first, spare] {
            let said = says(scenario, machine, "Reachable", "False", "HostKeyChanged").await?;
            ensure!(said.contains("SHA256:"), "the key that was seen is named: {said}");
        }
        says(scenario, strict, "HostKeyVerified", "True", "").await?;
        let run = install(scenario).await?;
        let status = run.status.unwrap_or_default();
        let failure = status.hosts.iter().find_map(|host| host.failure.as_ref());
        ensure!(
            status.phase == Some(RunPhase::Failed)
                && failure.is_some_and(|failure| failure.reason == "MachineIdentityMismatch"),
            "the run says {:?} {:?}: {failure:?}",
            status.phase,
            status.message
        );
        scenario.say(&format!("the run says: {}", status.message.unwrap_or_default()));

        for machine in [first, spare, claimed] {
            let log = log(machine, &since)?;
            ensure!(log.contains("Connection from"), "{} was not asked: {log}", machine.name());
            let logins = logins(machine, &since)?;
            ensure!(logins.is_empty(), "{} was told something: {logins:?}", machine.name());
        }
        Ok(())
    })
    .await;
}

/// The time, as a machine's journal wants it; what happened before this second is not meant.
fn now(machine: &Machine) -> Result<String> {
    inside(machine, "sleep 1; date '+%Y-%m-%d %H:%M:%S'")
}

/// Runs a command in a machine, without SSH.
fn inside(machine: &Machine, command: &str) -> Result<String> {
    let output = block_in_place(|| machine.enter(command))?;
    ensure!(output.ok(), "{command}: {}", output.stderr);
    Ok(output.stdout.trim().to_owned())
}

/// What sshd has said since a moment.
fn log(machine: &Machine, since: &str) -> Result<String> {
    inside(machine, &format!("journalctl --quiet --no-pager -o cat -u ssh --since '{since}'"))
}

/// Lines of sshd that tell of more than a key exchange: a user was named, a key offered, a session opened.
fn logins(machine: &Machine, since: &str) -> Result<Vec<String>> {
    let log = log(machine, since)?;
    let words = ["Accepted", "Failed", "Postponed", "authenticating user", "session", "Invalid user"];
    let told = log.lines().filter(|line| words.iter().any(|word| line.contains(word)));
    // systemd's own word about the unit.
    Ok(told.filter(|line| !line.contains("OpenBSD Secure Shell server")).map(str::to_owned).collect())
}

/// Waits until a condition of a Host says this, and gives its message.
async fn says(scenario: &Scenario, machine: &Machine, kind: &str, value: &str, reason: &str) -> Result<String> {
    let api = scenario.api::<Host>();
    eventually(&format!("{} has {kind} {value} {reason}", machine.name()), PROBED, async || {
        let status = api.get(machine.name()).await?.status.unwrap_or_default();
        let found = status.conditions.iter().find(|condition| condition.type_ == kind);
        let holds = found.is_some_and(|found| found.status == value && (reason.is_empty() || found.reason == reason));
        let current = status.observed_generation == api.get(machine.name()).await?.metadata.generation;
        Ok(match found {
            Some(found) if holds && current => Look::Done(found.message.clone()),
            _ => Look::Waiting(format!("{:?} {:?}", status.message, status.conditions)),
        })
    })
    .await
}

/// Waits until the cluster's install is over.
async fn install(scenario: &Scenario) -> Result<PlaybookRun> {
    let api = scenario.api::<PlaybookRun>();
    eventually("the install is over", RUN, async || {
        let runs = api.list(&Default::default()).await?.items;
        let run = runs.into_iter().find(|run| run.spec.intent == crds::step::Intent::Install);
        let Some(run) = run else {
            return Ok(Look::Waiting("no run".to_owned()));
        };
        let status = run.status.clone().unwrap_or_default();
        Ok(if status.phase.is_some_and(RunPhase::is_final) {
            Look::Done(run)
        } else {
            Look::Waiting(status.message.unwrap_or_default())
        })
    })
    .await
}
