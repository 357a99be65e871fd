"""What is edited in kubeadm's manifests and in its configuration is what kubeadm itself makes of the same flags and volumes."""

import json
import os
import pathlib
import subprocess
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    component_manifest,
    control_plane,
    kubeadm_arguments,
    kubeadm_config,
    yaml_items,
)

PLACE = pathlib.Path(sys.argv[1])
KUBEADM = os.path.join(os.environ["KUBERNETES_PROGRAMS"], "kubeadm")
INIT = {
    "apiVersion": "kubeadm.k8s.io/v1beta4",
    "kind": "InitConfiguration",
    "localAPIEndpoint": {"advertiseAddress": "10.0.0.1", "bindPort": 6443},
    "nodeRegistration": {"name": "n1", "criSocket": "unix:///run/containerd/containerd.sock"},
}
VERSION = subprocess.run((KUBEADM, "version", "-o", "short"), check=True, capture_output=True, text=True).stdout.strip()
CLUSTER = f"""apiServer:
  certSANs:
  - 10.0.0.1
  extraArgs:
  - name: permit-port-sharing
    value: "true"
apiVersion: kubeadm.k8s.io/v1beta4
certificatesDir: {PLACE}/pki
controlPlaneEndpoint: 10.0.0.1:6443
controllerManager:
  extraArgs:
  - name: kube-api-qps
    value: "50"
etcd:
  external:
    caFile: /etc/kubernetes/pki/etcd/ca.crt
    certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt
    endpoints:
    - https://127.0.0.1:2379
    keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key
kind: ClusterConfiguration
kubernetesVersion: {VERSION}
networking:
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/16
scheduler: {{}}
"""
FILES = "/etc/kubernetes/clusterwright"
GIVEN = {
    "kube-apiserver": {
        "enable-admission-plugins": "NodeRestriction,AlwaysPullImages",
        "audit-log-maxage": "30",
        "feature-gates": "A=true,B=false",
        "goaway-chance": "0.001",
        "cors-allowed-origins": "^https://a: b$, #c's \"d\"",
        "v": "4",
    },
    "kube-controller-manager": {"terminated-pod-gc-threshold": "100", "v": "-1"},
    "kube-scheduler": {"v": "true"},
}
VOLUMES = {
    "kube-apiserver": [
        {"name": "clusterwright-files", "path": f"{FILES}/kube-apiserver", "read_only": True},
        {"name": "clusterwright-audit", "path": "/var/log/kubernetes/audit", "read_only": False},
    ],
    "kube-scheduler": [{"name": "clusterwright-files", "path": f"{FILES}/kube-scheduler", "read_only": True}],
}


def rendered(cluster: str, name: str) -> dict:
    """The manifests that kubeadm makes, by their components."""
    folder = PLACE / name
    folder.mkdir()
    (PLACE / f"{name}.yaml").write_text(f"{json.dumps(INIT)}\n---\n{cluster}", encoding="utf-8")
    command = (KUBEADM, "init", "phase", "control-plane", "all", f"--config={PLACE}/{name}.yaml", "--dry-run")
    done = subprocess.run(command, env={**os.environ, "KUBEADM_INIT_DRYRUN_DIR": str(folder)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {component: (folder / f"{component}.yaml").read_text(encoding="utf-8") for component in control_plane.COMPONENTS}


def pairs(component: str) -> list:
    return [{"name": name, "value": value} for name, value in sorted(GIVEN[component].items())]


def mounted(text: str) -> list:
    """Volumes and their mounts, in no order."""
    place = kubeadm_config.block(text, ("spec", "volumes"))
    volumes = yaml_items.split(text[place[0]:place[1]], place[2])
    mounts = yaml_items.split(component_manifest.MOUNTS.search(text).group("items"), 4)
    return [sorted(str(sorted(yaml_items.fields(item).items())) for item in items) for items in (volumes, mounts)]


(PLACE / "pki").mkdir()
before = rendered(CLUSTER, "before")
cluster = CLUSTER
for component in control_plane.COMPONENTS:
    cluster = kubeadm_arguments.with_component(cluster, component, pairs(component), [], VOLUMES.get(component, []))
wanted = rendered(cluster, "wanted")
for component in control_plane.COMPONENTS:
    names = list(GIVEN[component])
    edited = component_manifest.with_flags(before[component], component, pairs(component), [])
    edited = component_manifest.with_volumes(edited, VOLUMES.get(component, []))
    assert sorted(component_manifest.flags(edited)) == sorted(component_manifest.flags(wanted[component])), component
    assert mounted(edited) == mounted(wanted[component]), component
    for name, value in GIVEN[component].items():
        assert f"--{name}={value}" in component_manifest.flags(wanted[component]), name
    # What kubeadm makes anew in an upgrade is as it is wanted, and nothing restarts for it.
    again = component_manifest.with_flags(wanted[component], component, pairs(component), names)
    assert sorted(component_manifest.flags(again)) == sorted(component_manifest.flags(wanted[component]))
    assert component_manifest.with_volumes(again, VOLUMES.get(component, [])) == again
    back = component_manifest.with_volumes(component_manifest.with_flags(edited, component, [], names), [])
    assert back == before[component], component
    cluster = kubeadm_arguments.with_component(cluster, component, [], names, [])
assert cluster == CLUSTER, cluster
