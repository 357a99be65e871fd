"""The mode of kube-proxy is brought to a cluster that runs, proved by its Pods, and taken back; an attempt that is cut off is taken up.

ConfigMap and DaemonSet are those that kubeadm makes, and the real kube-proxy reads what becomes of its configuration."""

import copy
import json
import os
import pathlib
import subprocess
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import findings, kube_proxy
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

PLACE = pathlib.Path(sys.argv[1])
PROGRAMS = os.environ["KUBERNETES_PROGRAMS"]
KUBEADM = {
    "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "kubernetesVersion": "v1.35.4",
    "controlPlaneEndpoint": "10.0.0.1:6443", "networking": {"podSubnet": "10.244.0.0/16"},
}  # fmt: skip


def printed(mode: str) -> tuple:
    """config.conf and all else that kubeadm makes for a cluster that begins with the mode."""
    proxy = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": mode, "conntrack": {"min": 0}}
    (PLACE / "kubeadm").write_text(json.dumps(KUBEADM) + "\n---\n" + json.dumps(proxy), encoding="utf-8")
    argv = [f"{PROGRAMS}/kubeadm", "init", "phase", "addon", "kube-proxy", "--print-manifest", "--config", str(PLACE / "kubeadm")]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    block = text.split("  config.conf: |-\n")[1].split("  kubeconfig.conf:")[0]
    return "".join(line.removeprefix("    ") for line in block.splitlines(keepends=True)), text


def merge(thing: dict, change: dict) -> None:
    for name, value in change.items():
        if value is None:
            thing.pop(name, None)
        elif isinstance(value, dict):
            merge(thing.setdefault(name, {}), value)
        else:
            thing[name] = value


class Cluster:
    """The objects, with a controller of DaemonSets that needs no time. Breaks off before the write of this number."""

    def __init__(self, config: str, kernel: str = "6.1.0-30-amd64") -> None:
        self.objects = {
            kube_proxy.MAP_PATH: {"metadata": {"resourceVersion": "1"}, "data": {"config.conf": config, "kubeconfig.conf": "k"}},
            kube_proxy.SET_PATH: {"metadata": {"generation": 1}, "spec": {"template": {}}, "status": {}},
            kube_proxy.NODES_PATH: {"items": [{"metadata": {"name": "w1"}, "status": {"nodeInfo": {"kernelVersion": kernel}}}]},
        }
        self.rolled, self.breaks, self.available = 0, -1, 3

    def get(self, path: str):
        return copy.deepcopy(self.objects.get(path))

    ask = get

    def request(self, method: str, path: str, body: dict, kind: str) -> dict:
        assert method == "PATCH" and kind == (kube_proxy.STRATEGIC if path == kube_proxy.SET_PATH else kube_proxy.MERGE)
        self.breaks -= 1
        if self.breaks == -1:
            raise ConnectionResetError
        thing = self.objects[path]
        body = copy.deepcopy(body)
        if path == kube_proxy.MAP_PATH:
            assert body["metadata"].pop("resourceVersion") == thing["metadata"]["resourceVersion"], "nobody wrote in between"
            thing["metadata"]["resourceVersion"] += "1"
        else:
            before = copy.deepcopy(thing["spec"]["template"])
            merge(thing, body)
            self.rolled += thing["spec"]["template"] != before
            thing["metadata"]["generation"] += 1
            thing["status"] = {"observedGeneration": thing["metadata"]["generation"], "desiredNumberScheduled": 3}
            thing["status"].update(updatedNumberScheduled=3, numberAvailable=self.available)
        merge(thing, body)
        return copy.deepcopy(thing)

    def config(self) -> str:
        return self.objects[kube_proxy.MAP_PATH]["data"]["config.conf"]

    def notes(self) -> dict:
        return self.objects[kube_proxy.MAP_PATH]["metadata"].get("annotations", {})


def is_read(config: str, mode: str) -> None:
    """The real kube-proxy takes it, in this mode."""
    (PLACE / "config.conf").write_text(config, encoding="utf-8")
    argv = [f"{PROGRAMS}/kube-proxy", "--config", str(PLACE / "config.conf"), "--write-config-to", str(PLACE / "read")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"\nmode: {mode}\n" in (PLACE / "read").read_text(encoding="utf-8"), (PLACE / "read").read_text(encoding="utf-8")


CONFIG, TEXT = printed("iptables")
assert "\nmode: iptables\n" in CONFIG and "kind: DaemonSet" in TEXT and "maxUnavailable" not in TEXT
is_read(CONFIG, "iptables")

# Nothing is configured, and nothing was.
cluster = Cluster(CONFIG)
assert kube_proxy.apply(cluster, "", False) == [] and cluster.config() == CONFIG and not cluster.notes()

# There and back.
assert kube_proxy.apply(cluster, "nftables", True) == ["kube-proxy's mode nftables"] and cluster.config() == CONFIG
assert kube_proxy.apply(cluster, "nftables", False) == ["kube-proxy's mode nftables"] and cluster.rolled == 1
is_read(cluster.config(), "nftables")
assert cluster.config() == CONFIG.replace("mode: iptables", "mode: nftables"), "all else is as it was"
assert cluster.notes() == {kube_proxy.FORMER: "iptables"} and kube_proxy.apply(cluster, "nftables", True) == []
strategy = cluster.objects[kube_proxy.SET_PATH]["spec"]["updateStrategy"]["rollingUpdate"]
assert strategy == {"maxUnavailable": "10%", "maxSurge": 0}
assert kube_proxy.apply(cluster, "", True) and kube_proxy.apply(cluster, "", False) and cluster.rolled == 2
assert cluster.config() == CONFIG and not cluster.notes() and kube_proxy.apply(cluster, "", True) == []
assert kube_proxy.apply(cluster, "iptables", False) == ["ConfigMap kube-proxy"] and cluster.rolled == 2, "it is the one that there is"

# A cluster that began with it.
BEGUN, _text = printed("nftables")
cluster = Cluster(BEGUN)
assert kube_proxy.apply(cluster, "nftables", False) == ["ConfigMap kube-proxy"] and cluster.rolled == 0
assert kube_proxy.apply(cluster, "", False) and cluster.rolled == 1
is_read(cluster.config(), "iptables")

# Cut off anywhere.
for number in range(3):
    cluster = Cluster(CONFIG)
    for mode, expected in (("nftables", "nftables"), ("", "iptables")):
        cluster.breaks = number
        try:
            kube_proxy.apply(cluster, mode, False)
            raise AssertionError("it was not cut off")
        except ConnectionResetError:
            pass
        cluster.breaks, before = -1, cluster.rolled
        assert kube_proxy.apply(cluster, mode, True) and kube_proxy.apply(cluster, mode, False)
        assert kube_proxy.apply(cluster, mode, True) == [], (number, mode)
        assert f"\nmode: {expected}\n" in cluster.config() and kube_proxy.ROLLS_OUT not in cluster.notes()
        assert cluster.objects[kube_proxy.SET_PATH]["spec"]["template"]["metadata"]["annotations"][kube_proxy.MODE] == expected


def refused(reason: str, part: str) -> None:
    try:
        kube_proxy.apply(cluster, "nftables", False)
        raise AssertionError("it was accepted")
    except StepFailure as failure:
        assert failure.reason == reason and part in failure.message, failure.message


# Pods that do not come up are waited for, and again at the next attempt.
cluster = Cluster(CONFIG)
cluster.available = 2
refused("RolloutIncomplete", "2 of 3 Pods available")
assert kube_proxy.apply(cluster, "nftables", True), "it is not there yet"

cluster = Cluster(CONFIG, "5.10.0-9-amd64")
refused("KernelTooOld", "w1 (5.10.0-9-amd64)")
assert cluster.config() == CONFIG and not cluster.notes()
assert not kube_proxy.is_too_old("5.13.1") and not kube_proxy.is_too_old("6.1.0") and kube_proxy.is_too_old("4.19")

# Preflight says it before the install.
findings.platform.release = lambda: "5.10.0-9-amd64"
for roles, found in ((["worker"], ["kernel-nftables"]), (["control-plane", "etcd"], ["kernel-nftables"]), (["etcd"], [])):
    told = findings.kernel({"roles": roles, "virtual_ip": "", "kube_proxy_mode": "nftables"})
    assert [finding["name"] for finding in told if finding["name"] == "kernel-nftables"] == found, (roles, told)
assert "kernel-nftables" not in str(findings.kernel({"roles": ["worker"], "virtual_ip": "", "kube_proxy_mode": ""}))

del cluster.objects[kube_proxy.MAP_PATH]
refused("KubeProxyMissing", "has no ConfigMap kube-proxy")
assert kube_proxy.apply(cluster, "", False) == []
