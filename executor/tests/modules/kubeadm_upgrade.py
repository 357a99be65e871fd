"""A machine is brought to another version by the right command of kubeadm's, once, and what was cut off is made good first.

kubeadm is a stand-in that does what the real one does to files, and the API is what it keeps in this script."""

import json
import os
import pathlib
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    command,
    control_plane,
    healthz,
    kubeadm_config,
    kubeadm_program,
    kubelet_flags,
    manifest_backups,
    membership,
    static_pod,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import kubeadm_upgrade, kubelet_switch

PLACE = pathlib.Path(sys.argv[1])
OLD, NEW = "v1.34.4", "v1.35.4"
COREDNS = "registry.k8s.io/coredns/coredns:"
STATE = PLACE / "state"
static_pod.FOLDER = str(PLACE / "manifests")
manifest_backups.FOLDER = str(PLACE / "tmp")
manifest_backups.HELD = str(PLACE / "held")
membership.KUBEADM = str(PLACE / "kubeadm.json")
membership.ARTIFACTS = str(PLACE / "artifacts.json")
kubeadm_program.RUN_DIRECTORY = str(PLACE / "run")
kubeadm_program.time.sleep = lambda _seconds: None
kubeadm_upgrade.kubelet.PATCHES = str(PLACE / "patches")
kubeadm_upgrade.kubelet.CONFIG = str(PLACE / "kubelet.yaml")
kubeadm_upgrade.kubelet.RECORD = str(PLACE / "record.json")
kubeadm_upgrade.kubelet.FORMER = str(PLACE / "former.json")
kubelet_flags.FILE = str(PLACE / "flags.env")
command.PATH = f"{PLACE}/bin:{command.PATH}"
for name in ("bin", "state", "manifests", "tmp"):
    (PLACE / name).mkdir()


def manifest(component: str, version: str) -> str:
    image = f"registry.k8s.io/{component}:{version}"
    spec = f"spec:\n  containers:\n  - command: []\n    image: {image}\n"
    return f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {component}\n{spec}status: {{}}\n"


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def read(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8")


# Keeps its words and its configuration. STATE/fail has how often it fails, and with what.
KUBEADM = f"""#!/usr/bin/python3
import json, os, pathlib, sys
place, state = pathlib.Path({str(PLACE)!r}), pathlib.Path({str(STATE)!r})
config = next(word.partition("=")[2] for word in sys.argv if word.startswith("--config="))
call = {{"words": sys.argv[1:], "config": json.load(open(config)), "environment": sorted(os.environ)}}
call["mode"] = os.stat(config).st_mode & 0o777
with open(state / "calls", "a") as out:
    out.write(json.dumps(call) + "\\n")
if (state / "fail").exists() and (count := int((state / "fail").read_text().split(" ", 1)[0])) > 0:
    what = (state / "fail").read_text().split(" ", 1)[1]
    (state / "fail").write_text(f"{{count - 1}} {{what}}")
    sys.exit(what)
if not pathlib.Path(call["config"]["node"]["patches"]["directory"]).is_dir():
    sys.exit("error: error execution phase kubelet-config: no patches")
if "apply" in sys.argv:
    (state / "configured").write_text(call["config"]["apply"]["kubernetesVersion"])
version = (state / "configured").read_text()
if (place / "manifests").is_dir() and os.listdir(place / "manifests"):
    for path in (place / "manifests").iterdir():
        if "{OLD}" in path.read_text():
            backup = place / "tmp" / f"kubeadm-backup-manifests-{{(state / 'calls').read_text().count(chr(10)):04}}"
            backup.mkdir(exist_ok=True)
            path.rename(backup / path.name)
            path.write_text((backup / path.name).read_text().replace("{OLD}", version))
    (state / "served").write_text(version)
    (state / "proxy").write_text(version)
(place / "kubelet.yaml").write_text(f"of {{version}} and {{(state / 'kubelet-config').read_text()}}")
"""
write(PLACE / "bin/kubeadm", KUBEADM)
os.chmod(PLACE / "bin/kubeadm", 0o755)


class Api:
    """What the cluster's API says: its state is in files, so that kubeadm changes it as well."""

    others: list = []
    coredns: dict | None = None
    patched: list = []

    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig, self.server = kubeconfig, "https://endpoint:6443"

    def get(self, path: str):
        if path == kubeadm_config.PATH:
            dns = f"dns:\n  imageRepository: registry.k8s.io/coredns\n  imageTag: {read(STATE / 'dns')}\n"
            text = f"apiVersion: x\n{dns}kubernetesVersion: {read(STATE / 'configured')}\n"
            return {"metadata": {"resourceVersion": "1"}, "data": {kubeadm_config.KEY: text}}
        if path == kubeadm_upgrade.KUBELET_CONFIG_MAP:
            return {"data": {"kubelet": read(STATE / "kubelet-config")}}
        if path == "/version":
            return {"gitVersion": read(STATE / "served")}
        if path == kubeadm_upgrade.APISERVERS:
            versions = [read(STATE / "served"), *self.others]
            return {"items": [{"spec": {"containers": [{"image": f"registry.k8s.io/kube-apiserver:{version}"}]}} for version in versions]}
        if path == kubeadm_upgrade.KUBE_PROXY:
            containers = [{"name": "kube-proxy", "image": f"registry.k8s.io/kube-proxy:{read(STATE / 'proxy')}"}]
            return {"spec": {"template": {"spec": {"containers": containers}}}}
        assert path == kubeadm_upgrade.coredns.PATH, path
        return self.coredns

    ask = get

    def request(self, method: str, path: str, body: dict, _kind: str):
        assert method == "PATCH", method
        if path == kubeadm_config.PATH:
            assert body["metadata"]["resourceVersion"] == "1"
            (tag,) = [line.split()[1] for line in body["data"][kubeadm_config.KEY].splitlines() if "imageTag" in line]
            write(STATE / "dns", tag)
            return
        (container,) = body["spec"]["template"]["spec"]["containers"]
        Api.patched.append(container)
        Api.coredns = deployment(container["image"])


def deployment(image: str) -> dict:
    containers = [{"name": "other", "image": "x"}, {"name": "coredns", "image": image}]
    status = {
        "observedGeneration": 1,
        "updatedReplicas": 1,
        "availableReplicas": 1,
        "conditions": [{"type": "Available", "status": "True"}],
    }
    return {"metadata": {"generation": 1}, "spec": {"replicas": 1, "template": {"spec": {"containers": containers}}}, "status": status}


kubeadm_upgrade.Api = kubelet_switch.Api = Api
healthz.answer = lambda endpoint, *_more, **_options: (endpoint not in SICK, "ok" if endpoint not in SICK else "no answer")
SICK: list = []


def begin(configured: str = OLD, served: str = OLD) -> None:
    """A machine of a cluster, before or amid an upgrade."""
    for name, text in (
        ("configured", configured),
        ("served", served),
        ("dns", "v1.12.1"),
        ("kubelet-config", "settings"),
        ("proxy", OLD),
        ("calls", ""),
        ("fail", "0 "),
    ):
        write(STATE / name, text)
    for component in control_plane.COMPONENTS:
        write(PLACE / "manifests" / f"{component}.yaml", manifest(component, served))
    write(PLACE / "kubelet.yaml", f"of {OLD} and settings")
    write(PLACE / "kubeadm.json", json.dumps({"identity": "a", "node": "n1", "role": "control-plane", "by": "join"}))
    Api.others, Api.coredns, Api.patched = [], deployment(f"{COREDNS}v1.12.1"), []
    SICK.clear()


def play(check: bool = False, role: str = "control-plane", **more: object) -> dict:
    params = {
        "role": role, "identity": "a", "version": NEW, "image_repository": "registry.k8s.io", "coredns_version": "v1.14.7",
        "image_pull_policy": "IfNotPresent", "ignored_checks": ["SystemVerification", "Swap"], "timeout_seconds": 1, "node_name": "n1",
        "patches": {"kubeletconfiguration+merge.json": "{}"}, "address": "10.0.0.1", "port": 6443, "kubelet_settings": {},
        "kube_proxy": True, **more,
    }  # fmt: skip
    return kubeadm_upgrade.work(type("Call", (), {"params": params, "check_mode": check}))


def refused(reason: str, part: str, action) -> None:
    try:
        action()
    except StepFailure as failure:
        print(f"{failure.reason}: {failure.message[:200]}")
        assert failure.reason == reason and part in failure.message, (failure.reason, failure.message)
        return
    raise AssertionError(f"{reason} was expected")


def calls() -> list:
    return [json.loads(line) for line in read(STATE / "calls").splitlines()]


def probe(role: str = "control-plane") -> str:
    """What is missing, as the probe says it."""
    result = play(True, role)
    return result["msg"] if result["changed"] else ""


# The first control plane: apply.
begin()
assert probe() == f"the API server serves {OLD}"
os.environ["HTTPS_PROXY"] = "http://proxy"
result = play()
assert result["ran"] == "apply" and result["changed"], result
(call,) = calls()
config = PLACE / "run/kubeadm-upgrade-apply.yaml"
assert call["words"] == ["upgrade", "apply", f"--config={config}", "--yes"] and call["mode"] == 0o600 and not config.exists()
assert not [name for name in call["environment"] if name.lower().endswith("proxy")], call["environment"]
both = {
    "certificateRenewal": False,
    "etcdUpgrade": False,
    "ignorePreflightErrors": ["SystemVerification", "CoreDNSUnsupportedPlugins", "CoreDNSMigration"],
    "imagePullPolicy": "IfNotPresent",
    "patches": {"directory": str(PLACE / "patches")},
    "skipPhases": ["addon/coredns"],
}
assert call["config"] == {
    "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "UpgradeConfiguration", "apply": {"kubernetesVersion": NEW, **both}, "node": both,
    "timeouts": {"upgradeManifests": "1s"},
}  # fmt: skip
assert read(STATE / "dns") == "v1.14.7" and read(PLACE / "patches/kubeletconfiguration+merge.json") == "{}"
assert Api.patched == [{"name": "coredns", "image": f"{COREDNS}v1.14.7"}], "the only control plane is the last one"
assert membership.read(membership.KUBEADM)["by"] == "join", "what was remembered stays"
assert probe() == "" and play() == {"changed": False, "ran": None, "msg": f"all is of {NEW}"} and len(calls()) == 1

# What does not prove that kubeadm came to its end.
for change, part in (
    (lambda: write(PLACE / "kubelet.yaml", "by hand"), "kubelet.yaml is not what kubeadm"),
    (lambda: write(STATE / "kubelet-config", "others"), "kubelet.yaml is not what kubeadm"),
    (lambda: write(PLACE / "patches/kubeletconfiguration+merge.json", "[]"), "are not those wanted"),
    (lambda: write(PLACE / "kubeadm.json", json.dumps({"identity": "a"})), "kubelet.yaml is not what kubeadm"),
    (lambda: write(STATE / "proxy", OLD), f"kube-proxy has the image registry.k8s.io/kube-proxy:{OLD}"),
    (
        lambda: write(PLACE / "manifests/kube-scheduler.yaml", manifest("kube-scheduler", OLD)),
        "the manifest of kube-scheduler has version v1.34.4",
    ),
):
    change()
    assert part in probe(), probe()
    assert play()["ran"] == "node" and probe() == "", "what is there is passed over, the rest is made"

# A cluster without kube-proxy: kubeadm makes none, and a DaemonSet of that name is somebody else's.
begin()
assert play(kube_proxy=False)["ran"] == "apply"
assert calls()[0]["config"]["apply"]["skipPhases"] == calls()[0]["config"]["node"]["skipPhases"] == ["addon/coredns", "addon/kube-proxy"]
write(STATE / "proxy", "v9.9.9")
assert not play(True, kube_proxy=False)["changed"] and play(True)["changed"]

# A further control plane: node, and CoreDNS waits for the last one.
begin(configured=NEW)
Api.others = [NEW, OLD]
assert play()["ran"] == "node" and calls()[0]["words"][:2] == ["upgrade", "node"] and "--yes" not in calls()[0]["words"]
assert read(STATE / "dns") == "v1.12.1", "that is apply's"
assert Api.patched == [] and probe() == ""
Api.others = [NEW, NEW]
assert probe() == f"CoreDNS: {COREDNS}v1.12.1 -> {COREDNS}v1.14.7"
assert play()["changed"] and len(Api.patched) == 1 and len(calls()) == 1 and probe() == ""
Api.coredns = None
result = play()
assert not result["changed"] and "there is no Deployment kube-system/coredns" in result["msg"] and len(Api.patched) == 1
Api.coredns = deployment(f"{COREDNS}v1.12.1")
Api.request, request = (lambda *_words: setattr(Api, "coredns", {**deployment(f"{COREDNS}v1.14.7"), "status": {}})), Api.request
refused("RolloutIncomplete", "coredns", play)
Api.request = request

# Workers.
begin()
write(PLACE / "kubeadm.json", json.dumps({"identity": "a", "role": "worker"}))
for component in control_plane.COMPONENTS:
    os.unlink(PLACE / f"manifests/{component}.yaml")
refused("ControlPlaneTooOld", f"says {OLD}", lambda: play(role="worker"))
assert probe("worker") == f"the cluster's configuration says {OLD}" and calls() == []
write(STATE / "configured", NEW)
assert play(role="worker")["ran"] == "node" and probe("worker") == "" and len(calls()) == 1 and Api.patched == []
write(STATE / "configured", "v1.36.0")
refused("InvalidVariables", "v1.36.0", lambda: play(role="worker"))

# Cut off between kubeadm's two renames.
begin()
for number, text in enumerate(
    (manifest("kube-apiserver", "v1.33.0"), manifest("kube-apiserver", OLD), manifest("kube-apiserver", OLD)[:-12], manifest("etcd", OLD))
):
    folder = PLACE / f"tmp/kubeadm-backup-manifests-2026-11-25-10-00-0{number}"
    write(folder / "kube-apiserver.yaml", text)
    os.utime(folder, (number + 1, number + 1))
os.unlink(PLACE / "manifests/kube-apiserver.yaml")
assert probe() == "a manifest is missing"
assert manifest_backups.put_back(("kube-apiserver",)) == ["kube-apiserver"], "the newest one that is whole"
assert read(PLACE / "manifests/kube-apiserver.yaml") == manifest("kube-apiserver", OLD)
os.unlink(PLACE / "manifests/kube-apiserver.yaml")
assert play()["ran"] == "apply" and probe() == ""
os.unlink(PLACE / "manifests/kube-scheduler.yaml")
write(PLACE / "held/k3x9a0pq/kube-scheduler.yaml", "held")
refused("ControlPlaneNotReleased", "k3x9a0pq", play)
os.unlink(PLACE / "held/k3x9a0pq/kube-scheduler.yaml")
for path in (PLACE / "tmp").glob("*/kube-scheduler.yaml"):
    path.unlink()
refused("ManifestMissing", "kube-scheduler.yaml is missing", play)

# Attempts pile up; three of each kind stay.
begin(configured=NEW)
for kind in ("kubeadm-kubelet-config-2026-01-01-00-00-0", "kubeadm-upgraded-manifests10000000", "kubeadm-kubelet-env10000000"):
    for number in range(5):
        write(PLACE / f"tmp/{kind}{number}/file", "x")
        os.utime(PLACE / f"tmp/{kind}{number}", (number + 1, number + 1))
write(PLACE / "tmp/mine/file", "x")
play()
left = sorted(path.name for path in (PLACE / "tmp").iterdir())
assert "mine" in left and [name for name in left if "env" in name] == [
    f"kubeadm-kubelet-env1000000{number}" for number in ("02", "03", "04")
], left
assert len([name for name in left if name.startswith("kubeadm-backup-manifests-")]) == 3, left

# kubeadm fails; a Job that was too slow is no reason on a busy machine, twice.
begin()
write(STATE / "fail", "2 [preflight] Some fatal errors occurred:\n\t[ERROR CreateJob]: Job did not complete in 15s")
assert play()["ran"] == "apply" and len(calls()) == 3
begin()
write(STATE / "fail", "3 [preflight] Some fatal errors occurred:\n\t[ERROR CreateJob]: Job did not complete in 15s")
refused("KubeadmFailed", "kubeadm upgrade apply failed on n1", play)
begin()
write(STATE / "fail", "1 error: error execution phase control-plane: static Pod hash did not change")
refused("KubeadmFailed", "static Pod hash did not change", play)
assert len(calls()) == 1 and "upgraded" not in membership.read(membership.KUBEADM)

# It does not begin on a machine that is not well, or not of the cluster.
begin()
SICK[:] = [healthz.KUBELET]
refused("KubeletNotHealthy", "no answer", play)
SICK[:] = [healthz.SCHEDULER]
refused("ApiserverNotReady", "kube-scheduler is not healthy", play)
assert calls() == []
refused("KubeadmUnfinished", "", lambda: play(identity="b"))

# The field for CoreDNS, wherever it stands.
assert kubeadm_config.with_dns_tag("dns: {}\nkind: x\n", "1") == "kind: x\ndns:\n  imageTag: 1\n"
assert kubeadm_config.with_dns_tag("dns:\n  imageRepository: r\nkind: x\n", "1") == "dns:\n  imageRepository: r\n  imageTag: 1\nkind: x\n"
assert kubeadm_config.with_dns_tag("dns:\n  imageTag: 0\nkind: x\n", "1") == "dns:\n  imageTag: 1\nkind: x\n"
assert kubeadm_config.with_dns_tag("kind: x\n", "1") == "kind: x\ndns:\n  imageTag: 1\n"


# Before the kubelet's program.
def switch(version: str, check: bool = False) -> bool:
    params = {"identity": "a", "version": version, "host": "10.0.0.1", "port": 6443, "timeout_seconds": 1}
    return kubelet_switch.work(type("Call", (), {"params": params, "check_mode": check}))["changed"]


FLAGS = 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1 --pod-infra-container-image=registry.k8s.io/pause:3.10 --runtime-cgroups=/"\n'
begin()
write(PLACE / "kubeadm.json", json.dumps({"identity": "b"}))
assert switch(NEW) is False, "a machine that is no node of the cluster yet"
write(PLACE / "kubeadm.json", json.dumps({"identity": "a"}))
refused("KubeletTooNew", f"which is of {OLD}", lambda: switch(NEW))
write(STATE / "served", NEW)
assert switch(NEW) is False
write(STATE / "served", OLD)
membership.save(membership.ARTIFACTS, {"kubelet": {"version": "1.35.4"}})
assert switch(NEW) is False, "it is there already"
membership.save(membership.ARTIFACTS, {"kubelet": {"version": "1.34.4"}})
refused("KubeletTooNew", "10.0.0.1:6443", lambda: switch(NEW))
Api.ask = lambda _self, _path: None
refused("ApiserverNotReady", "does not tell its version", lambda: switch(NEW))
Api.ask = Api.get
write(STATE / "served", NEW)
write(pathlib.Path(kubelet_flags.FILE), FLAGS)
os.chmod(kubelet_flags.FILE, 0o600)
assert switch(OLD) is False and switch(NEW, check=True) is True and read(pathlib.Path(kubelet_flags.FILE)) == FLAGS
assert switch(NEW) is True and switch(NEW) is False
assert read(pathlib.Path(kubelet_flags.FILE)) == 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1 --runtime-cgroups=/"\n'
assert os.stat(kubelet_flags.FILE).st_mode & 0o777 == 0o600
ALONE = 'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=a {}"\n'
assert kubelet_flags.known(ALONE.format("--b=c"), "v1.36.0") == 'KUBELET_KUBEADM_ARGS="--b=c"\n'
assert kubelet_flags.known(ALONE.format("--b=c"), "v1.34.9") == ALONE.format("--b=c")
