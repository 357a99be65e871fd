"""The directory of static Pods is there before a worker's kubelet starts, and what a smoke test that was cut off left there goes with a
reset."""

import os

from machine_world import enter, play, program, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import leftovers, membership, static_pod  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import kubeadm, reset  # noqa: E402

kubeadm.healthz.answer = lambda *_arguments, **_more: (True, "ok")


def a_kubelet_that_starts_finds_the_directory():
    program("kubeadm", f"stat -c '%a %h' {static_pod.FOLDER} > /seen; ls -A {static_pod.FOLDER} >> /seen")
    result, failure = play(
        kubeadm, role="worker", identity="a", node_name="w1", files=[], initial_files=[], secrets=[], init_config="", initialized=True,
        join_config="{}", kubelet_settings={}, kubelet="/usr/local/bin/kubelet", timeout_seconds=1)
    assert failure is None and result["ran"] == "join", failure.message
    with open("/seen", encoding="ascii") as seen:
        assert seen.read() == "700 2\n", "kubeadm refuses one with anything in it"


def a_reset_removes_what_a_smoke_test_left():
    membership.save(membership.CLUSTER, {"identity": "a"})
    write(static_pod.MANIFEST, "{}")
    write(f"{static_pod.PODS}/1/containers/worker/1")
    left = leftovers.find_all()
    assert "directory /etc/kubernetes" in left and "directory /var/lib/kubelet" in left, left
    _result, failure = play(reset)
    assert failure is None, failure.message
    assert not os.path.exists(static_pod.MANIFEST) and not os.path.exists(static_pod.PODS)


a_kubelet_that_starts_finds_the_directory()
a_reset_removes_what_a_smoke_test_left()
