"""The key that Secrets are encrypted with is rotated under clients: two API servers over one etcd, one of them brought to each stage by the
modules, the other one by hand, both with what the role makes of a run's keys. Everything but the kubelet is real."""

import base64
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

PLACE = pathlib.Path(sys.argv[1])
FIRST, NEXT = (base64.b64encode(letter * 32).decode() for letter in (b"a", b"b"))
# The keys of a run, as the operator brings them.
STAGES = {
    "settled": FIRST, "trust": f"{FIRST}\nkey-next:{NEXT}", "sign": f"key-next:{NEXT}\n{FIRST}", "over": f"key-next:{NEXT}",
}  # fmt: skip


def render():
    """What the role makes of each."""
    collection = os.environ["PYTHONPATH"]
    venv = os.environ.get("CLUSTERWRIGHT_ANSIBLE_VENV") or os.path.expanduser("~/.cache/clusterwright/venv")
    hosts = {}
    for stage, lines in STAGES.items():
        (PLACE / stage).mkdir()
        (PLACE / stage / "pki.encryption.key").write_text(lines, encoding="utf-8")
        hosts[stage] = {"secrets_dir": str(PLACE / stage)}
    inventory = {"all": {"hosts": hosts, "vars": {"ansible_connection": "local", "kube_version": "1.35.4", "cluster_name": "a"}}}
    (PLACE / "inventory.yml").write_text(json.dumps(inventory), encoding="utf-8")
    playbook = [{
        "hosts": "all", "gather_facts": False, "roles": ["clusterwright.cluster.secrets_encryption"],
        "tasks": [{"ansible.builtin.copy": {"content": "{{ secrets_encryption_files | to_json }}", "mode": "0600",
                                            "dest": f"{PLACE}/{{{{ inventory_hostname }}}}.json"}}],
    }]  # fmt: skip
    (PLACE / "render.yml").write_text(json.dumps(playbook), encoding="utf-8")
    environment = {"PATH": f"{venv}/bin:{os.environ['PATH']}", "HOME": str(PLACE), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
                   "ANSIBLE_CONFIG": f"{collection}/ansible.cfg", "CLUSTERWRIGHT_EVENTS": str(PLACE / "events")}  # fmt: skip
    (PLACE / "events").write_text("", encoding="utf-8")
    done = subprocess.run([f"{venv}/bin/ansible-playbook", "-i", str(PLACE / "inventory.yml"), str(PLACE / "render.yml")], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.dumps({stage: json.loads((PLACE / f"{stage}.json").read_text(encoding="utf-8")) for stage in STAGES})


# Ansible is out of reach of the machine that is made next.
if "RENDERED" not in os.environ:
    os.environ["RENDERED"] = render()
RENDERED = json.loads(os.environ["RENDERED"])

from authorities_world import ADDRESS, PORT, build, client, end, read, wait, write  # noqa: E402
from machine_world import play, sh  # noqa: E402

from ansible_collections.clusterwright.cluster.plugins.module_utils import (  # noqa: E402
    api,
    certificate_places,
    component_manifest,
    component_process,
    control_plane,
    encryption_keys,
    static_pod,
)
from ansible_collections.clusterwright.cluster.plugins.modules import (  # noqa: E402
    certificate_authorities,
    encryption_configuration,
    secrets_rewrite,
)

secrets_rewrite.PAUSE_SECONDS = 0.1
ROOT = "/etc/kubernetes/super-admin.conf"
SECRETS = "/api/v1/namespaces/default/secrets"
MANIFEST = f"{static_pod.FOLDER}/kube-apiserver.yaml"
OTHER_PORT = 7443
OLD, NEW = b"k8s:enc:secretbox:v1:key1:", b"k8s:enc:secretbox:v1:key-next:"


class OtherApiserver:
    """That of another machine: nothing here takes it for this one's."""

    def __init__(self):
        self.program, self.file, self.process = "/data/other", "/data/other.json", None
        os.symlink(sh("which", "kube-apiserver").strip(), self.program)
        flags = component_manifest.flags(read(MANIFEST))
        flags = [flag.replace(certificate_places.ENCRYPTION, self.file).replace(f"--secure-port={PORT}", f"--secure-port={OTHER_PORT}") for flag in flags]
        self.command = [self.program, *flags, "--endpoint-reconciler-type=none"]

    def bring(self, stage):
        write(self.file, RENDERED[stage][0]["content"], 0o600)
        if self.process:
            end(self.process)
        with open("/data/other.log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait(lambda: at(OTHER_PORT).ask("/readyz"), 180, lambda: read("/data/other.log")[-3000:])


CLIENTS: dict = {}


def at(port):
    """One client for each: it holds files open."""
    if port not in CLIENTS:
        CLIENTS[port] = client(ROOT)
        CLIENTS[port].server = f"https://{ADDRESS}:{port}"
    return CLIENTS[port]


class Clients(threading.Thread):
    """Write through one API server, and read through the other one, all the time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.works, self.written, self.reads, self.failures = True, {}, 0, []

    def run(self):
        number = 0
        while self.works:
            number += 1
            name, ports = f"n{number}", (PORT, OTHER_PORT) if number % 2 else (OTHER_PORT, PORT)
            try:
                at(ports[0]).request("POST", SECRETS, {"metadata": {"name": name}, "stringData": {"x": name}})
                self.written[name] = name
                for key in (name, "before"):
                    found = at(ports[1]).request("GET", f"{SECRETS}/{key}")
                    self.reads += base64.b64decode(found["data"]["x"]).decode() == self.written[key]
            except api.Refused as refused:
                # One that begins knows nobody's rights for some seconds.
                if refused.status not in (401, 403, 429, 503, 504):
                    self.failures.append(str(refused))
            except OSError:
                pass
            time.sleep(0.2)

    def end(self):
        self.works = False
        self.join()


def values():
    """What etcd has stored of each Secret, as etcdctl tells it."""
    pki = "/etc/etcd/pki"
    found = json.loads(sh("etcdctl", "--endpoints=https://127.0.0.1:2379", f"--cacert={pki}/ca.crt", f"--cert={pki}/healthcheck-client.crt",
                          f"--key={pki}/healthcheck-client.key", "--write-out=json", "get", "--prefix", "/registry/secrets/"))  # fmt: skip
    decoded = ((base64.b64decode(entry["key"]).decode(), base64.b64decode(entry["value"])) for entry in found["kvs"])
    return {key.removeprefix("/registry/secrets/"): value for key, value in decoded}


def readable():
    """Both API servers read all that there is; they ask etcd, and no cache."""
    for port in (PORT, OTHER_PORT):
        for name, content in list(clients.written.items()):
            found = at(port).request("GET", f"{SECRETS}/{name}")
            assert base64.b64decode(found["data"]["x"]).decode() == content, (port, name)
    assert not clients.failures, clients.failures[:3]


def bring(stage, check=False):
    """The step certificate-authorities."""
    found = state.parameters()
    found["secrets"] = found["secrets"] + RENDERED[stage]
    return play(certificate_authorities, check, **found)


def brought(stage):
    before = len(kubelet.starts)
    result, failure = bring(stage, check=True)
    assert failure is None and result["changed"], (failure and failure.message, result)
    result, failure = bring(stage)
    assert failure is None and result["changed"], f"{failure and failure.message}: {result}"
    assert "kube-apiserver" in kubelet.starts[before:], kubelet.starts[before:]
    assert FIRST not in result["msg"] and NEXT not in result["msg"], result["msg"]
    result, failure = bring(stage, check=True)
    assert failure is None and not result["changed"], (failure and failure.message, result)


def rewrite(stage, check=False, **more):
    """The step rewrite-secrets."""
    parameters = {"secrets": RENDERED[stage], "address": ADDRESS, "port": PORT, "endpoints": ["https://127.0.0.1:2399", "https://127.0.0.1:2379"],
                  "prefix": "registry", "timeout_seconds": 60, **more}  # fmt: skip
    return play(secrets_rewrite, check, **parameters)


def what_the_role_makes():
    keys = {stage: encryption_keys.in_text(entries[0]["content"]) for stage, entries in RENDERED.items()}
    assert keys == {
        "settled": [("key1", FIRST)], "trust": [("key1", FIRST), ("key-next", NEXT)], "sign": [("key-next", NEXT), ("key1", FIRST)],
        "over": [("key-next", NEXT)],
    }, keys  # fmt: skip
    # A cluster that exists has this, to the byte: nothing is restarted for nothing.
    was = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": [{"resources": ["secrets"], "providers": [
        {"secretbox": {"keys": [{"name": "key1", "secret": FIRST}]}}, {"identity": {}}]}]}  # fmt: skip
    assert RENDERED["settled"] == [{"path": certificate_places.ENCRYPTION, "content": json.dumps(was)}], RENDERED["settled"]


def begin():
    """Both encrypt with the first key; one Secret is from before any encryption."""
    at(PORT).request("POST", SECRETS, {"metadata": {"name": "plain"}, "stringData": {"x": "plain"}})
    write(certificate_places.ENCRYPTION, RENDERED["settled"][0]["content"], 0o600)
    old = component_process.pids(control_plane.APISERVER)
    text = read(MANIFEST)
    write(MANIFEST, text.replace("    - kube-apiserver\n", f"    - kube-apiserver\n    - --encryption-provider-config={certificate_places.ENCRYPTION}\n", 1), 0o600)
    wait(lambda: component_process.pids(control_plane.APISERVER) not in (old, []), 120)
    wait(lambda: not control_plane.unhealthy([control_plane.APISERVER], ADDRESS, PORT), 180)
    result, failure = bring("settled")
    assert failure is None, failure and failure.message
    apiserver = OtherApiserver()
    apiserver.bring("settled")
    at(PORT).request("POST", SECRETS, {"metadata": {"name": "before"}, "stringData": {"x": "before"}})
    clients.written.update(plain="plain", before="before")
    stored = values()
    assert stored["default/plain"].startswith(b"k8s\0") and stored["default/before"].startswith(OLD), stored
    return apiserver


def nothing_is_passed_over():
    """A key that only others could read comes to nobody, and nothing is rewritten before this API server encrypts with the next one."""
    result, failure = bring("over")
    assert failure and failure.reason == "AuthorityReplaced", (failure and failure.message, result)
    result, failure = play(encryption_configuration, secrets=RENDERED["over"], files=[])
    assert failure and failure.reason == "AuthorityReplaced", (failure and failure.message, result)
    assert read(certificate_places.ENCRYPTION) == RENDERED["settled"][0]["content"]
    for check in (True, False):
        result, failure = rewrite("sign", check)
        assert failure and failure.reason == "AuthoritiesDiffer" and "certificate-authorities" in failure.message, (failure, result)


def one_that_is_refused_is_named():
    """By a policy of the cluster."""
    policies = "/apis/admissionregistration.k8s.io/v1"
    policy = {"metadata": {"name": "frozen"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["secrets"]}]},
        "validations": [{"expression": "!object.metadata.name.startsWith('stuck')", "message": "it must stay"}]}}  # fmt: skip
    at(PORT).request("POST", f"{policies}/validatingadmissionpolicies", policy)
    binding = {"metadata": {"name": "frozen"}, "spec": {"policyName": "frozen", "validationActions": ["Deny"]}}
    at(PORT).request("POST", f"{policies}/validatingadmissionpolicybindings", binding)
    at(PORT).request("POST", SECRETS, {"metadata": {"name": "stuck-too"}})

    def denies(port):
        try:
            at(port).request("PATCH", f"{SECRETS}/stuck-too", {"metadata": {"labels": {"at": str(time.monotonic_ns())}}}, api.MERGE)
            return False
        except api.Refused as refused:
            return "it must stay" in str(refused)

    wait(lambda: denies(PORT), 60)
    result, failure = rewrite("sign", timeout_seconds=3)
    assert failure and failure.reason == "SecretsNotRewritten", (failure and failure.message, result)
    said = "1 Secrets in etcd are not encrypted with key-next: default/stuck (HTTP 422"
    assert said in failure.message and "it must stay" in failure.message, failure.message
    at(PORT).request("DELETE", f"{policies}/validatingadmissionpolicybindings/frozen")
    # Each API server learns of it by itself.
    wait(lambda: not denies(PORT) and not denies(OTHER_PORT), 60)


def one_that_changes_meanwhile_is_left_to_the_next_round(name):
    """Another client is faster, once."""
    request, faster = api.Api.request, []

    def meanwhile(self, method, path, *words, **more):
        if method == "PUT" and path == f"{SECRETS}/{name}" and not faster:
            faster.append(path)
            request(at(OTHER_PORT), "PATCH", path, {"metadata": {"labels": {"faster": "true"}}}, api.MERGE)
        return request(self, method, path, *words, **more)

    api.Api.request = meanwhile
    try:
        result, failure = rewrite("sign")
    finally:
        api.Api.request = request
    assert failure is None and result["changed"] and faster, (failure and failure.message, result)
    assert at(PORT).request("GET", f"{SECRETS}/{name}")["metadata"]["labels"] == {"faster": "true"}


what_the_role_makes()
kubelet, member, state = build()
clients = Clients()
other = begin()
nothing_is_passed_over()
clients.start()

brought("trust")
readable()
other.bring("trust")
readable()
# Many pages.
for entry in range(2 * 50):
    at(PORT).request("POST", SECRETS, {"metadata": {"name": f"many{entry:03}"}, "stringData": {"x": "y" * 1000}})
at(PORT).request("POST", SECRETS, {"metadata": {"name": "stuck"}})
large = {"metadata": {"name": "large"}, "immutable": True, "data": {"x": base64.b64encode(os.urandom(900_000)).decode()}}
at(PORT).request("POST", SECRETS, large)

brought("sign")
readable()
other.bring("sign")
readable()
stored = values()
by_old = {name for name, value in stored.items() if value.startswith(OLD)}
assert {"default/before", "default/many099", "default/large"} < by_old and any(value.startswith(NEW) for value in stored.values()), by_old
result, failure = rewrite("sign", check=True)
assert failure is None and result["changed"] and " Secrets in etcd are not encrypted with key-next: default/" in result["msg"], result
assert values()["default/before"] == stored["default/before"], "the probe writes nothing"
one_that_is_refused_is_named()
# What is there already is not written again.
before = values()
at(PORT).request("DELETE", f"{SECRETS}/plain")
del clients.written["plain"]
one_that_changes_meanwhile_is_left_to_the_next_round("stuck")
after = values()
assert all(value.startswith(NEW) for value in after.values()), [name for name, value in after.items() if not value.startswith(NEW)]
assert after["default/large"] == before["default/large"]
assert at(OTHER_PORT).request("GET", f"{SECRETS}/large")["data"] == large["data"]
for check in (True, False):
    result, failure = rewrite("sign", check)
    assert failure is None and not result["changed"], (failure and failure.message, result)
readable()

brought("over")
readable()
other.bring("over")
readable()
clients.end()
readable()
assert clients.reads > 20, clients.reads
assert FIRST not in read(certificate_places.ENCRYPTION) and oct(os.stat(certificate_places.ENCRYPTION).st_mode & 0o777) == "0o600"
result, failure = rewrite("over", check=True)
assert failure is None and not result["changed"], (failure and failure.message, result)
# It says so where etcd does not answer.
result, failure = rewrite("over", check=True, endpoints=["https://127.0.0.1:2399"])
assert failure and failure.reason == "EtcdUnhealthy" and "127.0.0.1:2399" in failure.message, failure
end(other.process)
