# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Which member of etcd a backup is read from, by what the machines report of theirs. Pure: it runs on the controller."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

MESSAGE_LIMIT = 200


def excluded(report: object) -> str:
    """Why the member is not read; empty: it may be."""
    if not isinstance(report, dict):
        return "its machine did not report"
    if report.get("answers") is not True:
        return str(report.get("message") or "its machine did not report")[:MESSAGE_LIMIT]
    if report.get("isLearner") is not False:
        return "it is a learner"
    if report.get("isCorrupt") is not False:
        return "it has the alarm CORRUPT: replace it"
    return ""


def applied(report: dict) -> int:
    """The applied index; a machine may report anything."""
    index = report.get("appliedIndex")
    return index if isinstance(index, int) and not isinstance(index, bool) else 0


def choose(reports: dict) -> str:
    """The host whose member is read, by the report of each host: a voter that answered a linearizable read and is not corrupt. A
    follower before the leader, which has more to do; then the one that applied most; then by name. Fails with what each of them
    lacks."""
    reasons = {host: excluded(report) for host, report in reports.items()}
    usable = {host: report for host, report in reports.items() if not reasons[host]}
    if not usable:
        lacking = "; ".join(f"{host}: {reasons[host]}" for host in sorted(reasons))
        raise StepFailure("EtcdNoMember", f"no member of etcd can be backed up from: {lacking}")
    clusters = {}
    for host in sorted(usable):
        clusters.setdefault(str(usable[host].get("clusterID"))[:16], []).append(host)
    if len(clusters) > 1:
        told = "; ".join(f"{', '.join(hosts)}: {cluster}" for cluster, hosts in sorted(clusters.items()))
        raise StepFailure("EtcdSplit", f"the machines' members are of different clusters of etcd: {told}")
    return min(usable, key=lambda host: (usable[host].get("isLeader") is not False, -applied(usable[host]), host))
