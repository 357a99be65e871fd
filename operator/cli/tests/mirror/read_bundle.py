"""The reader of the executor takes all that machines need from a bundle: URL, SHA-256 of the index, Kubernetes, cache."""

import os
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle as bundles
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle

REPOSITORY = "registry.k8s.io"
OWN = ("kubelet", "kubeadm", "kubectl")
IMAGES = ("apiserver", "controller-manager", "proxy", "scheduler")
COMPONENTS = ("etcd", "containerd", "runc", "cni-plugins", f"{REPOSITORY}/coredns/coredns", f"{REPOSITORY}/pause", "clusterwright.dev/busybox")


def wanted(kubernetes: str) -> list:
    """All that machines of that version of Kubernetes take."""
    programs = [{"name": name, "version": kubernetes} for name in OWN]
    images = [{"name": f"{REPOSITORY}/kube-{name}", "version": f"v{kubernetes}"} for name in IMAGES]
    return programs + images + [{"name": name} for name in COMPONENTS]


if __name__ == "__main__":
    url, digest, version, bundles.CACHE = sys.argv[1:]
    bundle = Bundle({"url": url, "index_sha256": digest, "kube_version": version})
    resolved = bundle.resolve(wanted(version))
    sizes = bundle.fetch_all(resolved, lambda _artifact, path: os.path.getsize(path))
    assert sizes == [artifact["size"] for artifact in resolved], (sizes, resolved)
    print(f"{len(sizes)} artifacts, {sum(sizes)} bytes")
