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

assert config.given_names({"metadata": {}}) == []
assert config.given_names({"metadata": {"annotations": {config.GIVEN: '["a", "10.0.0.1"]'}}}) == ["a", "10.0.0.1"]
assert config.given_names({"metadata": {"annotations": {config.GIVEN: "{"}}}) == []

# A scalar of the outermost level is read and set, and nothing else of its name.
INNER = "apiServer:\n  certificateValidityPeriod: 1h0m0s\n"
WITH = f"{INNER}certificateValidityPeriod: 8760h0m0s\nclusterName: a\n"
assert config.scalar(WITH, config.VALIDITY) == "8760h0m0s"
assert config.scalar(INNER, config.VALIDITY) == ""
assert config.with_scalar(WITH, config.VALIDITY, "60s") == WITH.replace("8760h0m0s", "60s")
assert config.with_scalar(INNER, config.VALIDITY, "60s") == f"{INNER}certificateValidityPeriod: 60s\n"
for text, expected in (("8760h0m0s", 31536000), ("60s", 60), ("1h30m", 5400), ("1.5h", None), ("", None), ("x", None)):
    assert config.seconds(text) == expected, text
