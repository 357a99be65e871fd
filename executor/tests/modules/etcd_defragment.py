"""Databases that were large and emptied are made small again, one at a time, while a client writes."""

import os
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd, etcd_members
from etcd_world import Machine, Writer, expect

MIB = 1024 * 1024
a, b, c = machines = [Machine(name) for name in ("a", "b", "c")]
a.join([a], "new")
b.join([a, b])
c.join(machines)


def fill(count):
    """Writes values of 1 MB below one prefix."""
    for number in range(count):
        a.etcd().command("put", f"garbage/{number}", stdin=os.urandom(500_000).hex())


def empty(among=machines):
    local = a.etcd()
    local.command("del", "garbage/", "--prefix")
    local.command("compact", str(local.status()["header"]["revision"]), "--physical", timeout=60)
    # The others do it at their own pace, and all count what is free when they next write.
    deadline = time.monotonic() + 60
    while any(status["dbSizeInUse"] * 4 > status["dbSize"] for status in (machine.etcd().status() for machine in among)):
        assert time.monotonic() < deadline, [machine.etcd().status() for machine in among]
        local.command("put", "count", "anew")
        time.sleep(0.2)


def sizes():
    return [machine.etcd().status()["dbSize"] // MIB for machine in machines]


def leader():
    return next(machine for machine in machines if machine.look(machines)["isLeader"])


def order(worked):
    """The members in the order of their turns, by name."""
    defrag, turns = etcd.Etcd.command, []

    def command(self, *arguments, **more):
        if arguments[0] == "defrag":
            turns.append(next(machine.name for machine in machines if [machine.client] == self.endpoints))
        return defrag(self, *arguments, **more)

    etcd.Etcd.command = command
    try:
        return worked(), turns
    finally:
        etcd.Etcd.command = defrag


expect(a.defragment(), False, "nothing is free: nothing is done")
fill(60)
empty()
before = sizes()
assert min(before) >= 55, before
look = a.look(machines)
assert look["inUseBytes"] * 2 < look["sizeBytes"], look
expect(a.defragment(check=True), True, "the probe finds what is free")
expect(a.defragment(percent=100), False, "a higher threshold leaves them as they are")
expect(a.defragment(reclaim=4096), False, "so does a larger amount")
expect(sizes(), before, "nothing was done")

led = leader().name
writer = Writer(machines)
writer.start()
done, turns = order(lambda: a.defragment())
gap = writer.end()
expect((done, sorted(turns), turns[-1]), (True, ["a", "b", "c"], led), "all have their turn, the leader last")
assert leader().name != led, "the leader handed that over first"
assert max(sizes()) < 35, sizes()
assert gap < 3, gap
expect(a.defragment(check=True), False, "the probe finds nothing more")
expect(a.defragment(), False, "again: nothing is done")
expect(len(order(lambda: a.defragment(percent=0, reclaim=0))[1]), 3, "without thresholds every member has its turn")

# Never beside one that is away, of an old version, or with other data.
fill(40)
empty()
large = sizes()
oldest, etcd_members.OLDEST = etcd_members.OLDEST, "99.0.0"
expect(a.defragment(), "EtcdTooOld", "an old version")
etcd_members.OLDEST = oldest
alarms, etcd.Etcd.alarms = etcd.Etcd.alarms, lambda _self: [{"memberID": 1, "alarm": etcd.CORRUPT}]
expect(a.defragment(), "EtcdCorrupt", "an etcd whose members differ")
etcd.Etcd.alarms = alarms
c.kill()
expect(a.defragment(), "EtcdUnhealthy", "beside a dead member")
expect(a.defragment(check=True), "EtcdUnhealthy", "the probe fails as well")
c.ensure("")
expect(a.etcd().healthy_soon(c.client) or a.etcd().at([c.client]).alive_soon().endpoints != [], True, "it is back")
expect(sizes(), large, "nothing was done")
expect(a.defragment(), True, "with all of them it is done")
assert max(sizes()) < 40, sizes()

# One member alone has nobody to hand over to.
for machine in (b, c):
    a.remove(machine)
    machine.kill()
fill(40)
empty([a])
expect(a.defragment(), True, "one alone")
