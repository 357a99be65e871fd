# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""How a backup of etcd is restored on machines, by the backup and what each machine reported. Pure: it runs on the controller, and
what machines report may be anything."""

from __future__ import annotations

import re

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import rank

BUMP_UNIT = 1_000_000_000
# So many revisions must be between what anybody has seen of the cluster and the restored one's: it works on until it is held.
MARGIN = 500_000_000
# What of it must be left when it is looked at later.
MARGIN_LEFT = MARGIN // 2
# The snapshot and the data made of it, and what etcd writes meanwhile.
ROOM_BYTES = 256 << 20
MIB = 1 << 20
DIGEST = re.compile(r"[0-9a-f]{64}")
BACKUP_KEYS = (
    "location",
    "backup",
    "revision",
    "keys",
    "size",
    "sha256",
    "etcdVersion",
    "kubernetesVersion",
    "takenAt",
)
AGREED = ("sha256", "bump", "clusterID")


def number(value: object) -> int | None:
    """A whole number that is not negative, or none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def checked(backup: object) -> dict:
    """The backup as the program tells of it."""
    told = {key: backup[key] for key in BACKUP_KEYS if backup.get(key) is not None} if isinstance(backup, dict) else {}
    wrong = [key for key in ("revision", "size") if number(told.get(key)) is None]
    wrong += [] if DIGEST.fullmatch(str(told.get("sha256"))) else ["sha256"]
    wrong += [] if minor(told.get("etcdVersion")) else ["etcdVersion"]
    if wrong:
        raise StepFailure("StagingFailed", f"the backup's {', '.join(wrong)} is not known")
    return told


def minor(version: object) -> tuple:
    """(major, minor) of a version; empty when it is none."""
    numbers = rank(version)[0] if isinstance(version, str) else ()
    return numbers[:2] if len(numbers) >= 2 else ()


def current(infos: dict) -> int | None:
    """The highest revision that any machine knows."""
    known = [number(info.get("revision")) for info in infos.values()]
    return max((revision for revision in known if revision is not None), default=None)


def bump(revision: int, seen: int | None) -> int:
    """What is added to the backup's revision, so that no client has seen a higher one."""
    short = (seen or 0) + MARGIN - revision
    return max(1, -(-short // BUMP_UNIT)) * BUMP_UNIT


def has_snapshot(info: dict, digest: str) -> bool:
    """Whether the snapshot needs not be brought there: it is there, or etcd works with what was made of it."""
    staged = info.get("staged")
    placed = info.get("placed") is True and isinstance(staged, dict) and staged.get("sha256") == digest
    return placed or info.get("snapshotSha256") == digest


def room_finding(host: str, info: dict, backup: dict) -> str:
    """Why there is too little room; empty when there is enough. What is there of this restore is in the room it needs."""
    staged = info.get("staged")
    if isinstance(staged, dict) and staged.get("sha256") == backup["sha256"]:
        return ""
    wanted = 2 * backup["size"] + ROOM_BYTES
    free, prepared = number(info.get("freeBytes")), number(info.get("preparedBytes"))
    if free is None:
        return f"{host}: its free disk space is not known"
    given = free + (prepared or 0)
    if given >= wanted:
        return ""
    return f"{host}: etcd's disk needs {-(-wanted // MIB)} MiB for it, and {given // MIB} MiB are free"


def version_findings(host: str, info: dict, backup: dict) -> list:
    """Programs there that are older than what made the backup."""
    found = info.get("versions") if isinstance(info.get("versions"), dict) else {}
    findings = [] if minor(found.get("etcdutl")) else [f"{host}: the version of etcdutl is not known: run the step etcd"]
    for name in ("etcd", "etcdutl"):
        given = minor(found.get(name))
        if given and given < minor(backup["etcdVersion"]):
            findings.append(f"{host}: {name} is {str(found[name])[:32]}, and the backup is of etcd {backup['etcdVersion']}")
    return findings


def plan(backup: object, infos: dict) -> dict:
    """What is made of the backup on every machine: sha256, revision, bump, and the current revision where one is known. Fails with
    all that is in the way, by host."""
    told = checked(backup)
    silent = [host for host, info in sorted(infos.items()) if info.get("kind") != "restore-info"]
    if silent:
        raise StepFailure("StagingFailed", f"these machines did not report: {', '.join(silent)}")
    versions = [finding for host, info in sorted(infos.items()) for finding in version_findings(host, info, told)]
    room = [finding for host, info in sorted(infos.items()) if (finding := room_finding(host, info, told))]
    if versions or room:
        raise StepFailure("EtcdDowngrade" if versions else "DiskFull", "; ".join(versions + room))
    seen = current(infos)
    made = {"sha256": told["sha256"], "revision": told["revision"], "bump": bump(told["revision"], seen)}
    return made if seen is None else {**made, "currentRevision": seen}


def staged(backup: object, members: dict, infos: dict) -> dict:
    """What all machines agree on that lies ready there, by what each machine's member reports."""
    told = checked(backup)
    findings = []
    ready = {}
    for host, member in sorted(members.items()):
        if member.get("kind") != "staged-member" or any(member.get(key) is None for key in AGREED):
            findings.append(f"{host}: nothing was prepared")
            continue
        ready[host] = member
        if member["sha256"] != told["sha256"]:
            findings.append(f"{host}: it was prepared from another file, of SHA-256 {str(member['sha256'])[:64]}")
    agreed = {key: sorted({str(member[key])[:64] for member in ready.values()}) for key in AGREED}
    findings += [f"{key} differs: {', '.join(values)}" for key, values in agreed.items() if len(values) > 1]
    if findings or not members:
        raise StepFailure("BackupNotStaged", "; ".join(findings) or "there is no machine with a member")
    one = next(iter(members.values()))
    raised, seen = number(one["bump"]) or 0, current(infos)
    if seen is not None and told["revision"] + raised < seen + MARGIN_LEFT:
        raise StepFailure(
            "BackupNotStaged",
            f"it would begin at revision {told['revision'] + raised}, and etcd has come to {seen} since: stage it again",
        )
    agreed = {"bump": raised, "clusterID": str(one["clusterID"])[:16]}
    return {**agreed, "currentRevision": seen} if seen else agreed
