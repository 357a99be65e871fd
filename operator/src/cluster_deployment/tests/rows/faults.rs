//! What goes wrong while something is done to a cluster.

use crate::fake_api::Cut;

/// What goes wrong meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    None,
    /// The operator dies at this write, and another one begins anew.
    Dies(usize, Cut),
    /// From this write on, so many are answered with a conflict.
    Conflicts(usize, usize),
    /// What the caches show is always so many turns old.
    Lags(usize),
    /// In this turn a new operator is shown what was so when the deed was asked for.
    BackInTime(usize),
    /// Each turn only one controller sees anything of what happens, and each time so much has happened meanwhile.
    Misses(usize),
    /// In this turn requests begin to be answered with this code, so many of them.
    Refuses(usize, usize, u16),
    /// Each pass over backups and restores is repeated so often, and the others' twice, by what was seen before the
    /// first.
    Repeats(usize),
    /// Another operator does the same, by what was so a turn before.
    Rival,
    /// In this turn writes begin to be refused, so many of them, as where a webhook does not answer.
    Unadmitted(usize, usize),
    /// From this turn on an operator of another version goes on, whose executors are others, too.
    Upgraded(usize),
    /// In this turn, and some more, the objects of this kind cannot be decoded.
    Undecodable(usize, &'static str),
}

/// The operator dies before and after each write.
pub(super) fn deaths(writes: usize) -> Vec<Fault> {
    (0..writes).flat_map(|number| [Cut::Before, Cut::After].map(|cut| Fault::Dies(number, cut))).collect()
}

/// Each write is answered with a conflict, once or many times.
pub(super) fn conflicts(writes: usize) -> Vec<Fault> {
    (0..writes).flat_map(|number| [1, 20].map(|times| Fault::Conflicts(number, times))).collect()
}

/// Caches are behind, all the time or once.
pub(super) fn behind(_writes: usize) -> Vec<Fault> {
    (1..=4).map(Fault::Lags).chain((1..16).map(Fault::BackInTime)).collect()
}

/// Something is never seen to happen.
pub(super) fn misses(_writes: usize) -> Vec<Fault> {
    (1..=4).map(Fault::Misses).collect()
}

/// Requests are refused, one or those of several turns, in which nothing is done: each code in some turns.
pub(super) fn refusals(_writes: usize) -> Vec<Fault> {
    const CODES: [u16; 6] = [429, 500, 503, 504, 401, 403];
    let code = |number: usize| CODES[number % CODES.len()];
    let at = |turn| [Fault::Refuses(turn, 1, code(turn)), Fault::Refuses(turn, 40, code(turn + 3))];
    (0..12).flat_map(at).collect()
}

/// A webhook of the metadata cluster, whoever's it is, does not answer for one write or for several.
pub(super) fn unanswered_webhooks(_writes: usize) -> Vec<Fault> {
    (0..12).map(|turn| Fault::Unadmitted(turn, if turn % 2 == 0 { 1 } else { 8 })).collect()
}

/// An operator of another version goes on.
pub(super) fn other_versions(_writes: usize) -> Vec<Fault> {
    (0..24).step_by(2).map(Fault::Upgraded).collect()
}
