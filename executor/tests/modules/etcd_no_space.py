"""An etcd whose quota is used up accepts writes again, unless it is full with what it holds."""

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from etcd_world import Machine, expect

a, b = machines = [Machine(name) for name in ("a", "b")]
for machine in machines:
    machine.flags = ["--quota-backend-bytes=40000000"]
a.join([a], "new")
b.join(machines)


def put(key):
    try:
        a.etcd().command("put", key, stdin=os.urandom(500_000).hex())
        return True
    except StepFailure as failure:
        assert "space exceeded" in failure.message, failure.message
        return False


def fill(prefix):
    count = 0
    while put(f"{prefix}/{count}"):
        count += 1
        assert count < 100, "it never is full"
    print(f"full after {count} values")


def alarms():
    return [machine.look(machines)["alarms"] for machine in machines]


expect(a.defragment(check=True, free_space=True), False, "the probe of an etcd that accepts writes")
# The same key again and again: history alone fills it.
while put("same"):
    pass
assert ["NOSPACE"] in alarms(), alarms()
expect(a.look(machines)["well"], False, "it says that it is not well")
revision = a.etcd().status()["header"]["revision"]
expect(a.defragment(check=True, free_space=True), "EtcdNoSpace", "the probe finds that writes are refused")
expect(a.etcd().status()["header"]["revision"], revision, "the probe wrote nothing")
# The alarm is no reason to do more than was asked for: without free_space it stays.
a.defragment(percent=0, reclaim=0)
assert ["NOSPACE"] in alarms(), alarms()
expect(put("x"), False, "writes are still refused")
expect(b.defragment(free_space=True), True, "space is made")
expect(alarms(), [[], []], "no alarm is left")
expect(b.defragment(check=True, free_space=True), False, "the probe says that writes are accepted")
expect(put("x"), True, "they are")

# Each time a little more is in use, until nothing is left to give back.
for number in range(10):
    fill(f"wanted/{number}")
    freed = a.defragment(free_space=True)
    if freed is not True:
        break
expect(freed, "EtcdNoSpace", "full with what it holds")
assert ["NOSPACE"] in alarms(), alarms()
a.etcd().command("del", "wanted/", "--prefix")
expect(a.defragment(free_space=True), True, "once something was deleted")
expect((alarms(), put("y")), ([[], []], True), "it accepts writes again")
