"""A control plane with etcd on a machine of its own: certificates of kubeadm's making, a real etcd, and stand-ins for the components,
which serve and read what they do, under their names; and for the kubelet, which starts them anew when they end."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time

import machine_world
from machine_world import play, sh, write

PROGRAMS = (os.environ["ETCD_PROGRAMS"], os.environ["KUBERNETES_PROGRAMS"])
machine_world.SOURCES += PROGRAMS
machine_world.enter()
sh("ip", "address", "add", "10.7.0.1/32", "dev", "lo")
os.environ["PATH"] = ":".join((*PROGRAMS, os.environ["PATH"]))

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, certificates, command, control_plane  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import certificates_info, certificates_renew  # noqa: E402

command.PATH = os.environ["PATH"]
DAY = 24 * 3600
PKI, ETCD_PKI = "/etc/kubernetes/pki", "/etc/etcd/pki"
ADDRESS, PORT = "10.7.0.1", 6443
VERSION = os.path.basename(os.path.dirname(os.environ["KUBERNETES_PROGRAMS"]))
ETCD_READS = ["/etc/etcd/etcd.env", *(f"{ETCD_PKI}/{name}" for name in ("server.crt", "server.key", "peer.crt", "peer.key"))]
# What a component serves and reads: the API server its pair at each handshake, the others one of their own, and their kubeconfig once.
SERVE = """
import http.server, json, ssl, sys
port, pair, reads = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
for path in reads:
    open(path, 'rb').read()
MAP = '/data/kubeadm-config.json'
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self, body):
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer(open(MAP, 'rb').read() if self.path.endswith('/kubeadm-config') else b'ok')
    def do_PATCH(self):
        found = json.load(open(MAP))
        found['data'].update(json.loads(self.rfile.read(int(self.headers['Content-Length'])))['data'])
        open(MAP, 'w').write(json.dumps(found))
        self.answer(b'{}')
    def log_message(self, *_words):
        pass
class Server(http.server.ThreadingHTTPServer):
    def get_request(self):
        connection, address = super().get_request()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair + '.crt', pair + '.key')
        return context.wrap_socket(connection, server_side=True), address
    def handle_error(self, *_words):
        pass
Server(('0.0.0.0', port), Answer).serve_forever()
"""
CA = """
[ca]
default_ca = own
[own]
database = /data/index
serial = /data/serial
new_certs_dir = /data
certificate = {authority}.crt
private_key = {authority}.key
default_md = sha256
policy = any
unique_subject = no
x509_extensions = leaf
[any]
commonName = supplied
[leaf]
subjectAltName = IP:127.0.0.1,IP:10.7.0.1,DNS:localhost
extendedKeyUsage = serverAuth,clientAuth
"""
COMPONENTS = {
    "kube-apiserver": (PORT, f"{PKI}/apiserver"),
    "kube-controller-manager": (10257, "/data/own", "/etc/kubernetes/controller-manager.conf"),
    "kube-scheduler": (10259, "/data/own", "/etc/kubernetes/scheduler.conf"),
}


def openssl(*arguments, stdin=None):
    done = subprocess.run(("openssl", *arguments), check=False, capture_output=True, input=stdin)
    assert done.returncode == 0, f"openssl {' '.join(arguments)}: {done.stderr.decode()}"
    return done.stdout


def make_authority(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{path}.key")
    usage = "keyUsage=critical,digitalSignature,keyCertSign"
    name = f"/CN={os.path.basename(path)}"
    usages = ("-addext", usage, "-addext", "basicConstraints=critical,CA:TRUE")
    openssl("req", "-x509", "-new", "-days", "3650", "-key", f"{path}.key", "-subj", name, "-out", f"{path}.crt", *usages)


def make_pair(name, seconds, authority="/data/etcd-ca"):
    """(certificate, key) of a leaf that ends after so many seconds; before now, where that is negative."""
    key = openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout")
    write("/data/leaf.key", key.decode())
    write("/data/request", openssl("req", "-new", "-key", "/data/leaf.key", "-subj", f"/CN={name}").decode())
    # Only `openssl ca` makes one that has ended.
    write("/data/index", "")
    write("/data/ca.cnf", CA.format(authority=authority))
    moment = lambda at: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(at))
    dates = ("-startdate", moment(time.time() - 400 * DAY), "-enddate", moment(time.time() + seconds))
    openssl("ca", "-batch", "-notext", "-rand_serial", "-config", "/data/ca.cnf", *dates, "-in", "/data/request", "-out", "/data/leaf.crt")
    with open("/data/leaf.crt", encoding="ascii") as made:
        return made.read(), key.decode()


def pairs(seconds):
    """The certificates of etcd as a run brings them."""
    wanted = [(f"{ETCD_PKI}/{name}", "600") for name in ("server", "peer", "healthcheck-client")]
    found = []
    for path, mode in (*wanted, (f"{PKI}/apiserver-etcd-client", "644")):
        certificate, key = make_pair(os.path.basename(path), seconds)
        found += [{"path": f"{path}.crt", "content": certificate, "mode": mode}, {"path": f"{path}.key", "content": key, "mode": "600"}]
    return found


def kubeadm(*arguments, days=365):
    """Runs kubeadm with a configuration in which leaves last so many days."""
    cluster = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "kubernetesVersion": f"v{VERSION}",
               "certificateValidityPeriod": f"{round(days * DAY)}s", "encryptionAlgorithm": "ECDSA-P256",
               "controlPlaneEndpoint": f"{ADDRESS}:{PORT}", "apiServer": {"certSANs": ["k8s.example"]},
               "etcd": {"external": {"endpoints": ["https://127.0.0.1:2379"], "caFile": f"{PKI}/etcd/ca.crt",
                                     "certFile": f"{PKI}/apiserver-etcd-client.crt", "keyFile": f"{PKI}/apiserver-etcd-client.key"}}}
    init = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration", "nodeRegistration": {"name": "h1"},
            "localAPIEndpoint": {"advertiseAddress": ADDRESS, "bindPort": PORT}}
    write("/data/kubeadm.yaml", f"{json.dumps(init)}\n---\n{json.dumps(cluster)}\n")
    sh("kubeadm", *arguments, "--config=/data/kubeadm.yaml")


def named(name):
    """A copy of Python under another name."""
    path = f"/data/{name}"
    if not os.path.exists(path):
        shutil.copy(os.path.realpath(sys.executable), path)
    return path


class Kubelet(threading.Thread):
    """Starts the components, and starts them anew when they have ended."""

    def __init__(self):
        super().__init__(daemon=True)
        self.pods, self.works, self.starts = {}, True, []

    def run(self):
        while True:
            for name, (port, pair, *reads) in COMPONENTS.items():
                pod = self.pods.get(name)
                if self.works and (pod is None or pod.poll() is not None):
                    # The time of a start has ticks of 10 ms: one within that of a file would count as older.
                    time.sleep(0.05)
                    self.starts.append(name)
                    arguments = [named(name), "-c", SERVE, str(port), pair, *reads]
                    self.pods[name] = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.05)


class Etcd:
    """The member of this machine, where the modules look for it."""

    def __init__(self):
        tls = f"--cert-file={ETCD_PKI}/server.crt --key-file={ETCD_PKI}/server.key --trusted-ca-file={ETCD_PKI}/ca.crt --client-cert-auth"
        tls += f" --peer-cert-file={ETCD_PKI}/peer.crt --peer-key-file={ETCD_PKI}/peer.key --peer-trusted-ca-file={ETCD_PKI}/ca.crt"
        urls = "--listen-client-urls=https://127.0.0.1:2379 --advertise-client-urls=https://127.0.0.1:2379"
        urls += f" --listen-peer-urls=https://{ADDRESS}:2380 --initial-advertise-peer-urls=https://{ADDRESS}:2380"
        with open("/data/etcd.log", "ab") as log:
            self.process = subprocess.Popen(
                ["etcd", "--name=h1", "--data-dir=/data/etcd", "--log-level=warn", *tls.split(), *urls.split(),
                 f"--initial-cluster=h1=https://{ADDRESS}:2380", "--peer-client-cert-auth"], stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while certificates.served("127.0.0.1", 2379) is None:
            assert time.monotonic() < deadline, open("/data/etcd.log", encoding="utf-8").read()
            time.sleep(0.1)


def build(days=365):
    """The machine, whose leaves end after so many days."""
    write("/etc/ssl/openssl.cnf", "[req]\ndistinguished_name = none\n[none]\n")
    os.environ["OPENSSL_CONF"] = "/etc/ssl/openssl.cnf"
    write("/etc/etcd/etcd.env")
    make_authority("/data/etcd-ca")
    for folder in (ETCD_PKI, f"{PKI}/etcd"):
        os.makedirs(folder, exist_ok=True)
        shutil.copy("/data/etcd-ca.crt", f"{folder}/ca.crt")
    for entry in pairs(days * DAY):
        write(entry["path"], entry["content"], int(entry["mode"], 8))
    for name in ("ca", "front-proxy-ca", "apiserver", "apiserver-kubelet-client", "front-proxy-client"):
        kubeadm("init", "phase", "certs", name, days=days)
    for name in ("admin", "super-admin", "controller-manager", "scheduler", "kubelet"):
        kubeadm("init", "phase", "kubeconfig", name, days=days)
    for name in COMPONENTS:
        write(f"/etc/kubernetes/manifests/{name}.yaml")
    certificate, key = make_pair("own", 300 * DAY)
    write("/data/own.crt", certificate)
    write("/data/own.key", key)
    text = "apiServer:\n  certSANs:\n  - k8s.example\ncertificateValidityPeriod: 8760h0m0s\nclusterName: a\n"
    found = {"metadata": {"resourceVersion": "1"}, "data": {"ClusterConfiguration": text}}
    write("/data/kubeadm-config.json", json.dumps(found))
    etcd, kubelet = Etcd(), Kubelet()
    kubelet.start()
    deadline = time.monotonic() + 60
    while sick := control_plane.unhealthy(list(COMPONENTS), ADDRESS, PORT):
        assert time.monotonic() < deadline, sick
        time.sleep(0.1)
    return etcd, kubelet


def seen():
    """What the machine reports, by name."""
    result, failure = play(certificates_info, address=ADDRESS, port=PORT)
    assert failure is None, failure.message
    assert result["changed"] is False and result["clusterwright"]["kind"] == "certificates"
    return {told["name"]: told for told in result["clusterwright"]["certificates"]}


def renew(secrets, check=False, before=100 * DAY, validity=365 * DAY, timeout=30):
    return play(certificates_renew, check, address=ADDRESS, port=PORT, node_name="h1", version=f"v{VERSION}", files=[], secrets=secrets,
                etcd_reads=ETCD_READS, validity_seconds=validity, renew_before_seconds=before, timeout_seconds=timeout)


def days_left(told):
    return round((told["expiresAt"] - time.time()) / DAY)
