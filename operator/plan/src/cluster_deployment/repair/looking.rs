//! Looking: machines of a dedicated etcd have no Node that says how they are. While a policy holds for them, they are asked
//! over SSH, each by a run that changes nothing: seldom while all are well, and soon again when one is not.

use crds::PlaybookRun;
use crds::step::{Intent, Role, Step as RunStep};
use jiff::{SignedDuration, Timestamp};

use crate::attempts;
use crate::cluster_deployment::Step;
use crate::cluster_deployment::runs;
use crate::cluster_deployment::scene::{Member, Scene};
use crate::etcd::{self, Health};
use crate::moment::after;
use crate::naming;

/// How often members are looked at that are all well.
const WELL: SignedDuration = SignedDuration::from_mins(10);
/// How often, when one is not, or is not known to be.
const SICK: SignedDuration = SignedDuration::from_secs(60);
/// Deadline of one look.
const TIMEOUT_SECONDS: i32 = 300;
/// Looks that are kept.
const KEEP: usize = 3;

/// What is done to know how the members are.
#[derive(Default)]
pub(super) struct Looking {
    /// The next look, and looks that nobody needs any more.
    pub steps: Vec<Step>,
    /// When the next one is due.
    pub at: Option<Timestamp>,
}

/// Decides, if somebody wants to know (`wanted`): not while nothing would be done about what is seen.
pub(super) fn of(scene: &Scene<'_>, wanted: bool) -> Looking {
    let stays = |member: &Member<'_>| member.is_provisioned() && member.host.is_some();
    let members: Vec<Member<'_>> = scene.of_role(Role::Etcd).filter(stays).collect();
    if !wanted || scene.deployment.spec.paused || members.is_empty() {
        return Looking::default();
    }
    let ours = |run: &&PlaybookRun| etcd::is_probe(run) && scene.owns(&run.metadata);
    let mut looks: Vec<&PlaybookRun> = scene.observed.runs.iter().copied().filter(ours).collect();
    looks.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), attempts::attempt_of(run)));
    let last = looks.last().copied();
    let at = match last {
        // Its end is seen as a change.
        Some(last) if !attempts::is_over(last) => return Looking::default(),
        Some(last) => attempts::ended_at(last).map(|ended| after(ended, pause(scene, &members))),
        None => None,
    };
    if let Some(at) = at.filter(|at| *at > scene.observed.now) {
        return Looking {
            steps: Vec::new(),
            at: Some(at),
        };
    }
    let number = last.map_or(0, |last| attempts::attempt_of(last).saturating_add(1));
    let surplus = (looks.len() + 1).saturating_sub(KEEP);
    let old = looks.iter().take(surplus).copied().cloned();
    let mut steps: Vec<Step> = old.map(|run| Step::DeleteRun(Box::new(run))).collect();
    steps.push(Step::CreateRun(Box::new(look(scene, &members, number))));
    Looking { steps, at: None }
}

fn pause(scene: &Scene<'_>, members: &[Member<'_>]) -> SignedDuration {
    let observed = scene.observed;
    let is_well =
        |member: &Member<'_>| etcd::look(member.machine, observed.runs, observed.now).health == Health::Well;
    if members.iter().all(is_well) { WELL } else { SICK }
}

fn look(scene: &Scene<'_>, members: &[Member<'_>], number: i32) -> PlaybookRun {
    let name = naming::run(&scene.name, scene.uid(), Intent::Probe, ["probe-etcd"], number);
    let mut hosts: Vec<String> = members
        .iter()
        .filter_map(|member| member.host_name().map(str::to_owned))
        .collect();
    hosts.sort();
    let steps = vec![RunStep::ProbeEtcd];
    let mut run = runs::of_cluster(scene, &name, Intent::Probe, steps, hosts, number);
    let machines: Vec<_> = members.iter().map(|member| member.machine).collect();
    run.spec.vars = scene.etcd_variables(&machines);
    run.spec.timeout_seconds = TIMEOUT_SECONDS;
    run
}

/// Looks that decide how a member is.
pub(super) fn needed(scene: &Scene<'_>) -> Vec<String> {
    let mut looks: Vec<&PlaybookRun> = scene
        .observed
        .runs
        .iter()
        .copied()
        .filter(|run| etcd::is_probe(run))
        .collect();
    looks.sort_by_key(|run| std::cmp::Reverse(attempts::attempt_of(run)));
    let newest = looks.into_iter().take(KEEP);
    newest.filter_map(|run| run.metadata.name.clone()).collect()
}
