"""A member that runs with other files is restarted as one of several: another leads meanwhile, and the others are a majority."""

import os
import pathlib

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd, etcd_members, membership
from etcd_world import PLACE, Machine, Writer, expect

a, b, c = machines = [Machine(name) for name in ("a", "b", "c")]
members = [a]


def roll(machine, content, **more):
    """The step once more, with a file that the member reads."""
    path = f"{PLACE}/{machine.name}/etcd.env"
    return machine.join(members, files=[{"path": path, "content": content, "mode": "0600"}], **more)


def content(machine):
    return pathlib.Path(f"{PLACE}/{machine.name}/etcd.env").read_text(encoding="utf-8")


def leader():
    return next(machine for machine in machines if machine.look(machines)["isLeader"])


def moves(worked):
    """What was done, and to whom each leader handed over meanwhile."""
    command, seen = etcd.Etcd.command, []

    def recorded(self, *arguments, **more):
        if arguments[0] == "move-leader":
            seen.append(arguments[1])
        return command(self, *arguments, **more)

    etcd.Etcd.command = recorded
    try:
        return worked(), seen
    finally:
        etcd.Etcd.command = command


def process(machine):
    return machine.process.pid


expect(a.join(members, "new"), True, "one begins")
first = process(a)
expect(moves(lambda: roll(a, "1")), (True, []), "one that is alone is restarted")
assert process(a) != first
expect(roll(a, "1"), False, "again")

members = [a, b]
b.join(members)
led = leader()
other = next(machine for machine in members if machine is not led)
expect(moves(lambda: roll(led, "2")), (True, [other.etcd().own_id()]), "of two, the other one leads before")

members = machines
c.join(members)
led = leader()
writer = Writer(machines)
writer.start()
for machine in [machine for machine in machines if machine is not led]:
    before = process(machine)
    expect(moves(lambda machine=machine: roll(machine, "3")), (True, []), f"{machine.name}, which follows, is restarted")
    assert process(machine) != before
    assert not etcd_members.behind(etcd_members.find(machine.etcd())), "it has what the others have"
expect(leader().name, led.name, "nobody else leads since")
applied = {member.id: member.applied for member in etcd_members.find(led.etcd())}
done, heirs = moves(lambda: roll(led, "3"))
expect((done, len(heirs)), (True, 1), "the one that leads hands that over")
assert int(heirs[0], 16) in applied and heirs[0] != led.etcd().own_id()
assert leader() is not led
gap = writer.end()
assert gap < 3, gap
expect([roll(machine, "3") for machine in machines], [False, False, False], "again: nothing is done")

# A follower that is late is waited for, and in the end refused.
late, etcd_members.late = etcd_members.late, lambda found: [member for member in found if member.name == "b"]
expect(roll(a, "4", timeout_seconds=2), "EtcdUnhealthy", "beside one that is far behind")
etcd_members.late = late
expect(roll(a, "5"), True, "once it has caught up")

before = process(a)
c.kill()
expect(roll(a, "6", timeout_seconds=2), "EtcdUnhealthy", "beside a dead one")
expect(process(a), before, "it was not stopped")
expect(etcd.Etcd(a.etcd().pki, [a.client, b.client]).healthy(), True, "etcd works on")
expect(roll(c, "6"), True, "the dead one is just started")
expect(roll(a, "7"), True, "and then it is done")

# Without a majority a member is restarted, which may be its repair.
b.kill()
c.kill()
before = process(a)
expect(roll(a, "8", timeout_seconds=10), "EtcdUnhealthy", "without the others it does not become healthy")
assert process(a) != before, "it was restarted all the same"
b.ensure("")
c.ensure("")
expect(roll(a, "8"), False, "with them it is")

# What a member does not begin with is put back, on this one alone, and what would fill it up is not even tried.
expect(roll(b, "ETCD_SNAPSHOT_COUNT=20000\n"), True, "a configuration that is good")
writer = Writer(machines)
writer.start()
before = process(b)
expect(roll(b, "ETCD_SNAPSHOT_COUNT=many\n", timeout_seconds=10), "ConfigurationRefused", "one that the member does not begin with")
assert process(b) != before and not os.path.exists(f"{PLACE}/{b.name}/etc/etcd-former.json")
expect(content(b), "ETCD_SNAPSHOT_COUNT=20000\n", "the former one is back")
expect(b.etcd().healthy(), True, "and the member works with it")
before = process(b)
expect(roll(b, "ETCD_SNAPSHOT_COUNT=20000\n"), False, "to take it back does nothing more")
expect(roll(b, "ETCD_QUOTA_BACKEND_BYTES=4096\n"), "ConfigurationRefused", "a quota that the database has outgrown")
expect((content(b), process(b)), ("ETCD_SNAPSHOT_COUNT=20000\n", before), "nothing was touched for it")
assert writer.end() < 3

# An attempt that was cut off once the file was written: the next one puts back what was there before that one.
membership.save(f"{PLACE}/{b.name}/etc/etcd-former.json", {"content": content(b)})
pathlib.Path(f"{PLACE}/{b.name}/etcd.env").write_text("ETCD_SNAPSHOT_COUNT=many\n", encoding="utf-8")
b.kill()
expect(roll(b, "ETCD_SNAPSHOT_COUNT=many\n", timeout_seconds=10), "ConfigurationRefused", "cut off, and made again")
expect((content(b), b.etcd().healthy()), ("ETCD_SNAPSHOT_COUNT=20000\n", True), "the former one is back")
