# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""CoreDNS in a cluster that runs. kubeadm would migrate its configuration first, which it can for the versions that were there when it
was built; ours is newer, and only its image is set."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import rollouts
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import STRATEGIC, Api

NAME = "coredns"
DEPLOYMENT = {"resource": "deployments", "namespace": "kube-system", "name": NAME}
PATH = f"/apis/apps/v1/namespaces/kube-system/deployments/{NAME}"


def present(client: Api) -> str:
    """The image that CoreDNS has; empty where there is no CoreDNS of kubeadm's."""
    return rollouts.image(client.get(PATH), NAME)


def roll(client: Api, wanted: str, timeout: float) -> None:
    """Sets the image, and waits until the Pods run with it. Fails with RolloutIncomplete; those of before go on then."""
    containers = [{"name": NAME, "image": wanted}]
    client.request("PATCH", PATH, {"spec": {"template": {"spec": {"containers": containers}}}}, STRATEGIC)
    rollouts.wait_for(client, [DEPLOYMENT], timeout)
