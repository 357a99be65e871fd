"""A cluster without kube-proxy: the real kubeadm installs none by what the roles make of the variables, notes it for its upgrades, and
nothing asks for its image or waits for its Pods.

A dry run without a cluster, in a mount and a network of its own; kubeadm still writes below /etc/kubernetes and /var/lib/kubelet."""

import json
import os
import pathlib
import re
import subprocess
import sys

if "DRY_INSIDE" not in os.environ:
    own = ["unshare", "--mount", "--net", sys.executable, *sys.argv]
    sys.exit(subprocess.run(own, env={**os.environ, "DRY_INSIDE": "1"}, check=False).returncode)

PLACE = pathlib.Path(sys.argv[1])
COLLECTION = os.environ["PYTHONPATH"]
VENV = os.environ.get("CLUSTERWRIGHT_ANSIBLE_VENV") or os.path.expanduser("~/.cache/clusterwright/venv")
KUBEADM = f"{os.environ['KUBERNETES_PROGRAMS']}/kubeadm"
VERSION = subprocess.run((KUBEADM, "version", "-o", "short"), check=True, capture_output=True, text=True).stdout.strip()
MADE = ["control_plane_init", "containerd_images", "preflight_artifacts", "addons_rollouts", "smoke_test_timeout_seconds"]
ROLES = ("kubelet", "secrets_encryption", "control_plane", "containerd", "preflight", "addons")
MACHINE = {
    "may_set_conntrack": True, "may_lower_oom_score": True, "container": "", "cgroup_version": 2, "reserved": {}, "reserved_beside_etcd": {},
    "swap": False, "bridge_netfilter": True,
}  # fmt: skip
SECRETS = PLACE / "secrets"
SECRETS.mkdir()
(SECRETS / "join.m1.token").write_text("abcdef.0123456789abcdef\n", encoding="ascii")
(PLACE / "hosts.ini").write_text("[kube_control_plane]\nm1\n[etcd]\nm1\n", encoding="ascii")


def made(**given: object) -> dict:
    """What the roles make of the variables, by its name."""
    variables = {
        "secrets_dir": str(SECRETS), "artifacts_url": "http://x", "kube_version": VERSION.removeprefix("v"), "ip": "10.0.0.1",
        "kube_apiserver_endpoint": {"host": "10.0.0.1", "port": 6443}, "kube_ca_cert_hash": "sha256:1", "ansible_connection": "local",
        "kubelet_installed": {"versions": {"registry.k8s.io/coredns/coredns": "v1.14.7"}}, "coredns_version": "v1.14.7",
        "pause_version": "3.10", "busybox_version": "1.35", "control_plane_configuration_apiserver_arguments": [],
        "control_plane_configuration_apiserver_extra_volumes": [], "control_plane_configuration_controller_manager_arguments": [],
        "control_plane_configuration_scheduler_extra_volumes": [], "ansible_facts": {"clusterwright_machine": MACHINE},
        "ansible_python_interpreter": sys.executable, **given,
    }  # fmt: skip
    (PLACE / "given.json").write_text(json.dumps(variables), encoding="utf-8")
    play = {
        "hosts": "all", "connection": "local", "gather_facts": False,
        "vars_files": [f"{COLLECTION}/roles/variables/defaults/main.yml", *(f"{COLLECTION}/roles/{role}/vars/main.yml" for role in ROLES)],
        "tasks": [
            {"ansible.builtin.copy": {"dest": str(PLACE / name), "content": f"{{{{ {name} | to_json }}}}", "mode": "0600"}} for name in MADE
        ],
    }  # fmt: skip
    (PLACE / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    environment = {**os.environ, "ANSIBLE_CONFIG": f"{COLLECTION}/ansible.cfg", "ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.default"}
    environment["LC_ALL"] = "C.UTF-8"
    argv = [f"{VENV}/bin/ansible-playbook", "-i", f"{PLACE}/hosts.ini", "-e", f"@{PLACE}/given.json", str(PLACE / "play.yml")]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: json.loads((PLACE / name).read_text(encoding="utf-8")) for name in MADE}


def kubeadm(configuration: str, *words: str) -> str:
    """What kubeadm says, with this configuration."""
    (PLACE / "kubeadm.yaml").write_text(configuration, encoding="utf-8")
    done = subprocess.run((KUBEADM, *words, f"--config={PLACE}/kubeadm.yaml"), capture_output=True, text=True, timeout=240, check=False)
    said = done.stdout + done.stderr
    # Of a field that it does not know it only warns.
    assert done.returncode == 0 and "unknown field" not in said, said[-4000:]
    return said


def init(configuration: str) -> str:
    return kubeadm(configuration, "init", "--dry-run", "--ignore-preflight-errors=all")


def named(artifacts: list) -> list:
    return sorted(artifact["name"].rpartition("/")[2] for artifact in artifacts)


upper, work = PLACE / "upper", PLACE / "work"
for folder in (upper, work):
    folder.mkdir()
subprocess.run(("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/etc,upperdir={upper},workdir={work}", "/etc"), check=True)
for home in ("/etc/kubernetes", "/var/lib/kubelet"):
    os.makedirs(home, exist_ok=True)
    subprocess.run(("mount", "-t", "tmpfs", "tmpfs", home), check=True)
os.makedirs("/etc/kubernetes/patches")
subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
subprocess.run(("ip", "address", "add", "10.0.0.1/32", "dev", "lo"), check=True)

none, some = made(kube_proxy_remove=True), made(kube_proxy_configuration={"mode": "nftables"})
assert "KubeProxyConfiguration" not in none["control_plane_init"] and '"mode": "nftables"' in some["control_plane_init"]
for what in ("containerd_images", "preflight_artifacts"):
    with_proxy, without = named(some[what]), named(none[what])
    assert "kube-proxy" in with_proxy, with_proxy
    with_proxy.remove("kube-proxy")
    assert without == with_proxy, (without, with_proxy)
assert [rollout["name"] for rollout in none["addons_rollouts"]] == ["coredns"], none["addons_rollouts"]
assert [rollout["name"] for rollout in some["addons_rollouts"]] == ["coredns", "kube-proxy"], some["addons_rollouts"]
assert (int(none["smoke_test_timeout_seconds"]), int(some["smoke_test_timeout_seconds"])) == (240, 120)

images = kubeadm(none["control_plane_init"], "config", "images", "list")
assert "/kube-apiserver:" in images and "kube-proxy" not in images, images
assert "/kube-proxy:" in kubeadm(some["control_plane_init"], "config", "images", "list")

said = init(some["control_plane_init"])
assert "Applied essential addon: kube-proxy" in said and not re.search(r"proxy:\s+disabled: true", said), said[-4000:]
said = init(none["control_plane_init"])
assert "Applied essential addon: CoreDNS" in said and "addon: kube-proxy" not in said, said[-4000:]
# What upgrades go by, in ConfigMap kubeadm-config.
assert re.search(r"proxy:\s+disabled: true", said), said[-4000:]
