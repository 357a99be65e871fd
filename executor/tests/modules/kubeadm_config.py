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


class Api:
    """The ConfigMap, into which somebody else writes so many times just before us."""

    def __init__(self, others: int, status: int = 409) -> None:
        self.others, self.status, self.text, self.version, self.given = others, status, "apiServer:\n  certSANs:\n  - a\n", 1, None

    def get(self, _path: str) -> dict:
        annotations = {} if self.given is None else {config.GIVEN: self.given}
        return {"metadata": {"resourceVersion": str(self.version), "annotations": annotations}, "data": {config.KEY: self.text}}

    def request(self, _method: str, _path: str, body: dict, _kind: str) -> None:
        if self.others:
            self.others, self.version = self.others - 1, self.version + 1
            self.text += f"  - other{self.version}\n"
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise config.Refused(self.status, "the object has been modified")
        self.text, self.version = body["data"][config.KEY], self.version + 1
        self.given = body["metadata"].get("annotations", {}).get(config.GIVEN, self.given)


def with_b(found: dict, text: str) -> tuple:
    names = config.items(text, config.NAMES)
    return (text if "b" in names else config.with_items(text, config.NAMES, [*names, "b"])), {config.GIVEN: [*config.given_names(found), "b"]}


api = Api(others=2)
assert config.items(config.edit(api, with_b), config.NAMES) == ["a", "other2", "other3", "b"]
assert config.items(api.text, config.NAMES) == ["a", "other2", "other3", "b"] and api.given == '["b"]'
before = api.version
assert config.edit(api, lambda _found, text: (text, {config.GIVEN: ["b"]})) == api.text
assert config.edit(api, lambda _found, text: (text, None)) == api.text and api.version == before, "nothing is written for nothing"
for api, asked in ((Api(others=100), config.ATTEMPTS), (Api(others=100, status=403), 1)):
    try:
        config.edit(api, with_b)
        raise AssertionError("it was written over what somebody else wrote")
    except StepFailure as failure:
        assert failure.reason == "ManifestRefused" and api.version == 1 + asked, (failure, api.version)
