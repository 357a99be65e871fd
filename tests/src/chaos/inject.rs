//! Does what a walk's action says, and sees to it that what is for a while only is taken back.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use crds::machine::MachinePhase;
use crds::playbook_run::RunPhase;
use crds::step::Role;
use crds::{Host, Machine, PlaybookRun};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use lab::machines::{self, State};
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::task::{JoinSet, block_in_place, spawn_blocking};
use tokio::time::sleep;

use super::action::Action;
use super::schedule::Event;
use crate::faults::inject::{self, Leader};
use crate::lifecycle::stage::Stage;

/// A container that is killed again and again is restarted later and later: its Pod is replaced instead.
const REPLACED_AFTER: Duration = Duration::from_secs(2);

/// What was done, or why nothing was.
pub enum Done {
    /// To whom.
    To(String),
    /// Nothing, for this reason.
    Skipped(String),
}

/// A cluster that is being hit.
pub struct Injector<'s, 'a> {
    /// The cluster.
    pub stage: &'s mut Stage<'a>,
    /// What is taken back later.
    undo: JoinSet<Result<()>>,
    destroyed: Vec<machines::Machine>,
}

impl<'s, 'a> Injector<'s, 'a> {
    /// Has done nothing yet.
    pub fn new(stage: &'s mut Stage<'a>) -> Self {
        Self { stage, undo: JoinSet::new(), destroyed: Vec::new() }
    }

    /// Does what the event says.
    pub async fn inject(&mut self, event: Event) -> Result<Done> {
        match event.action {
            Action::KillOperator => self.kill_operator().await,
            Action::StopOperator(outage) => self.stop_operator(outage).await,
            Action::KillExecutor | Action::DeleteExecutor => self.hit_executor(event).await,
            Action::Reboot | Action::PowerLoss(_) | Action::CutCable(_) => self.disturb(event).await,
            Action::Destroy | Action::DeleteMachine => self.lose(event).await,
            Action::Return => self.bring_back(event.choice).await,
            Action::ScaleControlPlanes => self.scale_control_planes().await,
            Action::ScaleWorkers(count) => {
                self.stage.workers(count).await?;
                Ok(Done::To("the cluster".into()))
            }
            Action::Pause(outage) => self.pause(outage).await,
        }
    }

    /// Takes back all that was done: every machine runs and has its cable, no operator is stopped, nothing is paused.
    pub async fn heal(&mut self) -> Result<()> {
        while let Some(undone) = self.undo.join_next().await {
            undone.context("a task panicked")??;
        }
        self.stage.wish["spec"]["paused"] = json!(false);
        self.stage.apply().await?;
        let machines = self.stage.machines.clone();
        block_in_place(|| {
            machines.iter().try_for_each(|machine| match machine.state() {
                State::Running => Ok(()),
                State::Partitioned => machine.heal(),
                State::Stopped => machine.start(),
            })
        })
    }

    async fn kill_operator(&mut self) -> Result<Done> {
        let client = self.stage.scenario.client.clone();
        let leader = Leader::find(&client).await?;
        inject::all(&leader.processes, Signal::SIGKILL)?;
        let pod = leader.pod.clone();
        self.undo.spawn(async move {
            sleep(REPLACED_AFTER).await;
            inject::delete_operator(&client, &pod).await
        });
        Ok(Done::To(leader.pod))
    }

    async fn stop_operator(&mut self, outage: Duration) -> Result<Done> {
        let leader = Leader::find(&self.stage.scenario.client).await?;
        inject::all(&leader.processes, Signal::SIGSTOP)?;
        let processes = leader.processes;
        self.undo.spawn(async move {
            sleep(outage).await;
            // One that was killed meanwhile needs nothing.
            inject::all(&processes, Signal::SIGCONT).ok();
            Ok(())
        });
        Ok(Done::To(leader.pod))
    }

    async fn hit_executor(&mut self, event: Event) -> Result<Done> {
        let runs: Api<PlaybookRun> = self.stage.scenario.api();
        let mut running: Vec<String> = runs
            .list(&ListParams::default())
            .await?
            .iter()
            .filter(|run| run.status.as_ref().and_then(|status| status.phase) == Some(RunPhase::Running))
            .map(ResourceExt::name_any)
            .collect();
        running.sort();
        let Some(run) = pick(&running, event.choice) else {
            return Ok(Done::Skipped("no run is under way".into()));
        };
        let pod = inject::pod_of(self.stage.scenario, run).await?.name_any();
        match event.action {
            Action::KillExecutor => {
                inject::all(&inject::executor(self.stage.scenario, run).await?, Signal::SIGKILL)?;
            }
            _ => inject::delete_pod(&self.stage.scenario.api(), &pod).await?,
        }
        Ok(Done::To(format!("run {run}")))
    }

    /// A machine is away for a while.
    async fn disturb(&mut self, event: Event) -> Result<Done> {
        let all = self.in_service(&[Role::ControlPlane, Role::Worker]).await?;
        let Some((_, machine)) = pick(&all, event.choice).cloned() else {
            return Ok(Done::Skipped("no machine of the cluster runs".into()));
        };
        let name = machine.name().to_owned();
        match event.action {
            Action::CutCable(outage) => {
                block_in_place(|| -> Result<()> {
                    inject::pull(&inject::cable(&machine)?)?;
                    machine.partition()
                })?;
                self.later(outage, move || machine.heal());
            }
            Action::PowerLoss(outage) => {
                block_in_place(|| machine.kill())?;
                self.later(outage, move || machine.start());
            }
            _ => self.later(Duration::ZERO, move || reboot(&machine)),
        }
        Ok(Done::To(name))
    }

    /// A machine leaves for good. What is left of the control planes keeps etcd's majority: losing that is for a person
    /// to decide about.
    async fn lose(&mut self, event: Event) -> Result<Done> {
        let all = self.in_service(&[Role::ControlPlane, Role::Worker]).await?;
        let Some((object, machine)) = pick(&all, event.choice).cloned() else {
            return Ok(Done::Skipped("no machine of the cluster runs".into()));
        };
        if object.spec.role == Role::ControlPlane {
            let members = self.stage.members(Role::ControlPlane).await?.len();
            let running = self.in_service(&[Role::ControlPlane]).await?.len();
            if !may_lose_one(members, running) {
                return Ok(Done::Skipped(format!("{running} of {members} control planes run")));
            }
        }
        if event.action == Action::Destroy {
            self.stage.kill(&machine)?;
            self.destroyed.push(machine);
        } else {
            self.stage.delete(&object).await?;
        }
        Ok(Done::To(object.name_any()))
    }

    async fn bring_back(&mut self, choice: usize) -> Result<Done> {
        let hosts: Api<Host> = self.stage.scenario.api();
        let mut forgotten = Vec::new();
        for machine in &self.destroyed {
            let host = hosts.get(machine.name()).await?;
            if host.spec.claim_ref.is_none() && machine.state() == State::Stopped {
                forgotten.push(machine.clone());
            }
        }
        let Some(machine) = pick(&forgotten, choice).cloned() else {
            return Ok(Done::Skipped("no destroyed machine has been forgotten".into()));
        };
        let name = machine.name().to_owned();
        self.later(Duration::ZERO, move || machine.start());
        Ok(Done::To(name))
    }

    async fn scale_control_planes(&mut self) -> Result<Done> {
        let replicas = &mut self.stage.wish["spec"]["controlPlane"]["replicas"];
        let count = if *replicas == json!(3) { 5 } else { 3 };
        *replicas = json!(count);
        self.stage.apply().await?;
        Ok(Done::To(format!("{count} replicas")))
    }

    async fn pause(&mut self, outage: Duration) -> Result<Done> {
        self.stage.wish["spec"]["paused"] = json!(true);
        self.stage.apply().await?;
        sleep(outage).await;
        self.stage.wish["spec"]["paused"] = json!(false);
        self.stage.apply().await?;
        Ok(Done::To("the cluster".into()))
    }

    /// Machines that are part of the cluster, stay, and run.
    async fn in_service(&self, roles: &[Role]) -> Result<Vec<(Machine, machines::Machine)>> {
        let mut found = Vec::new();
        for role in roles {
            for member in self.stage.members(*role).await? {
                let phase = member.status.as_ref().and_then(|status| status.phase);
                let stays = member.metadata.deletion_timestamp.is_none();
                if phase != Some(MachinePhase::Running) || !stays {
                    continue;
                }
                let machine = self.stage.machine_of(&member)?;
                if machine.state() == State::Running {
                    found.push((member, machine));
                }
            }
        }
        Ok(found)
    }

    fn later(&mut self, after: Duration, undo: impl FnOnce() -> Result<()> + Send + 'static) {
        self.undo.spawn(async move {
            sleep(after).await;
            match spawn_blocking(undo).await {
                Ok(undone) => undone,
                Err(panic) => bail!("a task panicked: {panic}"),
            }
        });
    }
}

/// A machine whose power is cut on its way down comes up with the power.
fn reboot(machine: &machines::Machine) -> Result<()> {
    match machine.reboot() {
        Err(_) if machine.state() == State::Stopped => Ok(()),
        rebooted => rebooted,
    }
}

fn pick<T>(all: &[T], choice: usize) -> Option<&T> {
    all.get(choice.checked_rem(all.len())?)
}

/// Whether etcd keeps its majority without one of those that run.
fn may_lose_one(members: usize, running: usize) -> bool {
    running > members / 2 + 1
}

#[cfg(test)]
mod tests {
    use super::{may_lose_one, pick};

    #[test]
    fn a_majority_of_the_members_stays() {
        for (members, running, expected) in
            [(3, 3, true), (3, 2, false), (5, 4, true), (5, 3, false), (4, 4, true), (4, 3, false)]
        {
            assert_eq!(may_lose_one(members, running), expected, "{running} of {members}");
        }
    }

    #[test]
    fn a_choice_is_counted_around() {
        assert_eq!(pick(&["a", "b"], 3), Some(&"b"));
        assert_eq!(pick::<&str>(&[], 3), None);
    }
}
