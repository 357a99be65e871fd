"""A join proves the machine that joins: what is sick elsewhere is a warning, and what is sick here fails, whatever is well elsewhere."""

import subprocess

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import smoke_test

HERE = "cp-2"
smoke_test.time.sleep = lambda _seconds: None
CLOCK = {"now": 0.0}


def tick():
    CLOCK["now"] += 1.0
    return CLOCK["now"]


smoke_test.time.monotonic = tick


class Cluster:
    """What an API server of a cluster answers. `client` and `witness` are how those Pods end; None: they never start."""

    def __init__(self, client=0, witness=0, dns=("cp-1", "cp-3"), nodes=(HERE, "cp-1", "cp-3"), controllers=True):
        self.ends = {"client": client, "witness": witness, "server": None}
        self.dns, self.nodes, self.controllers = dns, nodes, controllers
        self.pods, self.servers, self.server = {}, [], "https://endpoint:6443"

    def __call__(self, _kubeconfig):
        return self

    def request(self, method, path, body=None):
        self.servers.append(self.server)
        if method == "DELETE":
            return {}
        if body["kind"] == "Namespace":
            return {"metadata": {"name": "test"}}
        if body["kind"] == "Service":
            return {"spec": {"clusterIP": "10.96.1.1"}}
        self.pods[body["metadata"]["name"]] = body
        return body

    def ask(self, path):
        what = path.partition("?")[0].rpartition("/")[2]
        if what in self.ends:
            return self.pod(what) if what in self.pods else None
        if what == "default":
            return {"metadata": {}} if self.controllers else None
        if what == "nodes":
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            return {"items": [{"metadata": {"name": name}, "status": ready} for name in self.nodes]}
        if what == "endpointslices":
            if "kube-dns" in path:
                ready = [{"addresses": [f"10.220.0.{at}"], "nodeName": node} for at, node in enumerate(self.dns)]
                return {"items": [{"endpoints": [*ready, {"addresses": ["10.220.9.9"], "conditions": {"ready": False}}]}]}
            return {"items": [{"endpoints": [{"addresses": ["10.220.1.5"], "nodeName": HERE}]}]}
        assert what == "namespaces", path
        return {"items": []}

    def pod(self, name):
        """A Pod as its kubelet tells of it."""
        code = self.ends[name]
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        if name != "server" and code is None:
            status = {"phase": "Pending"}
        elif name != "server":
            ended = {"exitCode": code, "message": "it says why"}
            status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"state": {"terminated": ended}}]}
        return {**self.pods[name], "status": status}


def play(cluster, node=HERE):
    """("well" or "elsewhere" or "failed", the message)."""
    smoke_test.Api = cluster
    params = {
        "bundle": {}, "image": "busybox", "version": "1", "dns_domain": "cluster.local", "timeout_seconds": 120,
        "node": node, "address": "172.30.0.12", "port": 6443,
    }
    try:
        result = smoke_test.work(type("Call", (), {"params": params, "check_mode": False}))
    except StepFailure as failure:
        return "failed", failure.message
    findings = result.get("clusterwright", {}).get("findings", [])
    assert all(finding["severity"] == "warning" for finding in findings)
    return ("elsewhere" if findings else "well"), result["msg"]


def expect(how, said, cluster, node=HERE):
    outcome, message = play(cluster, node)
    assert (outcome, said in message) == (how, True), f"{outcome}: {message}"
    return cluster


SERVICE, NAME = smoke_test.NO_SERVICE, smoke_test.NO_NAME

joined = expect("well", "answered", Cluster())
assert {pod["spec"]["nodeName"] for pod in joined.pods.values()} == {HERE}, "every Pod runs on the machine that joins"
assert set(joined.servers) == {"https://172.30.0.12:6443"}, "its own API server is asked"

# Sick elsewhere.
seen = expect("elsewhere", "cp-3 gets no answer", Cluster(client=NAME, witness=NAME, dns=("cp-1", "cp-1")))
assert seen.pods["witness"]["spec"]["nodeName"] == "cp-3", "a node without the DNS's Pods is asked"
assert "for server in 10.220.0.0 10.220.0.1;" in seen.pods["witness"]["spec"]["containers"][0]["command"][3]
expect("elsewhere", "no Pod of the cluster's DNS is ready", Cluster(client=NAME, dns=()))
expect("elsewhere", "does not start", Cluster(client=NAME, witness=None))
expect("elsewhere", "runs on cp-1 alone", Cluster(client=NAME, dns=("cp-1",), nodes=(HERE, "cp-1")))
expect("elsewhere", "no service account", Cluster(controllers=False))

# Sick here.
expect("failed", "a Pod on node cp-3 gets an answer", Cluster(client=NAME, dns=("cp-1", "cp-1")))
seen = expect("failed", "a Pod on node cp-1 gets an answer", Cluster(client=NAME))
assert "for server in 10.220.0.1;" in seen.pods["witness"]["spec"]["containers"][0]["command"][3], "not the one beside the witness"
expect("failed", "runs on this very node", Cluster(client=NAME, dns=("cp-1", HERE)))
expect("failed", "it says why", Cluster(client=SERVICE))
expect("failed", "Pending", Cluster(client=None))

# An installation proves the cluster: nothing is elsewhere, and the scheduler has its part.
whole = expect("failed", "it says why", Cluster(client=NAME, dns=()), node="")
assert all("nodeName" not in pod["spec"] for pod in whole.pods.values())
assert set(whole.servers) == {"https://endpoint:6443"}

for pod in [*seen.pods.values(), *whole.pods.values()]:
    script = pod["spec"]["containers"][0]["command"][3]
    checked = subprocess.run(["sh", "-n", "-c", script], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, f"{checked.stderr}\n{script}"
