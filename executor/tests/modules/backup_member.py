"""Which member a backup is read from, by what the machines report."""

from ansible_collections.clusterwright.cluster.plugins.module_utils.backup_member import choose
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

GOOD = {"answers": True, "clusterID": "c1", "isLeader": False, "isLearner": False, "isCorrupt": False, "appliedIndex": 7}


def check(wanted, **reports):
    """The choice, or the reason of the failure and its message."""
    try:
        found = choose(reports)
    except StepFailure as failure:
        found = (failure.reason, failure.message)
    assert found == wanted, f"{reports}: {found!r}, not {wanted!r}"


def good(**change):
    return {**GOOD, **change}


leader, learner, corrupt = good(isLeader=True), good(isLearner=True), good(isCorrupt=True)
dead = {"answers": False, "message": "connection refused"}

# A follower, the one that applied most, then by name.
check("b", a=leader, b=GOOD)
check("b", a=good(isLeader=True, appliedIndex=9), b=good(appliedIndex=1))
check("c", a=leader, b=GOOD, c=good(appliedIndex=8))
check("b", c=GOOD, a=leader, b=GOOD)
check("a", a=leader)
check("a", a=leader, b=dead, c=learner, d=corrupt)

# Whoever does not report, or not in words that are known, is not read.
check("b", a={"message": "Unreachable"}, b=leader)
check("b", a=None, b=leader)
check("b", a=good(isLearner=None), b=leader)
check("b", a=good(answers="yes"), b=leader)
check("b", a=good(appliedIndex="9"), b=GOOD)
check("b", a=good(appliedIndex=True), b=GOOD)
check("b", a=good(isLeader="no"), b=GOOD)

check(
    ("EtcdNoMember", "no member of etcd can be backed up from: a: connection refused; b: it is a learner; c: it has the alarm CORRUPT:"
     " replace it; d: its machine did not report; e: its machine did not report"),
    b=learner, a=dead, c=corrupt, d={"message": None}, e="?",
)
check(
    ("EtcdSplit", "the machines' members are of different clusters of etcd: a, c: c1; b: c2"),
    a=GOOD, b=good(clusterID="c2"), c=leader,
)
check("a", a=GOOD, b={**dead, "clusterID": "c2"})
check("a", a=GOOD, b=good(clusterID="c2", isLearner=True))
long = {"answers": False, "message": "x" * 5000}
try:
    choose({"a": long})
except StepFailure as failure:
    assert len(failure.message) < 300, failure.message
