//! Hooks: an administrator's own playbooks before and after what is done to machines. They are steps of the same runs,
//! but for those before a drain, which have a run of their own.

mod asked;
mod content;
mod library;
mod refusal;
mod schema;

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::cluster_deployment::{Hook, Hooks};
use crds::inputs::PlaybookInputs;
use crds::playbook_run::PlaybookRunSpec;
use crds::step::{CustomStep, Intent, Step};
use crds::{ClusterDeployment, Machine, PlaybookRun};
use jiff::Timestamp;
use serde_json::Value;

use crate::attempts::{self, Outcome, PastAttempt, RetryDecision};
use crate::lifecycle::is_provisioned;
use crate::provisioning;
use asked::{Asked, asked_by_run};
pub use library::Library;
pub use refusal::Refusal;

/// Where the playbooks stand that are played on a machine before its Pods are moved away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookState {
    /// There are none for this machine.
    None,
    /// Their run is to be made, by the ClusterDeployment planner.
    Wanted,
    /// They are being played.
    UnderWay(String),
    /// All are done.
    Done,
    /// The machine cannot be reached: the removal goes on without them, and says so.
    PassedOver(String),
    /// One failed: the removal waits. They are tried again, and a person may take the hook out of the spec.
    Failed(String),
    /// Somebody stopped them: the removal waits for a person's word.
    Stopped(String),
}

/// Whether the run has nothing but custom playbooks to play on a machine that leaves.
pub fn is_before_drain(run: &PlaybookRun) -> bool {
    run.spec.intent == Intent::Remove && run.spec.steps.iter().all(|step| step.custom().is_some())
}

/// The attempts at a machine's playbooks before its drain, oldest first.
fn tried_before_drain(machine_uid: &str, runs: &[&PlaybookRun]) -> Vec<PastAttempt> {
    let ours: Vec<&PlaybookRun> = runs.iter().copied().filter(|run| is_before_drain(run)).collect();
    attempts::tried(&ours, &[Intent::Remove], machine_uid)
}

/// Whether those playbooks are due (again): until they go well, but not against the word of who stopped them.
pub fn retry_before_drain(
    machine: &Machine,
    deployment: &ClusterDeployment,
    runs: &[&PlaybookRun],
    now: Timestamp,
) -> RetryDecision {
    let tried = tried_before_drain(machine.uid(), runs);
    let terms = provisioning::terms(deployment);
    let policy = terms.endless(terms.asked_retries(machine)).stopped_is_final();
    attempts::retry_decision(&tried, &policy, now)
}

/// Where the playbooks of `hooks.beforeDrain` stand for a machine that leaves a cluster which goes on.
pub fn before_drain(machine: &Machine, deployment: &ClusterDeployment, runs: &[&PlaybookRun]) -> HookState {
    let wanted = hooks(deployment).is_some_and(|hooks| !hooks.before_drain.is_empty());
    let stands = is_provisioned(machine);
    let ends = deployment.is_deleting();
    if !wanted || !stands || ends || machine.spec.host_ref.is_none() {
        return HookState::None;
    }
    let tried = tried_before_drain(machine.uid(), runs);
    let Some(last) = tried.last() else {
        return HookState::Wanted;
    };
    match &last.outcome {
        Outcome::UnderWay => HookState::UnderWay(format!("run {} plays hooks.beforeDrain", last.run)),
        Outcome::Succeeded => HookState::Done,
        Outcome::Held => HookState::Wanted,
        Outcome::Canceled => HookState::Stopped(format!("run {} of hooks.beforeDrain was canceled", last.run)),
        Outcome::Failed(failure) if failure.unreachable => HookState::PassedOver(format!(
            "hooks.beforeDrain was not played, the machine cannot be reached: {}",
            failure.message
        )),
        Outcome::Failed(failure) if failure.was_stopped() => HookState::Stopped(format!(
            "run {} of hooks.beforeDrain was stopped ({}): {}",
            last.run, failure.reason, failure.message
        )),
        Outcome::Failed(failure) => {
            HookState::Failed(format!("hooks.beforeDrain failed in run {}: {}", last.run, failure.message))
        }
    }
}

/// The hooks that a machine which leaves goes without, and why. `forced` says why it is forgotten without being
/// reached: then nothing is played on it any more.
pub fn passed_over(
    machine: &Machine,
    deployment: &ClusterDeployment,
    runs: &[&PlaybookRun],
    forced: Option<&str>,
) -> Option<String> {
    let state = before_drain(machine, deployment, runs);
    let Some(why) = forced else {
        return match state {
            HookState::PassedOver(message) => Some(message),
            _ => None,
        };
    };
    let hooks = hooks(deployment)?;
    let drains = !deployment.is_deleting();
    let unplayed = !matches!(state, HookState::None | HookState::Done);
    let lists = [
        ("hooks.beforeDrain", unplayed),
        ("hooks.afterDrain", drains && !hooks.after_drain.is_empty()),
        ("hooks.beforeRemove", !hooks.before_remove.is_empty()),
        ("hooks.afterRemove", !hooks.after_remove.is_empty()),
    ];
    let names: Vec<&str> = lists.into_iter().filter_map(|(name, missed)| missed.then_some(name)).collect();
    (!names.is_empty()).then(|| format!("not played: {}; the machine was {why}", names.join(", ")))
}

/// Puts the hooks of an install around its steps.
pub fn around_install(spec: &mut PlaybookRunSpec, deployment: &ClusterDeployment) {
    if let Some(hooks) = hooks(deployment) {
        frame(spec, deployment, &[&hooks.before_install], &[&hooks.after_install]);
    }
}

/// Puts the hooks of a join around its steps.
pub fn around_join(spec: &mut PlaybookRunSpec, deployment: &ClusterDeployment) {
    if let Some(hooks) = hooks(deployment) {
        frame(spec, deployment, &[&hooks.before_join], &[&hooks.after_join]);
    }
}

/// Puts the hooks of an upgrade around the steps of one machine.
pub fn around_upgrade(spec: &mut PlaybookRunSpec, deployment: &ClusterDeployment) {
    if let Some(hooks) = hooks(deployment) {
        frame(spec, deployment, &[&hooks.before_upgrade], &[&hooks.after_upgrade]);
    }
}

/// Whether there are hooks that a machine's join begins with.
pub fn come_before_join(deployment: &ClusterDeployment) -> bool {
    hooks(deployment).is_some_and(|hooks| !hooks.before_join.is_empty())
}

/// Puts the hooks before a drain into a run of their own.
pub fn around_drain(spec: &mut PlaybookRunSpec, deployment: &ClusterDeployment) {
    if let Some(hooks) = hooks(deployment) {
        frame(spec, deployment, &[&hooks.before_drain], &[]);
    }
}

/// Puts the hooks of a machine that leaves around its reset. When the whole cluster goes, nothing was drained.
pub fn around_reset(spec: &mut PlaybookRunSpec, deployment: &ClusterDeployment) {
    let Some(hooks) = hooks(deployment) else { return };
    let ends = deployment.is_deleting();
    let before: &[&[Hook]] = match ends {
        true => &[&hooks.before_remove],
        false => &[&hooks.after_drain, &hooks.before_remove],
    };
    frame(spec, deployment, before, &[&hooks.after_remove]);
}

/// The playbooks that a run plays, from the ConfigMap that it names.
pub fn playbooks(
    spec: &PlaybookRunSpec,
    library: Option<&Library>,
) -> Result<BTreeMap<String, PlaybookInputs>, Refusal> {
    let asked = asked_by_run(&spec.steps, &spec.playbook_vars)?;
    if asked.is_empty() {
        return Ok(BTreeMap::new());
    }
    library.cloned().unwrap_or_default().take(&asked)
}

/// Why the hooks of a cluster cannot be played.
pub fn refusal(deployment: &ClusterDeployment, library: Option<&Library>) -> Option<Refusal> {
    let hooks = hooks(deployment)?;
    let lists: [(&str, &[Hook]); 10] = [
        ("beforeInstall", &hooks.before_install),
        ("afterInstall", &hooks.after_install),
        ("beforeJoin", &hooks.before_join),
        ("afterJoin", &hooks.after_join),
        ("beforeUpgrade", &hooks.before_upgrade),
        ("afterUpgrade", &hooks.after_upgrade),
        ("beforeDrain", &hooks.before_drain),
        ("afterDrain", &hooks.after_drain),
        ("beforeRemove", &hooks.before_remove),
        ("afterRemove", &hooks.after_remove),
    ];
    let asked = lists.iter().flat_map(|(list, hooks)| {
        hooks.iter().enumerate().map(move |(index, hook)| Asked {
            name: &hook.name,
            vars: hook.vars.clone(),
            name_at: format!("spec.hooks.{list}[{index}].name"),
            vars_at: format!("spec.hooks.{list}[{index}].vars"),
        })
    });
    let asked: Vec<Asked<'_>> = asked.collect();
    let library = library.cloned().unwrap_or_default();
    if asked.is_empty() {
        return None;
    }
    library.take(&asked).err()
}

fn hooks(deployment: &ClusterDeployment) -> Option<&Hooks> {
    deployment.spec.hooks.as_ref()
}

fn frame(spec: &mut PlaybookRunSpec, deployment: &ClusterDeployment, before: &[&[Hook]], after: &[&[Hook]]) {
    let step = |hook: &Hook| CustomStep::new(&hook.name).map(Step::Custom);
    let steps = |lists: &[&[Hook]]| -> Vec<Step> { lists.iter().copied().flatten().filter_map(step).collect() };
    let mut all = steps(before);
    all.append(&mut spec.steps);
    all.extend(steps(after));
    spec.steps = all;
    for hook in before.iter().chain(after).copied().flatten() {
        let executor = deployment.spec.executor.as_ref();
        spec.playbooks_ref = executor.and_then(|executor| executor.custom_playbooks_ref.clone());
        if !hook.vars.is_empty() {
            let vars = Value::Object(hook.vars.clone().into_iter().collect());
            spec.playbook_vars.insert(hook.name.clone(), vars);
        }
    }
}

#[cfg(test)]
mod tests;
