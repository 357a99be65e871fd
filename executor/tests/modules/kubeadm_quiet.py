"""A kubelet of another version starts the control plane's containers anew, a moment after it has begun: it is waited until that is over."""

import itertools

from ansible_collections.clusterwright.cluster.plugins.module_utils import api
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import kubeadm

PARAMS = {"role": "control-plane", "address": "127.0.0.1", "port": 6443, "timeout_seconds": 5}
kubeadm.QUIET_SECONDS = 1


class Clock:
    """Time that passes only where it is slept."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


kubeadm.time = api.time = Clock()
OLD, NEW = {"kube-apiserver": [10]}, {"kube-apiserver": [20]}


def waits(seen, answers) -> tuple:
    """How often the processes, and the components, were looked at until it was over; the last of each stays."""
    looks, asked = itertools.count(), itertools.count()
    kubeadm.control_plane.own_processes = lambda _names: seen[min(next(looks), len(seen) - 1)]
    kubeadm.healthz.answer = lambda *_arguments: (answers[min(next(asked), len(answers) - 1)], "says")
    kubeadm.wait_until_quiet(PARAMS)
    return next(looks), next(asked)


undisturbed, _ = waits([OLD], [True])
renewed, _ = waits([OLD, {}, NEW], [True])
assert renewed == undisturbed + 2, (undisturbed, renewed)
_, asked = waits([NEW], [True, True, False, True])
assert asked > 4, "one that is not healthy begins it anew"

kubeadm.QUIET_SECONDS = 60
try:
    waits([OLD], [True])
    raise AssertionError("it was never quiet for so long")
except StepFailure as failure:
    assert failure.reason == "ApiserverNotReady" and "does not come to rest" in failure.message, failure.message
