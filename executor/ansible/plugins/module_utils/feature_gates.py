# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Feature gates that a minor of Kubernetes does not know any more, and those that it locks: a program that is given one of them does not
start. The tables are what hack/feature-gates prints of the sources of 1.34.4, 1.35.4 and 1.36.3."""

from __future__ import annotations

import re
from typing import NamedTuple


class Changes(NamedTuple):
    """What a minor has changed."""

    gone: frozenset
    # The only value that may still be given.
    locked: dict


# By the minor that made the change: gates of the kubelet, of kube-proxy and of the control plane.
COMPONENTS = {
    "1.35": Changes(
        gone=frozenset((
            "AllowServiceLBStatusOnNonLB", "CronJobsScheduledAnnotation", "LoadBalancerIPMode", "PodIndexLabel",
            "ProbeHostPodSecurityStandards", "SizeMemoryBackedVolumes", "StatefulSetAutoDeletePVC",
            "StrictCostEnforcementForVAP", "StrictCostEnforcementForWebhooks", "UserNamespacesPodSecurityStandards",
        )),
        locked={
            "AggregatedDiscoveryRemoveBetaType": True, "AllowOverwriteTerminationGracePeriodSeconds": False,
            "DisableAllocatorDualWrite": True, "DynamicResourceAllocation": True, "ExecProbeTimeout": True,
            "ImageMaximumGCAge": True, "InPlacePodVerticalScaling": True, "JobManagedBy": True,
            "PodObservedGenerationTracking": True, "PreferSameTrafficDistribution": True,
            "SupplementalGroupsPolicy": True, "SystemdWatchdog": True,
        },
    ),
    "1.36": Changes(
        gone=frozenset((
            "CSIMigrationPortworx", "HonorPVReclaimPolicy", "InPlacePodVerticalScalingAllocatedStatus",
            "InTreePluginPortworxUnregister", "MemoryManager", "ServiceTrafficDistribution",
            "StructuredAuthorizationConfiguration", "TopologyAwareHints", "WatchFromStorageWithoutResourceVersion",
        )),
        locked={
            "CSIServiceAccountTokenSecrets": True, "DRAAdminAccess": True, "DeclarativeValidation": True,
            "DisableNodeKubeProxyVersion": True, "ExternalServiceAccountTokenSigner": True,
            "GitRepoVolumeDriver": False, "ImageVolume": True, "InOrderInformers": True,
            "KubeletFineGrainedAuthz": True, "KubeletPSI": True, "KubeletPodResourcesDynamicResources": True,
            "KubeletPodResourcesGet": True, "MutableCSINodeAllocatableCount": True, "NodeLogQuery": True,
            "ProcMountType": True, "SELinuxChangePolicy": True, "SELinuxMountReadWriteOncePod": True,
            "SeparateCacheWatchRPC": False, "TopologyManagerPolicyOptions": True, "UserNamespacesSupport": True,
            "VolumeAttributesClass": True,
        },
    ),
}
# Those of kubeadm itself, in its ClusterConfiguration.
KUBEADM = {
    "1.35": Changes(
        gone=frozenset(("WaitForAllControlPlaneComponents",)),
        locked={"ControlPlaneKubeletLocalMode": True},
    ),
    "1.36": Changes(
        gone=frozenset(("ControlPlaneKubeletLocalMode",)),
        locked={"NodeLocalCRISocket": True},
    ),
}


def mapping(text: str) -> dict:
    """The gates below `featureGates`, a key of the outermost level, in YAML as Kubernetes' programs write it."""
    found = re.search(r"^featureGates:[ ]*\n((?:[ ]+\S.*\n?)*)", text, re.MULTILINE)
    lines = re.findall(r"^[ ]+(\w+):[ ]*(true|false)[ ]*$", found.group(1) if found else "", re.MULTILINE)
    return {name: value == "true" for name, value in lines}


def flag(value: str) -> dict:
    """The gates of a flag: `A=true,B=false`."""
    pairs = [part.strip().partition("=") for part in value.strip("\"' ").split(",") if "=" in part]
    return {name: given.strip().lower() == "true" for name, _equals, given in pairs}


def arguments(cluster_configuration: str) -> dict:
    """The gates that extraArgs of kubeadm's ClusterConfiguration give to the control plane."""
    values = re.findall(r"name:[ ]*feature-gates[ ]*\n[ ]*value:[ ]*(.+)", cluster_configuration)
    return {name: value for text in values for name, value in flag(text).items()}


def refused(gates: dict, before: str, target: str, table: dict) -> list:
    """Sentences on the gates that programs of the target's minor refuse, and those of the minor before did not."""
    number = [int(minor.partition(".")[2]) for minor in (before, target)]
    found = []
    for minor, changes in table.items():
        if not number[0] < int(minor.partition(".")[2]) <= number[1]:
            continue
        found += [f"{name} is not known to {minor} any more" for name in sorted(changes.gone & gates.keys())]
        found += [
            f"{name} is {str(only).lower()} from {minor} on and cannot be set to {str(not only).lower()}"
            for name, only in changes.locked.items()
            if gates.get(name, only) is not only
        ]
    return found
