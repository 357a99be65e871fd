"""Where SELinux is at work, containerd is told to label containers, and Kubernetes' own static Pods are let to read the machine's files:
what the roles make of that is read by the real containerd, and laid over its manifests by the real kubeadm."""

import json
import os
import pathlib
import subprocess
import sys
import tomllib

if "DRY_INSIDE" not in os.environ:
    own = ["unshare", "--mount", "--net", sys.executable, *sys.argv]
    sys.exit(subprocess.run(own, env={**os.environ, "DRY_INSIDE": "1"}, check=False).returncode)

PLACE = pathlib.Path(sys.argv[1])
COLLECTION = os.environ["PYTHONPATH"]
VENV = os.environ.get("CLUSTERWRIGHT_ANSIBLE_VENV") or os.path.expanduser("~/.cache/clusterwright/venv")
KUBEADM = f"{os.environ['KUBERNETES_PROGRAMS']}/kubeadm"
CONTAINERD = max((pathlib.Path(os.environ["KUBERNETES_PROGRAMS"]).parents[2] / "containerd").iterdir()) / "bin/containerd"
MADE = ("control_plane_patches", "containerd_files")
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
os.symlink(f"{COLLECTION}/roles/containerd/templates", PLACE / "templates")
(PLACE / "hosts.ini").write_text("[kube_control_plane]\nm1\n", encoding="ascii")


def run(*argv: object) -> str:
    environment = {**os.environ, "ANSIBLE_CONFIG": f"{COLLECTION}/ansible.cfg", "ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.default"}
    environment["LC_ALL"] = "C.UTF-8"
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, env=environment, timeout=240, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def made(**facts: object) -> dict:
    """What the roles make of a machine with these facts, by its name: files by their paths."""
    machine = {"may_lower_oom_score": True, "cgroup_driver": "systemd", "container": "", **facts}
    given = {
        "containerd_installed": {"versions": {"registry.k8s.io/pause": "3.10"}}, "ansible_facts": {"clusterwright_machine": machine},
        "secrets_dir": str(PLACE), "containerd_settings": {},
    }  # fmt: skip
    roles = ("kubelet", "control_plane", "containerd")
    play = {
        "hosts": "all", "connection": "local", "gather_facts": False,
        "vars_files": [f"{COLLECTION}/roles/variables/defaults/main.yml", *(f"{COLLECTION}/roles/{role}/vars/main.yml" for role in roles)],
        "tasks": [
            {"ansible.builtin.copy": {"dest": str(PLACE / name), "content": f"{{{{ {name} | to_json }}}}", "mode": "0600"}} for name in MADE
        ],
    }  # fmt: skip
    (PLACE / "given.json").write_text(json.dumps(given), encoding="utf-8")
    (PLACE / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    run(f"{VENV}/bin/ansible-playbook", "-i", PLACE / "hosts.ini", "-e", f"@{PLACE}/given.json", PLACE / "play.yml")
    return {name: {file["path"]: file["content"] for file in json.loads((PLACE / name).read_text(encoding="utf-8"))} for name in MADE}


def labels_containers(files: dict) -> bool:
    """Whether containerd does, as it reads its configuration."""
    config = PLACE / "config.toml"
    config.write_text(files["/etc/containerd/config.toml"], encoding="utf-8")
    return tomllib.loads(run(CONTAINERD, "-c", config, "config", "dump"))["plugins"]["io.containerd.cri.v1.runtime"]["enable_selinux"]


# A run of an earlier version of the collection has said nothing of it.
for facts in ({}, {"selinux": False}):
    files = made(**facts)
    assert files["control_plane_patches"] == {} and labels_containers(files["containerd_files"]) is False, facts
files = made(selinux=True)
assert labels_containers(files["containerd_files"]) is True
patches = files["control_plane_patches"]
assert sorted(patches) == [f"/etc/kubernetes/patches/{name}+strategic.json" for name in COMPONENTS]
# The tasks that make a control plane write them.
tasks = pathlib.Path(f"{COLLECTION}/roles/control_plane/tasks/main.yml").read_text(encoding="utf-8")
assert tasks.count("+ control_plane_patches") == tasks.count("clusterwright.cluster.kubeadm:") == 2

os.makedirs("/etc/kubernetes", exist_ok=True)
run("mount", "-t", "tmpfs", "tmpfs", "/etc/kubernetes")
os.makedirs("/etc/kubernetes/patches")
for path, content in patches.items():
    pathlib.Path(path).write_text(content, encoding="utf-8")
VERSION = run(KUBEADM, "version", "-o", "short").strip()
(PLACE / "kubeadm.yaml").write_text(f"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: 10.0.0.1}}
patches: {{directory: /etc/kubernetes/patches}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {VERSION}
""", encoding="ascii")  # fmt: skip
run(KUBEADM, "init", "phase", "control-plane", "all", f"--config={PLACE}/kubeadm.yaml")
for name in COMPONENTS:
    manifest = pathlib.Path(f"/etc/kubernetes/manifests/{name}.yaml").read_text(encoding="utf-8")
    kept = "  securityContext:\n    seLinuxOptions:\n      type: spc_t\n    seccompProfile:\n      type: RuntimeDefault\n"
    assert kept in manifest, manifest
