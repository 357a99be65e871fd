"""Members of one cluster that hold different data, as from snapshots that were mixed up, are found."""

import shutil
import subprocess

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_hashes
from etcd_world import PROGRAMS, Machine, expect

source = Machine("source")
source.join([source], "new")


def snapshot(name):
    path = f"{source.home}/{name}.db"
    source.etcd().command("snapshot", "save", path, timeout=60)
    return path


source.etcd().command("put", "shared", "1")
first = snapshot("first")
source.etcd().command("put", "late", "2")
second = snapshot("second")
source.kill()


def restore(name, path, machines):
    """A member that begins with this snapshot."""
    machine = next(machine for machine in machines if machine.name == name)
    machine.wipe()
    pairs = ",".join(f"{other.name}={other.peer}" for other in machines)
    subprocess.run(
        [f"{PROGRAMS}/etcdutl", "snapshot", "restore", path, f"--name={name}", f"--initial-cluster={pairs}",
         "--initial-cluster-token=restored", f"--initial-advertise-peer-urls={machine.peer}", f"--data-dir={machine.data()}"],
        check=True, capture_output=True)
    with open(f"{machine.home}/initial.env", "w", encoding="utf-8") as initial:
        initial.write(f"ETCD_INITIAL_CLUSTER={pairs}\nETCD_INITIAL_CLUSTER_TOKEN=restored\n")


def begin(*snapshots):
    machines = [Machine(f"m{len(snapshots)}{number}{len(path)}") for number, path in enumerate(snapshots)]
    for machine, path in zip(machines, snapshots):
        restore(machine.name, path, machines)
    for machine in machines:
        machine.ensure("")
    # Alone, none of them has a majority.
    assert machines[0].etcd().at([machine.client for machine in machines]).alive_soon().endpoints
    machines[0].etcd().command("put", "after", "3")
    return machines


def check(machines):
    """What the one that leads reports; the others compare nothing."""
    found = [report["hashCheck"] for report in (machine.look(machines, True) for machine in machines) if "hashCheck" in report]
    expect(len(found), 1, "members that compared")
    return found[0]


same = begin(first, first, first)
found = check(same)
expect(sorted(told["host"] for told in found["members"]), sorted(machine.name for machine in same), "hosts")
expect(len({told["hash"] for told in found["members"]}), 1, "hashes of members that hold the same")
expect([machine.look(same).get("hashCheck") for machine in same], [None] * 3, "nothing is compared unasked")
# Compacted between the question for the revision and the one for the hashes: it is asked again.
statuses, calls = etcd_hashes.Etcd.statuses, []


def late(self):
    told = statuses(self)
    calls.append(1)
    if len(calls) == 1:
        for number in range(3):
            same[0].etcd().command("put", "more", str(number))
        same[0].etcd().command("compact", str(same[0].etcd().status()["header"]["revision"]), timeout=60)
    return told


etcd_hashes.Etcd.statuses = late
expect((len({told["hash"] for told in check(same)["members"]}), len(calls) > 1), (1, True), "after a compaction between")
etcd_hashes.Etcd.statuses = statuses
for machine in same:
    machine.kill()
    shutil.rmtree(machine.home)

mixed = begin(first, first, second)
found = check(mixed)
hashes = {told["host"]: told["hash"] for told in found["members"]}
expect(len(set(hashes.values())), 2, "hashes of members that differ")
assert hashes[mixed[0].name] == hashes[mixed[1].name] != hashes[mixed[2].name], hashes
assert found["revision"] > 0
