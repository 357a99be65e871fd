"""What the probe of the Pod network decides, without sockets and clocks: which silence is a fault, and when the Node is patched."""

import json

from network_probe_program import annotation, node_of, program

Peer, Probe, Targets = program.Peer, program.Probe, program.Targets
NETWORK, DNS = program.NETWORK, program.DNS
W1, W2, W3, W4 = (Peer(f"w{number}", f"10.220.{number}.1", 10250) for number in (1, 2, 3, 4))
SERVER = ("10.96.0.10", 53)
SILENT = "timed out"


def probe_of(*peers, conditions=(), **more):
    probe = Probe()
    probe.learn(node_of(annotation(*peers, **more), *conditions))
    assert not probe.complaint, probe.complaint
    return probe


def play(probe, *silent, dns=True, error=SILENT):
    """One round in which these do not answer. Gives what is decided as {type: status}."""
    errors = {target: error if target in silent or (target == SERVER and not dns) else "" for target in probe.asked()}
    probe.count(errors)
    return {kind: verdict.status for kind, verdict in probe.verdicts().items()}


def sent(probe, now="t", heartbeat=False):
    """What is patched now, by type: (status, reason), or None for one that is removed. The API takes it."""
    conditions = probe.conditions(now, heartbeat)
    probe.patched(conditions)
    return {each["type"]: (each["status"], each["reason"]) if "status" in each else None for each in conditions}


def shown(kind, status, reason="r", since="s"):
    return {"type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": since, "lastHeartbeatTime": since}


def most_peers_silent_for_three_rounds_are_a_fault_and_one_answer_ends_it():
    probe = probe_of(W1, W2, W3)
    assert play(probe, W1, W2) == {DNS: "False"} and play(probe, W1, W2) == {DNS: "False"}, "two rounds decide nothing"
    assert play(probe, W1, W2)[NETWORK] == "True"
    assert play(probe, W1)[NETWORK] == "False", "one of two that were silent answers"
    assert play(probe, W1, W2) == {DNS: "False"} and play(probe, W1, W2) == {DNS: "False"}, "the count begins anew"
    assert play(probe, W1, W2)[NETWORK] == "True"


def half_of_the_peers_is_not_most():
    for peers, silent, fault in (((W1,), (W1,), True), ((W1, W2), (W1,), False), ((W1, W2), (W1, W2), True), ((W1, W2, W3), (W1,), False),
                                 ((W1, W2, W3, W4), (W1, W2), False), ((W1, W2, W3, W4), (W1, W2, W3), True)):
        probe = probe_of(*peers)
        statuses = [play(probe, *silent).get(NETWORK) for _ in range(5)][-1]
        assert statuses == ("True" if fault else "False"), (peers, silent)


def losses_of_one_peer_after_the_other_are_no_fault():
    probe = probe_of(W1, W2, W3)
    assert play(probe)[NETWORK] == "False"
    sent(probe)
    for _ in range(5):
        for silent in ((W1, W2), (W2, W3), (W3, W1)):
            assert play(probe, *silent).get(NETWORK) is None
            assert sent(probe) == {}, "what was said stays"


def the_dns_is_a_fault_after_three_rounds_and_none_at_its_first_answer():
    probe = probe_of(W1)
    for expected in (None, None, "True", "True"):
        assert play(probe, dns=False).get(DNS) == expected
    assert play(probe)[DNS] == "False"
    assert play(probe, dns=False).get(DNS) is None


def messages_name_who_does_not_answer_and_why():
    probe = probe_of(W1, W2, W3)
    probe.count({W1: "no route to host", W2: SILENT, W3: "", SERVER: "connection refused"})
    probe.silent = dict.fromkeys(probe.silent, 3)
    verdicts = probe.verdicts()
    expected = "1 of 3 nodes' Pod networks answer; not: w1 (10.220.1.1: no route to host), w2 (10.220.2.1: timed out)"
    assert verdicts[NETWORK] == ("True", "PeersUnreachable", expected), verdicts
    assert verdicts[DNS] == ("True", "DNSUnreachable", "the cluster's DNS (10.96.0.10) does not answer: connection refused"), verdicts
    probe.count(dict.fromkeys(probe.asked(), ""))
    assert probe.verdicts()[NETWORK] == ("False", "PeersAnswer", "3 of 3 nodes' Pod networks answer")
    assert probe.verdicts()[DNS] == ("False", "DNSAnswers", "the cluster's DNS (10.96.0.10) answers")
    # With a plugin given as manifests it is the machines that were asked.
    machines = probe_of(W1, source="")
    machines.count({W1: "", SERVER: ""})
    assert machines.verdicts()[NETWORK].message == "1 of 1 nodes answer"
    many = probe_of(*(Peer(f"{number}{'a' * 200}", "10.0.0.1", 1) for number in range(8)))
    many.count(dict.fromkeys(many.asked(), SILENT))
    many.silent = dict.fromkeys(many.silent, 3)
    assert len(many.verdicts()[NETWORK].message) == program.MESSAGE_LIMIT


def the_only_node_asks_the_dns_alone():
    probe = probe_of()
    assert probe.asked() == (SERVER,)
    play(probe)
    assert sent(probe) == {NETWORK: ("False", "NoPeers"), DNS: ("False", "DNSAnswers")}


def the_node_is_patched_when_something_changed_or_a_heartbeat_is_due():
    probe = probe_of(W1)
    play(probe)
    assert sent(probe, "1") == {NETWORK: ("False", "PeersAnswer"), DNS: ("False", "DNSAnswers")}
    play(probe)
    assert sent(probe, "2") == {}, "nothing new"
    assert set(sent(probe, "3", heartbeat=True)) == {NETWORK, DNS}
    for condition in probe.reported.values():
        assert (condition["lastTransitionTime"], condition["lastHeartbeatTime"]) == ("1", "3"), condition
    # A reason that changes alone is said, and is no transition.
    probe.learn(node_of(annotation(), *probe.reported.values()))
    play(probe)
    assert sent(probe, "4")[NETWORK] == ("False", "NoPeers") and probe.reported[NETWORK]["lastTransitionTime"] == "1"
    play(probe, dns=False)
    play(probe, dns=False)
    assert sent(probe, "5") == {}
    play(probe, dns=False)
    assert sent(probe, "6")[DNS] == ("True", "DNSUnreachable") and probe.reported[DNS]["lastTransitionTime"] == "6"
    assert probe.reported[NETWORK]["lastTransitionTime"] == "1"


def a_patch_that_the_api_did_not_take_is_made_again():
    probe = probe_of(W1)
    play(probe)
    first = probe.conditions("1", False)
    assert first and [each["type"] for each in probe.conditions("2", False)] == [each["type"] for each in first]


def a_restart_keeps_what_the_node_says_until_it_is_decided():
    probe = probe_of(W1, conditions=(shown(NETWORK, "True", "PeersUnreachable", "before"),))
    play(probe, W1, dns=False)
    assert sent(probe, heartbeat=True) == {}, "one silent round neither ends nor confirms a fault"
    play(probe, W1, dns=False)
    play(probe, W1, dns=False)
    assert not probe.reported.get(DNS) and probe.begins_fault(), "the DNS's is new"
    assert sent(probe, "now")[NETWORK] == ("True", "PeersUnreachable")
    assert probe.reported[NETWORK]["lastTransitionTime"] == "before" and probe.reported[DNS]["lastTransitionTime"] == "now"
    assert not probe.begins_fault(), "the Node shows them"


def a_fault_is_judged_by_those_who_are_asked_now():
    probe = probe_of(W1, W2, W3)
    for _ in range(3):
        play(probe, W1, W2)
    assert probe.begins_fault()
    # Both have left.
    probe.learn(node_of(annotation(W3, W4)))
    assert not probe.begins_fault() and NETWORK not in probe.verdicts(), "the new one was not asked yet"
    assert play(probe)[NETWORK] == "False"
    # Those that stay keep their count.
    for _ in range(2):
        play(probe, W3, W4)
    probe.learn(node_of(annotation(W3, W4, dns="10.96.0.11:53")))
    assert play(probe, W3, W4)[NETWORK] == "True"


def without_an_annotation_nothing_is_asked_and_what_was_said_is_taken_back():
    probe = Probe()
    probe.learn(node_of(None))
    assert probe.asked() == () and sent(probe, heartbeat=True) == {}
    probe.learn(node_of(None, shown(NETWORK, "True"), shown(DNS, "False")))
    assert sent(probe) == {NETWORK: None, DNS: None} and sent(probe) == {}
    # No DNS is given any more; what is not decided about peers stays.
    probe.learn(node_of(annotation(W1, dns=""), shown(NETWORK, "True"), shown(DNS, "True")))
    assert sent(probe) == {DNS: None}


def an_annotation_that_cannot_be_read_counts_as_none():
    good = {"node": "w1", "address": "10.220.1.1:10250"}
    for text in ("", "no JSON", "[]", "7", "[" * 5000, '{"peers": 1}', '{"peers": {"a": 1}}', '{"peers": [1]}', '{"source": 7}', '{"source": "a"}',
                 '{"source": "fe80::1%eth0"}', '{"dns": "10.96.0.10"}', '{"dns": ["10.96.0.10:53"]}', '{"dns": "kube-dns:53"}',
                 json.dumps({"peers": [good] * 9}), json.dumps({"peers": [good], "x": "y" * 9000}), 7, {"a": 1},
                 *(json.dumps({"peers": [{**good, "node": name}]}) for name in (None, 7, "", "A", "a b", "a\nb", "-a", "a" * 254)),
                 *(json.dumps({"peers": [{**good, "address": address}]}) for address in (
                     None, 7, "", "10.220.1.1", "10.220.1.1:", "10.220.1.1:0", "10.220.1.1:65536", "10.220.1.1:-1", "10.220.1.1:1e3",
                     "10.220.1.1: 80", "10.220.1.1:٣", "w1:10250", "10.220.1.999:10250", "::1:10250", "[10.220.1.1]:10250", "[fe80::1%eth0]:10250", "[::1:10250"))):
        probe = Probe()
        probe.learn(node_of(text, shown(NETWORK, "True")))
        assert probe.complaint and probe.asked() == () and sent(probe) == {NETWORK: None}, repr(text)[:80]
    parsed = program.parse_targets('{"peers": [{"node": "a.b-1", "address": "[2001:db8::1]:10250", "new": 1}], "new": {}}')
    assert parsed == Targets("", (Peer("a.b-1", "2001:db8::1", 10250),), None)


def a_node_of_any_shape_is_survived():
    for value in ({}, {"metadata": None}, {"metadata": {"annotations": []}}, {"status": {"conditions": {}}},
                  {"status": {"conditions": [1, None, {"type": []}]}}):
        probe = Probe()
        probe.learn(value)
        assert probe.asked() == () and probe.conditions("now", True) == []
    for odd in ({"status": ["True"], "lastTransitionTime": "s"}, {"status": "False", "lastTransitionTime": 7}):
        probe = probe_of(conditions=({"type": NETWORK, **odd},))
        play(probe)
        assert sent(probe, "now")[NETWORK] == ("False", "NoPeers") and probe.reported[NETWORK]["lastTransitionTime"] == "now"


for promise in (
    most_peers_silent_for_three_rounds_are_a_fault_and_one_answer_ends_it,
    half_of_the_peers_is_not_most,
    losses_of_one_peer_after_the_other_are_no_fault,
    the_dns_is_a_fault_after_three_rounds_and_none_at_its_first_answer,
    messages_name_who_does_not_answer_and_why,
    the_only_node_asks_the_dns_alone,
    the_node_is_patched_when_something_changed_or_a_heartbeat_is_due,
    a_patch_that_the_api_did_not_take_is_made_again,
    a_restart_keeps_what_the_node_says_until_it_is_decided,
    a_fault_is_judged_by_those_who_are_asked_now,
    without_an_annotation_nothing_is_asked_and_what_was_said_is_taken_back,
    an_annotation_that_cannot_be_read_counts_as_none,
    a_node_of_any_shape_is_survived,
):
    promise()
