"""A new cluster begins with a backup, cut short and taken up; what stands for the old machines goes, once."""

import hashlib
import os
import shutil
import subprocess

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_data
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import Places
from ansible_collections.clusterwright.cluster.plugins.modules import (
    etcd_member,
    etcd_restore_cleanup,
    etcd_restore_info,
    etcd_stage,
)
from ansible_collections.clusterwright.cluster.plugins.plugin_utils import staging_plan
from etcd_world import PKI, PLACE, PROGRAMS, Machine, expect

ID = "k3x9a0pq"
BUMP = 1_000_000_000
TOKEN = f"t-{ID}"
old, x, y = (Machine(name) for name in ("old", "x", "y"))
NEW = [x, y]
MEMBERS = [machine.member() for machine in NEW]


def field(number, payload):
    """A field of a protobuf message: bytes, or a number."""
    if isinstance(payload, int):
        return bytes([number << 3, payload])
    size, length = len(payload), b""
    while size > 0x7F:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + payload


def pod(name, node):
    """A Pod as an API server stores it."""
    spec = field(2, b"c" * 300) + field(4, 30) + (field(10, node.encode()) if node else b"")
    raw = field(1, field(1, name.encode())) + field(2, spec)
    return b"k8s\0" + field(1, field(1, b"v1") + field(2, b"Pod")) + field(2, raw) + field(3, b"") + field(4, b"")


def ctl(machine, *arguments, stdin=None):
    command = (f"{PROGRAMS}/etcdctl", f"--endpoints={machine.client}", f"--cacert={PKI}/ca.crt",
               f"--cert={PKI}/healthcheck-client.crt", f"--key={PKI}/healthcheck-client.key", *arguments)
    return subprocess.run(command, check=True, capture_output=True, input=stdin).stdout.decode()


def put(key, value=b"x"):
    ctl(old, "put", key, stdin=value)


def keys(machine):
    return [key for key in ctl(machine, "get", "/", "--prefix", "--keys-only").split("\n") if key]


def info(machine):
    made = {}
    keep = type("Keep", (), {"work": staticmethod(lambda call: made.update(etcd_restore_info.work(call)) or made)})
    assert machine.play(keep, False, id=ID, data_directory=machine.data(), pki_directory=PKI) in (True, False)
    return made["clusterwright"]


def stage(machine, members=None):
    place = Places(machine.data(), ID)
    os.makedirs(place.prepared, mode=0o700, exist_ok=True)
    if not os.path.exists(place.snapshot):
        shutil.copy(SNAPSHOT, place.arriving)
    return machine.play(
        etcd_stage, id=ID, name=machine.name, members=members or MEMBERS, token=TOKEN, sha256=DIGEST, revision=REVISION,
        bump=BUMP, timeout_seconds=60, data_directory=machine.data())


def begin(machine, members=None, timeout=60):
    return machine.play(
        etcd_member, name=machine.name, members=members or MEMBERS, state="new", token=TOKEN, restore=ID, configuration="",
        data_directory=machine.data(), pki_directory=PKI, files=[], secrets=[], program=f"{PROGRAMS}/etcd",
        timeout_seconds=timeout, catch_up_seconds=60)


def clean(check=False, restore=ID):
    return x.play(
        etcd_restore_cleanup, check, id=restore, prefix="/registry", endpoints=[machine.client for machine in NEW],
        pki_directory=PKI)


# The old cluster, and its backup.
old.join([old], "new")
STAYS = ["/registry/namespaces/default", "/registry/pods/default/waits",
         "/registry/secrets/default/bootstrap-token-mine", "/registry/minionsets/x",
         "/registry/deployments/kube-system/coredns-mine"]
GOES = ["/registry/minions/old-a", "/registry/minions/old-b", "/registry/certificatesigningrequests/csr-1",
        "/registry/secrets/kube-system/bootstrap-token-abcdef", "/registry/leases/kube-node-lease/old-a",
        "/registry/masterleases/10.0.0.1", "/registry/deployments/kube-system/coredns",
        "/registry/daemonsets/kube-system/kube-proxy", "/registry/configmaps/kube-system/kube-proxy"]
for name in [*STAYS, *GOES]:
    put(name)
put("/registry/pods/default/waits", pod("waits", ""))
# More than a page of them.
BOUND = [f"/registry/pods/default/p{number:03}" for number in range(250)]
for name in BOUND:
    put(name, pod(name, "old-a"))
# An alarm of the old cluster comes along, and is of nobody in the new one.
old.raise_alarm("NOSPACE")
SNAPSHOT = f"{PLACE}/snapshot.db"
ctl(old, "snapshot", "save", SNAPSHOT)
REVISION = old.etcd().status()["header"]["revision"]
with open(SNAPSHOT, "rb") as source:
    DIGEST = hashlib.sha256(source.read()).hexdigest()
old.kill()

# Nothing is begun before it lies ready, and with nothing but what lies ready for these very members.
expect(begin(x), "BackupNotStaged", "nothing lies ready")
for machine in NEW:
    expect(stage(machine), True, "the data is made")
other = [x.member(), old.member()]
expect(begin(x, other), "BackupNotStaged", "it lies ready for other members")
expect(os.path.exists(f"{x.data()}/member"), False, "nothing was put there")

# The first is cut short, without a majority; the attempt after it goes on.
expect(begin(x, timeout=2), "EtcdUnhealthy", "one of two")
CLUSTER = etcd_data.new_cluster(MEMBERS, TOKEN)
expect(etcd_data.identity(x.data())[0], CLUSTER, "its data is in its place")
assert info(x)["placed"] and "revision" not in info(x), info(x)
assert staging_plan.has_snapshot(info(x), DIGEST), "it would be brought again"
expect(stage(x), False, "staging again changes nothing")
# As if it ended between the data and what the unit reads.
x.kill()
os.unlink(f"{x.home}/initial.env")
expect(begin(x, timeout=2), "EtcdUnhealthy", "it starts again")
assert begin(y) is True and begin(x) in (True, False)
for machine in NEW:
    expect(machine.etcd().list()[0], CLUSTER, "one cluster")
    expect(os.path.exists(Places(machine.data(), ID).snapshot), False, "no snapshot is left")
    expect(staging_plan.has_snapshot(info(machine), DIGEST), True, "and it is not brought again")
assert x.etcd().status()["header"]["revision"] >= REVISION + BUMP
expect(x.etcd().alarms(), [], "the old cluster's alarm is gone")
expect(begin(x), False, "the step again changes nothing")

# What is of the past goes once.
expect(clean(check=True), True, "it is to be done")
assert set(GOES + BOUND) <= set(keys(x)), "a look changes nothing"
expect(clean(), True, "it is done")
expect(sorted(key for key in keys(y) if key.startswith("/registry/")), sorted(STAYS), "what stays")
ctl(x, "put", "/registry/minions/new-a", "x")
expect(clean(check=True), False, "it was done")
expect(clean(), False, "it is not done again")
assert "/registry/minions/new-a" in keys(x)
ctl(x, "put", "/registry/pods/default/strange", "{}")
expect(clean(restore="aaaaaaaa"), "RestoreCleanupRefused", "a Pod that cannot be read")

# A member that has voted never begins again from the snapshot, and other data is never replaced.
y.kill()
shutil.rmtree(f"{y.data()}/member")
expect(begin(y), "EtcdDataMissing", "its data is gone")
y.wipe()
shutil.copytree(f"{old.data()}", y.data())
x.kill()
expect(begin(y), "EtcdForeignData", "data of another cluster")
