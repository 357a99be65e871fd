//! The oracle of every planner: applied again and again, its steps come to an end, and the invariants hold at each
//! turn.

use std::fmt::Debug;

/// Lets the planner work on the world until it has nothing more to do; returns every step taken. Fails when it has not
/// come to rest after `turns`, or when the last turn still had steps.
pub fn settles<World, Action: Debug + Clone>(
    world: &mut World,
    turns: usize,
    mut plan: impl FnMut(&mut World) -> Vec<Action>,
    mut apply: impl FnMut(&mut World, &Action),
    mut invariant: impl FnMut(&World),
) -> Vec<Action> {
    let mut taken = Vec::new();
    for _ in 0..turns {
        let steps = plan(world);
        if steps.is_empty() {
            return taken;
        }
        for step in &steps {
            apply(world, step);
            invariant(world);
        }
        taken.extend(steps);
    }
    panic!(
        "the planner has not come to rest after {turns} turns; the last steps were {:?}",
        taken.iter().rev().take(8).collect::<Vec<_>>()
    );
}

#[cfg(test)]
mod tests {
    use super::settles;

    #[test]
    fn a_planner_that_comes_to_rest_passes() {
        let plan = |world: &mut u32| if *world < 3 { vec!["one more"] } else { vec![] };
        let mut world = 0;
        let steps = settles(&mut world, 9, plan, |world, _| *world += 1, |world| assert!(*world <= 3));
        assert_eq!((world, steps.len()), (3, 3));
    }

    #[test]
    #[should_panic(expected = "not come to rest")]
    fn a_planner_that_does_not_is_caught() {
        settles(&mut (), 9, |()| vec!["again"], |(), _| {}, |()| {});
    }
}
