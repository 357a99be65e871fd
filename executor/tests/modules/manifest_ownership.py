"""Whether a manifest is applied, beside an autoscaler and others who change the same objects."""

import copy
import json

from ansible_collections.clusterwright.cluster.plugins.module_utils.command import Output
from ansible_collections.clusterwright.cluster.plugins.modules import manifests

OURS = {
    "f:metadata": {"f:labels": {"f:app": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}}}}},
    },
}


def managed(manager: str, operation: str, fields: dict, **more: str) -> dict:
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


def deployment(replicas: int = 2, image: str = "web:1", ours: dict | None = None, others: list | None = None) -> dict:
    return {
        "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "d", "resourceVersion": "7", "labels": {"app": "web"},
            "managedFields": [managed("clusterwright", "Apply", OURS if ours is None else ours), *(others or [])],
        },
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [
            {"name": "side", "image": "injected:9"}, {"name": "web", "image": image, "imagePullPolicy": "Always"}]}}},
        "status": {"replicas": replicas},
    }


def is_applied(live: dict | None, dry: dict) -> bool:
    """As the probe sees it, with these answers of the API server."""
    asked = []

    def attempt(*command: str, **_: object) -> Output:
        asked.append(command)
        assert "diff" not in command, "what others own counts in a diff"
        if "get" in command:
            return Output(0, json.dumps(live) if live else "", "")
        assert "--dry-run=server" in command and "--field-manager=clusterwright" in command, command
        return Output(0, json.dumps(dry), "")

    manifests.attempt = attempt
    objects = manifests.apply({"name": "web.yaml", "content": "..."}, check=True)
    assert len(asked) == 2, asked
    return not objects


without_replicas = copy.deepcopy(OURS)
del without_replicas["f:spec"]["f:replicas"]
scaler = managed("kube-controller-manager", "Update", {"f:spec": {"f:replicas": {}}}, subresource="scale")

assert is_applied(deployment(), deployment())
# An autoscaler scaled it: the replicas are its own, whatever the manifest says.
assert is_applied(deployment(5, ours=without_replicas, others=[scaler]), deployment(2))
# Its status changes all the time.
busy = deployment()
busy["status"] = {"replicas": 1}
assert is_applied(busy, deployment())

# What is ours counts: a value that somebody changed under us, one that the manifest changed, has more or has less of.
assert not is_applied(deployment(image="web:2"), deployment())
assert not is_applied(deployment(3), deployment(2))
assert not is_applied(deployment(ours=without_replicas), deployment())
assert not is_applied(deployment(), deployment(ours=without_replicas))
assert not is_applied(None, deployment())
