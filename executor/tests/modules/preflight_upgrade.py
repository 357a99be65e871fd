"""What stands against another version is found all at once, and says what to do; what stands against nothing is not.

The API is what this script says it is, and the machine has files of its own."""

import pathlib
import sys
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    certificate_places,
    control_plane,
    feature_gates,
    kubelet_flags,
    machine,
    membership,
    upgrade_api_use,
    upgrade_cluster,
    upgrade_findings,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Refused
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import collect
from ansible_collections.clusterwright.cluster.plugins.modules import preflight_upgrade

PLACE = pathlib.Path(sys.argv[1])
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps/"
KUBEADM = """apiServer:
  extraArgs:
  - name: feature-gates
    value: {gates}
apiVersion: kubeadm.k8s.io/v1beta4
featureGates:
  {own}
kubernetesVersion: v1.35.4
"""
HELP = "# HELP apiserver_requested_deprecated_apis Gauge of deprecated APIs\n"
METRIC = 'apiserver_requested_deprecated_apis{{group="{}",removed_release="{}",resource="{}",subresource="",version="{}"}} 1\n'


def node(name: str, ready: bool = True, kubelet: str = "v1.35.4", control_plane_one: bool = False) -> dict:
    labels = {"node-role.kubernetes.io/control-plane": ""} if control_plane_one else {}
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    status = {"conditions": conditions, "nodeInfo": {"kubeletVersion": kubelet}}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def budget(name: str, allowed: int, expected: int = 1) -> dict:
    return {"metadata": {"namespace": "shop", "name": name}, "status": {"disruptionsAllowed": allowed, "expectedPods": expected}}


class Api:
    """A cluster of 1.35.4 with two control planes and a worker, in which all is well."""

    says: dict = {}
    metrics: dict = {}
    unready: tuple = ()

    def __init__(self, _kubeconfig: str) -> None:
        self.server = ""

    def get(self, path: str) -> dict | None:
        if path in self.says:
            return self.says[path]
        if path == "/version":
            return {"gitVersion": "v1.35.4"}
        if path == upgrade_cluster.APISERVERS:
            pods = [(f"c{number}", f"10.0.0.{number}") for number in (1, 2)]
            return {"items": [{"spec": {"nodeName": name}, "status": {"podIP": address}} for name, address in pods]}
        if path == upgrade_cluster.NODES:
            return {"items": [node("c1", control_plane_one=True), node("c2", control_plane_one=True), node("w1")]}
        if path == f"{CONFIG_MAPS}kubeadm-config":
            return {"data": {"ClusterConfiguration": KUBEADM.format(gates="WatchList=true", own="NodeLocalCRISocket: true")}}
        if path.startswith(CONFIG_MAPS):
            return {"data": {}}
        return {"items": []}

    def request(self, _method: str, path: str, timeout: float = 15) -> str:
        assert timeout
        address = self.server.removeprefix("https://").partition(":")[0]
        if path == "/readyz":
            if address in self.unready:
                raise Refused(500, "[-]etcd failed")
            return "ok"
        assert path == "/metrics", path
        return HELP + self.metrics.get(address, "")


def params(version: str = "v1.36.2", roles: tuple = ("control-plane",)) -> dict:
    return {
        "version": version, "roles": list(roles), "address": "10.0.0.1", "port": 6443, "ignore": [], "bundle": {}, "asks_api": True,
        "disk_minimum_mib": 0, "containerd_version": "", "pki_directory": str(PLACE), "artifacts": [],
    }  # fmt: skip


def found(version: str = "v1.36.2", ignore: tuple = ()) -> list:
    """(name, severity) and messages of what is found of the cluster."""
    return collect(preflight_upgrade.OF_CLUSTER, {**params(version), "ignore": list(ignore)})


def expect(wanted: list, *mentions: str, version: str = "v1.36.2", ignore: tuple = ()) -> None:
    seen = found(version, ignore)
    assert [(one["name"], one["severity"]) for one in seen] == wanted, seen
    for word in mentions:
        assert any(word in one["message"] for one in seen), (word, seen)
    Api.says, Api.metrics, Api.unready = {}, {}, ()


upgrade_cluster.Api = Api
expect([])

# The version.
expect([("version-skew", "error")], "v1.35.4", version="v1.37.1")
expect([("version-skew", "error")], version="v1.35.3")
expect([("first-patch", "warning")], version="v1.36.0")
expect([], version="v1.35.9")

# Nodes and API servers.
Api.says = {upgrade_cluster.NODES: {"items": [node("c1", False, control_plane_one=True), node("w1", False), node("w2", kubelet="v1.32.9")]}}
expect([("node-not-ready", "error"), ("node-not-ready", "warning"), ("kubelet-skew", "error")], "c1", "w1", "w2 (v1.32.9)")
Api.unready = ("10.0.0.2",)
expect([("apiserver-unready", "error")], "c2 (HTTP 500: [-]etcd failed)")

# Budgets wait for a drain, which a patch does not need.
Api.says = {upgrade_cluster.BUDGETS: {"items": [budget("cart", 0), budget("free", 1), budget("empty", 0, 0)]}}
expect([("disruption-budgets", "warning")], "now: shop/cart: ")
Api.says = {upgrade_cluster.BUDGETS: {"items": [budget("cart", 0)]}}
expect([], version="v1.35.9")

# Every API server knows only what it was asked itself. An error that is ignored by its name is a warning.
Api.metrics = {
    "10.0.0.1": METRIC.format("flowcontrol.apiserver.k8s.io", "1.38", "flowschemas", "v1beta3") + METRIC.format("", "", "endpoints", "v1"),
    "10.0.0.2": METRIC.format("resource.k8s.io", "1.36", "resourceclaims", "v1beta1"),
}
kept = Api.metrics
expect(
    [("removed-apis", "error"), ("deprecated-apis", "warning")],
    "resourceclaims.resource.k8s.io/v1beta1",
    "flowschemas.flowcontrol.apiserver.k8s.io/v1beta3 (until 1.38)",
)
Api.metrics = kept
expect([("removed-apis", "warning"), ("deprecated-apis", "warning")], "(ignored by preflight_ignore)", ignore=("removed-apis",))
Api.metrics = kept
expect([("deprecated-apis", "warning")], version="v1.35.9")

# Feature gates, wherever they are given; one that has its only value is no harm.
Api.says = {
    f"{CONFIG_MAPS}kubelet-config": {"data": {"kubelet": "cgroupDriver: systemd\nfeatureGates:\n  MemoryManager: true\n  ImageVolume: true\n"}},
    f"{CONFIG_MAPS}kube-proxy": {"data": {"config.conf": "featureGates:\n  TopologyAwareHints: true\nmode: nftables\n"}},
    f"{CONFIG_MAPS}kubeadm-config": {
        "data": {"ClusterConfiguration": KUBEADM.format(gates="ProcMountType=false,A=true", own="ControlPlaneKubeletLocalMode: true")}
    },
}
known = Api.says
expect(
    [("feature-gate", "error")] * 4,
    "MemoryManager is not known to 1.36 any more, and ConfigMap kubelet-config",
    "TopologyAwareHints",
    "ProcMountType is true from 1.36 on and cannot be set to false",
    "ControlPlaneKubeletLocalMode",
)
Api.says = known
expect([], version="v1.35.9")

# A webhook without which no Node comes back is worse than one of a team's.
vital = {"apiGroups": [""], "resources": ["pods"]}
service = {"namespace": "policy", "name": "gate"}
hooks = [
    {"name": "a", "failurePolicy": "Fail", "clientConfig": {"service": service}, "rules": [vital]},
    {"name": "b", "failurePolicy": "Fail", "clientConfig": {"service": service}, "rules": [{"apiGroups": ["x"], "resources": ["*"]}]},
    {"name": "c", "failurePolicy": "Ignore", "clientConfig": {"service": service}, "rules": [vital]},
    {"name": "d", "failurePolicy": "Fail", "clientConfig": {"service": service}, "rules": [vital], "namespaceSelector": {"matchLabels": {"x": "y"}}},
]
configuration = {"items": [{"metadata": {"name": "gate"}, "webhooks": hooks}]}
Api.says = {upgrade_api_use.WEBHOOKS.format("validating"): configuration}
expect([("webhook-unavailable", severity) for severity in ("error", "warning", "warning")], "webhook a of gate", "policy/gate")
slices = {"items": [{"endpoints": [{"conditions": {"ready": False}}, {"conditions": {}}]}]}
Api.says = {
    upgrade_api_use.WEBHOOKS.format("validating"): configuration,
    upgrade_api_use.SLICES.format("policy", "gate"): slices,
    upgrade_api_use.API_SERVICES: {
        "items": [{"metadata": {"name": "v1.metrics"}, "status": {"conditions": [{"type": "Available", "status": "False"}]}}]
    },
}
expect([("apiservice-unavailable", "warning")], "v1.metrics")

# The machine.
kubelet_flags.FILE = str(PLACE / "flags.env")
upgrade_findings.KUBELET_CONFIG = str(PLACE / "kubelet.yaml")
membership.ARTIFACTS = str(PLACE / "artifacts.json")
(PLACE / "kubelet.yaml").write_text("featureGates:\n  SizeMemoryBackedVolumes: true\n", encoding="utf-8")
(PLACE / "artifacts.json").write_text('{"kubelet": {"version": "1.34.4"}}', encoding="utf-8")
words = {"7": "kubelet\0--pod-infra-container-image=x\0--v=2\0--feature-gates=ExecProbeTimeout=false\0"}
control_plane.own_processes = lambda _names: {"kubelet": [7]}
real_text = machine.text
machine.text = lambda path, default="": words["7"] if path == "/proc/7/cmdline" else real_text(path, default)
machine.container = lambda: ""
machine.cgroup_version = lambda: 1
ends = {"kubernetes-ca": 40 * 86400, "admin.conf": 3 * 86400, "apiserver": 600}
certificate_places.seen = lambda _address, _port: [{"name": name, "expiresAt": int(time.time()) + left} for name, left in ends.items()]


def of_machine(version: str, roles: tuple = ("worker",)) -> list:
    return collect(upgrade_findings.CHECKS, params(version, roles))


seen = of_machine("v1.35.4")
assert [(one["name"], one["severity"]) for one in seen] == [
    ("cgroup-v1", "error"), ("kubelet-flag", "error"), ("feature-gate", "error"), ("feature-gate", "error"),
    ("certificate-ends", "warning"), ("certificate-ends", "error"),
], seen  # fmt: skip
# What kubeadm wrote there, the upgrade takes away.
(PLACE / "flags.env").write_text('KUBELET_KUBEADM_ARGS="--pod-infra-container-image=x"\n', encoding="utf-8")
machine.cgroup_version, ends = (lambda: 2), {}
assert [one["name"] for one in of_machine("v1.35.4")] == ["feature-gate", "feature-gate"]
assert of_machine("v1.34.9") == []
full = collect(upgrade_findings.CHECKS, {**params("v1.34.9"), "disk_minimum_mib": 1 << 40})
assert [(one["name"], one["severity"]) for one in full] == [("disk", "error")], full


class Etcd:
    """A member whose database is nearly full."""

    alarms: dict = {}
    well = True
    said = "no leader"

    def __init__(self, *_words: object) -> None:
        pass

    def works(self, _endpoint: str) -> bool:
        return self.well

    def status(self) -> dict:
        return {"header": {"member_id": 5}, "dbSize": 85, "dbSizeQuota": 100}

    def alarms_by_member(self) -> dict:
        return self.alarms


upgrade_findings.Etcd = Etcd
(PLACE / "kubelet.yaml").unlink()
assert [(one["name"], one["severity"]) for one in of_machine("v1.35.4", ("etcd",))] == [("etcd-space", "warning")]
Etcd.alarms = {5: ["NOSPACE"], 6: ["CORRUPT"]}
assert [one["name"] for one in of_machine("v1.35.4", ("etcd",))] == ["etcd-alarm", "etcd-space"]
Etcd.well = False
assert [one["name"] for one in of_machine("v1.35.4", ("etcd",))] == ["etcd-unhealthy"]

# All of it, as the step says it: every error is in the message, and warnings alone do not fail.
preflight_upgrade.artifacts = lambda _params: []
Api.unready = ("10.0.0.1",)
Call = type("Call", (), {"params": params("v1.35.9", ("etcd",))})
try:
    preflight_upgrade.work(Call)
    raise AssertionError("nothing blocked")
except StepFailure as failure:
    assert failure.reason == "PreflightFailed" and "etcd-unhealthy" in failure.message and "apiserver-unready" in failure.message, failure
Etcd.well, Etcd.alarms, Api.unready = True, {}, ()
assert preflight_upgrade.work(Call)["msg"] == "1 warnings"

# The tables know the minors that there are.
assert list(feature_gates.COMPONENTS) == list(feature_gates.KUBEADM) == ["1.35", "1.36"]
