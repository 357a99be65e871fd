//! A run of a restore that is not there any more, or not the restore's, although the status names it: somebody deleted
//! it, and how far it came is not known.

use crds::ObjectExt;

use super::observed::Observed;
use super::state::Doing;

/// The run that the status names last, and that is gone.
pub(super) struct Lost {
    pub name: String,
    pub doing: Doing,
    /// Its number.
    pub attempt: usize,
}

/// None where that run is there, or is one that touches nothing before an approval. `name_of` names the run of an
/// attempt.
pub(super) fn lost(observed: &Observed<'_>, name_of: impl Fn(Doing, usize) -> String) -> Option<Lost> {
    let restore = observed.restore;
    let name = &restore.status.as_ref()?.run_ref.as_ref()?.name;
    if observed.runs.iter().any(|run| run.name() == name && run.is_owned_by(restore.uid())) {
        return None;
    }
    let attempt: usize = name.rsplit_once('-')?.1.parse().ok()?;
    let mut after_approval = [Doing::Restoring, Doing::Undoing, Doing::Restarting].into_iter();
    let doing = after_approval.find(|doing| name_of(*doing, attempt) == *name)?;
    Some(Lost { name: name.clone(), doing, attempt })
}
