"""What the roles give to the modules when authorities are replaced, and their probes as Ansible plays them on a worker."""

import atexit
import json
import os
import pathlib
import subprocess
import sys

PLACE = pathlib.Path(sys.argv[1])
COLLECTION = os.environ["PYTHONPATH"]
VENV = os.environ.get("CLUSTERWRIGHT_ANSIBLE_VENV") or os.path.expanduser("~/.cache/clusterwright/venv")
ROLES = f"{COLLECTION}/roles"
PYTHON = """#!/bin/sh
exec unshare --mount sh -c 'mount --bind {place}/kubernetes /etc/kubernetes && mount --bind {place}/bin /usr/local/sbin && exec {python} "$@"' sh "$@"
"""
NAMES = ("certificate_authorities_arguments", "control_plane_files", "control_plane_secrets", "control_plane_cluster_configuration", "control_plane_configuration_components")
ENCRYPTION = "/etc/kubernetes/encryption/config.json"
RENDER = f"""
- hosts: all
  gather_facts: false
  roles: [clusterwright.cluster.variables]
  tasks:
  - ansible.builtin.include_vars: {{file: "{ROLES}/{{{{ item }}}}/vars/main.yml"}}
    loop: [kubelet, control_plane_configuration, secrets_encryption, control_plane, certificate_authorities]
  - ansible.builtin.copy:
      content: "{{{{ {{{', '.join(f"'{name}': {name} if '{name}' in wanted else none" for name in NAMES)}}} | to_json }}}}"
      dest: "{PLACE}/{{{{ inventory_hostname }}}}.json"
      mode: "0600"
"""


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def block(letter, kind="CERTIFICATE"):
    return f"-----BEGIN {kind}-----\n{letter * 8}\n-----END {kind}-----\n"


def play(*playbooks, hosts=("c1", "w1")):
    """(exit code, what it said, results by host)."""
    events = PLACE / "events"
    write(events, "")
    variables = {
        "secrets_dir": str(PLACE / "secrets"), "kube_version": "1.35.4", "kube_apiserver_endpoint": {"host": "10.0.0.1", "port": 6443},
        "kube_ca_cert_hash": "sha256:1", "etcd_restore": {"id": "k3x9a0pq"}, "control_plane_hold_seconds": 1, "ansible_connection": "local", "ansible_python_interpreter": f"{PLACE}/python", "ip": "10.0.0.1",
        "kubelet_installed": {"versions": {"registry.k8s.io/coredns/coredns": "v1"}}, "artifacts_url": "https://stand-in",
        # Nobody else's, also if somebody gave it.
        "kube_controller_manager_extra_args": [{"name": "cluster-signing-cert-file", "value": "x"}, {"name": "v", "value": "2"}],
    }  # fmt: skip
    wanted = {"c1": list(NAMES), "w1": NAMES[:1]}
    groups = {name: {"hosts": {host: {"wanted": wanted[host]}} if host in hosts else {}, "vars": variables}
              for name, host in (("kube_control_plane", "c1"), ("kube_node", "w1"))}  # fmt: skip
    write(PLACE / "inventory.yml", json.dumps({"all": {"children": groups}}))
    environment = {
        "PATH": f"{VENV}/bin:{os.environ['PATH']}", "HOME": str(PLACE), "LC_ALL": "C.UTF-8", "CLUSTERWRIGHT_EVENTS": str(events),
        "ANSIBLE_CONFIG": f"{COLLECTION}/ansible.cfg", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = subprocess.run([f"{VENV}/bin/ansible-playbook", "-i", str(PLACE / "inventory.yml"), *playbooks], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
    found = {}
    for event in map(json.loads, events.read_text(encoding="utf-8").splitlines()):
        if event["event"] == "result" and event["status"] != "skipped":
            found[event["host"]] = event
    return done.returncode, done.stdout + done.stderr, found


def rendered(host):
    return json.loads((PLACE / f"{host}.json").read_text(encoding="utf-8"))


def contents(entries):
    return {entry["path"].removeprefix("/etc/kubernetes/pki/"): entry["content"] for entry in entries}


files = {
    "pki.ca.crt": block("N") + block("O"), "pki.ca.key": block("K", "PRIVATE KEY"), "pki.front-proxy-ca.crt": block("F") + block("G"),
    "pki.front-proxy-ca.key": block("P", "PRIVATE KEY"), "pki.etcd-ca.crt": block("E"), "pki.sa.pub": block("S", "PUBLIC KEY"),
    "pki.sa.key": block("T", "PRIVATE KEY"), "pki.apiserver-etcd-client.crt": block("L"),
    "pki.apiserver-etcd-client.key": block("M", "PRIVATE KEY"),
    "kubelet.c1.crt": block("C"), "kubelet.c1.key": block("D", "PRIVATE KEY"), "kubelet.w1.crt": block("W"),
    "kubelet.w1.key": block("X", "PRIVATE KEY"),
}  # fmt: skip
for name, content in files.items():
    write(PLACE / "secrets" / name, content)
write(PLACE / "python", PYTHON.format(place=PLACE, python=sys.executable), 0o755)
write(PLACE / "bin/systemctl", "#!/bin/sh\nexit 0\n", 0o755)
write(PLACE / "kubernetes/pki/ca.crt", block("O"))
# A machine has it; this one may not, and has it only meanwhile.
if not os.path.isdir("/etc/kubernetes"):
    os.makedirs("/etc/kubernetes", exist_ok=True)
    atexit.register(os.rmdir, "/etc/kubernetes")
write(PLACE / "render.yml", RENDER)

code, said, _ = play(str(PLACE / "render.yml"))
assert code == 0, said
given, worker = rendered("c1"), rendered("w1")["certificate_authorities_arguments"]
arguments = given["certificate_authorities_arguments"]
assert contents(arguments["files"]) == {
    "ca.crt": block("N") + block("O"), "ca-signer.crt": block("N"), "front-proxy-ca.crt": block("F") + block("G"), "etcd/ca.crt": block("E"),
    "apiserver-etcd-client.crt": block("L"), "sa.pub": block("S", "PUBLIC KEY"),
}, arguments["files"]  # fmt: skip
assert set(contents(arguments["secrets"])) == {"ca.key", "front-proxy-ca.key", "sa.key", "apiserver-etcd-client.key"}, arguments["secrets"]
assert arguments["kubelet_client"].split() == (block("C") + block("D", "PRIVATE KEY")).split(), arguments["kubelet_client"]
assert arguments["next_client"] == "" and arguments["version"] == "v1.35.4", arguments
assert contents(worker["files"]) == {"ca.crt": block("N") + block("O")} and worker["secrets"] == [] and worker["next_client"] == "", worker
assert worker["kubelet_client"].split() == (block("W") + block("X", "PRIVATE KEY")).split(), worker["kubelet_client"]
# The first install has the same.
assert contents(given["control_plane_files"])["ca-signer.crt"] == block("N"), given["control_plane_files"]
signing = {"name": "cluster-signing-cert-file", "value": "/etc/kubernetes/pki/ca-signer.crt"}
configured = given["control_plane_cluster_configuration"]["controllerManager"]["extraArgs"]
for flags in (configured, given["control_plane_configuration_components"][1]["arguments"]):
    assert [flag for flag in flags if flag["name"] == signing["name"]] == [signing] and {"name": "v", "value": "2"} in flags, flags

# Without a key nothing is encrypted.
assert ENCRYPTION not in contents(given["control_plane_secrets"])
assert not any(flag["name"] == "encryption-provider-config" for flag in given["control_plane_cluster_configuration"]["apiServer"]["extraArgs"])

write(PLACE / "secrets/pki.encryption.key", "key-b:BBB=\nAAA=\n")
write(PLACE / "secrets/pki.next-client.crt", block("Y"))
write(PLACE / "secrets/pki.next-client.key", block("Z", "PRIVATE KEY"))
code, said, _ = play(str(PLACE / "render.yml"))
assert code == 0, said
assert rendered("c1")["certificate_authorities_arguments"]["next_client"].split() == (block("Y") + block("Z", "PRIVATE KEY")).split()
assert rendered("w1")["certificate_authorities_arguments"]["next_client"] == "" and rendered("w1")["certificate_authorities_arguments"]["secrets"] == []
given = rendered("c1")
for entries in (given["control_plane_secrets"], given["certificate_authorities_arguments"]["secrets"]):
    providers = json.loads(contents(entries)[ENCRYPTION])["resources"][0]["providers"]
    assert providers == [{"secretbox": {"keys": [{"name": "key-b", "secret": "BBB="}, {"name": "key1", "secret": "AAA="}]}}, {"identity": {}}], providers
flag = {"name": "encryption-provider-config", "value": ENCRYPTION}
assert flag in given["control_plane_cluster_configuration"]["apiServer"]["extraArgs"], given["control_plane_cluster_configuration"]

# The probes say what is missing, and write nothing.
code, said, results = play(f"{COLLECTION}/playbooks/probe/certificate-authorities.yml", hosts=("w1",))
assert code != 0 and results["w1"]["reason"] == "AuthoritiesDiffer", said
assert "/etc/kubernetes/pki/ca.crt differs" in results["w1"]["msg"], results
assert (PLACE / "kubernetes/pki/ca.crt").read_text(encoding="utf-8") == block("O")
code, said, results = play(f"{COLLECTION}/playbooks/probe/restart-pods.yml", hosts=("w1",))
assert code != 0 and results["w1"]["reason"] == "KubeconfigMissing", said
code, said, results = play(f"{COLLECTION}/playbooks/probe/rewrite-secrets.yml", hosts=("c1",))
assert code != 0 and results["c1"]["reason"] == "AuthoritiesDiffer" and "has other keys than the run" in results["c1"]["msg"], said
code, said, results = play(f"{COLLECTION}/playbooks/rewrite-secrets.yml", hosts=("c1",))
assert code != 0 and results["c1"]["reason"] == "AuthoritiesDiffer" and "BBB" not in said, said
# A restore brings them before it starts an API server, which there is none of here.
code, said, results = play(f"{COLLECTION}/playbooks/release-control-plane.yml", hosts=("c1",))
assert code != 0 and results["c1"]["task"] == "Release one API server", said
assert json.loads((PLACE / "kubernetes/encryption/config.json").read_text(encoding="utf-8"))["resources"][0]["providers"] == providers
write(PLACE / "secrets/pki.encryption.key", "AAA=")
code, said, results = play(f"{COLLECTION}/playbooks/release-control-plane.yml", hosts=("c1",))
assert code != 0 and results["c1"]["reason"] == "AuthorityReplaced", said
os.remove(PLACE / "secrets/pki.encryption.key")
# What does not fit is refused by the step itself, on a control plane after its flags only.
code, said, results = play(f"{COLLECTION}/playbooks/certificate-authorities.yml", hosts=("w1",))
assert code != 0 and results["w1"]["reason"] == "InvalidVariables", said
code, said, results = play(f"{COLLECTION}/playbooks/certificate-authorities.yml", hosts=("c1",))
assert code != 0 and results["c1"]["reason"] == "KubeconfigMissing", said
assert (PLACE / "kubernetes/pki/ca-signer.crt").read_text(encoding="utf-8") == block("O"), "from the machine's own ca.crt"
assert (PLACE / "kubernetes/pki/ca.crt").read_text(encoding="utf-8") == block("O")
