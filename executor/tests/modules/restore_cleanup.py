"""What is of the past goes from a restored cluster, each object by its UID, through the machine's own API server; the rest stays."""

from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Refused
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import restore_cleanup

SECRETS, REQUESTS, NODES = restore_cleanup.SECRETS, restore_cleanup.REQUESTS, restore_cleanup.NODES
PODS = "/api/v1/namespaces/shop/pods"
TOKEN = "bootstrap.kubernetes.io/token"
restore_cleanup.PAGE = 2


class Server:
    """What an API server answers to these requests."""

    def __init__(self, forbidden=0, refuse="", replace="", times=10**9):
        self.objects = {
            SECRETS: {"bootstrap-token-abcdef": TOKEN, "bootstrap-token-ghijkl": TOKEN, "bootstrap-signer": "Opaque", "tls": "kubernetes.io/tls"},
            REQUESTS: dict.fromkeys(("csr-1", "csr-2", "csr-3", "csr-4", "csr-5"), ""),
            NODES: dict.fromkeys(("cp-1", "w-1", "w-2", "ghost", "other-ghost"), ""),
            PODS: {"till-1": "w-1", "till-2": "ghost", "till-3": "ghost", "till-4": "ghost", "till-5": ""},
        }
        self.forbidden, self.refuse, self.replace, self.times = forbidden, refuse, replace, times
        self.server, self.servers, self.deleted = "https://endpoint:6443", set(), []

    def __call__(self, _kubeconfig):
        return self

    def request(self, method, path, body=None, timeout=15):
        self.servers.add(self.server)
        if self.forbidden:
            self.forbidden -= 1
            raise Refused(403, "nobody may do anything yet")
        if method == "DELETE":
            assert body["gracePeriodSeconds"] == 0, body
            return self.delete(path, body["preconditions"]["uid"])
        assert method == "GET" and body is None
        place, _mark, query = path.partition("?")
        words = dict(pair.split("=", 1) for pair in query.split("&") if pair)
        place, namespace = (PODS, {"namespace": "shop"}) if place == restore_cleanup.PODS else (place, {})
        names = list(self.objects[place])
        if namespace:
            wanted = words["fieldSelector"].removeprefix("spec.nodeName%3D")
            assert wanted in ("ghost", "other-ghost"), wanted
            names = [name for name in names if self.objects[place][name] == wanted]
        elif "fieldSelector" in words:
            assert words["fieldSelector"] == "type%3D" + TOKEN.replace("/", "%2F"), words
            names = [name for name in names if self.objects[place][name] == TOKEN]
        begin, limit = int(words.get("continue", 0)), int(words["limit"])
        more = {"continue": str(begin + limit)} if begin + limit < len(names) else {}
        return {"metadata": more, "items": [{"metadata": {"name": name, "uid": f"uid of {name}", **namespace}} for name in names[begin:begin + limit]]}

    def delete(self, path, uid):
        place, _slash, name = path.rpartition("/")
        if name == self.refuse and self.times:
            self.times -= 1
            raise Refused(500, "a webhook does not answer")
        if name not in self.objects[place]:
            raise Refused(404, "not found")
        if name == self.replace or uid != f"uid of {name}":
            raise Refused(409, "the UID in the precondition is another one")
        del self.objects[place][name]
        self.deleted.append(name)
        return {}

    def work(self, nodes=("cp-1", "W-1", "w-2", "not-there-yet"), check=False, timeout=20):
        """The result, or the reason of the failure and its message."""
        restore_cleanup.Api = self
        params = {"nodes": list(nodes), "address": "10.0.0.1", "port": 6443, "timeout_seconds": timeout}
        try:
            result = restore_cleanup.work(type("Call", (), {"params": params, "check_mode": check}))
            return result["changed"], result["msg"]
        except StepFailure as failure:
            return failure.reason, failure.message


def expect(found, wanted):
    assert found == wanted, f"{found!r}, not {wanted!r}"


GONE = "2 bootstrap tokens, 5 certificate signing requests, 3 Pods, Node ghost, Node other-ghost"
cluster = Server(forbidden=1)
expect(cluster.work(check=True), (True, f"deleted {GONE}"))
expect(cluster.deleted, [])
expect(cluster.work(), (True, f"deleted {GONE}"))
expect({place: sorted(objects) for place, objects in cluster.objects.items()},
       {SECRETS: ["bootstrap-signer", "tls"], REQUESTS: [], NODES: ["cp-1", "w-1", "w-2"], PODS: ["till-1", "till-5"]})
expect(cluster.work(), (False, "nothing to delete"))
expect(cluster.servers, {"https://10.0.0.1:6443"})

# An object that somebody deleted or made anew meanwhile is not of the past.
expect(Server(replace="ghost").work()[1], "deleted 2 bootstrap tokens, 5 certificate signing requests, 3 Pods, Node other-ghost")

# A webhook of the cluster that is back in time delays it. One that is not ends it, and it is said what is refused.
expect(Server(refuse="ghost", times=2).work(), (True, f"deleted {GONE}"))
expect(Server(refuse="other-ghost").work(timeout=0), ("RestoreCleanupRefused", "failed to delete /api/v1/nodes/other-ghost: HTTP 500: a webhook does not answer"))
cluster = Server()
expect(cluster.work(nodes=())[0], "InvalidVariables")
expect(cluster.deleted, [])
reason, message = Server(forbidden=10**9).work(timeout=0)
expect((reason, "HTTP 403: nobody may do anything yet" in message), ("ApiserverNotReady", True))
