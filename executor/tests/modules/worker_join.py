"""A worker that joins proves itself by a static Pod: what is sick on it fails its join, and what is sick elsewhere is a warning."""

import os
import pathlib
import signal
import subprocess

from worker_world import HERE, PLACE, SERVICE, SILENT, WELL, Worker, expect, play, static_pod

from ansible_collections.clusterwright.cluster.plugins.module_utils import smoke_scripts

NO_SERVICE = f"ended with {smoke_scripts.NO_SERVICE}: the Service's address does not answer\n"
NO_NAME = f"ended with {smoke_scripts.NO_NAME}: the name does not resolve\n"


def a_good_machine_asks_the_api_once_and_runs_one_static_pod_that_is_gone_afterwards():
    worker = expect("well", f"a Pod on node {HERE} reached Service kubernetes by its name", Worker())
    assert worker.asked == ["/api/v1/namespaces/default/services/kubernetes"], worker.asked
    (pod,) = worker.pods
    assert (pod["metadata"]["namespace"], pod["spec"]["restartPolicy"], pod["spec"]["containers"][0]["image"]) == (
        "kube-system", "Never", "busybox:1")
    assert pod["spec"]["securityContext"]["runAsNonRoot"] and not pod["spec"]["automountServiceAccountToken"]
    again = expect("well", "", Worker())
    assert again.pods[0]["metadata"]["uid"] != pod["metadata"]["uid"], "a result of an earlier test would be taken for its own"


def what_is_sick_on_the_machine_fails_its_join():
    expect("failed", "ErrImageNeverPull not there\nlast lines of kubelet.service", Worker(said=None))
    expect("failed", "its kubelet reports no such Pod", Worker(said=None, other_mirror=True))
    # Half a line is no result.
    expect("failed", "it said last: ended with 0", Worker(said="ended with 0: answ"))
    expect("failed", f"does not answer to a Pod on node {HERE}, while the API answers the machine", Worker(NO_SERVICE))
    starting = {"status": {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}
    expect("failed", "its kube-proxy is not ready: CrashLoopBackOff", Worker(NO_SERVICE, proxies=[starting]))
    expect("failed", "other nodes do not answer this machine either: silent-1 (no route to host)", Worker(NO_NAME, peers=SILENT))
    expect("failed", "silent-2", Worker(NO_NAME, code=2, peers=[*SILENT[:2], WELL[0]]))
    expect("failed", "resolves it for the machine itself", Worker(NO_NAME, code=0))
    expect("failed", "resolves it for the machine itself", Worker(NO_NAME, code=0, peers=None))
    expect("failed", "refuses /api/v1/namespaces/default/services/kubernetes to this machine's kubelet: HTTP 403", Worker(refused=403))


def what_is_sick_elsewhere_is_reported_and_does_not_fail_the_join():
    expect("elsewhere", "does not answer node W1 (timed out), while 3 of 3 other nodes answer it", Worker(NO_NAME))
    expect("elsewhere", "while 2 of 3 other nodes answer it", Worker(NO_NAME, peers=[*WELL[:2], SILENT[0]]))
    expect("elsewhere", "it was given no other node to ask", Worker(NO_NAME, peers=None))
    expect("elsewhere", "it was given no other node to ask", Worker(NO_NAME, peers=[]))
    expect("elsewhere", "does not resolve kubernetes.default.svc.cluster.local: it failed (SERVFAIL)", Worker(NO_NAME, code=2))
    # A DNS without Pods: kube-proxy refuses.
    expect("elsewhere", "(connection refused), while 3 of 3", Worker(NO_NAME, dns="127.0.0.54"))
    expect("elsewhere", "no Service kube-dns", Worker(NO_NAME, dns=None))
    expect("elsewhere", f"gave node {HERE} no Pod of kube-proxy", Worker(NO_SERVICE, proxies=[]))
    for said in (NO_SERVICE, NO_NAME, None):
        expect("elsewhere", "the API does not answer this machine at https://endpoint:6443: timed out", Worker(said, api="dies"))
    assert expect("elsewhere", "HTTP 503", Worker(refused=503)).pods == []


def agent(name, kind="DaemonSet", **status):
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    owners = [{"kind": kind, "name": name}] if kind else []
    return {"metadata": {"namespace": "net", "name": f"{name}-1", "ownerReferences": owners}, "status": status or ready}


def a_cluster_without_kube_proxy_is_judged_by_what_its_network_plugin_runs_there():
    starting = {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}
    others = [agent("shop", "ReplicaSet", **starting), agent("own", None, **starting)]
    expect("well", "reached Service kubernetes", Worker(agents=[]))
    worker = expect("failed", "has no kube-proxy: net/agent-1 is not ready: CrashLoopBackOff",
                    Worker(NO_SERVICE, agents=[agent("agent", **starting), agent("log"), *others]))  # fmt: skip
    assert not [path for path in worker.asked if "kube-proxy" in path], worker.asked
    expect("failed", "look at the network plugin among net/agent-1, net/log-1", Worker(NO_SERVICE, agents=[agent("agent"), agent("log"), *others]))
    many = Worker(NO_SERVICE, agents=[agent(f"a{number}") for number in range(9)])
    _outcome, said = play(many)
    assert "net/a4-1" in said and "net/a5-1" not in said, said
    expect("elsewhere", f"gave node {HERE} no Pod of a DaemonSet", Worker(NO_SERVICE, agents=others))
    expect("elsewhere", "the API does not answer this machine", Worker(NO_SERVICE, agents=[], api="dies"))
    expect("failed", "resolves it for the machine itself", Worker(NO_NAME, code=0, agents=[]))


def what_a_test_that_was_cut_off_left_is_removed_by_the_next_one_also_when_that_begins_no_pod():
    os.makedirs(static_pod.FOLDER, exist_ok=True)
    pathlib.Path(static_pod.MANIFEST).write_text("{}", encoding="utf-8")
    assert expect("elsewhere", "the API does not answer", Worker(api="down")).pods == []


def a_test_that_is_asked_to_end_takes_its_pod_along():
    before = signal.getsignal(signal.SIGTERM)
    try:
        with static_pod.running({"kind": "Pod"}):
            assert os.path.exists(static_pod.MANIFEST)
            os.kill(os.getpid(), signal.SIGTERM)
            signal.sigtimedwait([], 0)
        raise AssertionError("it goes on")
    except SystemExit:
        pass
    assert not os.path.exists(static_pod.MANIFEST) and signal.getsignal(signal.SIGTERM) == before


# The applets that the Pod's script uses. Those that only compute are this machine's own.
BUSYBOX = """\
#!/bin/sh
applet=$1; shift
case $applet in
  timeout) shift; exec "$@" ;;
  nc) echo "$*" >> CALLS; exit $NC ;;
  nslookup) printf 'Server: 1\\nAddress: 10.96.0.10:53\\n\\nName: %s\\nAddress: %s\\n' "$1" "$RESOLVED" ;;
  *) exec $applet "$@" ;;
esac
"""


def the_pod_ends_with_what_it_found():
    busybox, message, calls = (PLACE / name for name in ("busybox", "message", "calls"))
    busybox.write_text(BUSYBOX.replace("CALLS", str(calls)), encoding="ascii")
    busybox.chmod(0o755)
    script = smoke_scripts.filled(smoke_scripts.WORKER, NAME="kubernetes.default.svc.x", ADDRESS=SERVICE, PORT=443, SECONDS=0)
    script = script.replace("/bin/busybox", str(busybox)).replace("/dev/termination-log", str(message))
    for code, connects, resolved in ((0, 0, SERVICE), (smoke_scripts.NO_NAME, 0, "1.2.3.4"), (smoke_scripts.NO_SERVICE, 1, SERVICE)):
        environment = {**os.environ, "NC": str(connects), "RESOLVED": resolved}
        done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, f"{done.returncode}: {done.stderr}"
        assert message.read_text(encoding="utf-8").startswith(f"ended with {code}: "), message.read_text(encoding="utf-8")
    assert calls.read_text(encoding="ascii").splitlines()[0] == f"-w 2 {SERVICE} 443"


a_good_machine_asks_the_api_once_and_runs_one_static_pod_that_is_gone_afterwards()
what_is_sick_on_the_machine_fails_its_join()
what_is_sick_elsewhere_is_reported_and_does_not_fail_the_join()
a_cluster_without_kube_proxy_is_judged_by_what_its_network_plugin_runs_there()
what_a_test_that_was_cut_off_left_is_removed_by_the_next_one_also_when_that_begins_no_pod()
a_test_that_is_asked_to_end_takes_its_pod_along()
the_pod_ends_with_what_it_found()
