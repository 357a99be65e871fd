"""A control plane whose authorities are replaced: real etcd, API server, controller-manager, scheduler and kubeadm. A stand-in for the
kubelet starts what the manifests say, reads its kubeconfig when it begins, and renews its Node's Lease with that."""

import datetime
import http.server
import json
import os
import subprocess
import threading
import time

from certificates_world import ADDRESS, COMPONENTS, ETCD_PKI, PKI, PORT, VERSION, Etcd, kubeadm, openssl
from machine_world import play, write

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    apiserver_process,
    component_manifest,
    component_process,
    control_plane,
    node_proof,
    prompt_start,
    restarts,
    static_pod,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.modules import certificate_authorities

NODE = "/api/v1/nodes/h1"
COMPONENTS.clear()
# Each authority's generations have one name: the signature tells them apart.
NAMES = {"ca": "kubernetes", "front-proxy-ca": "front-proxy-ca", "etcd-ca": "etcd-ca"}


def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


# Generations that an authority above them has issued: see authorities_issued.py.
ISSUED: set = set()
COMPANY = "/data/company"


def issue(home, number):
    """Authorities as a company's PKI issues them: keys of RSA, and names that repeat an attribute and have several in one place."""
    authority = "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n"
    write(f"{COMPANY}.ext", authority + "authorityKeyIdentifier=keyid\n")
    if not os.path.exists(f"{COMPANY}.crt"):
        openssl("genrsa", "-out", f"{COMPANY}.key", "2048")
        openssl("req", "-x509", "-new", "-days", "3650", "-key", f"{COMPANY}.key", "-subj", "/DC=corp/DC=example/CN=Root", "-out", f"{COMPANY}.crt",
                "-addext", "keyUsage=critical,keyCertSign", "-addext", "basicConstraints=critical,CA:TRUE")
    for name, subject in NAMES.items():
        openssl("genrsa", "-out", f"{home}/{name}.key", "2048")
        subject = f"/DC=corp/DC=example/OU=a/OU=b+L=c/CN={subject} {number}"
        write("/data/issued.csr", openssl("req", "-new", "-multivalue-rdn", "-key", f"{home}/{name}.key", "-subj", subject).decode())
        openssl("x509", "-req", "-days", "3000", "-in", "/data/issued.csr", "-CA", f"{COMPANY}.crt", "-CAkey", f"{COMPANY}.key", "-CAcreateserial",
                "-extfile", f"{COMPANY}.ext", "-out", f"{home}/{name}.crt")


def make_generation(number):
    """Authorities and a service-account key in /data/NUMBER."""
    home = f"/data/{number}"
    os.makedirs(home)
    if number in ISSUED:
        issue(home, number)
    for name, subject in () if number in ISSUED else NAMES.items():
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{home}/{name}.key")
        usages = ("-addext", "keyUsage=critical,digitalSignature,keyCertSign", "-addext", "basicConstraints=critical,CA:TRUE")
        openssl("req", "-x509", "-new", "-days", "3650", "-key", f"{home}/{name}.key", "-subj", f"/CN={subject}", "-out", f"{home}/{name}.crt",
                *usages)
    openssl("genrsa", "-out", f"{home}/sa.key", "2048")
    write(f"{home}/sa.pub", openssl("rsa", "-in", f"{home}/sa.key", "-pubout").decode())


def make_leaf(generation, authority, subject):
    """(certificate, key) for server and client alike."""
    key = openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout").decode()
    write("/data/leaf.key", key)
    write("/data/leaf.csr", openssl("req", "-new", "-key", "/data/leaf.key", "-subj", subject).decode())
    write("/data/leaf.ext", "subjectAltName=IP:127.0.0.1,IP:10.7.0.1\nextendedKeyUsage=serverAuth,clientAuth\nkeyUsage=digitalSignature\n")
    home = f"/data/{generation}/{authority}"
    signer = ("-CA", f"{home}.crt", "-CAkey", f"{home}.key", "-CAcreateserial", "-CAserial", "/data/leaf.srl")
    return openssl("x509", "-req", "-days", "300", "-in", "/data/leaf.csr", *signer, "-extfile", "/data/leaf.ext").decode(), key


class State:
    """What a run brings: the generations of each that are trusted, the one that signs first."""

    def __init__(self, **generations):
        self.generations = {"ca": (1,), "front-proxy-ca": (1,), "etcd-ca": (1,), "sa": (1,), **generations}
        self.next_client = ""

    def but(self, **generations):
        return State(**{**self.generations, **generations})

    def bundle(self, name, ending="crt"):
        return "".join(read(f"/data/{number}/{name}.{ending}") for number in self.generations[name])

    def key(self, name):
        return read(f"/data/{self.generations[name][0]}/{name}.key")

    def parameters(self, **more):
        signer = self.generations["ca"][0]
        etcd_client = make_leaf_once(self.generations["etcd-ca"][0], "etcd-ca", "/CN=apiserver-etcd-client")
        files = {
            "ca.crt": self.bundle("ca"), "ca-signer.crt": read(f"/data/{signer}/ca.crt"), "front-proxy-ca.crt": self.bundle("front-proxy-ca"),
            "etcd/ca.crt": self.bundle("etcd-ca"), "apiserver-etcd-client.crt": etcd_client[0], "sa.pub": self.bundle("sa", "pub"),
        }  # fmt: skip
        keys = {"ca.key": self.key("ca"), "front-proxy-ca.key": self.key("front-proxy-ca"), "sa.key": self.key("sa"),
                "apiserver-etcd-client.key": etcd_client[1]}  # fmt: skip
        return {
            "version": f"v{VERSION}", "validity_seconds": 365 * 24 * 3600, "node_name": "h1", "address": ADDRESS, "port": PORT,
            "files": [{"path": f"{PKI}/{name}", "content": content, "mode": "0644"} for name, content in files.items()],
            "secrets": [{"path": f"{PKI}/{name}", "content": content, "mode": "0600"} for name, content in keys.items()],
            "kubelet_client": "\n".join(make_leaf_once(signer, "ca", "/O=system:nodes/CN=system:node:h1")),
            "next_client": self.next_client, "timeout_seconds": 120, **more,
        }  # fmt: skip

    def play(self, check=False, **more):
        return play(certificate_authorities, check, **self.parameters(**more))

    def write(self):
        """Puts it all on the machine, as an installation does."""
        found = self.parameters()
        for entry in found["files"] + found["secrets"]:
            write(entry["path"], entry["content"], int(entry["mode"], 8))


leaves: dict = {}


def make_leaf_once(*words):
    """A run's leaves are made once: another attempt of it brings the same."""
    if words not in leaves:
        leaves[words] = make_leaf(*words)
    return leaves[words]


def end(pod):
    """As a kubelet does: with a grace."""
    pod.terminate()
    try:
        pod.wait(timeout=5)
    except subprocess.TimeoutExpired:
        pod.kill()
        pod.wait()


class Kubelet(threading.Thread):
    """Runs the static Pods, and works for its Node with what it read when it began."""

    def __init__(self):
        super().__init__(daemon=True)
        self.pods, self.texts, self.starts, self.lock = {}, {}, [], threading.RLock()
        self.failure, self.client = "", None
        self.restart()

    def restart(self, *_words, **_more):
        with self.lock:
            self.starts.append("kubelet")
            self.state = {"InvocationID": str(len(self.starts)), "ExecMainStartTimestampMonotonic": str(int(time.monotonic() * 1_000_000))}
            self.client = api.Api(api.KUBELET)

    def run(self):
        threading.Thread(target=self.work, daemon=True).start()
        while True:
            with self.lock:
                self.sync()
            time.sleep(0.1)

    def work(self):
        while True:
            self.report(self.client)
            time.sleep(0.5)

    def sync(self):
        for name in control_plane.COMPONENTS:
            text = read(f"{static_pod.FOLDER}/{name}.yaml") if os.path.exists(f"{static_pod.FOLDER}/{name}.yaml") else ""
            pod = self.pods.get(name)
            if pod and pod.poll() is None and text != self.texts[name]:
                end(pod)
            if text and (pod is None or pod.poll() is not None):
                # The time of a start has ticks of 10 ms: one within that of a file would count as older.
                time.sleep(0.05)
                self.starts.append(name)
                self.texts[name] = text
                with open(f"/data/{name}.log", "ab") as log:
                    self.pods[name] = subprocess.Popen([name, *component_manifest.flags(text)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def report(self, client):
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "h1", "namespace": "kube-node-lease"},
                 "spec": {"holderIdentity": "h1", "renewTime": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}
        try:
            if client.get(NODE) is None:
                client.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "h1"}})
            if not api.is_ready(client.get(NODE)):
                client.request("PATCH", f"{NODE}/status", ready, api.STRATEGIC)
            path = f"{node_proof.LEASES}/h1"
            if client.get(path) is None:
                client.request("POST", node_proof.LEASES, lease)
            else:
                client.request("PATCH", path, {"spec": lease["spec"]}, api.MERGE)
            self.failure = ""
        except (OSError, api.Refused) as failure:
            self.failure = repr(failure)


class Healthz(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_words):
        pass


class Member(Etcd):
    """etcd, which is given its files by the step `etcd`."""

    def __init__(self, state):
        os.makedirs(ETCD_PKI, exist_ok=True)
        write(f"{ETCD_PKI}/ca.crt", state.bundle("etcd-ca"))
        for name in ("server", "peer", "healthcheck-client"):
            certificate, key = make_leaf_once(state.generations["etcd-ca"][0], "etcd-ca", f"/CN={name}")
            write(f"{ETCD_PKI}/{name}.crt", certificate)
            write(f"{ETCD_PKI}/{name}.key", key, 0o600)
        super().__init__()

    def end(self):
        self.process.terminate()
        self.process.wait()


def client(path, pair=None):
    """An API client with a kubeconfig's authorities, at this machine's API server."""
    found = api.Api(path)
    found.server = f"https://{ADDRESS}:{PORT}"
    if pair:
        found.context.load_cert_chain(api.in_memory("\n".join(pair).encode()))
    return found


def build():
    """(kubelet, etcd, state) of a control plane that runs."""
    write("/etc/ssl/openssl.cnf", "[req]\ndistinguished_name = none\n[none]\n")
    os.environ["OPENSSL_CONF"] = "/etc/ssl/openssl.cnf"
    make_generation(1)
    make_generation(2)
    state = State()
    state.write()
    member = Member(state)
    for name in ("apiserver", "apiserver-kubelet-client", "front-proxy-client"):
        kubeadm("init", "phase", "certs", name)
    for name in ("admin", "super-admin", "controller-manager", "scheduler", "kubelet"):
        kubeadm("init", "phase", "kubeconfig", name)
    kubeadm("init", "phase", "control-plane", "all")
    for name in control_plane.COMPONENTS:
        # On a busy machine an API server takes so long to begin that the others lose their Leases, and end as well.
        path = f"{static_pod.FOLDER}/{name}.yaml"
        write(path, read(path).replace("--leader-elect=true", "--leader-elect=false"), 0o600)
    kubelet = Kubelet()
    # This one holds nothing back.
    prompt_start.PATIENCE_SECONDS = 60
    units.systemctl = lambda verb, unit, **more: kubelet.restart()
    units.state = lambda unit: kubelet.state
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 10248), Healthz)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kubelet.start()
    wait(lambda: not control_plane.unhealthy(list(control_plane.COMPONENTS), ADDRESS, PORT), 120, lambda: kubelet.failure)
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "kubeadm:cluster-admins"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
               "subjects": [{"kind": "Group", "name": "kubeadm:cluster-admins", "apiGroup": "rbac.authorization.k8s.io"}]}
    client("/etc/kubernetes/super-admin.conf").request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    kubeadm("init", "phase", "upload-config", "kubeadm")
    kubeadm("init", "phase", "bootstrap-token")
    wait(lambda: not kubelet.failure, 60, lambda: kubelet.failure)
    return kubelet, member, state


def wait(check, seconds, message=lambda: ""):
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, message()
        time.sleep(0.2)
