//! Parts that come in one run: the one whose turn it is, and those after it whose turn it is on the same machines. The
//! run brings them in their order, each once those ahead of it work there, so that each is as safe as in a run of its
//! own. What the plane itself is given between two stages comes first, where it is not there yet.

use super::super::place::Stage;
use super::order::Part;
use super::turn::Turn;

/// Stages in which objects are applied in the plane: the parts after them wait for that.
pub(super) const GATES: [Stage; 6] = [
    Stage::Namespaces,
    Stage::Definitions,
    Stage::Access,
    Stage::ClusterApi,
    Stage::WebhookConfigurations,
    Stage::SearchApi,
];

/// Those that come with the first of these, which is brought now; they are in the order of their stages. `is_open`:
/// whether all that a stage applies in the plane is there.
pub fn together(turns: &[(Stage, Part, Turn)], is_open: impl Fn(Stage) -> bool) -> Vec<Part> {
    let Some(((from, first, Turn::On(machines)), rest)) = turns.split_first() else { return Vec::new() };
    let mut parts = vec![*first];
    for (stage, part, turn) in rest {
        let mut between = GATES.into_iter().filter(|gate| from < gate && gate < stage);
        if !between.all(&is_open) {
            break;
        }
        match turn {
            Turn::Done => {}
            Turn::On(others) if others == machines && !first.is_alone() && !part.is_alone() => parts.push(*part),
            // Its peers come first; nothing after it needs it.
            Turn::On(_) if part.is_told_to_peers_first() => {}
            Turn::On(_) | Turn::Waits(_) => break,
        }
    }
    parts
}
