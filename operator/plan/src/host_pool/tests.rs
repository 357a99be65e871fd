use crds::placement::HostSelector;
use crds::{Conditions, Host, HostPool, MachineRequest, MachineSet};
use jiff::Timestamp;

use super::{Action, Observed, automatic_pool, plan, pool_name, selector_of_request, selector_of_set};

fn pool(selector: &str) -> HostPool {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: HostPool, metadata: {{name: mine, namespace: fleet}}, spec: {{hostSelector: {selector}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn host(name: &str, size: &str, spec: &str, phase: &str, ready: bool) -> Host {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}, labels: {{size: {size}}}}}, spec: {{address: {name}.example, ssh: {{credentialsRef: {{name: k}}}}{spec}}}, status: {{phase: {phase}, cleanedEpoch: 0, conditions: [{{type: Ready, status: '{}', reason: X, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}}}",
        if ready { "True" } else { "False" }
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn set(name: &str, template: &str) -> MachineSet {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineSet, metadata: {{name: {name}}}, spec: {{clusterName: a, role: worker, template: {{{template}}}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn request(spec: &str) -> MachineRequest {
    let yaml = format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineRequest, metadata: {{name: order}}, spec: {{clusterName: a, set: w, {spec}}}}}"
    );
    serde_yaml::from_str(&yaml).unwrap()
}

fn planned(
    pool: &HostPool,
    hosts: &[Host],
    sets: &[MachineSet],
    requests: &[MachineRequest],
) -> crate::Plan<Action, crds::HostPoolStatus> {
    plan(&Observed {
        now: Timestamp::UNIX_EPOCH,
        pool,
        hosts: &hosts.iter().collect::<Vec<_>>(),
        sets: &sets.iter().collect::<Vec<_>>(),
        requests: &requests.iter().collect::<Vec<_>>(),
    })
}

fn fleet() -> Vec<Host> {
    let claimed = ", claimRef: {kind: Machine, name: m, uid: m}";
    let quarantined = ", quarantine: {reason: JoinFailed, since: '2026-01-01T00:00:00Z', message: x, machine: m}";
    vec![
        host("h1", "large", "", "Available", true),
        host("h2", "large", "", "Available", true),
        host("h3", "large", claimed, "Claimed", true),
        host("h4", "large", quarantined, "Quarantined", false),
        host("h5", "large", "", "Unreachable", false),
        host("h6", "large", "", "Cleaning", false),
        host("h7", "large", ", unschedulable: true", "Available", true),
        host("h8", "small", "", "Available", true),
        // A moment ago: its phase is not written yet.
        host("h9", "large", claimed, "Available", true),
    ]
}

#[test]
fn each_host_that_matches_is_counted_once() {
    let status = planned(&pool("{matchLabels: {size: large}}"), &fleet(), &[], &[]).status;
    let numbers = [status.available, status.claimed, status.cleaning, status.quarantined, status.unreachable];
    assert_eq!((status.hosts, numbers, status.other), (8, [2, 2, 1, 1, 1], 1));
    assert_eq!(status.hosts, numbers.iter().sum::<i32>() + status.other);
    let message = "2 of 8 Hosts free; 1 Host for another reason than the columns say: h7 is unschedulable";
    assert_eq!(status.message.as_deref(), Some(message));
    assert_eq!(planned(&pool("{}"), &fleet(), &[], &[]).status.hosts, 9, "nothing selected is everything");
}

#[test]
fn a_pool_without_a_free_host_says_so_and_at_rest_nothing_changes() {
    let mut pool = pool("{matchLabels: {size: medium}}");
    pool.status = Some(planned(&pool, &fleet(), &[], &[]).status);
    let stated = pool.condition("HostsAvailable").unwrap();
    assert_eq!((stated.status.as_str(), stated.reason.as_str()), ("False", "NoHostFree"));
    assert_eq!(Some(planned(&pool, &fleet(), &[], &[]).status), pool.status);
}

#[test]
fn a_selector_is_shown_in_words() {
    let check = |selector: &str, expected: &str| {
        assert_eq!(planned(&pool(selector), &[], &[], &[]).status.selector.as_deref(), Some(expected));
    };
    check("{}", "everything");
    check(
        "{matchLabels: {size: large}, matchExpressions: [{key: rack, operator: In, values: [r1, r2]}, {key: gpu, operator: DoesNotExist}], minCPUs: 8}",
        "size=large, rack in (r1, r2), !gpu, minCPUs 8",
    );
}

#[test]
fn the_operator_lets_its_pools_go_once_nobody_asks_for_their_selector_and_no_others() {
    let selector: HostSelector = serde_yaml::from_str("{matchLabels: {size: large, gpu: 'yes'}}").unwrap();
    let ours = automatic_pool("fleet", selector.clone());
    let goes = |pool: &HostPool, sets: &[MachineSet], requests: &[MachineRequest]| {
        planned(pool, &[], sets, requests).actions == [Action::Delete]
    };
    let same = set("a-w", "hostSelector: {matchLabels: {gpu: 'yes', size: large}}");
    assert!(!goes(&ours, &[same], &[]));
    let wider = [set("a-w", "hostSelector: {matchLabels: {size: large}}")];
    assert!(goes(&ours, &wider, &[]));
    let narrowed = request("count: 1, hostSelector: {matchLabels: {gpu: 'yes'}}");
    assert!(!goes(&ours, &wider, std::slice::from_ref(&narrowed)));
    let mut answered = narrowed;
    answered.status = Some(serde_yaml::from_str("{answeredAt: '2026-01-01T00:00:00Z'}").unwrap());
    assert!(goes(&ours, &wider, &[answered]));
    let mut edited = ours;
    edited.spec.host_selector.min_cpus = Some(4);
    assert!(goes(&edited, &[set("a-w", "hostSelector: {matchLabels: {gpu: 'yes', size: large}}")], &[]));
    assert!(!goes(&pool("{matchLabels: {size: large}}"), &[], &[]), "somebody made it");
}

#[test]
fn those_who_name_their_hosts_ask_for_no_selector() {
    assert_eq!(selector_of_set(&set("a-w", "hosts: [h1]")), None);
    assert_eq!(selector_of_set(&set("a-w", "")), Some(HostSelector::default()), "every Host of the namespace");
    let any = set("a-w", "");
    assert_eq!(selector_of_request(&request("hosts: [h1]"), &[&any]), None);
    assert_eq!(selector_of_request(&request("count: 1"), &[&any]), Some(HostSelector::default()));
    assert_eq!(selector_of_request(&request("count: 1"), &[]), None, "its set is not there");
    assert_eq!(pool_name(&HostSelector::default()), pool_name(&selector_of_set(&any).unwrap()));
}
