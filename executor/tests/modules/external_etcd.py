"""An etcd that others run is looked at before an API server is given to it: that it is reached, believed and healthy, that it takes the
client, and that nobody else's data is where this cluster's is to be."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    apiserver_process,
    external_etcd,
    findings,
    membership,
    restarts,
)
from ansible_collections.clusterwright.cluster.plugins.modules import apiserver_etcd

PLACE = sys.argv[1]
PROGRAMS = os.environ["ETCD_PROGRAMS"]
UID = "3f0e6a1c-5b1d-4f6e-9a51-0c2f2f1f7a10"
STARTED = []
membership.CLUSTER = f"{PLACE}/cluster.json"
restarts.FOLDER = f"{PLACE}/read"


def openssl(*arguments, stdin=None) -> bytes:
    return subprocess.run(("openssl", *arguments), check=True, capture_output=True, input=stdin).stdout


def path(name: str) -> str:
    return f"{PLACE}/{name}"


def content(name: str) -> str:
    with open(path(name), encoding="ascii") as source:
        return source.read()


def make_authority(name: str) -> None:
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path(f"{name}.key"))
    usage = "keyUsage=critical,digitalSignature,keyCertSign"
    openssl("req", "-x509", "-new", "-days", "365", "-key", path(f"{name}.key"), "-subj", f"/CN={name}", "-out", path(f"{name}.crt"), "-addext", usage)


def make_leaf(name: str, authority: str, days: int = 365) -> None:
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path(f"{name}.key"))
    request = openssl("req", "-new", "-key", path(f"{name}.key"), "-subj", f"/CN={name}")
    with open(path("extensions"), "w", encoding="ascii") as extensions:
        extensions.write("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    made = openssl("x509", "-req", "-days", str(days), "-CA", path(f"{authority}.crt"), "-CAkey", path(f"{authority}.key"), "-CAcreateserial",
                   "-extfile", path("extensions"), stdin=request)
    with open(path(f"{name}.crt"), "wb") as certificate:
        certificate.write(made)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Etcd:
    """A real member with TLS; the only one, unless peers are given: their URLs by their names, its own among them."""

    def __init__(self, name: str, *more: str, peers: dict | None = None) -> None:
        self.url = f"https://127.0.0.1:{free_port()}"
        peers = peers or {name: f"https://127.0.0.1:{free_port()}"}
        self.name, peer = name, peers[name]
        tls = f"--cert-file={path('server.crt')} --key-file={path('server.key')} --trusted-ca-file={path('ca.crt')} --client-cert-auth"
        tls += f" --peer-cert-file={path('server.crt')} --peer-key-file={path('server.key')} --peer-trusted-ca-file={path('ca.crt')}"
        log = open(path(f"{name}.log"), "wb")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [f"{PROGRAMS}/etcd", f"--name={name}", f"--data-dir={path(name)}", "--log-level=warn", *tls.split(),
             f"--initial-cluster={','.join(f'{other}={url}' for other, url in peers.items())}",
             f"--listen-client-urls={self.url}", f"--advertise-client-urls={self.url}",
             f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", *more],
            stdout=log, stderr=log)
        STARTED.append(self.process)
        if len(peers) == 1:
            self.wait()

    def listens(self) -> None:
        while True:
            try:
                socket.create_connection(("127.0.0.1", int(self.url.rpartition(":")[2])), 1).close()
                return
            except OSError:
                time.sleep(0.1)

    def wait(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                self.ctl("get", "x")
                return
            except subprocess.CalledProcessError:
                time.sleep(0.2)
        raise AssertionError(f"etcd {self.name} did not start: {content(f'{self.name}.log')}")

    def ctl(self, *arguments: str, stdin: bytes | None = None) -> None:
        tls = (f"--cacert={path('ca.crt')}", f"--cert={path('client.crt')}", f"--key={path('client.key')}", f"--endpoints={self.url}")
        subprocess.run((f"{PROGRAMS}/etcdctl", *tls, *arguments), check=True, capture_output=True, input=stdin)

    def put(self, key: str, value: bytes) -> None:
        self.ctl("put", key, stdin=value)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def end() -> None:
    for process in STARTED:
        process.kill()


def params(*endpoints: str, exists: bool = False, prefix: str = "/registry", ca: str = "ca", client: str = "client", key: str = "") -> dict:
    etcd = {
        "endpoints": list(endpoints),
        "prefix": prefix,
        "ca": content(f"{ca}.crt"),
        "certificate": content(f"{client}.crt"),
        "key": content(f"{key or client}.key"),
        "authority": content("kubernetes.crt"),
        "kube_version": "1.35.4",
    }
    return {"etcd": etcd, "cluster_exists": exists, "identity": "sha256:ours", "roles": ["control-plane"]}


def expect(wanted: list, *mentions: str, asked: dict) -> None:
    found = external_etcd.external_etcd(asked)
    assert [(one["name"], one["severity"]) for one in found] == wanted, found
    for word in mentions:
        assert any(word in one["message"] for one in found), (word, found)
    key = asked["etcd"]["key"].splitlines()[1]
    assert all(key not in one["message"] for one in found), "a key is told"
    assert all(len(one["message"]) <= 512 for one in found), found


def error(name: str) -> list:
    return [(name, "error")]


def an_empty_etcd_is_taken(etcd: Etcd) -> None:
    assert external_etcd.external_etcd in findings.CHECKS, "preflight asks for it"
    assert external_etcd.external_etcd({"etcd": {}}) == [], "others have no external etcd"
    expect([], asked=params(etcd.url))


def who_is_not_reached_believed_or_let_in_is_told(etcd: Etcd) -> None:
    nobody = f"https://127.0.0.1:{free_port()}"
    expect(error("etcd-unreachable"), nobody, "spec.etcd.endpoints", asked=params(nobody))
    expect(error("etcd-unreachable"), asked=params(nobody, etcd.url))
    expect(error("etcd-tls"), "ca.crt", asked=params(etcd.url, ca="other"))
    by_name = etcd.url.replace("127.0.0.1", "localhost")
    expect(error("etcd-tls"), "localhost", asked=params(by_name))
    expect(error("etcd-client-certificate"), "refuses", asked=params(etcd.url, client="stranger"))
    expect(error("etcd-client-certificate"), "cannot be used together", asked=params(etcd.url, key="stranger"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        threading.Thread(target=lambda: listener.accept()[0].sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), daemon=True).start()
        expect(error("etcd-tls"), "does not speak TLS", asked=params(f"https://127.0.0.1:{listener.getsockname()[1]}"))
    expect([("etcd-certificate-ends", "warning")], "ends in", asked=params(etcd.url, client="brief"))


def an_etcd_that_is_old_or_has_no_majority_is_told(etcd: Etcd) -> None:
    external_etcd.OLDEST["1.35"] = "99.0.0"
    expect(error("etcd-version"), "Kubernetes 1.35 needs 99.0.0", asked=params(etcd.url))
    external_etcd.OLDEST["1.35"] = "3.5.24"
    peers = {name: f"https://127.0.0.1:{free_port()}" for name in ("one", "two")}
    one = Etcd("one", peers=peers)
    one.listens()
    expect(error("etcd-unhealthy"), "does not answer connections", asked=params(one.url))
    two = Etcd("two", peers=peers)
    one.wait()
    expect([], asked=params(one.url, two.url))
    two.kill()
    time.sleep(3)
    expect(error("etcd-unhealthy"), one.url, asked=params(one.url))
    one.kill()


def data_of_others_is_refused_and_ours_is_known(etcd: Etcd) -> None:
    expect(error("etcd-data-missing"), "no data of this cluster", asked=params(etcd.url, exists=True))
    etcd.put("/registry/ranges/serviceips", b"k8s\0x")
    expect(error("etcd-foreign-data"), "such as /registry/ranges/serviceips", asked=params(etcd.url))
    etcd.put("/registry/namespaces/kube-system", b"k8s\0\n\x0bkube-system\x12\x00*$" + UID.encode() + b"2\x00")
    expect(error("etcd-foreign-data"), UID, "etcdctl del --prefix /registry/", asked=params(etcd.url))
    expect([], asked=params(etcd.url, prefix="/registry2"))
    expect([], asked=params(etcd.url, prefix="/clusters/a"))
    # An API server of this machine began, and was cut off before it noted its authority.
    membership.save(membership.CLUSTER, {"identity": "sha256:ours"})
    expect([], asked=params(etcd.url))
    note = "/registry/configmaps/kube-system/extension-apiserver-authentication"
    etcd.put(note, b"k8s\0client-ca-file" + content("other.crt").encode())
    expect(error("etcd-foreign-data"), UID, asked=params(etcd.url))
    os.unlink(membership.CLUSTER)
    expect(error("etcd-data-missing"), "another cluster's data", asked=params(etcd.url, exists=True))
    etcd.put(note, b"k8s\0client-ca-file" + content("kubernetes.crt").encode() + b"\0")
    expect([], asked=params(etcd.url))
    expect([], asked=params(etcd.url, exists=True))


def a_cluster_that_exists_does_with_the_members_that_are_well(etcd: Etcd) -> None:
    nobody = f"https://127.0.0.1:{free_port()}"
    expect([("etcd-unreachable", "warning")], asked=params(nobody, etcd.url, exists=True))
    expect(error("etcd-unreachable"), asked=params(nobody, exists=True))


def what_cannot_be_seen_is_told(etcd: Etcd) -> None:
    closed = Etcd("closed", "--enable-grpc-gateway=false")
    expect(error("etcd-data-unknown"), "spec.preflight.ignore", asked=params(closed.url))
    closed.kill()
    broken = params(etcd.url)
    broken["etcd"]["kube_version"] = None
    assert [one["name"] for one in external_etcd.external_etcd(broken)] == ["etcd-data-unknown"], "a check that broke lets nothing pass"
    other = Etcd("other")
    expect(error("etcd-split"), other.url, asked=params(etcd.url, other.url))
    other.kill()


def an_api_server_that_began_before_the_authorities_were_changed_is_outdated() -> None:
    shutil.copy(shutil.which("sleep"), path("kube-apiserver"))
    process = subprocess.Popen((path("kube-apiserver"), "1000"))  # pylint: disable=consider-using-with
    STARTED.append(process)
    apiserver_process.processes.find = lambda: {"kube-apiserver": [process.pid]}
    time.sleep(1.1)
    reads = [path("authorities")]
    assert apiserver_process.runs_with("1000") and not apiserver_process.runs_with("100")
    assert apiserver_process.outdated([]) == []
    with open(reads[0], "w", encoding="ascii") as authorities:
        authorities.write("one")
    assert apiserver_process.outdated(reads) == [process.pid]
    apiserver_process.remember(reads)
    assert apiserver_process.outdated(reads) == []
    with open(reads[0], "w", encoding="ascii") as authorities:
        authorities.write("two")
    assert apiserver_process.outdated(reads) == [process.pid]
    process.kill()
    process.wait()


class Kubelet:
    """Starts the API server again whenever it has ended, with what its manifest says."""

    def __init__(self, manifest: str) -> None:
        self.manifest, self.starts, self.process = manifest, 0, None
        self.stopped = False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        running = ""
        while not self.stopped:
            wanted = apiserver_etcd.FLAG.search(content(self.manifest)).group(0)
            if self.process and self.process.poll() is None and wanted != running:
                self.process.terminate()
                self.process.wait()
            if not self.process or self.process.poll() is not None:
                # A container begins later than its files were written by more than a tick of the clock that its start is measured in.
                time.sleep(0.1)
                # A name that is found among the arguments, as in a container.
                self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                    ("bash", "-c", f"exec -a '{wanted}' sleep 1000"))
                STARTED.append(self.process)
                self.starts, running = self.starts + 1, wanted
            time.sleep(0.1)

    def find(self) -> dict:
        process = self.process
        return {"kube-apiserver": [process.pid]} if process and process.poll() is None else {}


def the_step_restarts_an_api_server_for_endpoints_and_authorities_and_for_nothing_else() -> None:
    with open(path("manifest"), "w", encoding="ascii") as manifest:
        manifest.write("    - --etcd-servers=https://a:2379\n")
    with open(path("authorities"), "w", encoding="ascii") as authorities:
        authorities.write("one")
    time.sleep(1.1)
    kubelet = Kubelet("manifest")
    apiserver_process.processes.find = kubelet.find
    apiserver_etcd.MANIFEST = path("manifest")
    apiserver_etcd.set_configuration = lambda endpoints, check: False
    apiserver_etcd.healthz.answer = lambda *_arguments, **_more: (True, "ok")
    asked = {"address": "127.0.0.1", "port": 1, "timeout_seconds": 20, "authority": path("authorities"), "files": [], "secrets": []}

    def play(endpoints: list, check: bool = False) -> bool:
        call = type("Call", (), {"params": {**asked, "endpoints": endpoints}, "check_mode": check})
        return apiserver_etcd.work(call)["changed"]

    one, two = ["https://a:2379"], ["https://a:2379", "https://b:2379"]
    time.sleep(0.5)
    assert (play(one), kubelet.starts) == (False, 1), "what is well is left alone"
    assert play(two, check=True) and kubelet.starts == 1, "the probe tells and does nothing"
    assert (play(two), kubelet.starts) == (True, 2)
    assert (play(list(reversed(two))), kubelet.starts) == (False, 2), "their order is nothing"
    with open(path("authorities"), "w", encoding="ascii") as authorities:
        authorities.write("two")
    assert play(two, check=True) and kubelet.starts == 2, "the probe tells and does nothing"
    assert (play(two), kubelet.starts) == (True, 3)
    assert (play(two), play(two, check=True), kubelet.starts) == (False, False, 3)
    asked["files"] = [{"path": path("authorities"), "content": "three"}, {"path": path("api.crt"), "content": "c"}]
    asked["secrets"] = [{"path": path("api.key"), "content": "k"}]
    assert play(two, check=True) and not os.path.exists(path("api.key"))
    assert (play(two), kubelet.starts) == (True, 4)
    assert os.stat(path("api.key")).st_mode & 0o777 == 0o600
    asked["secrets"][0]["content"] = "other"
    assert (play(two), play(two), kubelet.starts) == (True, False, 4), "a client's key is read with each connection"
    kubelet.stopped = True


def main() -> None:
    atexit.register(end)
    for name in ("ca", "other", "kubernetes"):
        make_authority(name)
    make_leaf("server", "ca")
    make_leaf("client", "ca")
    make_leaf("brief", "ca", days=5)
    make_leaf("stranger", "other")
    etcd = Etcd("etcd")
    an_empty_etcd_is_taken(etcd)
    who_is_not_reached_believed_or_let_in_is_told(etcd)
    an_etcd_that_is_old_or_has_no_majority_is_told(etcd)
    data_of_others_is_refused_and_ours_is_known(etcd)
    a_cluster_that_exists_does_with_the_members_that_are_well(etcd)
    what_cannot_be_seen_is_told(etcd)
    an_api_server_that_began_before_the_authorities_were_changed_is_outdated()
    the_step_restarts_an_api_server_for_endpoints_and_authorities_and_for_nothing_else()


main()
