#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Prepares new data of etcd from a snapshot, beside the data with which etcd works on."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_stage
short_description: Checks the snapshot that was brought here, and restores it into a directory beside etcd's data
description:
  - The new data is of a cluster of all members with the token that is given, which no member of the present cluster is of.
  - A second pass with the same snapshot, bump and members changes nothing; what an attempt that was cut short left is
    removed first.
  - In check mode it tells what was prepared, and reports it.
options:
  name:
    description: Name of this machine's member.
    type: str
    required: true
  members:
    description: All members, with name, peer_url.
    type: list
    elements: dict
    required: true
  token:
    description: Token of the new cluster.
    type: str
    required: true
  sha256:
    description: SHA-256 of the snapshot. Needed but in check mode.
    type: str
    default: ""
  revision:
    description: Revision of the backup.
    type: int
    default: 0
  bump:
    description: What is added to the revision.
    type: int
    default: 0
  timeout_seconds:
    description: For etcdutl.
    type: int
    default: 3600
extends_documentation_fragment:
  - clusterwright.cluster.arguments.restore
author:
  - Clusterwright developers
"""

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    etcd_data,
    etcd_revision,
    files,
    membership,
    moves,
    removal,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.digests import sha256
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import Places, record_cluster

REPORTED = ("sha256", "revision", "bump", "clusterID", "memberID")


def members_of(params: dict) -> list:
    """The members as the record has them."""
    return sorted([member["name"], member["peer_url"]] for member in params["members"])


def own(params: dict) -> dict:
    for member in params["members"]:
        if member["name"] == params["name"]:
            return member
    raise StepFailure("InvalidVariables", f"etcd_members has no member {params['name']}")


def lacking(params: dict, places: Places) -> str:
    """What is missing of the new data; empty when it lies ready, or is what etcd works with already."""
    record = places.staged()
    cluster = etcd_data.new_cluster(params["members"], params["token"])
    if not record:
        return "nothing was prepared"
    if record_cluster(record) != cluster or record.get("members") != members_of(params):
        return "it was prepared for other members or another token"
    for key in ("sha256", "bump") if params["sha256"] else ():
        if record.get(key) != params[key]:
            return f"it was prepared with {key} {record.get(key)}, and not {params[key]}"
    if cluster not in (places.cluster_prepared(), places.cluster_here()):
        return "the data that was prepared is gone"
    return ""


def take_in(params: dict, places: Places) -> None:
    """Makes the snapshot one that is known to be whole."""
    present = places.snapshot if os.path.exists(places.snapshot) else places.arriving
    if not os.path.exists(present):
        raise StepFailure("StagingFailed", f"{places.snapshot} is missing: it was not brought to this machine")
    found = sha256(present)
    if found != params["sha256"]:
        # So that it is brought anew.
        files.remove(present)
        raise StepFailure("BackupCorrupt", f"{present} had SHA-256 {found}, and must have {params['sha256']}: it was removed")
    os.chmod(present, files.SECRET)
    if present != places.snapshot:
        moves.rename(present, places.snapshot)


def discard(path: str) -> None:
    removal.remove(path)
    if os.path.lexists(path):
        raise StepFailure("StagingFailed", f"failed to remove {path}, which an earlier attempt left: remove it by hand")


def restore(params: dict, places: Places) -> None:
    """Has etcdutl make the data, which gets its name when it is complete."""
    draft = f"{places.new_data}.part"
    for path in (places.record, draft, places.new_data):
        discard(path)
    output = attempt(
        "etcdutl",
        "snapshot",
        "restore",
        places.snapshot,
        f"--name={params['name']}",
        f"--initial-cluster={','.join('='.join(pair) for pair in members_of(params))}",
        f"--initial-cluster-token={params['token']}",
        f"--initial-advertise-peer-urls={own(params)['peer_url']}",
        f"--data-dir={draft}",
        f"--bump-revision={params['bump']}",
        "--mark-compacted",
        timeout=params["timeout_seconds"],
    )
    if not output.ok:
        # Its last line is the error; the others are its log.
        said = (output.said.splitlines() or [""])[-1]
        removal.remove(draft)
        reason = "BackupCorrupt" if "sha256" in said or "missing hash" in said else "StagingFailed"
        raise StepFailure(reason, f"etcdutl failed to restore {places.snapshot}: {said}")
    os.chmod(os.path.join(draft, "member"), 0o700)
    check_revision(params, os.path.join(draft, "member"))
    moves.rename(draft, places.new_data)


def check_revision(params: dict, member: str) -> None:
    """The data's revision must be above all that anybody has seen of the cluster."""
    wanted = params["revision"] + params["bump"]
    found = etcd_revision.of_file(etcd_data.database(member))
    if found is None or found < wanted:
        removal.remove(os.path.dirname(member))
        raise StepFailure(
            "BackupCorrupt", f"the data made of the snapshot has revision {found}, and must have {wanted} or more"
        )


def stage(params: dict, places: Places) -> None:
    cluster = etcd_data.new_cluster(params["members"], params["token"])
    if places.cluster_here() == cluster:
        raise StepFailure(
            "StagingFailed",
            f"etcd works here already with data of restore {places.id}, and {lacking(params, places)}: undo that restore"
            " first, or restore under another ID",
        )
    take_in(params, places)
    restore(params, places)
    found = etcd_data.identity(places.new_data)
    if found is None or found[0] != cluster:
        number = f"{found[0]:x}" if found else "none"
        raise StepFailure("StagingFailed", f"etcdutl made data of cluster {number}, and {cluster:x} was expected")
    record = {
        "id": places.id,
        "sha256": params["sha256"],
        "size": os.stat(places.snapshot).st_size,
        "revision": params["revision"],
        "bump": params["bump"],
        "clusterID": f"{found[0]:x}",
        "memberID": f"{found[1]:x}",
        "members": members_of(params),
    }
    membership.save(places.record, record)


def work(call) -> dict:
    params = call.params
    places = Places(params["data_directory"], params["id"])
    own(params)
    missing = lacking(params, places)
    if call.check_mode:
        report = {"kind": "staged-member", **({} if missing else {key: places.staged().get(key) for key in REPORTED})}
        return {"changed": bool(missing), "clusterwright": report, "msg": missing or "prepared"}
    if missing:
        if not params["sha256"] or params["bump"] <= 0:
            raise StepFailure("InvalidVariables", "sha256 and bump of the backup must be given")
        stage(params, places)
    record = places.staged()
    report = {"kind": "staged-member", **{key: record.get(key) for key in REPORTED}}
    said = f"data of cluster {record['clusterID']} from revision {record['revision'] + record['bump']} on lies ready"
    return {"changed": bool(missing), "clusterwright": report, "msg": said}
