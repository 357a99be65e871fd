"""A restore over members with an alarm, and of a backup that was taken while there was one: afterwards there is none."""

import hashlib
import os
import shutil
import subprocess

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_alarms, etcd_data
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import Places
from ansible_collections.clusterwright.cluster.plugins.modules import etcd_restore, etcd_stage
from etcd_world import PKI, PLACE, PROGRAMS, Machine, expect

BUMP = 1_000_000_000
QUOTA = 40_000_000
a, b, c = ALL = [Machine(name) for name in ("a", "b", "c")]
MEMBERS = [machine.member() for machine in ALL]
for machine in ALL:
    machine.flags = [f"--quota-backend-bytes={QUOTA}"]


def put(key, size=20):
    try:
        a.etcd().command("put", key, stdin=os.urandom(size).hex())
        return True
    except StepFailure as failure:
        assert "space exceeded" in failure.message, failure.message
        return False


def ctl(*arguments):
    command = (f"{PROGRAMS}/etcdctl", f"--endpoints={b.client}", f"--cacert={PKI}/ca.crt", f"--cert={PKI}/healthcheck-client.crt",
               f"--key={PKI}/healthcheck-client.key", *arguments)
    return subprocess.run(command, check=True, capture_output=True).stdout.decode()


def snapshot(name):
    """(path, SHA-256, revision)"""
    path = f"{PLACE}/{name}.db"
    ctl("snapshot", "save", path)
    with open(path, "rb") as source:
        return path, hashlib.sha256(source.read()).hexdigest(), b.etcd().status()["header"]["revision"]


def alarms():
    return a.etcd().alarms()


def kinds():
    return {alarm["alarm"] for alarm in alarms()}


def restore(restore_id, backup, undo=False):
    """What the steps stage-backup and restore-etcd do; the first failure, if there is one."""
    path, digest, revision = backup
    token = f"t-{restore_id}"
    cluster = f"{etcd_data.new_cluster(MEMBERS, token):x}"
    for machine in ALL if not undo else ():
        place = Places(machine.data(), restore_id)
        os.makedirs(place.prepared, mode=0o700, exist_ok=True)
        shutil.copy(path, place.arriving)
        staged = machine.play(
            etcd_stage, id=restore_id, name=machine.name, members=MEMBERS, token=token, sha256=digest, revision=revision,
            bump=BUMP, timeout_seconds=60, data_directory=machine.data())
        assert staged is True, staged
    for phase in ("check", "stop", "swap", "start"):
        if phase == "start":
            for machine in ALL:
                machine.ensure("")
        for machine in ALL:
            done = machine.play(
                etcd_restore, id=restore_id, phase=phase, undo=undo, name=machine.name, members=MEMBERS, cluster_id=cluster,
                sha256=digest, data_directory=machine.data(), pki_directory=PKI, timeout_seconds=30)
            if not isinstance(done, bool):
                return done
    return "restored"


a.join([a], "new")
b.join([a, b])
c.join(ALL)
assert put("before")
good = snapshot("good")
# The same key again and again: history alone fills it.
while put("same", 500_000):
    pass
expect(kinds(), {1}, "NOSPACE, of one member or of more")
full = snapshot("full")

expect(restore("aaaaaaaa", good), "restored", "over members without space")
expect((alarms(), put("after")), ([], True), "no alarm is left, and it accepts writes")
expect(restore("aaaaaaaa", good, undo=True), "restored", "the data of before comes back, with its alarm")
expect(kinds(), {1}, "NOSPACE, of one member or of more")

# Of a backup that was taken without space, and of one that was taken while some member of the old cluster was corrupt.
expect(restore("bbbbbbbb", full), "restored", "of a backup that was taken without space")
expect(alarms(), [], "its alarm is of no member that there is")
put("more", 500_000)
expect((a.defragment(free_space=True), alarms(), put("after")), (True, [], True), "history was what filled it")

# An alarm of a member that there is stays, and all others with it.
c.raise_alarm("CORRUPT")
expect(etcd_alarms.take_back(a.etcd()), False, "of a member that there is")
corrupt = snapshot("corrupt")
expect(restore("cccccccc", corrupt), "restored", "of a backup of a cluster with a corrupt member")
expect((alarms(), put("after")), ([], True), "which is no member any more")
expect(etcd_alarms.take_back(a.etcd()), False, "nothing is left")
