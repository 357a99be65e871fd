//! Promises of the pure heart of repair: what comes next for one machine, every reason not to act, and what holds
//! whatever happens.

mod simulation;

use crds::remediation_policy::{Remediation, RemediationAction as Action};
use crds::step::Role;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Decision, Effort, EffortResult, MachineHealth, RemediationInput, Rule, SetSeen, Spares, State, decide};
use crate::attempts::Failure;

/// So many seconds after noon.
fn at(seconds: i64) -> Timestamp {
    "2026-11-21T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn rule() -> Rule {
    Rule { source: "RemediationPolicy p".into(), remediation: Remediation::default() }
}

fn health(name: &str, role: Role, state: State) -> MachineHealth {
    MachineHealth {
        name: name.into(),
        host: format!("host-{name}"),
        role,
        set: Some(role.name().into()),
        joined: !matches!(state, State::NeverStarted { .. }),
        state,
        seen_at: None,
        rule: Some(rule()),
        skipped: None,
        busy: None,
        efforts: Vec::new(),
        retry: None,
        irreplaceable: None,
        fitting: 2,
        told: false,
    }
}

fn sick(since: i64) -> State {
    State::Sick { since: at(since), what: "its kubelet is silent".into() }
}

/// Three control planes and seven workers, all well, and two spare Hosts.
pub(super) fn input(now: i64) -> RemediationInput {
    let control_planes = (1..=3).map(|number| (format!("c{number}"), Role::ControlPlane));
    let workers = (1..=7).map(|number| (format!("w{number}"), Role::Worker));
    RemediationInput {
        now: at(now),
        machines: control_planes.chain(workers).map(|(name, role)| health(&name, role, State::Well)).collect(),
        unreachable: None,
        etcd: None,
        paused: false,
        lock_known: true,
        change: None,
        stacked: true,
        elsewhere: 0,
        was_too_many: false,
        calm_since: None,
        spares: Spares { free: 2, awaited: 0 },
        sets: [("worker", 9), ("control-plane", 1)]
            .map(|(name, most)| (name.to_owned(), SetSeen { most, replaced: 0 }))
            .into(),
        approved: false,
        approve: "kubectl annotate".into(),
    }
}

impl RemediationInput {
    fn machine(&mut self, name: &str) -> &mut MachineHealth {
        self.machines.iter_mut().find(|health| health.name == name).unwrap()
    }

    pub(super) fn sicken(&mut self, names: &[&str], since: i64) {
        for name in names {
            self.machine(name).state = sick(since);
        }
    }

    fn decision(&self, name: &str) -> Decision {
        let round = decide(self);
        let decision = round.decisions.into_iter().find(|decision| decision.machine == name);
        decision.unwrap_or_else(|| panic!("nothing is said of {name}"))
    }
}

fn effort(action: Action, made: i64, ended: i64, result: EffortResult) -> Effort {
    Effort { run: format!("r{made}"), action, made: at(made), ended: at(ended), retry: None, result }
}

fn failure(reason: &str) -> Failure {
    Failure {
        reason: reason.into(),
        message: format!("{reason} it was"),
        retriable: true,
        unreachable: reason == "Unreachable" || reason == "AuthenticationFailed",
        interrupted: matches!(reason, "Unknown" | "DeadlineExceeded" | "JobDeleted" | "NotStarted"),
    }
}

/// `Rebooting begins Reboot`, `WaitingForNode Reboot`, `QuorumRisk`.
fn short(decision: &Decision) -> String {
    let begins = decision.begin.as_ref().map(|_| " begins").unwrap_or_default();
    let action = decision.action.map(|action| format!(" {}", super::name(action)));
    format!("{}{begins}{}", decision.reason, action.unwrap_or_default())
}

fn failed(reason: &str) -> EffortResult {
    EffortResult::Failed(failure(reason))
}

fn not_tried(reason: &str) -> EffortResult {
    EffortResult::NotTried(failure(reason))
}

/// What is decided about worker w1, sick since noon, after these efforts.
fn after(now: i64, efforts: Vec<Effort>) -> Decision {
    let mut input = input(now);
    input.sicken(&["w1"], 0);
    input.machine("w1").efforts = efforts;
    input.decision("w1")
}

#[test]
fn a_node_that_is_not_ready_is_given_time_first() {
    let waits = after(299, vec![]);
    assert_eq!(short(&waits), "Waiting");
    assert_eq!(waits.message, "since 12:00:00 UTC; RestartServices follows at 12:05:00 UTC if that stays so");
    assert_eq!(waits.until, Some(at(300)));
    assert_eq!(short(&after(300, vec![])), "RestartingServices begins RestartServices");
}

#[test]
fn each_action_is_waited_for_before_the_next() {
    use Action::{Reboot, RestartServices};
    use EffortResult::{Done, UnderWay};
    let restart = |result| effort(RestartServices, 300, 310, result);
    let check = |now, efforts: Vec<Effort>, expected: &str| {
        let decision = after(now, efforts);
        assert_eq!(short(&decision), expected, "{}", decision.message);
    };
    check(305, vec![restart(UnderWay)], "RestartingServices RestartServices");
    check(311, vec![restart(Done)], "WaitingForNode RestartServices");
    check(489, vec![restart(Done)], "WaitingForNode RestartServices");
    check(490, vec![restart(Done)], "Rebooting begins Reboot");
    let rebooted = vec![restart(Done), effort(Reboot, 490, 520, Done)];
    check(699, rebooted.clone(), "WaitingForNode Reboot");
    check(700, rebooted, "Replacing begins Replace");
}

#[test]
fn what_failed_on_the_machine_counts_as_tried() {
    let efforts = vec![effort(Action::RestartServices, 300, 310, failed("TaskFailed"))];
    assert_eq!(short(&after(400, efforts.clone())), "WaitingForNode RestartServices");
    let next = after(490, efforts);
    assert_eq!(short(&next), "Rebooting begins Reboot");
    assert!(next.message.contains("RestartServices failed, run r300: TaskFailed it was"), "{}", next.message);
}

#[test]
fn a_machine_that_ssh_does_not_reach_is_not_rebooted_but_replaced() {
    let efforts = vec![effort(Action::RestartServices, 300, 310, failed("Unreachable"))];
    assert_eq!(short(&after(400, efforts.clone())), "WaitingForNode RestartServices");
    assert_eq!(short(&after(490, efforts.clone())), "Replacing begins Replace");

    let mut input = input(490);
    input.sicken(&["w1"], 0);
    let health = input.machine("w1");
    health.efforts = efforts;
    health.rule.as_mut().unwrap().remediation.actions = vec![Action::RestartServices, Action::Reboot];
    let decision = input.decision("w1");
    assert_eq!(short(&decision), "NothingLeftToTry");
    assert!(decision.message.contains("Replace is not among the actions"), "{}", decision.message);
}

/// Rows 13, 14, 15 and 18: contact lost, the Job deleted.
#[test]
fn an_action_that_was_interrupted_is_tried_again_three_times_at_most() {
    let lost = |made, ended| effort(Action::RestartServices, made, ended, failed("Unknown"));
    let first = vec![lost(300, 310)];
    assert_eq!(short(&after(311, first.clone())), "Unknown");
    assert_eq!(short(&after(325, first)), "RestartingServices begins RestartServices");
    let thrice = vec![lost(300, 310), lost(325, 335), lost(365, 375)];
    assert_eq!(short(&after(600, thrice)), "Rebooting begins Reboot");
}

/// Rows 16, 25 and 26: nothing came to the machine, and it is not to blame.
#[test]
fn a_machine_is_not_replaced_for_a_wrong_key_or_an_executor_that_does_not_start() {
    for reason in ["AuthenticationFailed", "HostKeyChanged", "NotStarted", "SecretNotFound"] {
        let mut efforts = vec![];
        let mut now = 300;
        for _ in 0..9 {
            efforts.push(effort(Action::RestartServices, now, now + 5, not_tried(reason)));
            assert_eq!(short(&after(now + 6, efforts.clone())), reason);
            now += 700;
            assert_eq!(short(&after(now, efforts.clone())), "RestartingServices begins RestartServices");
        }
    }
}

#[test]
fn what_a_person_canceled_is_not_begun_again_until_asked_for() {
    let mut canceled = input(9_000);
    canceled.sicken(&["w1"], 0);
    canceled.machine("w1").efforts = vec![effort(Action::RestartServices, 300, 310, EffortResult::Canceled)];
    assert_eq!(short(&canceled.decision("w1")), "Canceled");
    canceled.machine("w1").retry = Some("1".into());
    let decision = canceled.decision("w1");
    assert_eq!(short(&decision), "RestartingServices begins RestartServices");
    assert_eq!(decision.begin.unwrap().retry.as_deref(), Some("1"));
    let answered =
        Effort { retry: Some("1".into()), ..effort(Action::RestartServices, 9_000, 9_010, EffortResult::Canceled) };
    canceled.machine("w1").efforts.push(answered);
    assert_eq!(short(&canceled.decision("w1")), "Canceled");
}

#[test]
fn a_machine_that_falls_sick_again_soon_goes_on_with_the_next_action_and_later_begins_anew() {
    let decided = |sick_since: i64, now: i64| {
        let mut input = input(now);
        input.sicken(&["w1"], sick_since);
        input.machine("w1").efforts = vec![effort(Action::RestartServices, 300, 310, EffortResult::Done)];
        short(&input.decision("w1"))
    };
    assert_eq!(decided(1_800, 2_099), "Waiting");
    assert_eq!(decided(1_800, 2_100), "Rebooting begins Reboot");
    assert_eq!(decided(310 + 3_601, 310 + 4_000), "RestartingServices begins RestartServices");
}

#[test]
fn a_machine_that_never_started_is_replaced() {
    let mut input = input(1_799);
    let health = input.machine("w1");
    health.joined = false;
    health.state = State::NeverStarted {
        since: at(0),
        what: "it has not become part of the cluster: Unreachable: SSH does not answer".into(),
    };
    assert_eq!(short(&input.decision("w1")), "Waiting");
    input.now = at(1_800);
    assert_eq!(short(&input.decision("w1")), "Replacing begins Replace");
    input.machine("w1").rule.as_mut().unwrap().remediation.actions = vec![Action::Reboot];
    assert_eq!(short(&input.decision("w1")), "NothingLeftToTry");
}

/// Every reason not to act, with a word of its sentence.
#[test]
fn whatever_keeps_a_repair_from_beginning_is_said() {
    let check = |change: &dyn Fn(&mut RemediationInput), reason: &str, says: &str| {
        let mut input = input(300);
        input.sicken(&["w1"], 0);
        change(&mut input);
        let decision = input.decision("w1");
        assert_eq!(short(&decision), reason, "{}", decision.message);
        assert!(decision.message.contains(says), "{}", decision.message);
        assert!(decision.sentence().starts_with("its kubelet is silent: "));
    };
    check(&|input| input.paused = true, "ClusterPaused", "spec.paused");
    check(&|input| input.lock_known = false, "LockClosed", "lock");
    check(
        &|input| input.machine("w1").rule.as_mut().unwrap().remediation.paused = true,
        "RemediationPaused",
        "RemediationPolicy p is paused",
    );
    check(&|input| input.machine("w1").skipped = Some("it is told".into()), "Skipped", "while it is told");
    check(
        &|input| input.unreachable = Some("the API does not answer".into()),
        "ClusterUnreachable",
        "the API does not answer",
    );
    check(&|input| input.etcd = Some("no leader".into()), "EtcdUnhealthy", "no leader");
    check(
        &|input| input.sicken(&["w2", "w3", "w4"], 290),
        "TooManyUnhealthy",
        "4 of 10 machines are sick at once, more than maxUnhealthy 30% (3)",
    );
    check(&|input| input.calm_since = Some(at(100)), "CoolingDown", "before 12:06:40 UTC");
    check(
        &|input| input.machine("w1").busy = Some("by-hand".into()),
        "RunUnderWay",
        "RestartServices waits for run by-hand",
    );
    check(
        &|input| input.elsewhere = 5,
        "BudgetExhausted",
        "5 machines of this namespace are under repair, and maxConcurrent of RemediationPolicy p is 5",
    );
    let replace = |input: &mut RemediationInput| {
        input.machine("w1").rule.as_mut().unwrap().remediation.actions = vec![Action::Replace];
    };
    check(
        &|input| {
            replace(input);
            input.machine("w1").irreplaceable = Some("its MachineSet s is in mode Manual".into());
        },
        "NotReplaceable",
        "mode Manual",
    );
    check(
        &|input| {
            replace(input);
            input.machine("w1").fitting = 0;
        },
        "NoSpareHost",
        "no spare Host would do in its place (2 free)",
    );
    check(
        &|input| {
            replace(input);
            input.spares.awaited = 2;
        },
        "NoSpareHost",
        "2 spare Hosts would do in its place, and 2 machines wait for them already",
    );
    check(
        &|input| {
            replace(input);
            input.machine("w1").rule.as_mut().unwrap().remediation.keep_spare_hosts = 2;
        },
        "SpareHostsReserved",
        "keepSpareHosts is 2",
    );
}

#[test]
fn one_control_plane_at_a_time_and_never_below_a_majority() {
    let check = |change: &dyn Fn(&mut RemediationInput), expected: [&str; 2]| {
        let mut input = input(300);
        for name in ["c1", "c2"] {
            input.machine(name).rule.as_mut().unwrap().remediation.max_unhealthy = IntOrString::Int(3);
        }
        input.machines.iter_mut().for_each(|health| health.rule = None);
        for name in ["c1", "c2"] {
            let mut allows = rule();
            allows.remediation.max_unhealthy = IntOrString::Int(3);
            input.machine(name).rule = Some(allows);
        }
        input.sicken(&["c1"], 0);
        change(&mut input);
        let round = decide(&input);
        let found: Vec<String> = round.decisions.iter().map(short).collect();
        assert_eq!(found, expected.into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>());
    };
    let only = |input: &mut RemediationInput, action| {
        for name in ["c1", "c2"] {
            input.machine(name).rule.as_mut().unwrap().remediation.actions = vec![action];
        }
    };
    check(&|_| {}, ["RestartingServices begins RestartServices", ""]);
    check(&|input| input.sicken(&["c2"], 0), ["RestartingServices begins RestartServices", "OneAtATime"]);
    check(&|input| input.change = Some("c3 leaves".into()), ["OneAtATime", ""]);
    check(&|input| only(input, Action::Reboot), ["Rebooting begins Reboot", ""]);
    check(&|input| only(input, Action::Replace), ["Replacing begins Replace", ""]);
    for action in [Action::Reboot, Action::Replace] {
        let two = |input: &mut RemediationInput| {
            only(input, action);
            input.sicken(&["c2"], 0);
        };
        check(&two, ["QuorumRisk", "QuorumRisk"]);
        let alone = |input: &mut RemediationInput| {
            only(input, action);
            input.machines.retain(|health| health.role == Role::Worker || health.name == "c1");
            let spare = input.machine("w1").clone();
            // The helper above speaks of c2.
            input.machines.push(MachineHealth { name: "c2".into(), rule: None, ..spare });
        };
        check(&alone, ["QuorumRisk", ""]);
    }
}

#[test]
fn after_many_at_once_things_are_left_to_settle() {
    let mut input = input(300);
    input.sicken(&["w1", "w2", "w3", "w4"], 0);
    let round = decide(&input);
    assert!(round.too_many && round.calm_since.is_none());
    assert!(round.decisions.iter().all(|decision| decision.reason == "TooManyUnhealthy"));

    input.was_too_many = true;
    input.now = at(400);
    input.machine("w4").state = State::Well;
    let round = decide(&input);
    assert_eq!(round.calm_since, Some(at(400)));
    assert!(round.decisions.iter().all(|decision| decision.reason == "CoolingDown"));
    assert_eq!(round.look_again, Some(at(700)));

    (input.was_too_many, input.calm_since) = (false, round.calm_since);
    input.now = at(700);
    assert!(decide(&input).decisions.iter().all(|decision| decision.begin.is_some()));
}

#[test]
fn a_cluster_out_of_reach_freezes_all_and_ends_no_cooldown() {
    let mut input = input(9_000);
    input.unreachable = Some("the API does not answer".into());
    input.was_too_many = true;
    input.machines.iter_mut().for_each(|health| health.state = State::Unknown);
    input.machine("w1").told = true;
    input.machine("w2").efforts = vec![effort(Action::Reboot, 8_990, 8_990, EffortResult::UnderWay)];
    let round = decide(&input);
    let found: Vec<String> = round.decisions.iter().map(short).collect();
    assert_eq!(found, ["ClusterUnreachable", "Rebooting Reboot"]);
    assert!(round.too_many && round.calm_since.is_none());
}

#[test]
fn what_is_under_way_is_counted_before_anything_begins() {
    let mut input = input(900);
    input.sicken(&["w1", "w2"], 0);
    for name in ["w1", "w2"] {
        input.machine(name).rule.as_mut().unwrap().remediation.max_concurrent = 1;
    }
    input.machine("w2").efforts = vec![effort(Action::RestartServices, 890, 890, EffortResult::UnderWay)];
    assert_eq!(short(&input.decision("w1")), "BudgetExhausted");
    input.machine("w2").efforts = vec![effort(Action::RestartServices, 700, 800, EffortResult::Done)];
    assert_eq!(short(&input.decision("w1")), "BudgetExhausted", "it is waited for");
}

#[test]
fn that_nobody_cares_for_a_sick_machine_is_said_where_somebody_cares_for_others() {
    let mut input = input(900);
    input.sicken(&["w1"], 0);
    input.machine("w1").rule = None;
    assert_eq!(short(&input.decision("w1")), "NoPolicy");
    input.machines.iter_mut().for_each(|health| health.rule = None);
    assert!(decide(&input).decisions.is_empty(), "nobody asked");
}

#[test]
fn of_a_set_no_more_machines_are_out_of_service_than_it_allows() {
    let mut input = input(900);
    input.sicken(&["w1", "w2", "w3"], 0);
    input.sets.get_mut("worker").unwrap().most = 2;
    for name in ["w1", "w2", "w3"] {
        input.machine(name).rule.as_mut().unwrap().remediation.max_unhealthy = IntOrString::Int(9);
    }
    assert_eq!(short(&input.decision("w1")), "RestartingServices begins RestartServices");
    assert_eq!(short(&input.decision("w2")), "RestartingServices begins RestartServices");
    let waits = input.decision("w3");
    assert_eq!(short(&waits), "MaxUnavailable");
    assert!(
        waits
            .message
            .contains("2 machines of set worker are out of service for a repair, and its maxUnavailable comes to 2"),
        "{}",
        waits.message
    );
    // One that is on its way out counts until it is.
    input.sets.get_mut("worker").unwrap().replaced = 1;
    assert_eq!(short(&input.decision("w2")), "MaxUnavailable");
    // One that SSH does not reach either serves nobody, and keeps nobody waiting.
    input.now = at(490);
    input.machine("w2").efforts = vec![effort(Action::RestartServices, 300, 310, failed("Unreachable"))];
    assert_eq!(short(&input.decision("w2")), "Replacing begins Replace");
    assert_eq!(short(&input.decision("w1")), "RestartingServices begins RestartServices");
}

#[test]
fn a_persons_word_lifts_the_brake_of_too_many_and_no_other() {
    let mut input = input(900);
    input.sicken(&["w1", "w2", "w3", "w4"], 0);
    let waits = input.decision("w1");
    assert_eq!(short(&waits), "TooManyUnhealthy");
    assert!(waits.message.ends_with("repaired all the same: kubectl annotate"), "{}", waits.message);
    input.approved = true;
    input.machine("w1").rule.as_mut().unwrap().remediation.max_concurrent = 1;
    assert_eq!(short(&input.decision("w1")), "RestartingServices begins RestartServices");
    assert!(decide(&input).too_many, "it is remembered");
    input.etcd = Some("no leader".into());
    assert_eq!(short(&input.decision("w1")), "EtcdUnhealthy");
}

#[test]
fn a_machine_of_a_dedicated_etcd_is_disturbed_only_while_a_majority_is_well_without_it() {
    let mut input = input(900);
    input.stacked = false;
    for number in 1..=3 {
        input.machines.push(health(&format!("e{number}"), Role::Etcd, State::Well));
    }
    input.sets.insert("etcd".into(), SetSeen { most: 1, replaced: 0 });
    input.sicken(&["e1"], 0);
    let decision = input.decision("e1");
    assert_eq!(short(&decision), "RestartingServices begins RestartServices");
    assert_eq!(decision.message, "etcd is restarted");
    input.machine("e2").state = State::NotJudged;
    let waits = input.decision("e1");
    assert_eq!(short(&waits), "QuorumRisk");
    assert!(
        waits.message.contains("of 3 etcd machines 1 would be left that are well, and 2 are needed"),
        "{}",
        waits.message
    );
}

#[test]
fn what_is_not_watched_is_looked_at_after_an_action_before_the_next() {
    let check = |seen: i64, now: i64, expected: &str| {
        let mut input = input(now);
        input.sicken(&["w1"], 0);
        let health = input.machine("w1");
        health.efforts = vec![effort(Action::RestartServices, 300, 310, EffortResult::Done)];
        health.seen_at = Some(at(seen));
        assert_eq!(short(&input.decision("w1")), expected);
    };
    check(489, 600, "WaitingForNode RestartServices");
    check(490, 490, "Rebooting begins Reboot");
}
