# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""SELinux, where the machine's kernel has it at work: labels of what we put there, and what its policy lets programs do.

Files get the label of the directory that they are made in. Where the policy has another one for them (programs of the runtime and the
kubelet), or for a directory that is made anew, restorecon gives them that. Without SELinux, or without its policy of containers, nothing
here does anything; where that is not enough, preflight says so."""

from __future__ import annotations

import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

KERNEL = "/sys/fs/selinux"
HOME = "/etc/selinux"
# Labels of containers, of a runtime and of the kubelet: the distribution's policy has none without this.
CONTAINER_POLICY = "container-selinux"
# Directories for which that policy has labels of their own, with the mode that they are made with.
DIRECTORIES = {
    "/etc/kubernetes": 0o755,
    "/etc/containerd": 0o755,
    "/etc/cni/net.d": 0o755,
    "/opt/cni/bin": 0o755,
    "/var/lib/cni": 0o755,
    "/var/lib/containerd": 0o711,
    "/var/lib/kubelet": 0o750,
    "/var/log/pods": 0o755,
    "/var/log/containers": 0o755,
}
# What restorecon says, of a file without any label as well.
LABELLED = re.compile(r"^(?:Relabeled|Would relabel) (/.*) from .* to \S+$", re.MULTILINE)
# What may be started by systemd, and by anybody.
PROGRAM_TYPE = "bin_t"
# Booleans of the policy that we turned on: a reset turns them off.
KNOWN = f"{membership.HOME}/selinux.json"


def text(path: str) -> str:
    return (files.text(path) or "").strip()


def mode() -> str:
    """C(enforcing), C(permissive), or nothing where SELinux is not at work."""
    return {"1": "enforcing", "0": "permissive"}.get(text(f"{KERNEL}/enforce"), "")


def packages(adapter) -> list:
    """What has to be installed for it: the tools, and the policy of containers. Other distributions than RHEL's family have no such one."""
    return ["policycoreutils", CONTAINER_POLICY] if mode() and "rhel" in adapter.FAMILIES else []


def knows_containers() -> bool:
    """Whether the policy has labels for containers and their runtime, so that containerd can be given the task to set them."""
    if not mode():
        return False
    kind = re.search(r"^\s*SELINUXTYPE\s*=\s*(\S+)", text(f"{HOME}/config"), re.MULTILINE)
    contexts = text(f"{HOME}/{kind.group(1) if kind else 'targeted'}/contexts/files/file_contexts")
    return ":container_runtime_exec_t:" in contexts


def restore(paths: list) -> None:
    """Gives files that were just put there the labels that the policy has for them."""
    if not paths or not knows_containers():
        return
    output = attempt("restorecon", "-F", *paths, timeout=120)
    if not output.ok:
        raise StepFailure("SELinuxFailed", f"failed to label {paths[0]}{' and others' if paths[1:] else ''}: {output.said}")


def label_directories(check: bool) -> list:
    """Makes the directories that have labels of their own before anything is put into them. What changed."""
    if not knows_containers():
        return []
    missing = [path for path in DIRECTORIES if not os.path.isdir(path)]
    if not check:
        for path in missing:
            os.makedirs(path, mode=DIRECTORIES[path])
    there = [path for path in DIRECTORIES if os.path.isdir(path)]
    # It says which it would label, and which it has labelled.
    output = attempt("restorecon", *(("-n",) if check else ()), "-v", "-F", *there, timeout=120)
    if not output.ok:
        raise StepFailure("SELinuxFailed", f"failed to label directories of the cluster: {output.said}")
    labelled = LABELLED.findall(output.out)
    return missing + [path for path in labelled if path not in missing]


def label_program(path: str, check: bool) -> list:
    """Lets systemd start a program that lies where the policy has none, and those that come into its place. What changed."""
    wanted = [one for one in (os.path.dirname(path), path) if knows_containers() and f":{PROGRAM_TYPE}:" not in label(one)]
    if wanted and not check:
        output = attempt("chcon", "--type", PROGRAM_TYPE, *wanted)
        if not output.ok:
            raise StepFailure("SELinuxFailed", f"failed to label {path} as a program: {output.said}")
    return [f"label of {one}" for one in wanted]


def label(path: str) -> str:
    """The label of a file; empty, if it has none."""
    try:
        return os.getxattr(path, "security.selinux").decode("utf-8", "replace").rstrip("\0")
    except OSError:
        return ""


def allow(booleans: tuple, check: bool) -> list:
    """Turns booleans of the policy on, for good. One that the policy does not have is left out. What changed."""
    off = [name for name in booleans if knows_containers() and text(f"{KERNEL}/booleans/{name}").split()[:1] == ["0"]]
    if off and not check:
        # First what is to go, so that an attempt that is cut short knows it still.
        known = membership.read(KNOWN).get("booleans", [])
        membership.save(KNOWN, {"booleans": sorted({*known, *off})})
        output = attempt("setsebool", "-P", *(f"{name}=1" for name in off), timeout=120)
        if not output.ok:
            raise StepFailure("SELinuxFailed", f"failed to turn on {', '.join(off)}: {output.said}")
    return [f"SELinux boolean {name}" for name in off]


def forget() -> None:
    """Turns off what was turned on, as far as that goes: the machine leaves its cluster."""
    known = membership.read(KNOWN).get("booleans", [])
    if known and mode():
        attempt("setsebool", "-P", *(f"{name}=0" for name in known), timeout=120)
