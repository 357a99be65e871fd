"""What decides whether a backup is read from a member, as its own machine reports it."""

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.backup_member import choose
from ansible_collections.clusterwright.cluster.plugins.modules import etcd_backup_candidate
from etcd_world import PKI, Machine, expect

a, b, c, d = (Machine(name) for name in ("a", "b", "c", "d"))


def report(machine):
    """What the machine reports; it is never a failure."""
    etcd_backup_candidate.LOCAL = machine.client
    result = etcd_backup_candidate.work(type("Call", (), {"params": {"pki_directory": PKI}, "check_mode": False}))
    assert result["changed"] is False
    return result["clusterwright"]


def reports(*machines):
    return {machine.name: report(machine) for machine in machines}


def leader(*machines):
    return next(machine for machine in machines if report(machine).get("isLeader"))


a.join([a], "new")
alone = report(a)
expect((alone["kind"], alone["answers"], alone["isLeader"], alone["isLearner"], alone["isCorrupt"]),
       ("backup-candidate", True, True, False, False), "alone, it leads")
expect(alone["memberID"], f"{a.etcd().list()[1]:x}", "its own ID")
expect(choose(reports(a)), "a", "and is read")

b.join([a, b])
c.join([a, b, c])
seen = reports(a, b, c)
expect(sorted(told["isLeader"] for told in seen.values()), [False, False, True], "one leads")
expect(len({told["clusterID"] for told in seen.values()}), 1, "one cluster")
assert all(told["appliedIndex"] > 0 and told["raftTerm"] > 0 for told in seen.values()), seen
first = leader(a, b, c)
assert choose(seen) != first.name, "the leader is read"

# A full store does not keep a member from being read; corruption does.
alarms = etcd.Etcd.alarms
own = int(report(a)["memberID"], 16)
etcd.Etcd.alarms = lambda _self: [{"memberID": own, "alarm": 1}]
expect(report(a)["isCorrupt"], False, "NOSPACE")
etcd.Etcd.alarms = lambda _self: [{"memberID": own, "alarm": 2}]
expect([report(machine)["isCorrupt"] for machine in (a, b)], [True, False], "CORRUPT is the member's own")
etcd.Etcd.alarms = lambda _self: [{"alarm": 2}]
expect([report(machine)["isCorrupt"] for machine in (a, b)], [True, True], "CORRUPT of nobody is everybody's")
etcd.Etcd.alarms = alarms

first.kill()
rest = [machine for machine in (a, b, c) if machine is not first]
dead = report(first)
expect((dead["answers"], "refused" in dead["message"]), (False, True), "a dead one says so")
assert rest[0].etcd().healthy_soon(rest[0].client)
assert choose(reports(a, b, c)) in [machine.name for machine in rest]
rest[0].kill()
lonely = report(rest[1])
expect(lonely["answers"], False, "without a majority nobody is read")
assert "etcdctl get" in lonely["message"], lonely
