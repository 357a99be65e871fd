"""Containers that have the cluster's authorities mounted are started anew once these are there, one Pod after the other, and no others.

The API and the kubelet are stand-ins; the containers' processes are real, in a namespace of this script's own."""

import copy
import os
import subprocess
import sys
import threading
import time

if "PODS_INSIDE" not in os.environ:
    own = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
    sys.exit(subprocess.run(own, env={**os.environ, "PODS_INSIDE": "1"}, check=False).returncode)

from ansible_collections.clusterwright.cluster.plugins.module_utils import authority_mounts, certificate_places
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import pods_restart

PLACE = sys.argv[1]
certificate_places.KUBERNETES = f"{PLACE}/kubernetes"
authority_mounts.PODS = f"{PLACE}/pods"
authority_mounts.SEEN = f"{PLACE}/seen.json"
pods_restart.PAUSE_SECONDS = 0.05
# Ends when it is asked to; one that is stubborn is killed.
# Each says when it takes signals as it should.
SLEEP = "print('runs', flush=True)\ntime.sleep(1000)"
PROGRAMS = {
    "quick": f"import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n{SLEEP}",
    "stubborn": f"import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{SLEEP}",
}


def block(letter):
    return f"-----BEGIN CERTIFICATE-----\n{letter * 8}\n-----END CERTIFICATE-----\n"


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as target:
        target.write(content)


class Cluster(threading.Thread):
    """The kubelet, which starts containers anew, and the API, which has its Pods."""

    server = "https://stand-in"

    def __init__(self):
        super().__init__(daemon=True)
        self.pods, self.processes, self.events, self.holds, self.asked = {}, {}, [], set(), []

    def add(self, name, *containers, program="quick", policy="Always", annotations=None, projected=True, phase="Running", ready=True, mounts=True):
        items = [{"key": "ca.crt", "path": "ca.crt"}]
        sources = [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "kube-root-ca.crt", "items": items}}]
        if not projected:
            sources = [{"configMap": {"name": "mine"}}]
        mount = [{"name": "api", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}] if mounts else []
        pod = {
            "metadata": {"name": name, "namespace": "n", "uid": f"uid-{name}", "annotations": annotations or {}},
            "spec": {"restartPolicy": policy, "terminationGracePeriodSeconds": 0.5, "volumes": [{"name": "api", "projected": {"sources": sources}}],
                     "containers": [{"name": container, "volumeMounts": mount} for container in containers]},
            "status": {"phase": phase, "containerStatuses": [], "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
        }  # fmt: skip
        self.pods[name] = (pod, program, ready)
        for container in containers:
            self.begin(name, container)
        self.write(name, block("A"))

    def write(self, name, content):
        write(f"{authority_mounts.PODS}/uid-{name}/volumes/kubernetes.io~projected/api/ca.crt", content)

    def begin(self, name, container):
        pod, program, ready = self.pods[name]
        process = subprocess.Popen([sys.executable, "-c", PROGRAMS[program]], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"runs\n"
        identity = f"{name}{container}{process.pid}".ljust(64, "0")
        self.processes[(name, container)] = (process, identity)
        statuses = [entry for entry in pod["status"]["containerStatuses"] if entry["name"] != container]
        pod["status"]["containerStatuses"] = [*statuses, {"name": container, "containerID": f"containerd://{identity}"}]
        pod["status"]["conditions"][0]["status"] = "True" if ready else "False"

    def cgroups(self):
        found = {f"0::/kubepods.slice/pod/cri-containerd-{identity}.scope": [process.pid] for process, identity in self.processes.values()
                 if process.poll() is None}  # fmt: skip
        return {**found, "0::/system.slice/sshd.service": [os.getpid()]}

    def run(self):
        while True:
            for (name, container), (process, _identity) in list(self.processes.items()):
                if process.poll() is not None and self.pods[name][0]["status"]["conditions"][0]["status"] != "Held":
                    self.events.append((name, container, process.returncode))
                    self.pods[name][0]["status"]["conditions"][0]["status"] = "False"
                    time.sleep(0.3)
                    if name not in self.holds:
                        self.begin(name, container)
                        self.events.append((name, container, "begins"))
                    else:
                        self.pods[name][0]["status"]["conditions"][0]["status"] = "Held"
            time.sleep(0.02)

    def request(self, method, path, *_more):
        self.asked.append((method, path))
        return {"items": [copy.deepcopy(pod) for pod, _program, _ready in self.pods.values()]}


def play(check=False, mount_seconds=5, ready_seconds=10):
    params = {"node_name": "n1", "mount_seconds": mount_seconds, "ready_seconds": ready_seconds}
    try:
        return pods_restart.work(type("Call", (), {"params": params, "check_mode": check}))
    except StepFailure as failure:
        return failure


cluster = Cluster()
pods_restart.Api = lambda _kubeconfig: cluster
authority_mounts.processes = cluster.cgroups
write(certificate_places.pki("ca"), block("A"))
cluster.add("web", "one", "two")
cluster.add("slow", "only", program="stubborn")
cluster.add("job", "only", policy="OnFailure")
cluster.add("once", "only", policy="Never")
cluster.add("static", "only", annotations={authority_mounts.MIRROR: "x"})
cluster.add("other", "only", projected=False)
cluster.add("bystander", "only", mounts=False)
cluster.add("sick", "only", ready=False)
cluster.add("over", "only", phase="Succeeded")
cluster.start()
time.sleep(0.1)
for name in cluster.pods:
    cluster.write(name, block("A"))
everyone = {key: process.pid for key, (process, _identity) in cluster.processes.items()}

# A second authority comes, and not to all Pods at once.
write(certificate_places.pki("ca"), block("A") + block("B"))
result = play(check=True)
assert result["changed"] and "n/web" in result["msg"], result
for name in ("web", "job", "once", "static", "sick", "bystander"):
    cluster.write(name, block("A") + block("B"))
failure = play(mount_seconds=0.3)
assert isinstance(failure, StepFailure) and failure.reason == "AuthoritiesNotMounted", failure
assert "n/slow:" in failure.message and "n/web" not in failure.message and "n/over" not in failure.message, failure.message
assert {key: process.pid for key, (process, _identity) in cluster.processes.items()} == everyone, "nothing is ended before all have it"
cluster.write("slow", block("A") + block("B"))
assert ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1") in cluster.asked

result = play()
assert not isinstance(result, StepFailure), result.message
assert result["changed"] and result["msg"] == (
    "started anew: n/sick (only), n/slow (only), n/web (one, two); left alone: n/job, n/once, n/static"
), result["msg"]
kept = {key for key, pid in everyone.items() if cluster.processes[key][0].pid == pid}
assert kept == {(name, "only") for name in ("job", "once", "static", "other", "bystander", "over")}, kept
order = [name for name, _container, _event in cluster.events]
# Who was not Ready is not waited for.
assert [name for name in order if name != "sick"] == ["slow"] * 2 + ["web"] * 4, cluster.events
assert ("slow", "only", -9) in cluster.events and ("web", "one", 0) in cluster.events, cluster.events

# Nothing is due then, also when the kubelet has written all files anew with new tokens.
for _again in range(2):
    events = len(cluster.events)
    assert not play(check=True)["changed"]
    result = play()
    assert not result["changed"] and result["msg"].startswith("nothing was due; left alone: n/job"), result
    assert len(cluster.events) == events
    time.sleep(0.05)
    for name in cluster.pods:
        cluster.write(name, block("A") + block("B"))

# An attempt that was cut off goes on with the rest; a Pod that does not come back is named.
write(certificate_places.pki("ca"), block("B") + block("C"))
time.sleep(0.05)
for name in cluster.pods:
    cluster.write(name, block("B") + block("C"))
cluster.holds.add("slow")
failure = play(ready_seconds=1.5)
assert failure.reason == "PodsNotRestarted" and "n/slow" in failure.message and "container only does not run" in failure.message, failure.message
cluster.holds.clear()
cluster.begin("slow", "only")
events = len(cluster.events)
result = play()
assert result["msg"].startswith("started anew: n/web (one, two);"), result["msg"]
assert {name for name, _container, _event in cluster.events[events:]} == {"web"}, cluster.events[events:]
