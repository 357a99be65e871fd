"""The two lists of kubeadm's configuration that the collection sets."""

from ansible_collections.clusterwright.cluster.plugins.module_utils import kubeadm_config as config
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

TEXT = """\
apiServer:
  certSANs:
  - 172.30.0.10
  - "api.example.org"
  extraArgs:
  - name: endpoints
    value: x
apiVersion: kubeadm.k8s.io/v1beta4
etcd:
  external:
    caFile: /etc/kubernetes/pki/etcd/ca.crt
    endpoints:
    - https://10.0.0.1:2379
    httpEndpoints:
    - https://10.0.0.1:2379
    keyFile: x
kind: ClusterConfiguration
networking: {}
"""

assert config.items(TEXT, config.NAMES) == ["172.30.0.10", "api.example.org"]
assert config.items(TEXT, config.ENDPOINTS) == ["https://10.0.0.1:2379"]
changed = config.with_items(TEXT, config.ENDPOINTS, ["https://10.0.0.2:2379", "https://10.0.0.3:2379"])
assert config.items(changed, config.ENDPOINTS) == ["https://10.0.0.2:2379", "https://10.0.0.3:2379"]
assert config.items(changed, config.HTTP_ENDPOINTS) == ["https://10.0.0.1:2379"]
assert [line for line in changed.splitlines() if line not in TEXT.splitlines()] == [
    '    - "https://10.0.0.2:2379"',
    '    - "https://10.0.0.3:2379"',
]
changed = config.with_items(changed, config.NAMES, ["a"])
assert config.items(changed, config.NAMES) == ["a"] and "value: x" in changed and changed.endswith("networking: {}\n")
assert config.items("etcd: {}\n", config.ENDPOINTS) == []
try:
    config.with_items("etcd: {}\n", config.ENDPOINTS, ["x"])
    raise AssertionError("a list that is not there was set")
except StepFailure as failure:
    assert failure.reason == "ManifestRefused"
