# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What kind of machine this is: read from /proc and /sys in a few milliseconds, so that nothing else has to be gathered."""

from __future__ import annotations

import os
import platform

from ansible_collections.clusterwright.cluster.plugins.module_utils import selinux
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.reservations import reserved

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CAP_SYS_RESOURCE = 24
CONNTRACK_MAX = "/proc/sys/net/netfilter/nf_conntrack_max"
BRIDGE_NETFILTER = "/proc/sys/net/bridge/bridge-nf-call-iptables"


def text(path: str, default: str = "") -> str:
    """A small file's content without surrounding space."""
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            return source.read().strip()
    except OSError:
        return default


def architecture() -> str:
    """amd64, arm64, or the kernel's word for another one."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def os_release() -> dict:
    """The fields of /etc/os-release."""
    fields = {}
    for line in text("/etc/os-release").splitlines():
        key, separator, value = line.partition("=")
        if separator:
            fields[key] = value.strip().strip('"')
    return fields


def container() -> str:
    """The kind of container this machine is, or nothing for a real or virtual machine."""
    return text("/run/systemd/container") or ("docker" if os.path.exists("/.dockerenv") else "")


def cgroup_version() -> int:
    return 2 if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else 1


def has_capability(bit: int) -> bool:
    """Whether root here may ever have the capability."""
    for line in text("/proc/self/status").splitlines():
        if line.startswith("CapBnd:"):
            return bool(int(line.split()[1], 16) >> bit & 1)
    return True


def may_lower_oom_score() -> bool:
    """Whether a service here may be made less likely to be killed for memory; a unit that asks for it in vain does not start. The
    capability alone does not say it: in a container's own user namespace it counts for nothing."""
    if not has_capability(CAP_SYS_RESOURCE):
        return False
    own = "/proc/self/oom_score_adj"
    before = text(own, "0")
    try:
        for value in ("-999", before):
            with open(own, "w", encoding="ascii") as target:
                target.write(value)
    except OSError:
        return False
    return True


def memory_mib() -> int:
    """The memory that processes here can use: the machine's, or its cgroup's limit when that is less."""
    total = 0
    for line in text("/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            total = int(line.split()[1]) // 1024
    for limit in memory_limits():
        total = min(total, limit // (1024 * 1024))
    return total


def memory_limits() -> list:
    """Limits in bytes on the way from our cgroup to the root, in both versions of cgroups."""
    limits = []
    for line in text("/proc/self/cgroup").splitlines():
        _number, controllers, path = line.split(":", 2)
        if controllers == "" and cgroup_version() == 2:
            base, name = "/sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            base, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        while True:
            value = text(f"{base}{path.rstrip('/')}/{name}")
            if value.isdigit() and int(value) < 1 << 60:
                limits.append(int(value))
            if path in ("/", ""):
                break
            path = os.path.dirname(path)
    return limits


def swaps() -> list:
    """Swap devices in use."""
    return [line.split()[0] for line in text("/proc/swaps").splitlines()[1:] if line.strip()]


def clock_synchronized() -> bool | None:
    """Whether the kernel's clock is kept right; None when nobody here can tell."""
    if container():
        return None
    output = attempt("timedatectl", "show", "--property=NTPSynchronized", "--value", timeout=10)
    return output.out.strip() == "yes" if output.ok else None


def relaxations() -> dict:
    """What the templates must relax on this machine; on an ordinary machine nothing."""
    kind = container()
    version = cgroup_version()
    return {
        "container": kind,
        "cgroup_version": version,
        "cgroup_driver": "cgroupfs" if kind and version == 1 else "systemd",
        "may_lower_oom_score": may_lower_oom_score(),
        "may_set_conntrack": os.access(CONNTRACK_MAX, os.W_OK) if os.path.exists(CONNTRACK_MAX) else not kind,
        # Looked at before the prepare step may load the module, so it only tells something of a container.
        "bridge_netfilter": not kind or os.path.exists(BRIDGE_NETFILTER),
        # Of a container it is the host's, and only the host can turn it off.
        "swap": bool(kind and swaps()),
        "architecture": architecture(),
        # Whether containers get labels of their own. So it is as well where SELinux only warns: it may be made to enforce any time.
        "selinux": selinux.knows_containers(),
        "reserved": reserved(memory_mib(), os.cpu_count() or 1, etcd=False),
        "reserved_beside_etcd": reserved(memory_mib(), os.cpu_count() or 1, etcd=True),
    }


def facts() -> dict:
    """What the operator shows of a machine."""
    release = os_release()
    return {
        "kind": "facts",
        "osImage": release.get("PRETTY_NAME", ""),
        "kernel": platform.release(),
        "architecture": architecture(),
        "cpus": os.cpu_count() or 0,
        "memoryMiB": memory_mib(),
        "machineId": text("/etc/machine-id"),
    }
