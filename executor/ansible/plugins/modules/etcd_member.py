#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Makes this machine a member of the etcd cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_member
short_description: An etcd member as a systemd unit, new with the others or added to a cluster that runs
description:
  - Writes the unit's files and starts it. The lines about the initial cluster are written only while the member has no data.
  - With C(state=existing) and no data, the member is first added as a learner through the others, and promoted once it caught up.
  - An attempt that was cut short is taken up where it stands. A learner that another one left behind is removed, and so is this member
    when it lost its data. Data of another cluster is refused.
  - Before a member that takes part is restarted, another one leads. The restart is refused while etcd would lose its majority by it,
    and it is over when the member has what the others have. One that is down is just started.
  - Ends when the member is healthy, which needs a majority.
  - One that took part and does not get well with another C(configuration) has the former one again. If it is well with it, the module
    fails with ConfigurationRefused and the member's last words.
options:
  name:
    description: Name of this member, which never changes.
    type: str
    required: true
  members:
    description: All members, with name, peer_url, client_url.
    type: list
    elements: dict
    required: true
  state:
    description: Whether a cluster is started or exists.
    type: str
    choices: [new, existing]
    default: new
  token:
    description: Token of the initial cluster.
    type: str
    required: true
  restore:
    description: ID of the restore whose data lies ready here, for a new cluster to begin with. Empty where there is none.
    type: str
    default: ""
  data_directory:
    description: Data of the member.
    type: path
    default: /var/lib/etcd
  program:
    description: etcd's program.
    type: path
    required: true
  configuration:
    description: One of C(files), the environment that the member begins with. Empty where none is put back.
    type: path
    default: ""
  timeout_seconds:
    description: Until the member is healthy, and until the others are before this one is restarted.
    type: int
    default: 120
  catch_up_seconds:
    description: Until a learner, or a member that was restarted, has the others' data.
    type: int
    default: 600
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
  - clusterwright.cluster.arguments.files
author:
  - Clusterwright developers
"""

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    etcd_alarms,
    etcd_data,
    etcd_members,
    etcd_new_cluster,
    etcd_trial,
    files,
    membership,
    restarts,
    succession,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import LOCAL, Etcd, label
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

UNIT = "etcd.service"
INITIAL = "/etc/etcd/initial.env"


def own(params: dict) -> dict:
    for member in params["members"]:
        if member["name"] == params["name"]:
            return member
    raise StepFailure("InvalidVariables", f"etcd_members has no member {params['name']}")


def initial_cluster(params: dict, pairs: list) -> str:
    """The initial cluster as etcd wants it. It is read only while there is no data."""
    return (
        f"ETCD_INITIAL_CLUSTER={','.join(pairs)}\n"
        f"ETCD_INITIAL_CLUSTER_STATE={params['state']}\n"
        f"ETCD_INITIAL_CLUSTER_TOKEN={params['token']}\n"
    )


def refuse_foreign(params: dict, data: tuple, cluster: int) -> None:
    """Data of another cluster is somebody's: it is not for us to remove, and etcd would not take it."""
    if data[0] != cluster:
        raise StepFailure(
            "EtcdForeignData",
            f"{params['data_directory']} holds data of etcd cluster {data[0]:x}, and this is {cluster:x}:"
            " look what it is, then run the reset step on this machine",
        )


def joined() -> bool:
    """Whether this machine's member has come to its end of joining once: its data may be all there is of it."""
    return bool(membership.read(membership.ETCD).get("joined"))


def check_new(params: dict, others: Etcd, data: tuple) -> None:
    """Data that is there must be of the cluster that begins."""
    alive = others.alive()
    if alive.endpoints:
        refuse_foreign(params, data, alive.list()[0])
    elif not joined():
        refuse_foreign(params, data, etcd_data.new_cluster(params["members"], params["token"]))


def clear_the_way(params: dict, others: Etcd, members: list) -> None:
    """There may be one learner at a time: one that an attempt on a machine now given up left is removed. And a dead
    member goes before another one comes: with both, fewer deaths would cost the majority."""
    wanted = {member["peer_url"] for member in params["members"]}
    for member in members:
        if wanted.intersection(member["peerURLs"]):
            if member.get("isLearner") and own(params)["peer_url"] not in member["peerURLs"]:
                raise StepFailure(
                    "EtcdLearnerInTheWay", f"member {label(member)} is still a learner: let it come to its end, or remove it"
                )
        elif member.get("isLearner"):
            others.remove(member)
        elif not any(others.healthy_soon(url) for url in member.get("clientURLs") or []):
            raise StepFailure(
                "EtcdMemberInTheWay",
                f"member {label(member)} is not healthy and not one of etcd_members: take it out first (remove-etcd-member)",
            )


def become_learner(params: dict, others: Etcd) -> list | None:
    """Makes the cluster ready for this member, and returns the initial cluster; None when its data is good as it is."""
    cluster, _member, members = others.list()
    data = etcd_data.identity(params["data_directory"])
    if data is not None:
        refuse_foreign(params, data, cluster)
        if any(member["ID"] == data[1] for member in members):
            return None
        if joined():
            raise StepFailure(
                "EtcdMemberRemoved",
                f"this machine's member {data[1]:x} was taken out of etcd: run the reset step, then let it join anew",
            )
        # What a learner had copied before it was given up.
        units.systemctl("stop", UNIT, what=f"stop {UNIT}")
        etcd_data.wipe(params["data_directory"])
    peer_url = own(params)["peer_url"]
    for member in [member for member in members if peer_url in member["peerURLs"]]:
        # It may have run before, and its data is gone: one that had some and comes up without is broken to etcd.
        others.check_quorum_without(member)
        others.remove(member)
        members.remove(member)
    clear_the_way(params, others, members)
    return others.add_learner(params["name"], peer_url)


def initial_pairs(params: dict, others: Etcd) -> list | None:
    """The initial cluster, when this member is to begin; None when it goes on from its data."""
    data = etcd_data.identity(params["data_directory"])
    if params["state"] == "new":
        pairs = [f"{member['name']}={member['peer_url']}" for member in params["members"]]
        if data is not None:
            check_new(params, others, data)
            # Data that was put there is not yet known to the unit where the attempt that did it was cut short.
            return None if os.path.exists(INITIAL) else pairs
        if params["restore"]:
            if joined():
                raise StepFailure(
                    "EtcdDataMissing",
                    f"the data of this machine's member is gone from {params['data_directory']}, and it has voted:"
                    " run the reset step",
                )
            etcd_new_cluster.begin(params["data_directory"], params["restore"], params["members"], params["token"])
        return pairs
    # One that has joined before starts without the others.
    alive = others.alive() if data is not None and joined() else others.alive_soon()
    if alive.endpoints:
        return become_learner(params, alive)
    if data is None:
        said = others.said or "etcd_members names no other"
        raise StepFailure("EtcdUnhealthy", f"no member of the cluster that is to be joined is healthy: {said}")
    return None


def takes_part(local: Etcd) -> bool:
    """Whether etcd would notice if this member stopped. One that is not healthy is restarted, whatever the others are."""
    return joined() and any(local.works(LOCAL) for _try in range(3))


class Member:
    """This machine's member, while it is started with what is in its files."""

    def __init__(self, params: dict) -> None:
        self.params = params
        self.local = Etcd(params["pki_directory"], [LOCAL])
        self.others = self.local.at([member["client_url"] for member in params["members"] if member["name"] != params["name"]])
        # What it reads when it starts.
        entries = (params["files"] or []) + (params["secrets"] or [])
        self.reads = [params["program"], *(entry["path"] for entry in entries)]
        self.before = units.state(UNIT).get("InvocationID")
        # Whether one that took part was stopped: it is waited for until another process has its place.
        self.restarted = False

    def before_restart(self) -> None:
        self.restarted = takes_part(self.local)
        if self.restarted:
            etcd_members.prepare_stop(self.local, self.params["timeout_seconds"])

    def start(self, restart: bool, fresh: bool, check: bool = False) -> bool:
        """Starts it. Not waiting for systemd: a new cluster's members become ready together. True when something was done."""
        reads = () if fresh else tuple(self.reads)
        return units.ensure(UNIT, restart, check=check, block=False, reads=reads, before_restart=self.before_restart)

    def promote(self) -> bool:
        """Makes a learner a voter. The only member is no learner, and has no other to ask."""
        if self.params["state"] != "existing":
            return False
        alive = self.others.alive() if joined() else self.others.alive_soon()
        if not alive.endpoints:
            return False
        return alive.promote(own(self.params)["peer_url"], self.params["catch_up_seconds"], lambda: units.journal(UNIT))

    def is_well(self) -> bool:
        if self.params["restore"]:
            etcd_alarms.are_taken_back(self.local, LOCAL)
        # Until a restart that nobody waited for has come to its turn, the one of before answers.
        return not (self.restarted and units.state(UNIT).get("InvocationID") == self.before) and self.local.healthy()

    def prove(self, started: bool) -> None:
        """Returns once it is healthy, and has what the others have."""
        name, params = self.params["name"], self.params
        wait(
            self.is_well,
            params["timeout_seconds"],
            "EtcdUnhealthy",
            lambda: f"etcd member {name} is not healthy: {self.local.said}{units.journal(UNIT)}",
        )
        if started and joined():
            wait(
                lambda: etcd_members.has_caught_up(self.local),
                params["catch_up_seconds"],
                "EtcdUnhealthy",
                lambda: f"etcd member {name} is still far behind the others",
            )

    def remember(self, started: bool) -> None:
        """Notes what it runs with. A restart that nobody waited for may not have come to its turn yet."""
        now = units.state(UNIT)
        if not started or now.get("InvocationID") != self.before:
            restarts.remember(UNIT, now, self.reads)

    def put_back(self, trial: etcd_trial.Trial, why: str) -> StepFailure:
        """Starts it with its former configuration; the failure that says so. What it is not well with either is no reason to refuse the
        new one."""
        tried = trial.differences()
        trial.put_back()
        self.before, self.restarted = units.state(UNIT).get("InvocationID"), True
        units.ensure(UNIT, True, block=False, reads=tuple(self.reads))
        try:
            self.prove(True)
        except StepFailure as failure:
            said = f"the member is well neither with {tried}: {why}\nnor with what it had before"
            return StepFailure("EtcdUnhealthy", f"{said}, which is back: {failure.message}")
        self.remember(True)
        back = "its former configuration is back, and it works: correct the field that it is from"
        return StepFailure("ConfigurationRefused", f"the member does not work with {tried}: {why}\n{back}")


def work(call) -> dict:
    params, check = call.params, call.check_mode
    member = Member(params)
    trial = etcd_trial.Trial(params["configuration"])
    if not check:
        succession.check(params["files"] or [], (f"{params['pki_directory']}/ca.crt",))
        if params["configuration"] and takes_part(member.local):
            trial.begin(params["files"] or [], member.local.status()["dbSize"])
    changed = files.write_all(params["files"], check) + files.write_all(params["secrets"], check, files.SECRET)
    fresh = False
    if not check:
        # 0700 is what etcd itself insists on; the directory may be a mount point.
        os.makedirs(params["data_directory"], mode=0o700, exist_ok=True)
        os.chmod(params["data_directory"], 0o700)
        pairs = initial_pairs(params, member.others)
        fresh = pairs is not None
        if fresh and files.write(INITIAL, initial_cluster(params, pairs), 0o600):
            changed.append(INITIAL)
    try:
        started = acted = member.start(bool(changed) and not fresh, fresh, check)
    except StepFailure:
        # The one that runs has not read what is new.
        trial.put_back()
        raise
    if not check:
        try:
            acted = member.promote() or acted
            member.prove(started)
        except StepFailure as failure:
            if not trial.differences():
                raise
            raise member.put_back(trial, failure.message) from failure
        trial.close()
        member.remember(started)
        membership.save(membership.ETCD, {"joined": True, "name": params["name"]})
        if params["restore"]:
            etcd_new_cluster.forget_snapshot(params["data_directory"], params["restore"])
    report = {"kind": "etcd", "memberID": "" if check else member.local.own_id()}
    return {"changed": bool(changed) or acted, "msg": f"member {params['name']} is healthy", "clusterwright": report}
