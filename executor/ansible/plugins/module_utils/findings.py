# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The preflight checks: each looks at one thing and tells what it found; none changes anything or stops the others."""

from __future__ import annotations

import os
import platform
import re
import shutil
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    karmada,
    kube_proxy,
    leftovers,
    machine,
    machine_settings,
    membership,
    runtime,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_source import Source
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import find
from ansible_collections.clusterwright.cluster.plugins.module_utils.external_etcd import external_etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import error, has_pods, warning
from ansible_collections.clusterwright.cluster.plugins.module_utils.host_findings import (
    drop_ins,
    firewall,
    labels,
    sysctl,
    zram,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.network_findings import endpoint, neighbours, networks

TESTED = {("debian", "12"), ("debian", "13")}
WRITTEN_FOR = {("ubuntu", "22.04"), ("ubuntu", "24.04")}
# RHEL, Rocky Linux, AlmaLinux, Oracle Linux and CentOS Stream, by their major version.
RHEL_FAMILY = {"rhel", "rocky", "almalinux", "ol", "centos"}
RHEL_VERSION = "9"
KERNEL_MINIMUM = (5, 4)
# The difference holds the time that the task took to get here.
CLOCK_ERROR_SECONDS = 30
CLOCK_WARNING_SECONDS = 10
PORTS = {
    "control-plane": (6443, 10250, 10257, 10259),
    "etcd": (2379, 2380),
    "worker": (10250,),
    "karmada-control-plane": karmada.PORTS,
}
NODES = {"control-plane", "worker"}
# A machine of a Karmada control plane runs no Pods, and has no rules for them.
PLANE_PROGRAMS = ("ip", "mount", "systemctl", "useradd")
# Two versions of all programs.
PLANE_PROGRAMS_MIB = 2048
PROGRAMS = ("ip", "iptables", "mount", "nsenter", "modprobe", "sysctl", "systemctl", "nft")
BALANCER_PROGRAMS = ("haproxy", "keepalived")
# Names of findings by what reading the bundle ends with.
OF_BUNDLE = {"ArtifactNotFound": "artifacts-missing", "ComponentChanged": "component-changed"}


def distribution(params: dict) -> list:
    release = machine.os_release()
    this = (release.get("ID", ""), release.get("VERSION_ID", ""))
    pretty = release.get("PRETTY_NAME") or " ".join(this)
    if this in TESTED:
        return []
    if this in WRITTEN_FOR or (this[0] in RHEL_FAMILY and this[1].partition(".")[0] == RHEL_VERSION):
        return [warning("os-not-tested", f"{pretty} is written for but not tested: Debian 12 and 13 are")]
    if params["allow_unsupported_distribution"]:
        return [warning("os-unsupported", f"{pretty} is not supported, but allowed by allow_unsupported_distribution_setup")]
    return [
        error(
            "os-unsupported",
            f"{pretty} is not supported: install Debian 12 or 13, Ubuntu 22.04 or 24.04, or version 9 of RHEL, Rocky Linux, AlmaLinux,"
            " Oracle Linux or CentOS Stream, or set allow_unsupported_distribution_setup",
        )
    ]


def hardware(params: dict) -> list:
    found = []
    if machine.architecture() not in ("amd64", "arm64"):
        found.append(error("architecture", f"{machine.architecture()} is not supported: amd64 or arm64 is"))
    memory, cpus = machine.memory_mib(), os.cpu_count() or 0
    least, good = params["memory_minimum_mib"], params["memory_recommended_mib"]
    if memory < least:
        found.append(error("memory", f"{memory} MiB of memory: at least {least} MiB are needed"))
    elif memory < good:
        found.append(warning("memory-low", f"{memory} MiB of memory: {good} MiB are recommended"))
    if "control-plane" in params["roles"] and cpus < 2:
        found.append(error("cpu", f"{cpus} CPU: a control plane needs 2"))
    for directory, needed in room(params).items():
        free = shutil.disk_usage(directory).free // (1024 * 1024)
        if free < needed:
            found.append(error("disk", f"{free} MiB free under {directory}: at least {needed} MiB are needed"))
    return found


def room(params: dict) -> dict:
    """MiB that must be free, by directory."""
    needed = {"/var/lib": params["disk_minimum_mib"], "/usr/local": 1024}
    if "karmada-control-plane" in params["roles"]:
        needed["/opt" if os.path.isdir("/opt") else "/"] = PLANE_PROGRAMS_MIB
    if "etcd" in params["roles"] and os.path.ismount("/var/lib/etcd"):
        needed["/var/lib/etcd"] = 1024
    return needed


def kernel(params: dict) -> list:
    found = []
    release = platform.release()
    numbers = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    if numbers < KERNEL_MINIMUM:
        found.append(error("kernel", f"kernel {release} is too old: 5.4 or newer is needed"))
    kind = machine.container()
    if kind:
        found.append(warning("container", f"this machine is a {kind} container: good for tests, not for production"))
    elif machine.cgroup_version() == 1 and has_pods(params):
        found.append(
            error("cgroup-v1", "the kubelet needs cgroups v2: remove systemd.unified_cgroup_hierarchy=0 from the kernel's command line")
        )
    if machine.swaps() and not kind and has_pods(params):
        found.append(warning("swap", f"swap is on ({', '.join(machine.swaps())}): the prepare step turns it off"))
    if params["kube_proxy_mode"] == kube_proxy.NFTABLES and "etcd" != "".join(params["roles"]) and kube_proxy.is_too_old(release):
        found.append(
            error("kernel-nftables", f"kernel {release} is too old for configuration.kubeProxy.mode nftables: 5.13 or newer is needed")
        )
    wanted = PROGRAMS if has_pods(params) else PLANE_PROGRAMS
    wanted += BALANCER_PROGRAMS if params["virtual_ip"] else ()
    wanted += BALANCER_PROGRAMS[:1] if "karmada-control-plane" in params["roles"] and not params["virtual_ip"] else ()
    missing = [program for program in wanted if not find(program)]
    if missing:
        found.append(error("programs", f"programs are missing: {', '.join(missing)}: run the bootstrap-os step"))
    return found


def clock(params: dict) -> list:
    found = []
    skew = abs(time.time() - params["controller_time"]) if params["controller_time"] else 0
    if skew > CLOCK_ERROR_SECONDS:
        found.append(
            error("clock", f"the clock is {skew:.0f} s away from the executor's: certificates would be refused; set up time synchronization")
        )
    elif skew > CLOCK_WARNING_SECONDS:
        found.append(warning("clock-skew", f"the clock is {skew:.0f} s away from the executor's"))
    if machine.clock_synchronized() is False:
        found.append(warning("clock-unsynchronized", "no time synchronization is at work: install chrony or systemd-timesyncd"))
    return found


def remains(params: dict) -> list:
    """Leftovers of another cluster, and ports in use: both are this cluster's own business once the machine belongs to it."""
    if membership.belongs_to(params["identity"]):
        return []
    found = []
    left = leftovers.find_all()
    if left:
        owner = membership.read(membership.CLUSTER).get("name")
        of = f"of cluster {owner}" if owner else "of an earlier cluster"
        found.append(error("leftovers", f"the machine is not clean, it has remains {of}: {', '.join(left)}: run the reset step first"))
    foreign = karmada.foreign() if "karmada-control-plane" in params["roles"] else ""
    if foreign:
        found.append(
            error("karmada-files", f"{foreign} has files that are not of this control plane: move them away, or take another machine")
        )
    used = sorted(listening() & {port for role in params["roles"] for port in PORTS.get(role, ())})
    if used:
        found.append(error("ports", f"ports in use: {', '.join(map(str, used))}: stop what listens there"))
    return found


def container_runtime(params: dict) -> list:
    """Docker or a distribution's containerd: its containers would lose their runtime to ours."""
    if not NODES.intersection(params["roles"]):
        return []
    found = runtime.foreign()
    if not found:
        return []
    kind = warning if runtime.taken_over() else error
    return [kind("container-runtime", runtime.what_to_do(found))]


def listening() -> set:
    """TCP ports that something listens on."""
    ports = set()
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in machine.text(path).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == "0A":
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def artifacts(params: dict) -> list:
    """Whether the bundle, or upstream, answers from here and has all that the later steps take from it."""
    found = []
    try:
        source = Source(params["bundle"])
        if source.is_unlocked():
            found.append(
                warning(
                    "artifacts-unlocked",
                    "programs are held to the checksums that upstream publishes beside them, and images to what their registries answer"
                    " the first time: give a lock in spec.artifacts.lockRef, or a bundle in spec.artifacts.url, to take nothing else"
                    " than what was looked at before",
                )
            )
        if source.is_unverified():
            found.append(
                warning(
                    "artifacts-unverified",
                    "programs and their digests come over plain HTTP: whoever is on the way can change both; give"
                    " spec.artifacts.indexSHA256 (sha256sum index.json), or an https URL",
                )
            )
        bundle = Bundle(params["bundle"])
        bundle.check_reachable(bundle.resolve(params["artifacts"]))
    except StepFailure as failure:
        found.append(error(OF_BUNDLE.get(failure.reason, "artifact-source"), failure.message))
    return found


CHECKS = (
    distribution,
    hardware,
    kernel,
    clock,
    remains,
    container_runtime,
    drop_ins,
    sysctl,
    zram,
    firewall,
    labels,
    networks,
    neighbours,
    endpoint,
    external_etcd,
    machine_settings.machine_services,
    artifacts,
)
