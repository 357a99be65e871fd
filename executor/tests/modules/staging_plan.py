"""How a backup is restored on machines, by what they report: above all that was seen, where there is room, and the same everywhere."""

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.plugin_utils.staging_plan import bump, has_snapshot, plan, staged

MIB, UNIT = 1 << 20, 1_000_000_000
DIGEST, OTHER = "ab" * 32, "cd" * 32
BACKUP = {"location": "c/u/1", "backup": "b", "revision": 100, "keys": 7, "size": 100 * MIB, "sha256": DIGEST,
          "etcdVersion": "3.6.16", "takenAt": "2026-11-24T08:00:00Z"}
INFO = {"kind": "restore-info", "revision": 120, "freeBytes": 1000 * MIB, "preparedBytes": 0,
        "versions": {"etcd": "3.6.16", "etcdutl": "3.6.16"}, "snapshotSha256": ""}
MEMBER = {"kind": "staged-member", "sha256": DIGEST, "bump": UNIT, "clusterID": "6bbac587d543f021"}


def check(wanted, work, *arguments):
    """What it returns, or the reason of the failure and its message."""
    try:
        found = work(*arguments)
    except StepFailure as failure:
        found = (failure.reason, failure.message)
    assert found == wanted, f"{arguments}: {found!r}, not {wanted!r}"


def without(key, value):
    return {name: item for name, item in value.items() if name != key}


def info(**change):
    return {**INFO, **change}


# The restored revision is above every one seen, by half a thousand million at least.
for wanted, revision, seen in (
    (1, 100, None), (1, 100, 0), (1, 100, 100), (1, 100, 500_000_100), (2, 100, 500_000_101), (2, 100, UNIT), (2, 100, 1_500_000_100),
    (3, 100, 1_500_000_101), (1, 2 * UNIT, UNIT), (1, 2 * UNIT, 2 * UNIT + 7), (4, 7, 3_400_000_000),
):
    check(wanted * UNIT, bump, revision, seen)
    assert revision + bump(revision, seen) >= (seen or 0) + UNIT // 2

check({"sha256": DIGEST, "revision": 100, "bump": UNIT, "currentRevision": 120}, plan, BACKUP, {"a": INFO, "b": info(revision=90)})
check({"sha256": DIGEST, "revision": 100, "bump": UNIT}, plan, BACKUP, {"a": without("revision", INFO)})
check({"sha256": DIGEST, "revision": 100, "bump": 2 * UNIT, "currentRevision": UNIT}, plan, BACKUP, {"a": INFO, "b": info(revision=UNIT)})
check({"sha256": DIGEST, "revision": 100, "bump": UNIT}, plan, BACKUP, {"a": info(revision="5"), "b": info(revision=True), "c": info(revision=-1)})

# Room for the snapshot, the data made of it, and 256 MiB: exactly as much is enough, also together with what is there of it.
check({"sha256": DIGEST, "revision": 100, "bump": UNIT, "currentRevision": 120}, plan, BACKUP, {"a": info(freeBytes=456 * MIB)})
check({"sha256": DIGEST, "revision": 100, "bump": UNIT, "currentRevision": 120}, plan, BACKUP,
      {"a": info(freeBytes=356 * MIB, preparedBytes=100 * MIB), "b": info(freeBytes=0, staged={"sha256": DIGEST, "bump": UNIT})})
check(("DiskFull", "a: etcd's disk needs 456 MiB for it, and 455 MiB are free; b: its free disk space is not known"),
      plan, BACKUP, {"a": info(freeBytes=456 * MIB - 1), "b": info(freeBytes="much"), "c": INFO})
check(("DiskFull", "a: etcd's disk needs 456 MiB for it, and 9 MiB are free"), plan, BACKUP,
      {"a": info(freeBytes=9 * MIB, staged={"sha256": OTHER})})

# An older etcd does not read it; a newer one does. All findings are told at once.
check(("EtcdDowngrade", "a: etcd is 3.5.9, and the backup is of etcd 3.6.16; b: the version of etcdutl is not known: run the step etcd;"
       " c: etcd's disk needs 456 MiB for it, and 0 MiB are free"),
      plan, BACKUP, {"a": info(versions={"etcd": "3.5.9", "etcdutl": "3.6.0"}), "b": info(versions="?"), "c": info(freeBytes=5)})
for version in ("3.6.0", "3.7.0", "4.0.0"):
    assert plan(BACKUP, {"a": info(versions={"etcd": version, "etcdutl": version})})
check(("StagingFailed", "these machines did not report: b"), plan, BACKUP, {"a": INFO, "b": {}})

# What the program says is looked at, too.
for wrong in ("revision", "size", "sha256", "etcdVersion"):
    check(("StagingFailed", f"the backup's {wrong} is not known"), plan, without(wrong, BACKUP), {"a": INFO})
check(("StagingFailed", "the backup's sha256 is not known"), plan, {**BACKUP, "sha256": "x; rm"}, {"a": INFO})
check(("StagingFailed", "the backup's revision, size, sha256, etcdVersion is not known"), plan, "?", {"a": INFO})

check(True, has_snapshot, info(snapshotSha256=DIGEST), DIGEST)
check(False, has_snapshot, INFO, DIGEST)
check(False, has_snapshot, info(snapshotSha256=OTHER), DIGEST)

# What lies ready is the same on all machines, and of the backup.
report = {"bump": UNIT, "clusterID": "6bbac587d543f021"}
check({**report, "currentRevision": 120}, staged, BACKUP, {"a": MEMBER, "b": MEMBER}, {"a": INFO, "b": info(revision=9)})
check(report, staged, {**BACKUP, "other": 1}, {"a": MEMBER}, {"a": {}})
check(("BackupNotStaged", f"b: it was prepared from another file, of SHA-256 {OTHER}; sha256 differs: {DIGEST}, {OTHER}"),
      staged, BACKUP, {"a": MEMBER, "b": {**MEMBER, "sha256": OTHER}}, {})
check(("BackupNotStaged", f"bump differs: {UNIT}, {2 * UNIT}"), staged, BACKUP, {"a": MEMBER, "b": {**MEMBER, "bump": 2 * UNIT}}, {})
check(("BackupNotStaged", "clusterID differs: 6bbac587d543f021, 7"), staged, BACKUP, {"a": MEMBER, "b": {**MEMBER, "clusterID": "7"}}, {})
check(("BackupNotStaged", "b: nothing was prepared; c: nothing was prepared"), staged, BACKUP, {"a": MEMBER, "b": {}, "c": without("bump", MEMBER)}, {})
check(("BackupNotStaged", "there is no machine with a member"), staged, BACKUP, {}, {})
check(("BackupNotStaged", "it would begin at revision 1000000100, and etcd has come to 900000000 since: stage it again"),
      staged, BACKUP, {"a": MEMBER}, {"a": info(revision=900_000_000)})
