"""The reader of the executor takes all that machines need from a bundle: URL, SHA-256 of the index, Kubernetes, cache."""

import os
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle as bundles
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle

URL, DIGEST, KUBERNETES, bundles.CACHE = sys.argv[1:]
REPOSITORY = "registry.k8s.io"
WANTED = [{"name": name, "version": KUBERNETES} for name in ("kubelet", "kubeadm", "kubectl")]
WANTED += [
    {"name": f"{REPOSITORY}/kube-{name}", "version": f"v{KUBERNETES}"}
    for name in ("apiserver", "controller-manager", "proxy", "scheduler")
]
WANTED += [
    {"name": name}
    for name in ("etcd", "containerd", "runc", "cni-plugins", f"{REPOSITORY}/coredns/coredns", f"{REPOSITORY}/pause",
                 "clusterwright.dev/busybox")
]
bundle = Bundle({"url": URL, "index_sha256": DIGEST, "kube_version": KUBERNETES})
resolved = bundle.resolve(WANTED)
sizes = bundle.fetch_all(resolved, lambda _artifact, path: os.path.getsize(path))
assert sizes == [artifact["size"] for artifact in resolved], (sizes, resolved)
print(f"{len(sizes)} artifacts, {sum(sizes)} bytes")
