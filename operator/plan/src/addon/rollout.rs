//! How a revision reaches the clusters: canaries first, then so many at a time. Clusters that do not answer take no
//! part.

use crds::addon::AddonRollout;
use jiff::{SignedDuration, Timestamp};

use crate::moment::after;

/// A cluster, as far as the rollout goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub cluster: String,
    /// Whether its API answers.
    pub reachable: bool,
    /// Whether it may be given the revision: what comes first is Ready on it.
    pub may_begin: bool,
    /// How it stands with the revision.
    pub standing: Standing,
}

/// How a cluster stands with a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was not given it.
    Without,
    /// It was given it, and is not Ready with it yet.
    UnderWay,
    /// It was given it, and does not become Ready with it by itself; why.
    Failed(String),
    /// It is Ready with it, since.
    Ready(Timestamp),
}

/// What is done now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Clusters that are given the revision now.
    pub give: Vec<String>,
    /// What holds up those that have not got it yet.
    pub held_by: Option<Hold>,
}

/// What a rollout waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// A canary has failed: its cluster, and why.
    CanaryFailed(String, String),
    /// The canaries are not all Ready.
    Canaries,
    /// The pause after the canaries, until.
    Pause(Timestamp),
    /// So many clusters as are allowed have it and are not Ready with it yet.
    Concurrency,
}

/// Decides; the members are in the order of their names.
pub fn decide(members: &[Member], rollout: &AddonRollout, now: Timestamp) -> Decision {
    let members: Vec<&Member> = members.iter().filter(|member| member.reachable).collect();
    let waiting = |member: &&&Member| member.standing == Standing::Without && member.may_begin;
    let waiting: Vec<&Member> = members.iter().filter(waiting).copied().collect();
    if waiting.is_empty() {
        return Decision::default();
    }
    let given = members.iter().filter(|member| member.standing != Standing::Without).count();
    let canaries = number(rollout.canaries).min(given + waiting.len());
    if let Some(decision) = canary(&members, &waiting, (canaries, given), rollout, now) {
        return decision;
    }
    let under_way = |member: &&&Member| matches!(member.standing, Standing::UnderWay | Standing::Failed(_));
    let under_way = members.iter().filter(under_way).count();
    let free = number(rollout.max_concurrent).saturating_sub(under_way);
    let held_by = (free < waiting.len()).then_some(Hold::Concurrency);
    Decision { give: names(&waiting, free), held_by }
}

/// What is done while the canaries are not through.
fn canary(
    members: &[&Member],
    waiting: &[&Member],
    (canaries, given): (usize, usize),
    rollout: &AddonRollout,
    now: Timestamp,
) -> Option<Decision> {
    let pause = SignedDuration::from_secs(i64::from(rollout.pause_seconds));
    let mut through: Vec<Timestamp> = members
        .iter()
        .filter_map(|member| match &member.standing {
            Standing::Ready(since) => Some(after(*since, pause)),
            Standing::Without | Standing::UnderWay | Standing::Failed(_) => None,
        })
        .collect();
    through.sort_unstable();
    if through.iter().filter(|moment| **moment <= now).count() >= canaries {
        return None;
    }
    let failed = members.iter().find_map(|member| match &member.standing {
        Standing::Failed(why) => Some(Hold::CanaryFailed(member.cluster.clone(), why.clone())),
        Standing::Without | Standing::UnderWay | Standing::Ready(_) => None,
    });
    let hold = failed.or_else(|| through.get(canaries - 1).map(|moment| Hold::Pause(*moment)));
    let give = match &hold {
        Some(Hold::CanaryFailed(..)) => Vec::new(),
        _ => names(waiting, canaries.saturating_sub(given)),
    };
    Some(Decision { give, held_by: Some(hold.unwrap_or(Hold::Canaries)) })
}

fn names(members: &[&Member], most: usize) -> Vec<String> {
    members.iter().take(most).map(|member| member.cluster.clone()).collect()
}

fn number(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crds::addon::AddonRollout;
    use jiff::Timestamp;

    use super::{Hold, Member, Standing, decide};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// `-` without, `u` under way, `x` failed, `0` to `9` Ready since then times 10; in capitals (`~` for `-`): it does
    /// not answer. `w`: what comes first is not Ready.
    fn members(text: &str) -> Vec<Member> {
        let member = |(index, letter): (usize, char)| Member {
            cluster: format!("c{index}"),
            reachable: !matches!(letter, 'U' | 'X' | '~'),
            may_begin: letter != 'w',
            standing: match letter {
                '-' | '~' | 'w' => Standing::Without,
                'u' | 'U' => Standing::UnderWay,
                'x' | 'X' => Standing::Failed("it crashes".into()),
                digit => Standing::Ready(at(i64::from(digit.to_digit(10).unwrap()) * 10)),
            },
        };
        text.chars().enumerate().map(member).collect()
    }

    fn check(
        text: &str,
        (max_concurrent, canaries, pause_seconds): (i32, i32, i32),
        give: &[&str],
        held_by: Option<Hold>,
    ) {
        let decision = decide(&members(text), &AddonRollout { max_concurrent, canaries, pause_seconds }, at(100));
        assert_eq!(
            (decision.give, decision.held_by),
            (give.iter().map(|name| (*name).to_owned()).collect(), held_by),
            "{text}"
        );
    }

    #[test]
    fn so_many_clusters_at_a_time_get_it_and_failed_ones_count() {
        let two = (2, 0, 0);
        check("", two, &[], None);
        check("----", two, &["c0", "c1"], Some(Hold::Concurrency));
        check("0u--", two, &["c2"], Some(Hold::Concurrency));
        check("0x--", two, &["c2"], Some(Hold::Concurrency));
        check("xu--", two, &[], Some(Hold::Concurrency));
        check("000-", two, &["c3"], None);
        check("0000", two, &[], None);
    }

    #[test]
    fn clusters_that_do_not_answer_or_wait_for_others_hold_up_nobody() {
        let two = (2, 0, 0);
        check("UX--", two, &["c2", "c3"], None);
        check("~~--", two, &["c2", "c3"], None);
        check("ww-w", two, &["c2"], None);
        check("~~ww", two, &[], None);
        check("~--", (2, 1, 0), &["c1"], Some(Hold::Canaries));
        check("U--", (2, 1, 0), &["c1"], Some(Hold::Canaries));
    }

    #[test]
    fn canaries_come_first_and_the_others_after_the_pause() {
        let rollout = (2, 2, 30);
        check("-----", rollout, &["c0", "c1"], Some(Hold::Canaries));
        check("u----", rollout, &["c1"], Some(Hold::Canaries));
        check("uu---", rollout, &[], Some(Hold::Canaries));
        check("9u---", rollout, &[], Some(Hold::Canaries));
        check("98---", rollout, &[], Some(Hold::Pause(at(120))));
        check("76---", rollout, &["c2", "c3"], Some(Hold::Concurrency));
        check("76u--", rollout, &["c3"], Some(Hold::Concurrency));
        // Fewer than the canaries are there.
        check("-", rollout, &["c0"], Some(Hold::Canaries));
        // A canary that goes away once it was through holds up nobody.
        check("7X6--", (2, 1, 30), &["c3", "c4"], None);
    }

    #[test]
    fn a_canary_that_fails_holds_up_all_others() {
        let failed = |name: &str| Some(Hold::CanaryFailed(name.into(), "it crashes".into()));
        check("x----", (2, 2, 0), &[], failed("c0"));
        check("0x---", (2, 2, 0), &[], failed("c1"));
        check("x----", (2, 0, 0), &["c1"], Some(Hold::Concurrency));
    }
}
