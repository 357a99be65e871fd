//! The runs that a ClusterDeployment asks for: their steps, their names, and what they remember.

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::names::{annotation, label};
use crds::playbook_run::PlaybookRunSpec;
use crds::references::controller_ref;
use crds::step::{Intent, Role, Step as RunStep};
use serde_json::Value;

use super::scene::{Member, Scene};
use super::{Step, endpoint};
use crate::attempts::Mark;
pub(super) use crate::settings::BACKENDS;
use crate::{hooks, naming, provisioning};

/// Deadline of one attempt.
const TIMEOUT_SECONDS: i32 = 3600;
/// Hosts of one run, where they are workers: one bad batch is not everything.
pub(super) const BATCH: usize = 100;

/// The steps of an intent.
pub(super) fn steps_of(intent: Intent) -> Vec<RunStep> {
    match intent {
        Intent::Install => vec![
            RunStep::BootstrapOs,
            RunStep::Preflight,
            RunStep::Prepare,
            RunStep::ContainerRuntime,
            RunStep::Etcd,
            RunStep::ControlPlane,
            RunStep::Network,
            RunStep::Addons,
            RunStep::PostInstall,
        ],
        Intent::Join => vec![
            RunStep::BootstrapOs,
            RunStep::Preflight,
            RunStep::Prepare,
            RunStep::ContainerRuntime,
            RunStep::Node,
            RunStep::Network,
            RunStep::PostInstall,
        ],
        Intent::Reset => vec![RunStep::Reset],
        // Who asks for these names their steps; the API refuses a run without any.
        Intent::Remove
        | Intent::Repair
        | Intent::Upgrade
        | Intent::Renew
        | Intent::Backup
        | Intent::Restore
        | Intent::Probe
        | Intent::Custom => Vec::new(),
    }
}

/// The steps of an intent in this cluster. Where the control planes hold the endpoint, the first one begins to while it is
/// made, and the others follow.
fn steps_in(scene: &Scene<'_>, intent: Intent) -> Vec<RunStep> {
    let mut steps = steps_of(intent);
    let place = steps.iter().position(|step| *step == RunStep::ControlPlane);
    if let Some(place) = place.filter(|_| endpoint::held(scene).is_some()) {
        steps.insert(place + 1, RunStep::LoadBalancer);
    }
    steps
}

/// A machine of a run, with the retry that it answers.
pub(super) type Target<'a> = (Member<'a>, Option<String>);

/// Which attempt a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Attempt {
    /// How often the same was tried before.
    pub number: i32,
    /// It goes on where the one before it stopped.
    pub resume: bool,
}

impl Attempt {
    pub const FIRST: Self = Self {
        number: 0,
        resume: false,
    };
}

/// What is asked for.
pub(super) struct Order<'o, 'a> {
    pub intent: Intent,
    pub steps: Vec<RunStep>,
    pub targets: &'o [Target<'a>],
    pub attempt: Attempt,
    /// What its name follows from, where that is not the machines that it works on.
    pub name_of: Option<Vec<String>>,
    /// Variables that it has before those of its cluster.
    pub vars: BTreeMap<String, Value>,
}

/// The step that makes a run.
pub(super) fn create(scene: &Scene<'_>, intent: Intent, targets: &[Target<'_>], attempt: Attempt) -> Step {
    let run = order(
        scene,
        Order {
            intent,
            steps: steps_in(scene, intent),
            targets,
            attempt,
            name_of: None,
            vars: BTreeMap::new(),
        },
    );
    Step::CreateRun(Box::new(run))
}

/// The run that is asked for.
pub(super) fn order(scene: &Scene<'_>, order: Order<'_, '_>) -> PlaybookRun {
    let Order { intent, attempt, .. } = order;
    let mark = |(member, retry): &Target<'_>| {
        let mark = Mark {
            uid: member.uid().to_owned(),
            retry: retry.clone(),
            host_generation: member.host.and_then(|host| host.metadata.generation),
        };
        Some((member.host_name()?.to_owned(), mark))
    };
    let marks: BTreeMap<String, Mark> = order.targets.iter().filter_map(mark).collect();
    let uids = || marks.values().map(|mark| mark.uid.clone()).collect();
    let parts: Vec<String> = order.name_of.unwrap_or_else(uids);
    let parts = parts.iter().map(String::as_str);
    let name = naming::run(&scene.name, scene.uid(), intent, parts, attempt.number);
    let hosts = marks.keys().cloned().collect();
    let mut run = of_cluster(scene, &name, intent, order.steps, hosts, attempt.number);
    match intent {
        Intent::Install => hooks::around_install(&mut run.spec, scene.deployment),
        Intent::Join => hooks::around_join(&mut run.spec, scene.deployment),
        Intent::Reset => hooks::around_reset(&mut run.spec, scene.deployment),
        Intent::Remove
        | Intent::Repair
        | Intent::Upgrade
        | Intent::Renew
        | Intent::Backup
        | Intent::Restore
        | Intent::Probe
        | Intent::Custom => {}
    }
    run.spec.resume = attempt.resume;
    if run.spec.steps.contains(&RunStep::LoadBalancer) {
        // Said here, so that it is remembered what the machines were told.
        let behind: Vec<Member<'_>> = scene.of_role(Role::ControlPlane).collect();
        run.spec.vars.insert(BACKENDS.into(), endpoint::backends(&behind));
    }
    run.spec.vars.extend(order.vars);
    run.metadata.annotations.get_or_insert_default().extend([
        (
            annotation::MACHINES.into(),
            serde_json::to_string(&marks).unwrap_or_default(),
        ),
        (annotation::GENERATION.into(), scene.generation().to_string()),
        (annotation::WANTED.into(), provisioning::wanted(scene.deployment)),
    ]);
    run
}

/// A run of the cluster, which goes with it.
pub(super) fn of_cluster(
    scene: &Scene<'_>,
    name: &str,
    intent: Intent,
    steps: Vec<RunStep>,
    hosts: Vec<String>,
    attempt: i32,
) -> PlaybookRun {
    let spec = PlaybookRunSpec {
        cluster_name: Some(scene.name.clone()),
        intent,
        steps,
        hosts,
        vars: BTreeMap::new(),
        playbooks_ref: None,
        playbook_vars: BTreeMap::new(),
        timeout_seconds: TIMEOUT_SECONDS,
        resume: false,
        paused: false,
        cancel: false,
    };
    let mut run = PlaybookRun::new(name, spec);
    run.metadata.namespace = scene.deployment.metadata.namespace.clone();
    run.metadata.owner_references = controller_ref(scene.deployment).map(|owner| vec![owner]);
    run.metadata.labels = Some(BTreeMap::from([
        (label::CLUSTER.into(), scene.name.clone()),
        (label::INTENT.into(), intent.slug().into()),
    ]));
    run.metadata.annotations = Some(BTreeMap::from([(
        annotation::ATTEMPT.into(),
        attempt.to_string(),
    )]));
    run
}

/// What an active run does, as a clause of the STATUS sentence.
pub(super) fn describe(scene: &Scene<'_>, run: &PlaybookRun) -> String {
    let verb = match run.spec.intent {
        Intent::Install => "installing",
        Intent::Join => "joining",
        Intent::Remove => "removing",
        Intent::Reset => "cleaning",
        Intent::Repair => "repairing",
        Intent::Upgrade => "upgrading",
        Intent::Renew => "renewing certificates of",
        Intent::Backup => "backing up",
        Intent::Restore => "restoring",
        Intent::Probe => "probing",
        Intent::Custom => "running steps on",
    };
    let what = match run.spec.hosts.as_slice() {
        [host] => {
            let members = scene.live.iter().chain(&scene.leaving);
            let member = members
                .into_iter()
                .find(|member| member.host_name() == Some(host));
            member.map_or_else(|| host.clone(), Member::title)
        }
        hosts => crate::sentence::count(hosts.len(), "machine"),
    };
    let status = run.status.as_ref();
    let progress = status
        .and_then(|status| status.progress.as_ref())
        .filter(|progress| !progress.step.is_empty());
    let place = match progress {
        Some(progress) if progress.total > 0 => {
            format!("{}, task {} of {}", progress.step, progress.done, progress.total)
        }
        Some(progress) => progress.step.clone(),
        None => match status
            .and_then(|status| status.message.clone())
            .filter(|message| !message.is_empty())
        {
            Some(message) => message,
            None => format!("run {} begins", run.metadata.name.as_deref().unwrap_or_default()),
        },
    };
    format!("{verb} {what}: {place}")
}

#[cfg(test)]
mod tests {
    use super::{Intent, RunStep, steps_of};

    #[test]
    fn no_intent_but_reset_resets_machines_unasked() {
        for intent in Intent::ALL {
            let steps = steps_of(intent);
            assert_eq!(
                steps.contains(&RunStep::Reset),
                intent == Intent::Reset,
                "{intent:?}"
            );
            assert!(
                crds::playbook_run::check_steps(intent, &steps).is_ok(),
                "{intent:?}"
            );
        }
    }
}
