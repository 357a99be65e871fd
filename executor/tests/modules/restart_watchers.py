"""After a restore kube-proxy and CoreDNS are started anew: theirs in Pods of this machine are ended, and nothing else.

Real processes, in a namespace of this script's own; which of them are in Pods is given."""

import os
import shutil
import subprocess
import sys
import time

if "WATCHERS_INSIDE" not in os.environ:
    own = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
    sys.exit(subprocess.run(own, env={**os.environ, "WATCHERS_INSIDE": "1"}, check=False).returncode)

from ansible_collections.clusterwright.cluster.plugins.module_utils import processes
from ansible_collections.clusterwright.cluster.plugins.modules import restart_services

PLACE = sys.argv[1]
restart_services.DONE = f"{PLACE}/run/restarted"
restarted = []


class Units:
    """What of module_utils/units.py the module uses."""

    def exists(self, unit):
        return unit == "kubelet.service"

    def systemctl(self, verb, unit, **_more):
        restarted.append((verb, unit))

    def journal(self, _unit):
        return ""


restart_services.units = Units()
restart_services.healthz = type("Healthz", (), {"KUBELET": None, "answer": staticmethod(lambda _target: (True, ""))})


def start(name):
    path = f"{PLACE}/{name}"
    if not os.path.exists(path):
        shutil.copy(os.path.realpath(sys.executable), path)
    return subprocess.Popen([path, "-c", "import time; time.sleep(1000)"])


def play(watchers):
    params = {"timeout_seconds": 5, "watchers": watchers, "parts": []}
    return restart_services.work(type("Call", (), {"params": params, "check_mode": False}))["msg"]


proxy, dns, another, outside = start("kube-proxy"), start("coredns"), start("shop"), start("coredns")
in_pods = {proxy.pid, dns.pid, another.pid}
processes.in_pod = lambda pid: pid in in_pods
time.sleep(0.5)

assert play(False) == "restarted kubelet.service", "without a restore"
assert [process.poll() for process in (proxy, dns, another, outside)] == [None] * 4, "something was ended"
found = play(True)
assert found == "restarted kubelet.service, coredns, kube-proxy", found
assert restarted == [("restart", "kubelet.service")] * 2, restarted
for process in (proxy, dns):
    process.wait(10)
time.sleep(0.5)
assert (another.poll(), outside.poll()) == (None, None), "another process was ended"
print("ended:", found)
