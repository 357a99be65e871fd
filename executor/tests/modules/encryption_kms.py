"""A KMS plug-in takes the place of a key, its own key is replaced, and a key takes its place: a real API server and etcd, and a test plug-in that
does encrypt. The API server is brought to each stage by the step, with what the role makes of a run's lines."""

import base64
import json
import os
import pathlib
import socket
import sys
import threading

from encryption_lines_world import rendered

PLACE = pathlib.Path(sys.argv[1])
KEY, LATER = (base64.b64encode(letter * 32).decode() for letter in (b"a", b"b"))
SOCKET = "/run/kms-test/plugin.sock"
ENDPOINT = f"unix://{SOCKET}"
PLUGIN = {"name": "vault", "endpoint": ENDPOINT, "timeoutSeconds": 3}
BY_PLUGIN = json.dumps({"kms": PLUGIN, "resources": ["configmaps", "secrets"]})
WRITTEN = json.dumps({"kms": PLUGIN, "written": 1, "resources": ["configmaps", "secrets"]})
# The lines of a run, as the operator brings them.
STAGES = {
    "key": KEY, "plugin-trust": f"{KEY}\n{BY_PLUGIN}", "plugin-sign": f"{BY_PLUGIN}\n{KEY}", "plugin": BY_PLUGIN,
    "written-trust": f"{BY_PLUGIN}\n{WRITTEN}", "written-sign": f"{WRITTEN}\n{BY_PLUGIN}", "written": WRITTEN,
    "key-trust": f"{WRITTEN}\nkey-later:{LATER}", "key-sign": f"key-later:{LATER}\n{WRITTEN}",
    "key-over": f"key-later:{LATER}",
}  # fmt: skip

RENDERED = rendered(PLACE, STAGES)

from authorities_world import ADDRESS, PORT, build, client, read, wait, write  # noqa: E402
from kms_test_plugin import Keys, Plugin  # noqa: E402
from machine_world import play, sh  # noqa: E402

from ansible_collections.clusterwright.cluster.plugins.module_utils import (  # noqa: E402
    api,
    certificate_places,
    component_manifest,
    component_process,
    control_plane,
    control_plane_component,
    kms_plugin,
    static_pod,
)
from ansible_collections.clusterwright.cluster.plugins.modules import certificate_authorities, secrets_rewrite  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import kms_plugin as kms_plugin_module  # noqa: E402

secrets_rewrite.PAUSE_SECONDS = 1
FOLDERS = ("/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/configmaps")
MANIFEST = f"{static_pod.FOLDER}/kube-apiserver.yaml"


def content(name):
    return {"metadata": {"name": name}, "data": {"x": base64.b64encode(name.encode()).decode()}}


def make(name):
    for folder in FOLDERS:
        asked.request("POST", folder, content(name))
    made.append(name)


def readable():
    for folder in FOLDERS:
        for name in made:
            assert asked.request("GET", f"{folder}/{name}")["data"] == content(name)["data"], (folder, name)


def stored(folder):
    pki = "/etc/etcd/pki"
    found = json.loads(sh("etcdctl", "--endpoints=https://127.0.0.1:2379", f"--cacert={pki}/ca.crt", f"--cert={pki}/healthcheck-client.crt",
                          f"--key={pki}/healthcheck-client.key", "--write-out=json", "get", "--prefix", f"/registry/{folder}/"))  # fmt: skip
    return {base64.b64decode(entry["key"]).decode().rsplit("/", 1)[1]: base64.b64decode(entry["value"]) for entry in found["kvs"]}


def beginnings(folder):
    """The names of what has encrypted the values, and of their keys where a plug-in has."""
    found = set()
    for value in stored(folder).values():
        parts = value.split(b":", 5)
        if not value.startswith(b"k8s:enc:"):
            found.add("plain")
        elif parts[2] == b"kms":
            found.add(f"{parts[4].decode()} {kms_plugin.key_id_in(parts[5])}")
        else:
            found.add(parts[4].decode())
    return found


def bring(stage, restarts=True):
    """The step certificate-authorities."""
    parameters = state.parameters()
    parameters["secrets"] = parameters["secrets"] + RENDERED[stage][0]
    before = component_process.pids(control_plane.APISERVER)
    result, failure = play(certificate_authorities, False, **parameters)
    assert failure is None and result["changed"] == restarts, f"{stage}: {failure and failure.message}: {result}"
    assert (component_process.pids(control_plane.APISERVER) == before) is not restarts, stage
    assert KEY not in result["msg"] and LATER not in result["msg"], result["msg"]
    readable()


def rewrite(stage, check=False):
    parameters = {"secrets": RENDERED[stage][0], "address": ADDRESS, "port": PORT, "endpoints": ["https://127.0.0.1:2379"], "prefix": "/registry",
                  "timeout_seconds": 150}  # fmt: skip
    result, failure = play(secrets_rewrite, check, **parameters)
    assert failure is None, failure and failure.message
    return result


def volumes():
    """Of plug-ins, that the manifest would have."""
    wanted = {"name": control_plane.APISERVER, "volumes": []}
    component = control_plane_component.Component(wanted, [])
    planned = component.planned()
    assert all(f"path: {entry['path']}" in planned and f"mountPath: {entry['path']}" in planned for entry in component.volumes), planned
    return [entry["path"] for entry in component.volumes]


def what_the_role_makes():
    found = json.loads(RENDERED["plugin-trust"][0][0]["content"])["resources"]
    plugin = {"apiVersion": "v2", "endpoint": ENDPOINT, "timeout": "3s"}
    assert found == [
        {"resources": ["configmaps"], "providers": [{"identity": {}}, {"kms": {**plugin, "name": "vault.configmaps"}}]},
        {"resources": ["secrets"], "providers": [{"secretbox": {"keys": [{"name": "key1", "secret": KEY}]}}, {"kms": {**plugin, "name": "vault.secrets"}},
                                                 {"identity": {}}]},
    ], found  # fmt: skip
    contents = {stage: RENDERED[stage][0][0]["content"] for stage in STAGES}
    assert contents["plugin"] == contents["written-trust"] == contents["written-sign"] == contents["written"], "nothing restarts for it"
    assert RENDERED["plugin-sign"][1] == [PLUGIN] and RENDERED["key"][1] == []


def a_plugin_that_does_not_do_is_told():
    for plugin, said in ((PLUGIN, "No such file"), ({**PLUGIN, "endpoint": "unix:///data/deaf"}, "Connection refused")):
        if "deaf" in plugin["endpoint"]:
            socket.socket(socket.AF_UNIX).bind("/data/deaf")
        result, failure = play(kms_plugin_module, False, plugins=[plugin], timeout_seconds=1)
        assert failure and failure.reason == "KMSPluginNotReady" and said in failure.message and "vault" in failure.message, (failure, result)


what_the_role_makes()
kubelet, member, state = build()
asked, made = client(ROOT := "/etc/kubernetes/super-admin.conf"), []
asked.server = f"https://{ADDRESS}:{PORT}"
make("plain")
write(certificate_places.ENCRYPTION, RENDERED["key"][0][0]["content"], 0o600)
old = component_process.pids(control_plane.APISERVER)
flag = f"    - kube-apiserver\n    - --encryption-provider-config={certificate_places.ENCRYPTION}\n"
write(MANIFEST, read(MANIFEST).replace("    - kube-apiserver\n", flag, 1), 0o600)
wait(lambda: component_process.pids(control_plane.APISERVER) not in (old, []), 120)
wait(lambda: not control_plane.unhealthy([control_plane.APISERVER], ADDRESS, PORT), 180)
make("by-key")
assert volumes() == []
a_plugin_that_does_not_do_is_told()
keys = Keys("/data/kms-keys")
plugin = Plugin(SOCKET, keys)
threading.Thread(target=plugin.serve_forever, daemon=True).start()
result, failure = play(kms_plugin_module, True, plugins=[PLUGIN], timeout_seconds=1)
assert failure is None and result["msg"] == "answers: vault" and not result["changed"], (failure, result)

bring("plugin-trust")
assert volumes() == ["/run/kms-test"]
make("before-it-encrypts")
assert beginnings("secrets") == {"plain", "key1"} and beginnings("configmaps") == {"plain"}, (beginnings("secrets"), beginnings("configmaps"))
bring("plugin-sign")
asked.request("GET", "/readyz/kms-providers")
assert rewrite("plugin-sign")["changed"] and not rewrite("plugin-sign", True)["changed"]
assert beginnings("secrets") == {"vault.secrets test-key-1"} and beginnings("configmaps") == {"vault.configmaps test-key-1"}
readable()
bring("plugin")

# Its key is replaced: nothing restarts, and everything is written anew. The API server learns of it within a minute.
keys.rotate()
assert rewrite("plugin", True)["changed"], "those of the former one are found"
for stage in ("written-trust", "written-sign"):
    bring(stage, restarts=False)
assert rewrite("written-sign")["changed"]
assert beginnings("secrets") == {"vault.secrets test-key-2"} and beginnings("configmaps") == {"vault.configmaps test-key-2"}
bring("written", restarts=False)

# Back to a key, and to Secrets alone.
bring("key-trust")
bring("key-sign")
assert rewrite("key-sign")["changed"]
assert beginnings("secrets") == {"key-later"} and beginnings("configmaps") == {"plain"}, (beginnings("secrets"), beginnings("configmaps"))
# Without the plug-in nothing is missing.
plugin.shutdown()
plugin.server_close()
os.remove(SOCKET)
bring("key-over")
assert volumes() == []
