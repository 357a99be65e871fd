"""The key is rotated under clients, and other resources are encrypted at once: two API servers over one etcd, one of them brought to each stage
by the modules, the other one by hand, both with what the role makes of a run's keys. Everything but the kubelet is real."""

import base64
import http.client
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

from encryption_lines_world import rendered

PLACE = pathlib.Path(sys.argv[1])
FIRST, NEXT = (base64.b64encode(letter * 32).decode() for letter in (b"a", b"b"))
BEFORE = ["jobs.batch", "olds.example.com", "secrets"]
AFTER = ["*.apps", "*.example.org", "configmaps", "cronjobs.batch", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "secrets",
         "serviceaccounts", "widgets.example.com"]  # fmt: skip


def line(name, secret, resources):
    return json.dumps({"secretbox": {"name": name, "secret": secret}, "resources": resources})


OLD_LINE, NEW_LINE = line("key1", FIRST, BEFORE), line("key-next", NEXT, AFTER)
# The keys of a run, as the operator brings them; the first ones of a cluster that encrypts Secrets alone.
STAGES = {
    "first": FIRST, "first-trust": f"{FIRST}\nkey-next:{NEXT}", "first-sign": f"key-next:{NEXT}\n{FIRST}",
    "settled": OLD_LINE, "trust": f"{OLD_LINE}\n{NEW_LINE}", "sign": f"{NEW_LINE}\n{OLD_LINE}", "over": NEW_LINE,
}  # fmt: skip

RENDERED = {stage: files for stage, (files, _plugins) in rendered(PLACE, STAGES).items()}

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
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
OLDS = "/apis/example.com/v1/namespaces/default/olds"
# Of which clients write objects all the time: one that is encrypted before and after, one after, one before.
WRITTEN = (SECRETS, CONFIG_MAPS, OLDS)
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


class Connection:
    """One that is kept, with the rights of `at`, for who asks much: a handshake costs both ends more than what is asked."""

    def __init__(self, port):
        self.connection = http.client.HTTPSConnection(ADDRESS, port, timeout=15, context=at(port).context)

    def request(self, method, path, body=None):
        """As `Api.request`; after a failure the next request begins another connection."""
        try:
            self.connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
            answer = self.connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as failure:
            self.connection.close()
            raise OSError(f"{method} {path}: {failure}") from failure
        if answer.status >= 300:
            raise api.Refused(answer.status, data.decode("utf-8", "replace"))
        return json.loads(data)


def content(name, folder=SECRETS):
    """Of an object of any of the three."""
    kind = {"apiVersion": "example.com/v1", "kind": "Old"} if folder == OLDS else {}
    return {**kind, "metadata": {"name": name}, "data": {"x": base64.b64encode(name.encode()).decode()}}


class Clients(threading.Thread):
    """Write through one API server, and read through the other one, all the time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.works, self.written, self.reads, self.failures = True, [], dict.fromkeys(WRITTEN, 0), []

    def run(self):
        number, both = 0, [Connection(PORT), Connection(OTHER_PORT)]
        while self.works:
            number += 1
            both.reverse()
            for folder in WRITTEN:
                self.write_and_read(folder, f"n{number}", *both)
            time.sleep(0.2)

    def write_and_read(self, folder, name, writer, reader):
        try:
            writer.request("POST", folder, content(name, folder))
            self.written.append((folder, name))
            for wanted in (name, "before"):
                found = reader.request("GET", f"{folder}/{wanted}")
                self.reads[folder] += found["data"] == content(wanted)["data"]
        except api.Refused as refused:
            # One that begins knows nobody's rights for some seconds, and no custom resources.
            if refused.status not in (401, 403, 429, 503, 504) and not (refused.status == 404 and folder == OLDS):
                self.failures.append(str(refused))
        except OSError:
            pass

    def end(self):
        self.works = False
        self.join()


def stored():
    """What etcd has of each object, as etcdctl tells it."""
    pki = "/etc/etcd/pki"
    found = json.loads(sh("etcdctl", "--endpoints=https://127.0.0.1:2379", f"--cacert={pki}/ca.crt", f"--cert={pki}/healthcheck-client.crt",
                          f"--key={pki}/healthcheck-client.key", "--write-out=json", "get", "--prefix", "/registry/"))  # fmt: skip
    decoded = ((base64.b64decode(entry["key"]).decode(), base64.b64decode(entry["value"])) for entry in found["kvs"])
    return {key.removeprefix("/registry/"): value for key, value in decoded}


def values():
    """Of each Secret."""
    return {key.removeprefix("secrets/"): value for key, value in stored().items() if key.startswith("secrets/")}


def folders_with(beginning):
    """Where in etcd there are values that begin so: of custom resources with their group."""
    keys = (key.split("/") for key, value in stored().items() if value.startswith(beginning))
    return {"/".join(parts[:2]) if "." in parts[0] else parts[0] for parts in keys}


def readable():
    """Both API servers read all that there is; they ask etcd, and no cache."""
    for port in (PORT, OTHER_PORT):
        connection = Connection(port)
        for folder, name in list(clients.written):
            found = connection.request("GET", f"{folder}/{name}")
            assert found["data"] == content(name)["data"], (port, folder, name)
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
    # A cluster that exists has this, to the byte: nothing is restarted for nothing.
    def was(*keys):
        found = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": [{"resources": ["secrets"], "providers": [
            {"secretbox": {"keys": [{"name": name, "secret": secret} for name, secret in keys]}}, {"identity": {}}]}]}  # fmt: skip
        return [{"path": certificate_places.ENCRYPTION, "content": json.dumps(found)}]

    first, following = ("key1", FIRST), ("key-next", NEXT)
    for stage, keys in {"first": [first], "first-trust": [first, following], "first-sign": [following, first]}.items():
        assert RENDERED[stage] == was(*keys), RENDERED[stage]
    found = {stage: encryption_keys.entries(RENDERED[stage][0]["content"]) for stage in ("settled", "trust", "sign", "over")}

    def names(stage, resource):
        return [provider.name for provider in encryption_keys.providers(found[stage], resource)]

    # At each moment whoever writes is read by those that are one stage away.
    for resource, expected in {
        "secrets": (["key1", "identity"], ["key1", "key-next", "identity"], ["key-next", "key1", "identity"], ["key-next", "identity"]),
        "deployments.apps": (["identity"], ["identity", "key-next"], ["key-next", "identity"], ["key-next", "identity"]),
        "widgets.example.com": (["identity"], ["identity", "key-next"], ["key-next", "identity"], ["key-next", "identity"]),
        "olds.example.com": (["key1", "identity"], ["key1", "identity"], ["identity", "key1"], ["identity"]),
        "leases.coordination.k8s.io": (["identity"],) * 4,
    }.items():
        assert tuple(names(stage, resource) for stage in found) == expected, resource


def make_objects():
    """One of each resource that may be encrypted, and of custom ones, with a namespace and without."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}], "restartPolicy": "Always", "serviceAccountName": "one"}}
    once = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    select = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    job = {"template": once, "suspend": True}
    space = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    for folder, more in {
        "/api/v1/namespaces/default/serviceaccounts": {}, "/api/v1/namespaces/default/pods": {"spec": template["spec"]},
        "/api/v1/namespaces/default/podtemplates": {"template": template}, "/api/v1/persistentvolumes": {"spec": volume},
        "/api/v1/namespaces/default/persistentvolumeclaims": {"spec": space}, "/apis/apps/v1/namespaces/default/deployments": {"spec": {"replicas": 0, **select}},
        "/apis/apps/v1/namespaces/default/replicasets": {"spec": {"replicas": 0, **select}}, "/apis/apps/v1/namespaces/default/daemonsets": {"spec": select},
        "/apis/apps/v1/namespaces/default/statefulsets": {"spec": {"replicas": 0, "serviceName": "a", **select}},
        "/apis/apps/v1/namespaces/default/controllerrevisions": {"revision": 1, "data": {}}, "/apis/batch/v1/namespaces/default/jobs": {"spec": job},
        "/apis/batch/v1/namespaces/default/cronjobs": {"spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job}}},
    }.items():  # fmt: skip
        at(PORT).request("POST", folder, {"metadata": {"name": "one"}, **more})
    for plural, group, scope in (("widgets", "example.com", "Namespaced"), ("olds", "example.com", "Namespaced"), ("gadgets", "example.org", "Cluster")):
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
        names = {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title()}
        definition = {"metadata": {"name": f"{plural}.{group}"}, "spec": {"group": group, "scope": scope, "names": names, "versions": versions}}
        at(PORT).request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        folder = f"/apis/{group}/v1/{'' if scope == 'Cluster' else 'namespaces/default/'}{plural}"

        def made(folder=folder, group=group, kind=names["kind"]):
            try:
                return at(PORT).request("POST", folder, {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "one"}})
            except api.Refused as refused:
                return refused.status == 409

        wait(made, 60)


def begin():
    """Both encrypt with the first key; one Secret is from before any encryption."""
    at(PORT).request("POST", SECRETS, content("plain"))
    write(certificate_places.ENCRYPTION, RENDERED["settled"][0]["content"], 0o600)
    old = component_process.pids(control_plane.APISERVER)
    text = read(MANIFEST)
    write(MANIFEST, text.replace("    - kube-apiserver\n", f"    - kube-apiserver\n    - --encryption-provider-config={certificate_places.ENCRYPTION}\n", 1), 0o600)
    wait(lambda: component_process.pids(control_plane.APISERVER) not in (old, []), 120)
    wait(lambda: not control_plane.unhealthy([control_plane.APISERVER], ADDRESS, PORT), 180)
    result, failure = bring("settled")
    assert failure is None, failure and failure.message
    make_objects()
    apiserver = OtherApiserver()
    apiserver.bring("settled")
    for folder in WRITTEN:
        wait(lambda folder=folder: made_anew(folder, "before"), 60)
    clients.written += [(SECRETS, "plain"), *((folder, "before") for folder in WRITTEN)]
    found = values()
    assert found["default/plain"].startswith(b"k8s\0") and found["default/before"].startswith(OLD), found
    assert folders_with(b"k8s:enc:") == {"secrets", "jobs", "example.com/olds"}, folders_with(b"k8s:enc:")
    return apiserver


def made_anew(folder, name):
    try:
        return at(OTHER_PORT).request("POST", folder, content(name, folder))
    except api.Refused as refused:
        return refused.status == 409


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
    said = "1 objects in etcd are not as this API server writes them: secrets default/stuck is not encrypted with key-next (HTTP 422"
    assert said in failure.message and "it must stay" in failure.message, failure.message
    at(PORT).request("DELETE", f"{policies}/validatingadmissionpolicybindings/frozen")
    # Each API server learns of it by itself.
    wait(lambda: not denies(PORT) and not denies(OTHER_PORT), 60)


def one_that_changes_meanwhile_keeps_its_change(name):
    """Another client is faster, once."""
    request, faster = api.Api.request, []

    def meanwhile(self, method, path, *words, **more):
        if method == "PATCH" and path == f"{SECRETS}/{name}" and not faster:
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
before = values()
by_old = {name for name, value in before.items() if value.startswith(OLD)}
assert {"default/before", "default/many099", "default/large"} < by_old and any(value.startswith(NEW) for value in before.values()), by_old
assert "configmaps" in folders_with(b"k8s\0") and "configmaps" in folders_with(NEW) and "example.com/olds" in folders_with(OLD)
result, failure = rewrite("sign", check=True)
assert failure is None and result["changed"] and " objects in etcd are not as this API server writes them: " in result["msg"], result
assert values()["default/before"] == before["default/before"], "the probe writes nothing"
one_that_is_refused_is_named()
# What is there already is not written again.
before = values()
at(PORT).request("DELETE", f"{SECRETS}/plain")
clients.written.remove((SECRETS, "plain"))
one_that_changes_meanwhile_keeps_its_change("stuck")
everything = stored()
after = values()
assert all(value.startswith(NEW) for value in after.values()), [name for name, value in after.items() if not value.startswith(NEW)]
# Everything is where it is looked for: nothing else is encrypted, and nothing is left of any of them.
encrypted = {
    "configmaps", "controllerrevisions", "cronjobs", "daemonsets", "deployments", "example.com/widgets", "example.org/gadgets", "persistentvolumeclaims",
    "persistentvolumes", "pods", "podtemplates", "replicasets", "secrets", "serviceaccounts", "statefulsets",
}  # fmt: skip
assert folders_with(b"k8s:enc:") == folders_with(NEW) == encrypted, folders_with(b"k8s:enc:") ^ encrypted
assert not folders_with(b"k8s\0") & encrypted and not folders_with(b"{") & encrypted
assert {"jobs"} < folders_with(b"k8s\0") and "example.com/olds" in folders_with(b"{")
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
assert all(reads > 20 for reads in clients.reads.values()), clients.reads
assert FIRST not in read(certificate_places.ENCRYPTION) and oct(os.stat(certificate_places.ENCRYPTION).st_mode & 0o777) == "0o600"
result, failure = rewrite("over", check=True)
assert failure is None and not result["changed"], (failure and failure.message, result)
# It says so where etcd does not answer.
result, failure = rewrite("over", check=True, endpoints=["https://127.0.0.1:2399"])
assert failure and failure.reason == "EtcdUnhealthy" and "127.0.0.1:2399" in failure.message, failure
end(other.process)
