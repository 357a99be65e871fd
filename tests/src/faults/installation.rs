//! One install of one control plane and one worker, hit in the steps that are asked for, and followed to its end.

mod ending;
mod struck;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crds::PlaybookRun;
use jiff::Timestamp;
use lab::machines::Machine;

use super::fault::{Fault, Place};
use super::inject::{self, Aim, Node};
use super::observers::{ClusterObserver, GuardLog, Inits, Mark};
use super::schedule::Schedule;
use super::verdict::Verdict;
use crate::objects;
use crate::report;
use crate::scenario::Scenario;
use struck::Struck;

/// The cluster's name.
const CLUSTER: &str = "c";
/// How often is looked where the install is.
const GLANCE: Duration = Duration::from_millis(15);
/// How often is tried to take aim at what is not there yet.
const AIM: Duration = Duration::from_millis(50);
/// All of an install, with all its hits.
const DEADLINE: Duration = Duration::from_secs(3600);
/// Without a sign of progress for so long an install has failed.
const STALLED: Duration = Duration::from_secs(480);

/// What is asked of an install: at most one fault in a step, and how often it was tried in vain before.
pub type Wanted = BTreeMap<Place, (Fault, u32)>;

/// The result of one hit that was asked for.
pub enum Came {
    /// It was hit, and judged.
    Judged(Verdict),
    /// The step was over before the fault came or took hold.
    Late(String),
    /// It was not tried: the install ended before the step, or had not yet recovered from the hit before.
    Passed(String),
}

/// An install under way.
struct Installation<'a> {
    scenario: &'a Scenario,
    machines: Vec<Machine>,
    schedule: Schedule,
    observer: ClusterObserver,
    inits: Inits,
    guard_log: GuardLog,
    /// Still to be hit.
    wanted: Wanted,
    /// Why some came too late.
    late: BTreeMap<Place, String>,
    /// Why no aim could be taken at some.
    aimless: BTreeMap<Place, String>,
    /// What was hit.
    struck: Vec<Struck>,
    /// It did not recover from a hit, and goes no further.
    lost: bool,
    /// Why it could not be followed to its end.
    broke_off: Option<String>,
}

/// Where an install works.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The cluster's Pod network.
    pub pod_cidr: String,
    /// The metadata cluster's node that its executors are kept to.
    pub node: Option<Node>,
}

/// Installs a cluster there and hits it where it is asked for.
pub async fn install(
    scenario: &Scenario,
    wanted: &Wanted,
    schedule: Schedule,
    ground: &Ground,
) -> Result<BTreeMap<Place, Came>> {
    inject::keep_to(&scenario.client, &scenario.name, ground.node).await?;
    let machines = scenario.machines(&["cp", "w"]).await?;
    ending::hosts_available(scenario, machines.len()).await?;
    let faults: BTreeSet<Fault> = wanted.values().map(|(fault, _)| *fault).collect();
    for fault in faults {
        inject::prepare(scenario, fault, &machines).await?;
    }
    let cluster =
        objects::cluster(&scenario.name, CLUSTER, &ground.pod_cidr, &[machines[0].name()], &[machines[1].name()]);
    let mut installation = Installation {
        scenario,
        schedule,
        observer: ClusterObserver::start(&scenario.client, &scenario.name, CLUSTER),
        inits: Inits::watch(&machines),
        guard_log: GuardLog::new(&machines),
        machines,
        wanted: wanted.clone(),
        late: BTreeMap::new(),
        aimless: BTreeMap::new(),
        struck: Vec::new(),
        lost: false,
        broke_off: None,
    };
    scenario.apply(&cluster).await?;
    if let Err(error) = installation.go().await {
        // What has been hit is judged by it; without a hit it says nothing of faults.
        if installation.struck.is_empty() {
            return Err(error);
        }
        installation.broke_off = Some(format!("{error:#}"));
    }
    let verdicts = installation.judge().await;
    let mut came: BTreeMap<Place, Came> =
        installation.late.into_iter().map(|(place, why)| (place, Came::Late(why))).collect();
    came.extend(verdicts.into_iter().map(|(place, verdict)| {
        let came = match verdict {
            Verdict::NotHit(why) => Came::Late(why),
            verdict => Came::Judged(verdict),
        };
        (place, came)
    }));
    for place in wanted.keys() {
        let why = installation.aimless.remove(place);
        let why = why.unwrap_or_else(|| "an install was past it while it recovered from a hit before".into());
        came.entry(*place).or_insert(Came::Passed(why));
    }
    if came.values().any(|came| matches!(came, Came::Judged(Verdict::Failed(_)))) {
        report::print(&scenario.client, &scenario.name).await;
    }
    Ok(came)
}

impl Installation<'_> {
    /// Follows the install until it has ended and every hit has been recovered from, or nothing moves any more.
    async fn go(&mut self) -> Result<()> {
        let until = Instant::now() + DEADLINE;
        let mut moved = (Instant::now(), None);
        let mut aim: Option<Aim> = None;
        let mut missed = Instant::now();
        while Instant::now() < until && moved.0.elapsed() < STALLED && !self.lost {
            self.guard_log.read();
            let latest = self.guard_log.latest().cloned();
            if latest != moved.1 {
                moved = (Instant::now(), latest.clone());
            }
            let following = self.struck.last().is_some_and(|struck| !struck.is_over());
            if let Some((run, place)) = self.under_way(latest.as_ref())
                && missed.elapsed() >= AIM
                && !self.take_aim(&run, place, following, &mut aim).await?
            {
                missed = Instant::now();
            }
            if following {
                self.follow().await?;
            } else if self.has_ended() {
                return Ok(());
            } else if let Some(mark) = latest {
                self.approach(&mark, &mut aim).await?;
            }
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        let deleted = self.struck.iter().any(|struck| struck.fault == Fault::ClusterDeleted);
        self.observer.with(|view| if deleted { view.cluster.is_none() } else { view.is_ready() })
    }

    /// The run under way and the step that it is in; or one that is there and has not begun a command, and its first.
    fn under_way(&self, latest: Option<&Mark>) -> Option<(String, Place)> {
        let new = |name: &str, run: &PlaybookRun| !is_over(run.status.as_ref()) && !self.guard_log.knows(name);
        self.observer.with(|view| {
            if let Some(mark) = latest.filter(|mark| !is_over(view.run(&mark.run))) {
                return Some((mark.run.clone(), mark.place));
            }
            view.runs
                .iter()
                .filter(|(name, run)| new(name, run))
                .find_map(|(name, run)| Some((name.clone(), Place::first(run.spec.intent)?)))
        })
    }

    /// Takes aim at the run under way, also before its first command and while the hit before is recovered from: a step
    /// may last a fifth of a second. False if none can be taken yet.
    async fn take_aim(&mut self, run: &str, place: Place, following: bool, aim: &mut Option<Aim>) -> Result<bool> {
        let Some(fault) = self.next_fault(place) else {
            return Ok(true);
        };
        let known = aim.as_ref().is_some_and(|aim| aim.run == run && aim.fault == fault);
        let hit = self.struck.last().is_some_and(|struck| struck.aim.run == run);
        // Who leads may change until all is as before.
        if known || (following && (hit || fault.hits_the_operator())) {
            return Ok(true);
        }
        let machine = inject::machine_of(&self.machines, place.intent).context("the machine is missing")?;
        match inject::aim(self.scenario, fault, run, machine).await {
            Ok(taken) => {
                *aim = Some(taken);
                Ok(true)
            }
            // The run may be over or have no Pod, or no operator lead yet: the next look tells.
            Err(error) => {
                self.aimless.insert(place, format!("no aim could be taken: {error:#}"));
                Ok(false)
            }
        }
    }

    /// Hits the run when it is in a step that is asked for.
    async fn approach(&mut self, mark: &Mark, aim: &mut Option<Aim>) -> Result<()> {
        let wished = self.wanted.get(&mark.place).copied();
        let entered = self.guard_log.entered(&mark.run, mark.place).map(|mark| mark.at);
        let (Some((fault, tries)), Some(entered)) = (wished, entered) else {
            return Ok(());
        };
        if let Some(aim) = aim.take_if(|aim| aim.run == mark.run && aim.fault == fault) {
            self.wanted.remove(&mark.place);
            self.hit(fault, mark.place, tries, entered, aim).await?;
        }
        Ok(())
    }

    /// What to take aim for: the fault of this step, or of the next that is asked for.
    fn next_fault(&self, place: Place) -> Option<Fault> {
        let next = self.wanted.range(place..).next();
        next.map(|(_, (fault, _))| *fault)
    }

    async fn hit(&mut self, fault: Fault, place: Place, tries: u32, entered: Timestamp, aim: Aim) -> Result<()> {
        let moment = self.schedule.moment(fault, place, tries);
        loop {
            self.guard_log.read();
            let since = Timestamp::now().duration_since(entered).unsigned_abs();
            if self.guard_log.is_past(place, entered, Timestamp::now())
                || self.observer.with(|view| is_over(view.run(&aim.run)))
            {
                let why = format!("the step was over after less than {:.2} s", moment.as_secs_f64());
                self.scenario.say(&format!("{} in {place}: {why}", fault.name()));
                self.late.insert(place, why);
                return Ok(());
            }
            if since >= moment {
                break;
            }
            tokio::time::sleep((moment - since).min(GLANCE)).await;
        }
        let done = inject::strike(self.scenario, CLUSTER, fault, place, &aim, self.schedule).await;
        let (acted, undo) = done.with_context(|| format!("failed to inject {} in {place}", fault.name()))?;
        // What the guard wrote before the hit is there within a moment.
        tokio::time::sleep(GLANCE * 2).await;
        self.guard_log.read();
        let late = self.guard_log.is_past(place, entered, acted);
        let seconds = acted.duration_since(entered).as_secs_f64();
        self.scenario.say(&format!(
            "{} in {place}, {seconds:.2} s after it began{}",
            fault.name(),
            if late { ": too late" } else { "" }
        ));
        self.struck.push(Struck::new(fault, place, late, acted, aim, undo));
        Ok(())
    }
}

fn is_over(status: Option<&crds::playbook_run::PlaybookRunStatus>) -> bool {
    status.and_then(|status| status.phase).is_some_and(crds::playbook_run::RunPhase::is_final)
}
