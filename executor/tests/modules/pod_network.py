"""What flushes the Pod network is undone by the machine: networkd knows that it must leave routes alone, and the guard keeps the rest."""

import fcntl
import json
import os
import subprocess
import sys
import threading
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership, networkd, pod_network, units
from ansible_collections.clusterwright.cluster.plugins.modules import reset

PLACE = sys.argv[1]


def path(name):
    return os.path.join(PLACE, name)


class Networkd:
    """A process in networkd's place, and how often it was restarted."""

    def __init__(self):
        self.restarts = 0
        self.process = None
        networkd.running = lambda: self.process.pid if self.process else 0
        units.systemctl = self.systemctl

    def start(self):
        self.process = subprocess.Popen(["sleep", "1000"])
        # The clock of processes has ticks of 10 ms, that of files finer ones.
        time.sleep(0.05)

    def systemctl(self, *arguments, **_options):
        assert arguments == ("restart", networkd.UNIT), arguments
        self.restarts += 1
        self.stop()
        self.start()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None


def write(name):
    with open(path(name), "w", encoding="ascii") as out:
        out.write("x\n")


def check_networkd():
    daemon = Networkd()
    file = path("90-clusterwright.conf")
    assert networkd.restart_if_older(file) == [], "nothing was written"
    write("90-clusterwright.conf")
    assert networkd.restart_if_older(file) == [], "none runs: the next one reads the file"
    daemon.start()
    assert networkd.restart_if_older(file) == [], "it has read the file"
    # By a call that was cut short before it restarted anything.
    time.sleep(0.05)
    write("90-clusterwright.conf")
    assert networkd.restart_if_older(file, check=True) == [networkd.UNIT] and daemon.restarts == 0, "a probe tells, and changes nothing"
    assert networkd.restart_if_older(file) == [networkd.UNIT] and daemon.restarts == 1
    assert networkd.restart_if_older(file) == [] and daemon.restarts == 1, "once"
    ahead = time.time() + 1000
    os.utime(file, (ahead, ahead))
    assert networkd.restart_if_older(file) == [networkd.UNIT], "written under a clock that went ahead"
    assert networkd.restart_if_older(file) == [] and daemon.restarts == 2, "once, too"
    os.unlink(file)
    networkd.FILE = file
    assert networkd.leave_routes(check=True) == [file] and not os.path.exists(file), "a probe writes nothing"
    time.sleep(0.05)
    assert networkd.leave_routes() == [file, networkd.UNIT] and networkd.leave_routes() == [], "written, told, and that is all"
    daemon.stop()


def check_keeping():
    membership.NETWORK = path("network.json")
    pod_network.UNIT_FILE = path("unit")
    asked = []
    units.ensure = lambda unit, restart=False, check=False: asked.append((unit, restart)) or restart
    what = pod_network.wanted("eth0.10", "10.220.0.0/16", "10.220.3.0/24", "/script", {"/etc/cni/net.d/a": "{}\n"})
    os.environ["CLUSTERWRIGHT_FENCED_BY"] = PLACE
    assert pod_network.keep(what) == [] and not asked and not os.path.exists(path("unit")), "no guard is there"
    write("guard")
    os.chmod(path("guard"), 0o755)
    assert pod_network.keep(what, check=True) == [path("network.json"), path("unit"), pod_network.UNIT], "a probe says what is missing"
    assert not os.path.exists(path("network.json"))
    assert pod_network.keep(what) == [path("network.json"), path("unit"), pod_network.UNIT]
    assert asked[-1] == (pod_network.UNIT, True)
    with open(path("unit"), encoding="ascii") as unit:
        assert f"ExecStart={PLACE}/guard watch --wanted {PLACE}/network.json\n" in unit.read()
    assert pod_network.keep(what) == [] and asked[-1] == (pod_network.UNIT, False), "again: nothing"
    # For the guard's own reader.
    with open(path("network.json"), encoding="ascii") as written, open(path("wanted.json"), "w", encoding="ascii") as copy:
        copy.write(written.read())
    wanted = json.loads(json.dumps(what))
    assert wanted["gateway"] == "10.220.3.1/24" and wanted["sysctl"]["net.ipv4.conf.eth0/10.proxy_arp"] == "1", wanted


def check_stop():
    """The lock is waited for: a repair that has begun ends before anything is taken away."""
    units.exists = lambda _unit: False
    freed = []
    with open(path("network.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def free():
            freed.append(os.path.exists(membership.NETWORK))
            fcntl.flock(lock, fcntl.LOCK_UN)

        timer = threading.Timer(0.3, free)
        timer.start()
        pod_network.stop()
        timer.join()
    assert freed == [True] and not os.path.exists(membership.NETWORK)
    pod_network.stop()


def check_reset():
    """What keeps the network ends before anything is taken away."""
    done = []
    for name in ("stop_services", "kill_processes", "unmount", "remove_network", "remove_files"):
        setattr(reset, name, lambda name=name: done.append(name))
    reset.pod_network.stop = lambda: done.append("stop")
    found = [["route 10.220.0.0/16"], [], []]
    reset.leftovers.find_all = lambda **_options: found.pop(0)
    reset.removal.remove = lambda path: done.append(path)
    reset.work(type("Call", (), {"params": {}, "check_mode": False}))
    assert done[0] == "stop" and "remove_network" in done, done


check_networkd()
check_keeping()
check_stop()
check_reset()
