"""Three members go on from a backup, and back; what was cut short is taken up, and what is not the same everywhere is refused."""

import hashlib
import os
import shutil
import subprocess
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_data, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import Places
from ansible_collections.clusterwright.cluster.plugins.modules import (
    etcd_restore,
    etcd_restore_info,
    etcd_restore_remove,
    etcd_stage,
)
from ansible_collections.clusterwright.cluster.plugins.plugin_utils import staging_plan
from etcd_world import PKI, PLACE, PROGRAMS, Machine, expect

ID = "k3x9a0pq"
BUMP = 1_000_000_000
PHASES = ("check", "stop", "swap", "start")
a, b, c = ALL = [Machine(name) for name in ("a", "b", "c")]
MEMBERS = [machine.member() for machine in ALL]
TOKEN = f"t-{ID}"
CLUSTER = f"{etcd_data.new_cluster(MEMBERS, TOKEN):x}"


def places(machine):
    return Places(machine.data(), ID)


def digest(path):
    with open(path, "rb") as source:
        return hashlib.sha256(source.read()).hexdigest()


def report(machine, module, check=True, **params):
    """What the module reports of the machine."""
    made = {}
    keep = type("Keep", (), {"work": staticmethod(lambda call: made.update(module.work(call)) or made)})
    result = machine.play(keep, check, id=ID, data_directory=machine.data(), **params)
    assert isinstance(result, bool), result
    return made.get("clusterwright")


def info(machine):
    return report(machine, etcd_restore_info, check=False, pki_directory=PKI)


def stage(machine, source, sha256=None, revision=None, check=False, bump=BUMP, members=None):
    """As the executor brings the snapshot, and the module takes it in. Nothing is brought where it is."""
    place = places(machine)
    os.makedirs(place.prepared, mode=0o700, exist_ok=True)
    if source and not os.path.exists(place.snapshot):
        shutil.copy(source, place.arriving)
    return machine.play(
        etcd_stage, check, id=ID, name=machine.name, members=members or MEMBERS, token=TOKEN, sha256=sha256 or DIGEST,
        revision=REVISION if revision is None else revision, bump=bump, timeout_seconds=60, data_directory=machine.data())


def phase(machine, name, check=False, undo=False, sha256=None, cluster=CLUSTER, timeout=60):
    return machine.play(
        etcd_restore, check, id=ID, phase=name, undo=undo, name=machine.name, members=MEMBERS, cluster_id=cluster,
        sha256=sha256 or DIGEST, data_directory=machine.data(), pki_directory=PKI, timeout_seconds=timeout)


def play(undo=False, phases=PHASES, cluster=CLUSTER, timeout=60):
    """Each phase on all machines before the next; the first failure ends it, as any_errors_fatal does."""
    changed = False
    for name in phases:
        if name == "start":
            # Together: none is healthy without another.
            for machine in ALL:
                machine.ensure("")
        results = [phase(machine, name, undo=undo, cluster=cluster, timeout=timeout) for machine in ALL]
        failures = [result for result in results if not isinstance(result, bool)]
        if failures:
            return failures[0]
        changed = changed or any(results)
    return changed


def probe(undo=False, cluster=CLUSTER):
    return [phase(machine, "start", check=True, undo=undo, cluster=cluster, timeout=10) for machine in ALL]


def has(machine, key):
    return f'"{key}-value"' in machine.etcd().command("get", key, "--write-out=fields")


def processes():
    return [machine.process.pid for machine in ALL]


def untouched(what):
    assert all(machine.process.poll() is None for machine in ALL), f"{what}: etcd was stopped"
    assert not any(os.path.exists(places(machine).before) for machine in ALL), f"{what}: data was moved"


def ctl(*arguments):
    subprocess.run((f"{PROGRAMS}/etcdctl", f"--endpoints={b.client}", f"--cacert={PKI}/ca.crt", f"--cert={PKI}/healthcheck-client.crt",
                    f"--key={PKI}/healthcheck-client.key", *arguments), check=True, capture_output=True)


a.join([a], "new")
b.join([a, b])
c.join([a, b, c])
for number in range(20):
    ctl("put", "before", f"before-value{number}" if number < 19 else "before-value")
SNAPSHOT = f"{PLACE}/snapshot.db"
ctl("snapshot", "save", SNAPSHOT)
REVISION, DIGEST = b.etcd().status()["header"]["revision"], digest(SNAPSHOT)
ctl("put", "after", "after-value")
OLD = f"{a.etcd().list()[0]:x}"

# What decides how it is restored.
told = info(a)
expect(told["revision"], REVISION + 1, "the revision")
expect(told["versions"]["etcd"], told["versions"]["etcdutl"], "one version")
assert told["databaseBytes"] > 0 and told["freeBytes"] > 0 and told["snapshotSha256"] == "" and "staged" not in told, told
expect(os.stat(places(a).prepared).st_mode & 0o777, 0o700, "the directory is closed")
# etcd writes into its database ten times a second.
time.sleep(0.5)
a.kill()
expect(info(a)["revision"], REVISION + 1, "the revision of an etcd that does not run")
damaged = f"{a.data()}/member/snap/db"
os.rename(damaged, f"{damaged}.kept")
assert "revision" not in info(a), "a revision of nothing"
with open(damaged, "wb") as out:
    out.write(b"\0" * 70000)
assert "revision" not in info(a), "a revision of a damaged file"
os.rename(f"{damaged}.kept", damaged)
a.ensure("")
assert a.etcd().alive_soon().endpoints

# What is not the snapshot is refused, and brought anew.
with open(SNAPSHOT, "rb") as source:
    whole = source.read()
for name, content in (("truncated", whole[:-700]), ("flipped", whole[:9000] + bytes([whole[9000] ^ 1]) + whole[9001:])):
    bad = f"{PLACE}/{name}.db"
    with open(bad, "wb") as out:
        out.write(content)
    expect(stage(a, bad), "BackupCorrupt", f"{name}, and its digest tells")
    expect(os.path.exists(places(a).arriving), False, "it is removed")
    expect(stage(a, bad, sha256=digest(bad)), "BackupCorrupt", f"{name}, and its own digest tells")
    expect(os.path.exists(places(a).record), False, "nothing lies ready")
    os.unlink(places(a).snapshot)
expect(stage(a, None), "StagingFailed", "nothing was brought")
expect(stage(a, SNAPSHOT, revision=REVISION + 5), "BackupCorrupt", "a file of another revision than the backup's")
expect(stage(a, SNAPSHOT, check=True), True, "not prepared yet")
assert phase(a, "check") == "BackupNotStaged"

# Staging leaves etcd at work; again, nothing changes; of an attempt that was cut short nothing stays.
pids = processes()
os.makedirs(f"{places(a).new_data}.part/member/wal")
os.makedirs(f"{places(a).new_data}/member/wal")
expect([stage(machine, SNAPSHOT) for machine in ALL], [True] * 3, "staged")
expect([stage(machine, None) for machine in ALL], [False] * 3, "again")
expect([stage(machine, None, check=True) for machine in ALL], [False] * 3, "the probe")
expect(os.stat(places(a).snapshot).st_mode & 0o777, 0o600, "the snapshot is root's alone")
expect(stage(a, None, check=True, bump=2 * BUMP), True, "another bump")
expect(stage(a, None, check=True, members=MEMBERS[:2]), True, "other members")
expect((processes(), has(a, "after")), (pids, True), "etcd works on")
expect(sorted(os.listdir(places(a).prepared)), ["data", "snapshot.db", "staged.json"], "what is there")
expect(info(a)["staged"], {"sha256": DIGEST, "bump": BUMP, "clusterID": CLUSTER}, "what it tells")
expect(info(a)["snapshotSha256"], DIGEST, "the snapshot")
reports = {machine.name: report(machine, etcd_stage, name=machine.name, members=MEMBERS, token=TOKEN, sha256="", revision=0, bump=0)
           for machine in ALL}
backup = {"revision": REVISION, "size": len(whole), "sha256": DIGEST, "etcdVersion": "3.6.16"}
ready = staging_plan.staged(backup, reports, {machine.name: info(machine) for machine in ALL})
expect(ready, {"clusterID": CLUSTER, "bump": BUMP, "currentRevision": REVISION + 1}, "the report")

# Another file on one machine: its cluster has the same ID, and nothing is touched anywhere.
other = f"{PLACE}/other.db"
ctl("snapshot", "save", other)
shutil.copytree(places(c).prepared, f"{PLACE}/good")
shutil.rmtree(places(c).prepared)
expect(stage(c, other, sha256=digest(other)), True, "another file")
expect(play(), "BackupNotStaged", "another file on one machine")
untouched("another file on one machine")
shutil.rmtree(places(c).prepared)
shutil.move(f"{PLACE}/good", places(c).prepared)
expect(phase(c, "check", cluster="77"), "BackupNotStaged", "another cluster")
expect(phase(c, "check", cluster="x"), "InvalidVariables", "no cluster")
record = membership.read(places(b).record)
membership.save(places(b).record, {**record, "bump": 0})
expect(phase(b, "check"), "BackupNotStaged", "etcd went on above the revision at which it begins")
membership.save(places(b).record, record)
untouched("what was refused")
expect(probe(), [True] * 3, "not restored")

# The swap, cut short on one machine between the two renames.
expect(play(phases=PHASES[:2]), True, "stopped")
expect(phase(b, "stop"), False, "again")
os.rename(places(b).member, places(b).before)
os.makedirs(f"{places(b).member}/wal")
expect(play(), "EtcdRestoreUnclear", "somebody made other data meanwhile")
shutil.rmtree(places(b).member)
expect(play(), True, "restored")
expect([has(machine, "before") for machine in ALL], [True] * 3, "what was there at the backup")
expect([has(machine, "after") for machine in ALL], [False] * 3, "what came after it")
assert b.etcd().status()["header"]["revision"] >= REVISION + BUMP, "the revision"
try:
    a.etcd().command("get", "before", f"--rev={REVISION - 1}")
    raise AssertionError("an old revision is there")
except StepFailure as failure:
    assert "compacted" in failure.message, failure.message
expect({f"{machine.etcd().list()[0]:x}" for machine in ALL}, {CLUSTER}, "one cluster")
expect(a.names(), ["a", "b", "c"], "members")
expect([os.stat(places(machine).member).st_mode & 0o777 for machine in ALL], [0o700] * 3, "closed")
pids = processes()
expect((play(), processes()), (False, pids), "a second pass changes nothing, and restarts nothing")
expect(probe(), [False] * 3, "the probe")
expect([stage(machine, None) for machine in ALL], [False] * 3, "what is in its place is staged")
expect(stage(a, None, bump=2 * BUMP), "StagingFailed", "it is in its place, and cannot be prepared otherwise")
expect(phase(a, "check", sha256="0" * 64), "BackupNotStaged", "another file is in its place")

# The steps of the etcd role go on with it, whatever the first token was.
expect([a.join([a, b, c], "new"), b.join([a, b, c])], [False, False], "the etcd step")

# Back, cut short too; then once more from the backup.
ctl("put", "restored", "restored-value")
expect(play(undo=True, phases=PHASES[:2]), True, "stopped")
os.rename(places(c).member, places(c).undone)
expect(play(undo=True), True, "undone")
expect([(has(machine, "after"), has(machine, "restored")) for machine in ALL], [(True, False)] * 3, "what was there before")
expect({f"{machine.etcd().list()[0]:x}" for machine in ALL}, {OLD}, "the old cluster")
expect((play(undo=True), probe(undo=True)), (False, [False] * 3), "again")
expect(probe(), [True] * 3, "not restored")
expect(play(), "BackupNotStaged", "the prepared data was moved")
expect([stage(machine, None) for machine in ALL], [True] * 3, "prepared again")
expect(play(), True, "restored again")
expect([has(machine, "restored") for machine in ALL], [False] * 3, "from the backup")
expect(play(undo=True, cluster=""), True, "undone by the record of what was prepared")
expect(play(undo=True, cluster=""), False, "again")

# A machine that says that it has the same file and has another is found before anybody works with it: it is at another revision, or
# at the same one with other content.
expect([stage(a, None), stage(b, None)], [True] * 2, "prepared again")
for bump in (BUMP, BUMP - 1):
    shutil.rmtree(places(c).prepared)
    expect(stage(c, other, sha256=digest(other), bump=bump), True, "another file on one machine")
    membership.save(places(c).record, {**membership.read(places(c).record), "sha256": DIGEST})
    expect(play(timeout=10), "EtcdDataDiffers", "the members differ")
    expect(play(undo=True), True, "undone")
    expect([has(machine, "after") for machine in ALL], [True] * 3, "what was there before")
    expect([stage(a, None), stage(b, None)], [True] * 2, "prepared again")
shutil.rmtree(places(c).prepared)
expect(stage(c, SNAPSHOT), True, "prepared again")
expect(play(), True, "restored again")

# What nobody can decide is refused, on all machines before any is touched.
shutil.move(places(b).before, f"{PLACE}/before")
expect(play(undo=True), "OldDataMissing", "the data from before is gone")
assert all(machine.process.poll() is None for machine in ALL), "etcd was stopped"
shutil.move(f"{PLACE}/before", places(b).before)
expect(play(phases=("check", "stop", "swap")), False, "the restored data stays")


# What is left is removed, but not while it may be all there is.
def remove(machine, check=False):
    return machine.play(etcd_restore_remove, check, id=ID, data_directory=machine.data())


etcd_restore_remove.HELD = f"{PLACE}/held"
os.makedirs(f"{PLACE}/held/{ID}")
with open(f"{PLACE}/held/{ID}/kube-apiserver.yaml", "w", encoding="utf-8") as out:
    out.write("kind: Pod\n")
expect(remove(a), "OldDataNeeded", "a manifest is held")
os.unlink(f"{PLACE}/held/{ID}/kube-apiserver.yaml")
b.kill()
os.rename(places(b).member, f"{PLACE}/member")
expect(remove(b), "OldDataNeeded", "there is no other data")
os.rename(f"{PLACE}/member", places(b).member)
b.ensure("")
expect((remove(a, check=True), remove(a), remove(a), remove(a, check=True)), (True, True, False, False), "removed")
expect([remove(b), remove(c)], [True, True], "removed")
expect((sorted(os.listdir(a.data())), os.path.exists(f"{PLACE}/held")), (["member"], False), "what is left")
expect(phase(a, "check", undo=True, cluster=""), "OldDataMissing", "nothing tells whose data it is")
expect(phase(a, "check", undo=True), "OldDataMissing", "there is nothing to go back to")
assert b.etcd().alive_soon().endpoints
try:
    Places(a.data(), "../../ab")
    raise AssertionError("a path")
except StepFailure as failure:
    expect(failure.reason, "InvalidVariables", "an ID names directories")
