# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""How much of a machine its Pods may not have, by its size: what the kubelet, the runtime, the system and etcd need when Pods take all
that they can get. Without it the kernel would choose among all of them."""

from __future__ import annotations

MIB_PER_GIB = 1024
# (up to this many GiB, percent of that part): large machines have more Pods, but not in proportion.
MEMORY = ((4, 25), (8, 20), (16, 10), (128, 6), (1 << 20, 2))
# (up to this many CPUs, thousandths of each).
CPU = ((1, 60), (2, 10), (4, 5), (1 << 20, 2.5))
# Of the reservation, the part that is the system's.
SYSTEM_PERCENT = 25
ETCD_PERCENT, ETCD_MOST_MIB = 10, 2048
ETCD_MILLICPU = 100


def tiered(size: float, tiers: tuple) -> float:
    """The sum over the tiers, each of its own part of the size."""
    total = below = 0.0
    for up_to, share in tiers:
        part = max(0.0, min(size, up_to) - below)
        total += part * share
        below = up_to
    return total


def quantities(memory_mib: float, millicpu: float) -> dict:
    """As Kubernetes writes them."""
    return {"cpu": f"{max(1, round(millicpu))}m", "memory": f"{max(1, round(memory_mib))}Mi"}


def reserved(memory_mib: int, cpus: int, etcd: bool) -> dict:
    """kubeReserved and systemReserved for a machine of this size; `etcd`: a member runs there, as a service of the system."""
    memory = tiered(memory_mib / MIB_PER_GIB, MEMORY) * MIB_PER_GIB / 100
    millicpu = tiered(cpus, CPU)
    system_memory, system_cpu = memory * SYSTEM_PERCENT / 100, millicpu * SYSTEM_PERCENT / 100
    kube = quantities(memory - system_memory, millicpu - system_cpu)
    if etcd:
        system_memory += min(memory_mib * ETCD_PERCENT / 100, ETCD_MOST_MIB)
        system_cpu += ETCD_MILLICPU
    return {"kubeReserved": kube, "systemReserved": quantities(system_memory, system_cpu)}
