"""A control plane is held until nothing of it runs, and released until it is healthy; what was cut short is taken up.

Real processes and listeners, in namespaces of this script's own; the kubelet is a stand-in that runs what has a manifest."""

import os
import shutil
import subprocess
import sys
import threading
import time

if "HOLD_INSIDE" not in os.environ:
    own = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
    sys.exit(subprocess.run(own, env={**os.environ, "HOLD_INSIDE": "1"}, check=False).returncode)

from ansible_collections.clusterwright.cluster.plugins.module_utils import control_plane, listeners, membership, moves, static_pod
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import control_plane_hold

PLACE = sys.argv[1]
ID = "k3x9a0pq"
PORTS = {"kube-apiserver": 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259}
SERVE = """
import http.server, ssl, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_words):
        pass
# As the API server does it (permit-port-sharing), beside haproxy.
http.server.ThreadingHTTPServer.allow_reuse_port = True
server = http.server.ThreadingHTTPServer((sys.argv[2], int(sys.argv[1])), Answer)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
static_pod.FOLDER = f"{PLACE}/manifests"
control_plane.HELD = f"{PLACE}/held"
membership.LOAD_BALANCER = f"{PLACE}/balancer.json"
control_plane_hold.PATIENCE_SECONDS = 3
control_plane_hold.GRACE_SECONDS = 60
PEM = f"{PLACE}/server.pem"


def program(name):
    """A copy of Python under another name. All are made before a thread begins: a process that is forked while one is written holds it open."""
    return f"{PLACE}/{name}"


class Kubelet(threading.Thread):
    """Runs the components that have a manifest, while it runs itself."""

    def __init__(self):
        super().__init__(daemon=True)
        self.runs, self.pods, self.waits, self.restarts, self.stuck = True, {}, set(), 0, ""
        self.lock = threading.Lock()

    def run(self):
        while True:
            with self.lock:
                if self.runs:
                    self.sync()
            time.sleep(0.05)

    def sync(self):
        for component, port in PORTS.items():
            there = os.path.exists(f"{static_pod.FOLDER}/{component}.yaml")
            pod = self.pods.get(component)
            if there and pod is None and component not in self.waits:
                command = [program(component), "-c", SERVE, str(port), "0.0.0.0", PEM]
                self.pods[component] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            elif not there and pod is not None and component != self.stuck:
                pod.terminate()
                pod.wait()
                del self.pods[component]

    # What of module_utils/units.py the module uses.
    def ensure(self, _unit, block=True):
        started, self.runs = not self.runs, True
        return started

    def systemctl(self, verb, _unit, **_more):
        assert verb == "restart", verb
        with self.lock:
            self.restarts, self.waits = self.restarts + 1, set()

    def journal(self, _unit):
        return ""


def openssl(*arguments):
    subprocess.run(("openssl", *arguments), check=True, capture_output=True)


def play(state, components=tuple(PORTS), check=False, timeout=20):
    """Whether it changed anything, or the reason of the failure and its message."""
    params = {"id": ID, "state": state, "components": list(components), "address": "127.0.0.1", "port": 6443, "timeout_seconds": timeout}
    try:
        return control_plane_hold.work(type("Call", (), {"params": params, "check_mode": check}))["changed"]
    except StepFailure as failure:
        return failure.reason, failure.message


def names(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def expect(found, wanted, what):
    print(f"{what}: {found}")
    assert found == wanted, f"{what}: {found!r}, not {wanted!r}"


ALL = sorted(f"{component}.yaml" for component in PORTS)
HELD = f"{PLACE}/held/{ID}"
for name in PORTS:
    shutil.copy(os.path.realpath(sys.executable), program(name))
subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
subprocess.run(("ip", "address", "add", "172.30.0.100/32", "dev", "lo"), check=True)
openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=all", "-keyout", PEM, "-out", f"{PEM}.crt")
with open(PEM, "a", encoding="ascii") as out, open(f"{PEM}.crt", encoding="ascii") as certificate:
    out.write(certificate.read())
os.makedirs(static_pod.FOLDER)
for name in ALL:
    with open(f"{static_pod.FOLDER}/{name}", "w", encoding="ascii") as out:
        out.write(f"of {name}\n")
    os.chmod(f"{static_pod.FOLDER}/{name}", 0o600)
kubelet = control_plane_hold.units = Kubelet()
kubelet.start()

# A Pod of this machine may run another cluster's control plane, and haproxy has the port on the endpoint's address.
pod = subprocess.Popen(["unshare", "--net", program("kube-apiserver"), "-c", "import time; time.sleep(1000)"])
balancer = subprocess.Popen([sys.executable, "-c", SERVE, "6443", "172.30.0.100", PEM], stderr=subprocess.DEVNULL)
while "172.30.0.100" not in listeners.addresses(6443):
    time.sleep(0.05)

deadline = time.monotonic() + 60
while play("released", check=True, timeout=1) is not False:
    assert time.monotonic() < deadline, control_plane.unhealthy(list(PORTS), "127.0.0.1", 6443)
expect(listeners.addresses(6443), ["0.0.0.0", "172.30.0.100"], "who listens")
expect(play("held", check=True), True, "not held")
expect(play("released"), False, "released as it is")

# haproxy is not the API server, but whoever else has its port is in the way.
kubelet.stuck = "kube-scheduler"
reason, message = play("held", timeout=3)
expect(reason, "ControlPlaneNotHeld", "what does not end")
assert "process kube-scheduler (" in message and f"a listener on 172.30.0.100:6443" in message, message
assert "process kube-apiserver" not in message, message
membership.save(membership.LOAD_BALANCER, {"virtual_ip": "172.30.0.100", "interface": "lo"})
control_plane_hold.GRACE_SECONDS = 1
expect(play("held"), False, "held by the attempt before, once what does not end is killed")
assert pod.poll() is None, "a Pod was ended"
with kubelet.lock:
    kubelet.stuck = ""
    kubelet.pods.pop("kube-scheduler").wait()
expect((names(static_pod.FOLDER), names(HELD)), ([], ALL), "where the manifests are")
expect(sorted(kubelet.pods), [], "what runs")
expect((os.stat(HELD).st_mode & 0o777, os.stat(f"{HELD}/kube-apiserver.yaml").st_mode & 0o777), (0o700, 0o600), "closed")
expect((play("held", check=True), play("held"), play("released", check=True, timeout=1)), (False, False, True), "held")
assert pod.poll() is None, "a Pod was ended"

# In order: the API server, then what follows it. One that the kubelet does not start for a while comes with its restart.
kubelet.waits = {"kube-apiserver"}
expect(play("released", ["kube-apiserver"]), True, "the API server")
expect((sorted(kubelet.pods), kubelet.restarts), (["kube-apiserver"], 1), "what runs")
expect(play("released", ["kube-apiserver"]), False, "again")
expect(play("released", check=True, timeout=1), True, "not all")
expect(play("released"), True, "the others")
expect((names(static_pod.FOLDER), names(HELD), kubelet.restarts), (ALL, [], 1), "where the manifests are")

# Cut short: between two manifests, and between the copy to another file system and the removal; the kubelet had been stopped.
os.rename(f"{static_pod.FOLDER}/kube-scheduler.yaml", f"{HELD}/kube-scheduler.yaml")
moves.copy(f"{static_pod.FOLDER}/kube-apiserver.yaml", f"{HELD}/kube-apiserver.yaml")
kubelet.runs = False
expect(play("held"), True, "taken up")
expect((names(static_pod.FOLDER), names(HELD), kubelet.runs), ([], ALL, True), "where the manifests are")
moves.copy(f"{HELD}/kube-apiserver.yaml", f"{static_pod.FOLDER}/kube-apiserver.yaml")
expect(play("released"), True, "taken up")
expect((names(static_pod.FOLDER), names(HELD)), (ALL, []), "where the manifests are")
with open(f"{static_pod.FOLDER}/kube-apiserver.yaml", encoding="ascii") as manifest:
    expect(manifest.read(), "of kube-apiserver.yaml\n", "its content")

# Another file system.
subprocess.run(("mount", "-t", "tmpfs", "tmpfs", f"{PLACE}/held"), check=True)
expect((play("held"), names(static_pod.FOLDER), names(HELD)), (True, [], ALL), "held elsewhere")
expect(os.stat(f"{HELD}/kube-apiserver.yaml").st_mode & 0o777, 0o600, "closed")
expect((play("released"), names(static_pod.FOLDER), names(HELD)), (True, ALL, []), "released")

# A manifest that is nowhere: both places are named, and nothing is moved.
os.unlink(f"{static_pod.FOLDER}/kube-scheduler.yaml")
reason, message = play("held")
expect(reason, "ManifestMissing", "a manifest that is nowhere")
assert f"{static_pod.FOLDER}/kube-scheduler.yaml" in message and f"{HELD}/kube-scheduler.yaml" in message, message
expect(names(static_pod.FOLDER), ALL[:2], "the others")
reason, message = play("released", check=True)
expect(reason, "ManifestMissing", "a manifest that is nowhere")
kubelet.waits = {"kube-apiserver"}
kubelet.systemctl = lambda *_words, **_more: None
expect(play("held", ["kube-apiserver"]), True, "held")
reason, message = play("released", ["kube-apiserver"], timeout=2)
expect(reason, "ApiserverNotReady", "one that does not come")
assert "kube-apiserver: 127.0.0.1:6443" in message, message
