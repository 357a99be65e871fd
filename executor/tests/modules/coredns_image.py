"""CoreDNS is given the image of its version, and kubeadm's configuration its tag; nothing else is touched, and once is enough."""

from ansible_collections.clusterwright.cluster.plugins.module_utils import coredns, kubeadm_config
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import coredns as module

IMAGE = "registry.k8s.io/coredns/coredns:"
TEXT = "apiVersion: x\ndns:\n  imageTag: {}\nkubernetesVersion: v1.35.4\n"


class Api:
    """What the cluster's API has, and what was written to it."""

    tag, image, rolled, refuses, written = "v1.13.1", f"{IMAGE}v1.13.1", True, False, []

    def __init__(self, _kubeconfig: str) -> None:
        self.server = ""

    def get(self, path: str):
        assert self.server == "https://10.0.0.1:6443", self.server
        if Api.refuses:
            raise OSError("connection refused")
        if path == kubeadm_config.PATH:
            return {"metadata": {"resourceVersion": "1"}, "data": {kubeadm_config.KEY: TEXT.format(Api.tag)}}
        assert path == coredns.PATH, path
        if not Api.image:
            return None
        status = {"observedGeneration": 1, "updatedReplicas": 1, "availableReplicas": 1,
                  "conditions": [{"type": "Available", "status": "True"}]}  # fmt: skip
        containers = [{"name": "coredns", "image": Api.image}]
        spec = {"replicas": 1, "template": {"spec": {"containers": containers}}}
        return {"metadata": {"generation": 1}, "spec": spec, "status": status if Api.rolled else {}}

    ask = get

    def request(self, method: str, path: str, body: dict, _kind: str) -> None:
        assert method == "PATCH", method
        Api.written.append(path)
        if path == kubeadm_config.PATH:
            (Api.tag,) = [line.split()[1] for line in body["data"][kubeadm_config.KEY].splitlines() if "imageTag" in line]
            assert body["data"][kubeadm_config.KEY] == TEXT.format(Api.tag)
        else:
            assert body == {"spec": {"template": {"spec": {"containers": [{"name": "coredns", "image": f"{IMAGE}v1.14.7"}]}}}}, body
            Api.image = f"{IMAGE}v1.14.7"


module.Api = Api


def play(check: bool = False) -> tuple:
    """(whether something changed or is due, what was said)."""
    params = {"image": f"{IMAGE}v1.14.7", "address": "10.0.0.1", "port": 6443, "timeout_seconds": 1}
    result = module.work(type("Call", (), {"params": params, "check_mode": check}))
    return result["changed"], result["msg"]


due = (True, f"the cluster's configuration does not say v1.14.7 of CoreDNS; CoreDNS: {IMAGE}v1.13.1 -> {IMAGE}v1.14.7")
assert play(check=True) == due and not Api.written
assert play() == due and Api.written == [kubeadm_config.PATH, coredns.PATH]
for check in (True, False):
    assert play(check) == (False, f"CoreDNS has {IMAGE}v1.14.7")
assert len(Api.written) == 2
# An attempt that was cut off between the two goes on.
Api.image = f"{IMAGE}v1.13.1"
assert play() == (True, f"CoreDNS: {IMAGE}v1.13.1 -> {IMAGE}v1.14.7")
# Pods that do not come up.
Api.image, Api.rolled = f"{IMAGE}v1.13.1", False
try:
    play()
    raise AssertionError("it was said to be rolled out")
except StepFailure as failure:
    assert failure.reason == "RolloutIncomplete" and "coredns" in failure.message, failure.message
# Whoever runs a CoreDNS of their own keeps it.
Api.image, Api.rolled = "", True
assert play()[1].startswith("there is no Deployment kube-system/coredns")
Api.refuses = True
try:
    play()
    raise AssertionError("nobody was asked")
except StepFailure as failure:
    assert failure.reason == "ApiserverNotReady" and "connection refused" in failure.message, failure.message
