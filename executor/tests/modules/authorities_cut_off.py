"""An attempt to replace a control plane's authorities that is cut off anywhere is taken up, and leaves no process with files of before.

kubeadm is real. The components are stand-ins that note what they read when they began, and so are the kubelet and the API."""

import datetime
import http.server
import itertools
import json
import os
import shutil
import subprocess
import threading
import time

import certificates_world
from authorities_world import PKI, Healthz, State, make_generation, make_leaf_once, read, wait
from certificates_world import ADDRESS, COMPONENTS, PORT, kubeadm
from machine_world import write

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    authority_reads,
    certificate_places,
    certificates,
    cluster_info,
    component_process,
    control_plane,
    issuers,
    kubeadm_certificates,
    kubeconfigs,
    kubelet_client,
    prompt_start,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.modules import certificate_authorities

NOTE = """
import json, sys
note = {path: open(path).read() for path in sys.argv[4:]}
json.dump(note, open(sys.argv[3], 'w'))
sys.argv[3:] = []
"""
STORED = "/data/stored"
real_sleep = time.sleep
time.sleep = lambda seconds: real_sleep(min(seconds, 0.03))


class Killed(BaseException):
    """The machine or the executor is gone."""


class Kubelet(threading.Thread):
    """Starts the components, each with what authority_reads says that it reads."""

    def __init__(self):
        super().__init__(daemon=True)
        self.pods, self.starts, self.count = {}, [], 0
        self.restart()

    def restart(self):
        self.count += 1
        self.starts.append("kubelet")
        self.state = {"InvocationID": str(self.count), "ExecMainStartTimestampMonotonic": str(int(time.monotonic() * 1_000_000))}
        self.note = {path: read(path) for path in ("/etc/kubernetes/pki/ca.crt", api.KUBELET, kubelet_client.CURRENT) if os.path.exists(path)}

    def run(self):
        while True:
            for name, (port, pair) in COMPONENTS.items():
                pod = self.pods.get(name)
                if pod is None or pod.poll() is not None:
                    # The time of a start has ticks of 10 ms: one within that of a file would count as older.
                    real_sleep(0.05)
                    self.starts.append(name)
                    words = ["-c", NOTE + certificates_world.SERVE, str(port), pair, f"/data/read-{name}", *authority_reads.paths(name)]
                    self.pods[name] = subprocess.Popen([certificates_world.named(name), *words], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            real_sleep(0.03)

    def read_by(self, name):
        return self.note if name == "kubelet" else json.loads(read(f"/data/read-{name}"))


class Client:
    """The API, with the Node and cluster-info."""

    server, kubeconfig = "https://10.7.0.1:6443", ""

    def get(self, path):
        if path == cluster_info.PATH:
            return {"data": {"kubeconfig": Client.kubeconfig}}
        if "leases" in path:
            return {"spec": {"renewTime": datetime.datetime.now(datetime.timezone.utc).isoformat()}}
        return {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}

    def request(self, _method, _path, body, _kind):
        Client.kubeconfig = body["data"]["kubeconfig"]


# Each act takes seconds; CLUSTERWRIGHT_CUTS=1 has an attempt cut off before every one of them.
EVERY = int(os.environ.get("CLUSTERWRIGHT_CUTS", "6"))


def brought(state):
    """Everything is as the state says, and every process has read it."""
    result, failure = state.play()
    assert failure is None, f"{failure.reason}: {failure.message}"
    for check in (True, False):
        result, failure = state.play(check)
        assert failure is None and not result["changed"], (failure and failure.message, result)
    for name in (*COMPONENTS, "kubelet"):
        for path, content in kubelet.read_by(name).items():
            assert content == read(path), f"{name} has read another {path}"
    found = state.parameters()
    for entry in found["files"] + found["secrets"]:
        assert read(entry["path"]) == entry["content"], entry["path"]
    ca = read(f"{PKI}/ca.crt")
    for name in (*kubeadm_certificates.FILES, *kubeadm_certificates.KUBECONFIGS):
        assert not kubeadm_certificates.is_foreign(name), name
    for path in ("admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf", "kubelet.conf"):
        text = read(f"/etc/kubernetes/{path}")
        assert kubeconfigs.authorities(text) == certificates.all_in(ca), path
        assert issuers.is_from(api.client_pair(text), ca), path
    assert kubeconfigs.authorities(Client.kubeconfig) == certificates.all_in(ca)


def cut_off(at, state):
    """Plays, and is gone at this act, before it. Whether there were so many."""
    count = itertools.count()

    def counted(call):
        def instead(*words, **more):
            if threading.current_thread() is threading.main_thread() and next(count) == at:
                raise Killed
            return call(*words, **more)

        return instead

    spied = [(os, "replace"), (os, "symlink"), (kubeadm_certificates, "attempt"), (component_process, "end"), (units, "systemctl"),
             (Client, "request")]  # fmt: skip
    kept = [(place, name, getattr(place, name)) for place, name in spied]
    for place, name, call in kept:
        setattr(place, name, counted(call))
    try:
        result, failure = state.play()
        assert failure is None, f"{failure.reason}: {failure.message}"
    except Killed:
        return True
    finally:
        for place, name, call in kept:
            setattr(place, name, call)
    return False


def store():
    for path in ("/etc/kubernetes", "/var/lib/kubelet"):
        shutil.copytree(path, f"{STORED}{path}", symlinks=True)


def reset(kubeconfig):
    """The machine as it was stored, with all of it read."""
    for path in ("/etc/kubernetes", "/var/lib/kubelet"):
        shutil.rmtree(path)
        shutil.copytree(f"{STORED}{path}", path, symlinks=True)
    Client.kubeconfig = kubeconfig
    for pod in list(kubelet.pods.values()):
        pod.kill()
        pod.wait()
    kubelet.restart()
    wait(lambda: not control_plane.unhealthy(list(COMPONENTS), ADDRESS, PORT), 60)


def every_attempt_is_taken_up(former, state):
    brought(former)
    shutil.rmtree(STORED, ignore_errors=True)
    store()
    kubeconfig = Client.kubeconfig
    for at in itertools.count(step=EVERY):
        reset(kubeconfig)
        if not cut_off(at, state):
            break
        print(at, f"{time.monotonic() - since:.0f} s", flush=True)
        brought(state)
    reset(kubeconfig)
    starts = len(kubelet.starts)
    brought(state)
    return at, kubelet.starts[starts:]


def build():
    write("/etc/ssl/openssl.cnf", "[req]\ndistinguished_name = none\n[none]\n")
    os.environ["OPENSSL_CONF"] = "/etc/ssl/openssl.cnf"
    os.makedirs(kubelet_client.FOLDER)
    make_generation(1)
    make_generation(2)
    state = State()
    state.write()
    # It is brought by the same step, and read at the start as well.
    write(certificate_places.ENCRYPTION, "{}", 0o600)
    for name in ("apiserver", "apiserver-kubelet-client", "front-proxy-client"):
        kubeadm("init", "phase", "certs", name)
    for name in ("admin", "super-admin", "controller-manager", "scheduler", "kubelet"):
        kubeadm("init", "phase", "kubeconfig", name)
    for name in control_plane.COMPONENTS:
        write(f"/etc/kubernetes/manifests/{name}.yaml")
    certificate, key = make_leaf_once(1, "etcd-ca", "/CN=own")
    write("/data/own.crt", certificate)
    write("/data/own.key", key)
    COMPONENTS.update({
        "kube-apiserver": (PORT, f"{PKI}/apiserver"), "kube-controller-manager": (10257, "/data/own"), "kube-scheduler": (10259, "/data/own"),
    })  # fmt: skip
    Client.kubeconfig = read(api.ADMIN)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 10248), Healthz)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    machine = Kubelet()
    machine.start()
    units.systemctl = lambda *_words, **_more: kubelet.restart()
    units.state = lambda unit: kubelet.state
    prompt_start.PATIENCE_SECONDS, prompt_start.PAUSE_SECONDS = 60, 0.03
    certificate_authorities.Machine.client = lambda self: Client()
    return machine, state


kubelet, state = build()
wait(lambda: not control_plane.unhealthy(list(COMPONENTS), ADDRESS, PORT), 60)
both = State(**{name: (1, 2) for name in state.generations})
sign = State(**{name: (2, 1) for name in state.generations})
only = State(**{name: (2,) for name in state.generations})
ALL = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"]
since = time.monotonic()
for former, latter, least in ((state, both, 15), (both, sign, 30), (sign, only, 12)):
    acts, starts = every_attempt_is_taken_up(former, latter)
    print(f"{acts} acts, {time.monotonic() - since:.0f} s", flush=True)
    assert acts > least, acts
    # The two that follow the API server are started anew at once.
    assert [starts[0], *sorted(starts[1:3]), *starts[3:]] == ALL, starts
