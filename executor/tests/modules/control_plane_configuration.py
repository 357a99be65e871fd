"""Flags and files of a control plane are proved or put back, whenever the attempt is cut off, and nothing else starts anew.

The kubelet and the components' processes are stand-ins, and the API is what it keeps in this script."""

import contextlib
import copy
import glob
import itertools
import os
import pathlib
import sys
import time
from types import SimpleNamespace

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    apiserver_process,
    component_manifest,
    component_process,
    configuration_trial,
    control_plane,
    control_plane_component,
    files,
    kubeadm_config,
    prompt_start,
    restarts,
    static_pod,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import control_plane_configuration as module

PLACE = pathlib.Path(sys.argv[1])
APISERVER, MANAGER, SCHEDULER = control_plane.COMPONENTS
static_pod.FOLDER = str(PLACE / "manifests")
configuration_trial.HOME = str(PLACE / "home")
configuration_trial.APPLIED = str(PLACE / "home/applied.json")
configuration_trial.TRIAL = str(PLACE / "home/trial.json")
control_plane_component.FILES = str(PLACE / "files")
control_plane_component.LOGS = str(PLACE / "logs")
restarts.FOLDER = str(PLACE / "read")
module.STEADY_SECONDS, module.PAUSE_SECONDS = 0.05, 0.01
# Whoever waits in vain does so for this long.
SECONDS = 0.6
POLICY = f"{PLACE}/files/{APISERVER}/audit-policy.yaml"
CONFIGURATION = f"""apiServer:
  certSANs:
  - 10.0.0.1
  extraArgs:
  - name: encryption-provider-config
    value: /etc/kubernetes/encryption/config.json
  extraVolumes:
  - hostPath: /etc/kubernetes/encryption
    mountPath: /etc/kubernetes/encryption
    name: encryption
    pathType: DirectoryOrCreate
    readOnly: true
apiVersion: kubeadm.k8s.io/v1beta4
controllerManager:
  extraArgs:
  - name: kube-api-qps
    value: "50"
kind: ClusterConfiguration
scheduler: {{}}
"""


def manifest(name: str, *flags: str) -> str:
    command = "".join(f"    - {word}\n" for word in (name, *flags))
    return f"""apiVersion: v1
kind: Pod
metadata:
  labels:
    component: {name}
  name: {name}
  namespace: kube-system
spec:
  containers:
  - command:
{command}    image: registry.k8s.io/{name}:v1.35.4
    name: {name}
    volumeMounts:
    - mountPath: /etc/kubernetes/pki
      name: k8s-certs
      readOnly: true
    - mountPath: /etc/ssl/certs
      name: ca-certs
  hostNetwork: true
  volumes:
  - hostPath:
      path: /etc/kubernetes/pki
      type: DirectoryOrCreate
    name: k8s-certs
  - hostPath:
      path: /etc/ssl/certs
      type: DirectoryOrCreate
    name: ca-certs
status: {{}}
"""


class Kubelet:
    """Runs what the manifests say. A program stops at a flag or a policy that is `bad`, and is not started again before its manifest is
    another one or the kubelet has been restarted."""

    def __init__(self) -> None:
        self.running: dict = {}
        self.failed: dict = {}
        self.starts: list = []
        self.restarts = 0
        self.pids = itertools.count(100)
        self.is_dead = False
        self.backs_off = True

    def sync(self) -> None:
        for name in control_plane.COMPONENTS:
            path = pathlib.Path(static_pod.FOLDER) / f"{name}.yaml"
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if name in self.running and self.running[name]["text"] != text:
                del self.running[name]
            if text and name not in self.running and (not self.backs_off or self.failed.get(name) != text):
                self.start(name, text)

    def start(self, name: str, text: str) -> None:
        self.starts.append(name)
        flags = component_manifest.flags(text)
        read = [flag.partition("=")[2] for flag in flags if flag.startswith("--audit-policy-file=")]
        bad = [flag for flag in flags if "bad" in flag] + [path for path in read if "bad" in pathlib.Path(path).read_text(encoding="utf-8")]
        if bad or self.is_dead:
            self.failed[name] = text
            log = PLACE / f"logs/kube-system_{name}-n1_{len(self.starts)}/{name}/{len(self.starts)}.log"
            log.parent.mkdir(parents=True)
            told = [f"2026-11-25T17:00:00.1Z stderr F line {number}" for number in range(60)]
            log.write_text("\n".join([*told, f"2026-11-25T17:00:00.2Z stderr F Error: unknown flag: {bad}"]) + "\n", encoding="utf-8")
            return
        self.failed.pop(name, None)
        state = {"InvocationID": str(len(self.starts)), "ExecMainStartTimestampMonotonic": str(int(time.monotonic() * 1_000_000))}
        self.running[name] = {"pid": next(self.pids), "text": text, "flags": flags, "state": state}

    def restart(self, *_words, **_more) -> None:
        self.restarts += 1
        self.failed.clear()

    def process(self, pid: int) -> dict:
        return next((process for process in self.running.values() if process["pid"] == pid), {"flags": [], "state": {}})

    def end(self, name: str) -> None:
        self.running.pop(name, None)

    def unhealthy(self, names: list, _address: str, _port: int) -> dict:
        return {name: "connection refused" for name in names if name not in self.running}


class Api:
    """The API server of this machine with kubeadm's configuration; it answers while it runs."""

    text = CONFIGURATION
    annotations: dict = {}
    writes = 0
    server = ""

    def __init__(self, _kubeconfig: str) -> None:
        if APISERVER not in kubelet.running:
            raise OSError("connection refused")

    def get(self, _path: str) -> dict:
        return {"metadata": {"resourceVersion": "1", "annotations": dict(self.annotations)}, "data": {kubeadm_config.KEY: self.text}}

    def request(self, _method: str, _path: str, body: dict, _kind: str) -> None:
        Api.text, Api.writes = body["data"][kubeadm_config.KEY], Api.writes + 1
        Api.annotations = {**Api.annotations, **body["metadata"].get("annotations", {})}


class Killed(BaseException):
    """The machine or the executor is gone."""


def begin() -> None:
    """A machine with a control plane as kubeadm made it."""
    global kubelet  # pylint: disable=global-statement
    for name in ("manifests", "home", "files", "logs", "read"):
        os.system(f"rm -rf {PLACE / name}")
    for name, flags in (
        (APISERVER, ("--enable-admission-plugins=NodeRestriction", "--etcd-servers=https://b:2379,https://a:2379")),
        (MANAGER, ("--leader-elect=true",)),
        (SCHEDULER, ("--leader-elect=true",)),
    ):
        files.write(f"{static_pod.FOLDER}/{name}.yaml", manifest(name, *flags), 0o600)
    kubelet = Kubelet()
    kubelet.sync()
    Api.text, Api.annotations, Api.writes = CONFIGURATION, {}, 0
    kubelet.starts.clear()


def sleep(_seconds: float) -> None:
    kubelet.sync()
    real_sleep(0.01)


kubelet = Kubelet()
real_sleep = time.sleep
api.time.sleep = sleep
module.Api = Api
component_process.pids = lambda name: [kubelet.running[name]["pid"]] if name in kubelet.running else []
component_process.flags = lambda pid: kubelet.process(pid)["flags"]
component_process.end = lambda name: kubelet.end(name)
apiserver_process.state = lambda pid: kubelet.process(pid)["state"]
control_plane.unhealthy = lambda *words: kubelet.unhealthy(*words)
units.systemctl = lambda *words, **more: kubelet.restart(*words, **more)
units.journal = lambda _unit: ""
# This kubelet holds nothing back.
prompt_start.watched = lambda _components: contextlib.nullcontext()


def wanted(apiserver: dict, manager: dict | None = None, policy: str = "") -> list:
    """What the role gives to the module."""
    arguments = dict(apiserver)
    entry: dict = {"name": APISERVER, "files": [], "volumes": []}
    if policy:
        arguments["audit-policy-file"] = POLICY
        entry["files"] = [{"name": "audit-policy.yaml", "path": POLICY, "content": policy}]
        entry["volumes"] = [
            {"name": "clusterwright-files", "path": os.path.dirname(POLICY), "read_only": True},
            {"name": "clusterwright-audit", "path": f"{PLACE}/audit", "read_only": False},
        ]
    entry["arguments"] = pairs(arguments)
    return [entry, {"name": MANAGER, "arguments": pairs(manager or {})}, {"name": SCHEDULER, "arguments": []}]


def pairs(values: dict) -> list:
    return [{"name": name, "value": value} for name, value in sorted(values.items())]


def play(components: list, check: bool = False, seconds: float = SECONDS) -> dict:
    params = {"components": copy.deepcopy(components), "address": "10.0.0.1", "port": 6443, "timeout_seconds": seconds}
    return module.work(SimpleNamespace(params=params, check_mode=check))


def refused(components: list, *parts: str, reason: str = "ConfigurationRefused", seconds: float = SECONDS) -> None:
    try:
        play(components, seconds=seconds)
    except StepFailure as failure:
        assert failure.reason == reason, (failure.reason, failure.message)
        for part in parts:
            assert part in failure.message, failure.message
        return
    raise AssertionError("it was not refused")


def on_disk() -> dict:
    """All that there is of the control plane's configuration."""
    paths = [*glob.glob(f"{static_pod.FOLDER}/*"), *glob.glob(f"{PLACE}/files/*/*")]
    return {path: pathlib.Path(path).read_text(encoding="utf-8") for path in paths}


def flags(name: str) -> list:
    return component_manifest.flags(pathlib.Path(f"{static_pod.FOLDER}/{name}.yaml").read_text(encoding="utf-8"))


def is_settled() -> bool:
    """Whether nothing is on trial any more."""
    return os.listdir(configuration_trial.HOME) == ["applied.json"]


def only_what_differs_starts_anew_and_what_is_taken_back_goes() -> None:
    begin()
    untouched = on_disk()
    assert not play(wanted({}), check=True)["changed"] and not play(wanted({}))["changed"]
    assert on_disk() == untouched and kubelet.starts == [] and Api.writes == 0, "where nothing is given, nothing is touched"
    some = wanted({"goaway-chance": "0.001", "enable-admission-plugins": "NodeRestriction,AlwaysPullImages"}, {"v": "4"})
    assert play(some, check=True)["changed"] and on_disk() == untouched, "the probe changes nothing"
    assert play(some)["changed"] and kubelet.starts == [APISERVER, MANAGER] and kubelet.restarts == 0
    assert flags(APISERVER) == [
        "--enable-admission-plugins=NodeRestriction,AlwaysPullImages", "--etcd-servers=https://b:2379,https://a:2379", "--goaway-chance=0.001",
    ]  # fmt: skip
    assert is_settled() and Api.writes == 1
    assert "  - name: encryption-provider-config\n" in Api.text and "  - name: goaway-chance\n    value: \"0.001\"\n" in Api.text
    assert "  - name: kube-api-qps\n" in Api.text and "  - name: v\n    value: \"4\"\n" in Api.text and "scheduler: {}\n" in Api.text
    assert not play(some, check=True)["changed"] and not play(some)["changed"]
    assert kubelet.starts == [APISERVER, MANAGER] and Api.writes == 1, "what is so stays"
    assert play(wanted({}, {"v": "4"}))["changed"] and kubelet.starts == [APISERVER, MANAGER, APISERVER]
    assert play(wanted({}))["changed"] and kubelet.starts[3:] == [MANAGER]
    assert on_disk() == untouched and Api.text == CONFIGURATION, "all is as it was, kubeadm's default as well"
    assert not play(wanted({}), check=True)["changed"]


def files_come_with_their_volumes_and_another_content_starts_the_api_server_anew() -> None:
    begin()
    untouched = on_disk()
    assert play(wanted({}, policy="one"))["changed"] and kubelet.starts == [APISERVER]
    text = on_disk()[f"{static_pod.FOLDER}/{APISERVER}.yaml"]
    assert f"    - mountPath: {PLACE}/files/{APISERVER}\n      name: clusterwright-files\n      readOnly: true\n" in text
    assert f"    - mountPath: {PLACE}/audit\n      name: clusterwright-audit\n  hostNetwork: true\n" in text
    assert f"  - hostPath:\n      path: {PLACE}/audit\n      type: DirectoryOrCreate\n    name: clusterwright-audit\nstatus: {{}}\n" in text
    assert "    name: clusterwright-audit\n    pathType: DirectoryOrCreate\n  - " not in Api.text and "name: encryption\n" in Api.text
    assert os.stat(POLICY).st_mode & 0o777 == 0o644 and os.path.isdir(PLACE / "audit")
    assert not play(wanted({}, policy="one"), check=True)["changed"]
    real_sleep(0.02)
    assert play(wanted({}, policy="two"), check=True)["changed"]
    assert play(wanted({}, policy="two"))["changed"] and kubelet.starts == [APISERVER] * 2
    assert not play(wanted({}, policy="two"))["changed"] and kubelet.starts == [APISERVER] * 2
    before = on_disk()
    real_sleep(0.02)
    refused(wanted({}, policy="bad"), "the former configuration is back, and in use")
    assert on_disk() == before and APISERVER in kubelet.running, "the file of before is back, and read"
    assert play(wanted({}))["changed"] and on_disk() == untouched and Api.text == CONFIGURATION


def what_is_refused_goes_back_whole_and_says_why() -> None:
    begin()
    good = wanted({"goaway-chance": "0.001"})
    assert play(good)["changed"]
    before, text = on_disk(), Api.text
    refused(
        wanted({"bad": "1"}),
        "kube-apiserver did not come up with its new configuration: Error: unknown flag: ['--bad=1'] (connection refused); "
        "the former configuration is back, and in use\nlast lines of its log:\nline 21\n",
    )
    assert on_disk() == before and Api.text == text and is_settled() and kubelet.restarts, "a kubelet that has backed off is restarted"
    assert set(kubelet.running) == set(control_plane.COMPONENTS) and not play(good, check=True)["changed"]
    # The API server proves itself, the controller-manager does not: this machine has all of it or nothing.
    kubelet.starts.clear()
    refused(wanted({"goaway-chance": "0.002"}, {"bad": "1"}), "kube-controller-manager did not come up")
    assert on_disk() == before and Api.text == text and not play(good, check=True)["changed"]
    assert kubelet.starts == [APISERVER, MANAGER, APISERVER, MANAGER]
    # One that keeps ending is not waited for: the kubelet starts it again and again.
    begin()
    play(good)
    kubelet.backs_off = False
    refused(wanted({"bad": "1"}), "kube-apiserver did not come up", "unknown flag", seconds=600)
    assert on_disk() == before and kubelet.starts.count(APISERVER) <= module.STARTS + 2, kubelet.starts
    kubelet.backs_off = True
    # Nothing comes up, whatever its configuration.
    kubelet.is_dead = True
    refused(wanted({"goaway-chance": "0.003"}), "the former configuration is back, and is not well either")
    assert on_disk() == before
    refused(good, "It had this configuration before: nothing was changed", reason="ApiserverNotReady")
    assert play_error(good, check=True)
    kubelet.is_dead = False
    assert play(good)["changed"] and on_disk() == before and not play(good, check=True)["changed"]


def play_error(components: list, check: bool) -> bool:
    """Whether the probe says that not all is well, with no API that answers."""
    try:
        return play(components, check)["changed"]
    except StepFailure:
        return True


def cut_off(at: int, components: list) -> bool:
    """Plays, and is gone at this write to a disk, before it. False when there are not so many."""
    count = itertools.count()

    def counted(call):
        def instead(*words, **more):
            if True not in (more.get("check"), words[-1] if words else None) and next(count) == at:
                raise Killed
            return call(*words, **more)

        return instead

    spied = [(files, "write"), (files, "remove"), (configuration_trial.moves, "copy"), (component_process, "end"), (units, "systemctl")]
    kept = [(place, name, getattr(place, name)) for place, name in spied]
    for place, name, call in kept:
        setattr(place, name, counted(call))
    try:
        play(components)
    except Killed:
        return True
    except StepFailure:
        return False
    finally:
        for place, name, call in kept:
            setattr(place, name, call)
    return False


def an_attempt_that_is_cut_off_anywhere_is_taken_up() -> None:
    first, good, bad = wanted({"v": "1"}, policy="zero"), wanted({"v": "2"}, {"v": "2"}, policy="one"), wanted({}, {"bad": "1"}, policy="two")
    begin()
    play(first)
    former = on_disk()
    play(good)
    latter = on_disk()
    for at in itertools.count():
        begin()
        play(first)
        if not cut_off(at, good):
            break
        kubelet.sync()
        assert play_error(good, check=True)
        play(good)
        assert on_disk() == latter and is_settled() and not play(good, check=True)["changed"], at
        # And with another wish than the one that was cut off.
        begin()
        play(first)
        cut_off(at, good)
        kubelet.sync()
        play(first)
        assert on_disk() == former and is_settled() and not play(first, check=True)["changed"], at
        assert '"2"' not in Api.text
    assert at > 8, at
    for at in itertools.count():
        begin()
        play(first)
        if not cut_off(at, bad):
            break
        kubelet.sync()
        refused(bad)
        assert on_disk() == former and is_settled() and not play(first, check=True)["changed"], at
    assert at > 12, at


def it_works_with_no_api_and_then_fails_only_for_the_cluster() -> None:
    begin()
    play(wanted({"v": "1"}))

    def refuse(*_words) -> dict:
        raise OSError("timed out")

    answer, Api.get = Api.get, refuse
    before = on_disk()
    refused(wanted({"v": "2"}), "failed to ask this machine's API server: timed out", reason="ApiserverNotReady")
    assert flags(APISERVER)[-1] == "--v=2" and on_disk() != before, "proved, and not known to the cluster yet"
    Api.get = answer
    assert play(wanted({"v": "2"}), check=True)["changed"] and play(wanted({"v": "2"}))["changed"] and is_settled()
    assert "value: \"2\"" in Api.text and "value: \"1\"" not in Api.text


def a_machine_that_joins_late_loses_the_flags_that_were_taken_back() -> None:
    begin()
    play(wanted({"v": "1"}))
    text, annotations = Api.text, Api.annotations
    begin()
    # What kubeadm join made by the cluster's configuration of before.
    Api.text, Api.annotations = text, annotations
    path = pathlib.Path(static_pod.FOLDER) / f"{APISERVER}.yaml"
    path.write_text(component_manifest.with_flags(path.read_text(encoding="utf-8"), APISERVER, pairs({"v": "1"}), []), encoding="utf-8")
    kubelet.sync()
    assert play(wanted({}), check=True)["changed"] and play(wanted({}))["changed"]
    assert "--v=1" not in flags(APISERVER) and Api.text == CONFIGURATION


only_what_differs_starts_anew_and_what_is_taken_back_goes()
files_come_with_their_volumes_and_another_content_starts_the_api_server_anew()
what_is_refused_goes_back_whole_and_says_why()
an_attempt_that_is_cut_off_anywhere_is_taken_up()
it_works_with_no_api_and_then_fails_only_for_the_cluster()
a_machine_that_joins_late_loses_the_flags_that_were_taken_back()
