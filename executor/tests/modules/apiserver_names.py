"""Names that the owner adds come into the API server's certificate and kubeadm's configuration; those that are taken back leave both."""

from types import SimpleNamespace

from ansible_collections.clusterwright.cluster.plugins.module_utils import kubeadm_config
from ansible_collections.clusterwright.cluster.plugins.modules import apiserver_names as module

TEXT = """\
apiServer:
  certSANs:
  - 10.0.0.1
  - 10.0.0.2
apiVersion: kubeadm.k8s.io/v1beta4
networking:
  dnsDomain: cluster.local
  serviceSubnet: 10.96.0.0/12
"""
OWN = {"kubernetes", "kubernetes.default.svc.cluster.local", "cp", "10.96.0.1"}


class Cluster:
    """The ConfigMap of kubeadm, and the certificate that it makes by it."""

    def __init__(self) -> None:
        # How often the old certificate is shown after a new one was made.
        self.late, self.next = 0, None
        self.text, self.annotations, self.writes, self.renewals = TEXT, {}, 0, 0
        self.shown = OWN | {"10.0.0.1", "10.0.0.2"}

    def read(self, _client) -> tuple:
        return {"metadata": {"annotations": dict(self.annotations), "resourceVersion": "1"}}, self.text

    def write(self, _client, _found, text, notes) -> None:
        self.text, self.writes = text, self.writes + 1
        self.annotations.update({annotation: module.json.dumps(value) for annotation, value in notes.items()})

    def renew(self, _params, text) -> None:
        self.renewals += 1
        self.next = OWN | {module.plain(name) for name in kubeadm_config.items(text, kubeadm_config.NAMES)}

    def served(self, _params) -> set:
        if self.next is not None:
            self.late -= 1
            if self.late < 0:
                self.shown, self.next = self.next, None
        return set(self.shown)

    def play(self, *given, check=False) -> list:
        params = {"names": ["10.0.0.1", *given], "given": list(given), "timeout_seconds": 1, "endpoint": {}, "address": "10.0.0.1", "port": 0}
        params["node_name"] = "cp"
        return module.work(SimpleNamespace(params=params, check_mode=check))["differences"]


cluster = Cluster()
module.served = cluster.served
module.Api = lambda _path: None
module.check_info = lambda _client, _params: None
module.renew = cluster.renew
kubeadm_config.read, kubeadm_config.write = cluster.read, cluster.write

assert cluster.play() == [] and (cluster.writes, cluster.renewals) == (0, 0), "nothing is written where nothing is given"
names = ("API.example", "kubernetes", "10.96.0.1")
assert cluster.play(*names) == ["API.example"]
assert "api.example" in cluster.shown and cluster.renewals == 1
assert kubeadm_config.items(cluster.text, kubeadm_config.NAMES) == ["10.0.0.1", "10.0.0.2", "API.example"]
assert cluster.play(*names) == [] and (cluster.writes, cluster.renewals) == (1, 1)
assert cluster.play("other.example", check=True) == ["other.example", "API.example"]
assert (cluster.writes, cluster.renewals) == (1, 1), "looking changes nothing"
assert cluster.play("other.example") == ["other.example", "API.example"]
assert kubeadm_config.items(cluster.text, kubeadm_config.NAMES) == ["10.0.0.1", "10.0.0.2", "other.example"]
assert cluster.play("other.example") == [] and cluster.play() == ["other.example"] and cluster.play() == []
assert cluster.shown == OWN | {"10.0.0.1", "10.0.0.2"} and cluster.renewals == 3

# Nothing ends before the API server shows what was made, also where a name goes.
for given in (("late.example",), ()):
    cluster.late = 2
    cluster.play(*given)
    assert cluster.next is None and ("late.example" in cluster.shown) == bool(given), cluster.shown
