"""The steps of an upgrade as Ansible plays them, on a control plane with etcd and on a worker, whose programs and images are their own.

containerd and kubeadm are stand-ins. No cluster runs: what `kubeadm-upgrade` does is in kubeadm_upgrade.py, and here it is how far it
gets without one."""

import atexit
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile

from bundle_world import ARCH, PLACE, Served, entry

COLLECTION = os.environ["PYTHONPATH"]
VENV = os.environ.get("CLUSTERWRIGHT_ANSIBLE_VENV") or os.path.expanduser("~/.cache/clusterwright/venv")
HOSTS = ("c1", "w1")
# What a machine has for itself, by where it is seen.
OWN = {
    "bin": "/usr/local/bin", "clusterwright": "/etc/clusterwright", "kubernetes": "/etc/kubernetes", "cache": "/var/cache/clusterwright",
    "kubelet": "/var/lib/kubelet",
}  # fmt: skip
PYTHON = """#!/bin/sh
exec unshare --mount sh -c '{mounts} && exec {python} "$@"' sh "$@"
"""
# Knows the images that were imported; an archive's first line is its image.
CTR = """#!/bin/sh
for last; do :; done
case "$*" in
*"images ls"*) cat {place}/{host}/images ;;
*import*) head -n 1 "$last" >> {place}/{host}/images ;;
esac
"""
KUBEADM = "#!/bin/sh\necho registry.k8s.io/kube-apiserver:v1.35.4\necho registry.k8s.io/pause:3.10.1\n"
IMAGES = {
    "pause": ("3.10", "3.10.1"), "kube-proxy": ("v1.34.4", "v1.35.4"), "coredns/coredns": ("v1.12.1", "v1.14.7"),
    "kube-apiserver": ("v1.34.4", "v1.35.4"), "kube-controller-manager": ("v1.34.4", "v1.35.4"), "kube-scheduler": ("v1.34.4", "v1.35.4"),
}  # fmt: skip
ARCHIVES = {"containerd": ("2.1.0", "bin", ("containerd", "containerd-shim-runc-v2", "ctr")), "cni-plugins": ("1.9.1", ".", ("bridge",)),
            "etcd": ("3.6.16", "etcd-v3.6.16", ("etcd", "etcdctl", "etcdutl"))}  # fmt: skip


def artifact(name: str, version: str, kind: str, content: bytes) -> dict:
    found = entry(name, version, kind=kind, arch=ARCH)
    served.files[found["path"]] = content
    return {**found, "sha256": hashlib.sha256(content).hexdigest()}


def archive(folder: str, names: tuple) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as out:
        for name in names:
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(name)
            out.addfile(member, io.BytesIO(name.encode()))
    return buffer.getvalue()


def play(*playbooks: str, hosts: tuple = HOSTS) -> tuple:
    """(exit code, results by host) of a run on these machines."""
    events = PLACE / "run/events"
    write(events, "")
    variables = {
        "artifacts_url": served.url, "secrets_dir": str(PLACE / "secrets"), "kube_version": "1.35.4", "cluster_name": "c",
        "kube_apiserver_endpoint": {"host": "10.0.0.1", "port": 6443}, "kube_ca_cert_hash": "sha256:1", "smoke_test_image": "",
        "pause_version": "3.10", "coredns_version": "v1.14.7", "ansible_connection": "local",
    }  # fmt: skip
    groups: dict = {}
    for name, host in (("kube_control_plane", "c1"), ("etcd", "c1"), ("kube_node", "w1")):
        own = {host: {"ansible_python_interpreter": f"{PLACE}/{host}/python", "ip": "10.0.0.1"}} if host in hosts else {}
        groups[name] = {"hosts": own, "vars": variables}
    write(PLACE / "inventory.yml", json.dumps({"all": {"children": groups}}))
    environment = {
        "PATH": f"{VENV}/bin:{os.environ['PATH']}", "HOME": str(PLACE), "LC_ALL": "C.UTF-8", "CLUSTERWRIGHT_EVENTS": str(events),
        "ANSIBLE_CONFIG": f"{COLLECTION}/ansible.cfg", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    paths = [f"{COLLECTION}/playbooks/{name}.yml" for name in playbooks]
    done = subprocess.run([f"{VENV}/bin/ansible-playbook", "-i", str(PLACE / "inventory.yml"), *paths], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
    print(done.stdout, done.stderr)
    found: dict = {host: [] for host in HOSTS}
    for event in map(json.loads, events.read_text(encoding="utf-8").splitlines()):
        if event["event"] == "result" and event["status"] != "skipped":
            found[event["host"]].append(event)
    return done.returncode, found


def write(path: pathlib.Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def lies_ready(host: str) -> list:
    folder = PLACE / host / "cache/prefetched"
    return sorted(path.name.partition("@")[0] for path in folder.iterdir()) if folder.exists() else []


def images(host: str) -> list:
    return sorted((PLACE / host / "images").read_text(encoding="utf-8").split())


def last(results: dict, host: str) -> dict:
    return results[host][-1]


served = Served()
listed = [artifact(name, version, "archive", archive(folder, names)) for name, (version, folder, names) in ARCHIVES.items()]
listed += [
    artifact(name, "1.35.4", "file", KUBEADM.encode() if name == "kubeadm" else name.encode()) for name in ("kubelet", "kubeadm", "kubectl")
]
listed.append(artifact("runc", "1.5.2", "file", b"runc"))
for name, versions in IMAGES.items():
    listed += [
        artifact(f"registry.k8s.io/{name}", version, "image", f"registry.k8s.io/{name}:{version}\n".encode()) for version in versions
    ]
served.index = json.dumps({"formatVersion": 1, "artifacts": listed}).encode()
(PLACE / "secrets").mkdir()
mounts = " && ".join(f"mount --bind $HERE/{name} {place}" for name, place in OWN.items())
# A machine has these; this one may not, and has them only meanwhile. One of them other scripts need at the same time.
for place in OWN.values():
    if not os.path.isdir(place):
        os.makedirs(place, exist_ok=True)
        if place != "/etc/clusterwright":
            atexit.register(os.rmdir, place)
for host in HOSTS:
    for name in OWN:
        (PLACE / host / name).mkdir(parents=True)
    write(PLACE / host / "images", "registry.k8s.io/pause:3.10\n")
    write(PLACE / host / "bin/ctr", CTR.format(place=PLACE, host=host), 0o755)
    write(PLACE / host / "python", PYTHON.format(mounts=mounts.replace("$HERE", f"{PLACE}/{host}"), python=sys.executable), 0o755)

# No cluster runs, so the control plane says that its etcd is not well; the worker has nothing to say.
code, results = play("preflight-upgrade", "probe/preflight-upgrade")
assert code != 0 and last(results, "c1")["reason"] == "PreflightFailed", results
assert "etcd-unhealthy" in last(results, "c1")["msg"] and "artifacts-missing" not in last(results, "c1")["msg"], results
assert last(results, "w1")["status"] == "ok", results

code, results = play("probe/prefetch")
assert code != 0 and {last(results, host)["reason"] for host in HOSTS} == {"NotPrefetched"}, results

code, results = play("prefetch", "probe/prefetch")
assert code == 0, results
assert lies_ready("c1") == ["cni-plugins", "containerd", "etcd", "kubeadm", "kubectl", "kubelet", "runc"], lies_ready("c1")
assert lies_ready("w1") == ["cni-plugins", "containerd", "kubeadm", "kubelet", "runc"], lies_ready("w1")
all_nodes = ["coredns/coredns:v1.14.7", "kube-proxy:v1.35.4", "pause:3.10", "pause:3.10.1"]
apiserver = [f"kube-{name}:v1.35.4" for name in ("apiserver", "controller-manager", "scheduler")]
assert set(images("c1")) == {f"registry.k8s.io/{image}" for image in (*all_nodes, *apiserver)}, images("c1")
assert set(images("w1")) == {f"registry.k8s.io/{image}" for image in all_nodes}, images("w1")
for host in HOSTS:
    assert os.listdir(PLACE / host / "bin") == ["ctr"], "something was installed"
served.asked.clear()
code, results = play("prefetch", "probe/prefetch")
assert code == 0 and not [event for events in results.values() for event in events if event["changed"]], results
assert set(served.asked) == {"index.json"}, served.asked

# Without a cluster the upgrade gets as far as the first question about it, and has installed kubeadm from what lies ready.
served.asked.clear()
for host in HOSTS:
    code, results = play("kubeadm-upgrade", hosts=(host,))
    assert code != 0 and last(results, host)["reason"] == "KubeadmUnfinished", results
    assert sorted(os.listdir(PLACE / host / "bin")) == ["ctr", "kubeadm"] and "kubeadm" not in lies_ready(host)
    write(PLACE / host / "clusterwright/kubeadm.json", json.dumps({"identity": "sha256:1", "node": host}))
    for playbook in ("kubeadm-upgrade", "probe/kubeadm-upgrade"):
        code, results = play(playbook, hosts=(host,))
        assert code != 0 and last(results, host)["reason"] == "KubeconfigMissing", results
assert set(served.asked) == {"index.json"}, served.asked
code, results = play("prefetch", "probe/prefetch")
assert code == 0 and not [event for events in results.values() for event in events if event["changed"]], "installed is as good"
