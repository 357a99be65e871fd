//! The reports of the stages in which parts are brought to machines.

use super::super::action::Action;
use super::super::component::Component;
use super::super::place::Stage;
use super::super::progress::StageReport;
use super::act::Act;
use super::order::Part;
use super::part_run::part_run;
use super::part_wanted::PartWanted;
use super::plane::Machines;
use super::rollout::{Progress, titles};
use super::together::together;
use super::turn::Turn;
use crate::message::{count, quote};

impl Machines<'_> {
    /// The reports of the stages in which parts are brought; `objects`: those of the stages in which objects are
    /// applied. A part is brought once those of its stage before it are done; while something else is under way with
    /// the machines none is. Who is paused takes none of these actions.
    pub fn reports(&self, objects: &[StageReport]) -> Vec<StageReport> {
        let mut reports: Vec<StageReport> = Vec::new();
        for (index, (wanted, progress)) in self.parts.iter().enumerate() {
            if reports.last().is_none_or(|last| last.stage != wanted.stage) {
                reports.push(StageReport::new(wanted.stage));
            }
            let Some(report) = reports.last_mut() else { continue };
            report.is_missing |= progress.is_missing;
            if !report.is_done() {
                continue;
            }
            report.doing = progress.doing.clone();
            report.unhealthy = progress.unhealthy.clone();
            report.problem = progress.failed.clone();
            report.aside = report.aside.take().or_else(|| progress.aside.clone());
            if !progress.targets.is_empty() {
                let (run, doing) = self.bring(index, objects);
                report.doing = Some(doing);
                let run = Some(run).filter(|_| self.round.might_work());
                report.writes = run.map(Action::Machines).into_iter().collect();
            }
        }
        reports
    }

    /// The run that brings the part of this index, with those that come together with it, and what is said of that.
    fn bring(&self, index: usize, objects: &[StageReport]) -> (Act, String) {
        let rest = &self.parts[index..];
        let turns: Vec<(Stage, Part, Turn)> =
            rest.iter().map(|(one, how_far)| (one.stage, one.part, turn(how_far))).collect();
        let parts = together(&turns, |gate| self.is_open(gate, objects));
        let wanted: Vec<&PartWanted> =
            rest.iter().map(|(one, _)| one).filter(|one| parts.contains(&one.part)).collect();
        let targets = &self.parts[index].1.targets;
        let more = match parts.len() {
            0 | 1 => String::new(),
            all => format!(" and {} after it", count(all - 1, "part")),
        };
        let (first, how_far) = &self.parts[index];
        let again = how_far.again.as_ref().map(|why| format!(" again ({})", quote(why.clone()))).unwrap_or_default();
        let doing = format!("bringing {}{more} to {}{again}", first.part.title(), titles(targets));
        (Act::create(part_run(&self.state, &wanted, targets)), doing)
    }

    /// Whether all that a stage applies in the plane is there.
    fn is_open(&self, gate: Stage, objects: &[StageReport]) -> bool {
        let has_search = self.parts.iter().any(|(one, _)| one.part == Part::Component(Component::Search));
        let mut reports = objects.iter().filter(|report| report.stage == gate);
        reports.next().map_or(gate == Stage::SearchApi && !has_search, StageReport::is_done)
    }
}

/// What is done about a part that is so far.
fn turn(progress: &Progress<'_>) -> Turn {
    match &progress.doing {
        _ if progress.is_done() => Turn::Done,
        None if !progress.targets.is_empty() => Turn::On(progress.names().into_iter().map(str::to_owned).collect()),
        doing => Turn::Waits(doing.clone().unwrap_or_default()),
    }
}
