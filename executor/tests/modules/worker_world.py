"""A worker that joins, in a network namespace of its own: its kubelet, which runs the static Pod, the API, and the cluster's DNS."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import types

PLACE = pathlib.Path(sys.argv[1])

if os.environ.get("INSIDE") != "yes":
    here = [sys.executable, *sys.argv]
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--net", *here], env={**os.environ, "INSIDE": "yes"}, check=False)
    sys.exit(done.returncode)

from ansible_collections.clusterwright.cluster.plugins.module_utils import network_evidence, static_pod  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Refused  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import worker_smoke_test  # noqa: E402
from network_probe_program import PROGRAM, annotation, program  # noqa: E402

HERE = "W1"
SERVICE = "127.0.0.1"
DNS = "127.0.0.53"
# A refusal is an answer; nothing leads to the others.
WELL = [program.Peer(f"well-{number}", "127.0.0.2", number) for number in (1, 2, 3)]
SILENT = [program.Peer(f"silent-{number}", "203.0.113.1", number) for number in (1, 2, 3)]

static_pod.FOLDER = str(PLACE / "manifests")
static_pod.MANIFEST = f"{static_pod.FOLDER}/{static_pod.NAME}.json"
static_pod.PODS = str(PLACE / "pods")
network_evidence.PROGRAM = str(PROGRAM)
network_evidence.SECONDS = 0.2
worker_smoke_test.units.journal = lambda unit: f"\nlast lines of {unit}"
subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
subprocess.run(("ip", "route", "add", "unreachable", "203.0.113.0/24"), check=True)


class Worker:
    """`said` is what the Pod says at its end, None: it never starts. `code` is what the DNS answers to the machine, None: it is silent."""

    def __init__(self, said="ended with 0: answered\n", code=None, peers=WELL, api="up", **more):
        self.said, self.peers, self.api = said, peers, api
        self.proxies = more.get("proxies", [{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}])
        # Without kube-proxy: the Pods of this node, as far as the API tells.
        self.agents = more.get("agents")
        self.refused, self.other_mirror, self.dns = more.get("refused"), more.get("other_mirror", False), more.get("dns", DNS)
        self.server, self.asked, self.pods, self.now = "https://endpoint:6443", [], [], 0.0
        self.resolver = Resolver(code)

    def __call__(self, kubeconfig):
        assert kubeconfig == "/etc/kubernetes/kubelet.conf"
        return self

    def sleep(self, _seconds):
        """The kubelet's turn."""
        if not os.path.exists(static_pod.MANIFEST):
            return
        pod = json.loads(pathlib.Path(static_pod.MANIFEST).read_text(encoding="utf-8"))
        self.pods = [known for known in self.pods if known["metadata"]["uid"] != pod["metadata"]["uid"]] + [pod]
        folder = PLACE / "pods" / pod["metadata"]["uid"] / "containers" / "worker"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "1a2b3c4d").write_text(self.said or "", encoding="utf-8")
        if self.api == "dies":
            self.api = "down"

    def monotonic(self):
        self.now += 1.0
        return self.now

    def get(self, path):
        self.asked.append(path)
        if self.api == "down":
            raise OSError("timed out")
        if self.refused:
            raise Refused(self.refused, "no")
        if path.endswith("/services/kubernetes"):
            return {"spec": {"clusterIP": SERVICE, "ports": [{"port": 443}]}}
        if path.endswith("/services/kube-dns"):
            return {"spec": {"clusterIP": self.dns}} if self.dns else None
        if path == f"/api/v1/nodes/{HERE}":
            annotations = {program.ANNOTATION: annotation(*self.peers, source="")} if self.peers is not None else {}
            return {"metadata": {"name": HERE, "annotations": annotations}}
        if path == static_pod.mirror_path(HERE):
            uid = "another" if self.other_mirror else self.pods[-1]["metadata"]["uid"]
            waiting = {"waiting": {"reason": "ErrImageNeverPull", "message": "not there"}}
            annotations = {"kubernetes.io/config.mirror": uid}
            return {"metadata": {"annotations": annotations}, "status": {"containerStatuses": [{"state": waiting}]}}
        if path == f"/api/v1/pods?fieldSelector=spec.nodeName%3D{HERE}":
            return {"items": self.agents}
        assert "k8s-app%3Dkube-proxy" in path and path.endswith(f"spec.nodeName%3D{HERE}"), path
        return {"items": self.proxies}

    def ask(self, path):
        try:
            return self.get(path)
        except (OSError, Refused):
            return None


class Resolver:
    """The cluster's DNS as the machine itself reaches it."""

    def __init__(self, code):
        self.code = code
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((DNS, 53))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            question, asker = self.socket.recvfrom(4096)
            if not question:
                return
            if self.code is not None:
                self.socket.sendto(question[:2] + bytes((0x81, 0x80 | self.code)) + question[4:], asker)

    def close(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as farewell:
            farewell.sendto(b"", (DNS, 53))
        self.thread.join()
        self.socket.close()


def play(worker):
    """("well" or "elsewhere" or "failed", the message)."""
    worker_smoke_test.Api = worker
    worker_smoke_test.time = types.SimpleNamespace(sleep=worker.sleep, monotonic=worker.monotonic)
    params = {
        "bundle": {}, "image": "busybox", "version": "1", "dns_domain": "cluster.local", "timeout_seconds": 120, "node": HERE,
        "kube_proxy": worker.agents is None,
    }
    try:
        result = worker_smoke_test.work(types.SimpleNamespace(params=params, check_mode=False))
    except StepFailure as failure:
        assert failure.reason == "SmokeTestFailed"
        return "failed", failure.message
    finally:
        worker.resolver.close()
        assert not os.path.exists(static_pod.MANIFEST), "the Pod stays"
    findings = result.get("clusterwright", {}).get("findings", [])
    assert all((finding["severity"], finding["name"]) == ("warning", "smoke-test-elsewhere") for finding in findings)
    return ("elsewhere" if findings else "well"), result["msg"]


def expect(how, said, worker):
    outcome, message = play(worker)
    assert (outcome, said in message) == (how, True), f"{outcome}: {message}"
    return worker
