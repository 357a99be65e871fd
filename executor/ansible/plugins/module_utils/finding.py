# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""One thing that stands against an installation or an upgrade: an error blocks, a warning does not."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def error(name: str, message: str) -> dict:
    return {"name": name, "severity": "error", "message": message}


def warning(name: str, message: str) -> dict:
    return {"name": name, "severity": "warning", "message": message}


def has_pods(params: dict) -> bool:
    """Whether it is for a machine of a cluster, and not of a Karmada control plane, which runs no Pods. Of a cluster's machines with etcd
    alone all holds that is said of nodes."""
    return not params.get("plane")


def collect(checks: tuple, params: dict) -> list:
    """What every check found. One that breaks is a finding, not the end of the others; names in `ignore` do not block."""
    found = []
    for check in checks:
        try:
            found += check(params)
        except Exception as problem:  # pylint: disable=broad-except
            found.append(warning(f"check-{check.__name__}", f"the check failed: {type(problem).__name__}: {problem}"))
    for finding in found:
        if finding["name"] in params["ignore"]:
            finding["severity"] = "warning"
            finding["message"] += " (ignored by preflight_ignore)"
    return found


def report(findings: list) -> dict:
    """A module's result with the findings. Errors among them fail it."""
    told = {"kind": "preflight", "findings": findings}
    errors = [finding for finding in findings if finding["severity"] == "error"]
    if errors:
        text = "; ".join(f"{finding['name']}: {finding['message']}" for finding in errors)
        raise StepFailure("PreflightFailed", text, clusterwright=told)
    return {"changed": False, "clusterwright": told, "msg": f"{len(findings)} warnings" if findings else "no findings"}
