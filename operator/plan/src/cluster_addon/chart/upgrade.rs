//! The Job that installs or upgrades a release.

use crds::addon::ConflictPolicy;
use crds::chart::{ChartInputs, ChartVerb};
use crds::cluster_addon::ChartRelease;
use crds::names::finalizer;
use crds::{ClusterAddon, ObjectExt, Reason};

use super::decision::{Decision, stated};
use super::job;
use super::prepared::PreparedChart;
use crate::Next;
use crate::cluster_addon::action::Action;
use crate::cluster_addon::observed::Observed;

/// How the release is upgraded.
pub(super) struct Upgrade {
    /// Why, in words.
    pub why: String,
    pub recover: bool,
    pub force: bool,
    /// The retry that it answers.
    pub retry: Option<String>,
}

/// The Job that does it, or why there is none.
pub(super) fn run(
    observed: &Observed<'_>,
    prepared: &PreparedChart,
    how: Upgrade,
    (mut actions, mut release): (Vec<Action>, ChartRelease),
) -> Decision {
    let object = observed.object;
    let chart = observed.addon.and_then(|addon| addon.spec.source.chart.as_ref());
    let inputs = ChartInputs {
        verb: ChartVerb::Upgrade,
        release: prepared.release.clone(),
        namespace: prepared.namespace.clone(),
        timeout_seconds: chart.and_then(|chart| u32::try_from(chart.timeout_seconds).ok()).unwrap_or(300),
        chart: Some(prepared.place.clone()),
        description: prepared.description(&object.spec.addon_ref.name),
        force_conflicts: how.force,
        take_ownership: observed.addon.is_some_and(|addon| addon.spec.conflicts == ConflictPolicy::Force),
        recover: how.recover,
    };
    // What came of the last Job is in the status that its name follows from.
    let named = with_release(object, &release);
    let name = job::name(&named, "upgrade");
    match job::operation(observed, (&name, &prepared.digest), &inputs, Some(prepared)) {
        Ok(operation) => {
            if let Some(failure) = &mut release.failure {
                failure.retry = how.retry;
            }
            release.job = Some(name.clone());
            if !object.has_finalizer(finalizer::CLUSTER_ADDON) {
                actions.push(Action::AddFinalizer);
            }
            actions.push(Action::RecordRelease(Box::new(release.clone())));
            actions.push(Action::Run(Box::new(operation)));
            let (of, chart, why) = (&prepared.release, prepared.name(), how.why);
            let message = format!("Job {name} installs release {of} with {chart}: {why}");
            let applied = stated(false, Reason::Applying, message);
            Decision { actions, release, applied, next: Next::after_seconds(2) }
        }
        Err(problem) => {
            let applied = stated(false, problem.reason, problem.message);
            Decision { actions, release, applied, next: Next::after_seconds(30) }
        }
    }
}

/// The object as it is once this is written down.
pub(super) fn with_release(object: &ClusterAddon, release: &ChartRelease) -> ClusterAddon {
    let mut object = object.clone();
    object.status.get_or_insert_default().release = Some(release.clone());
    object
}
