"""A restart that a run was cut short before is made by the next one, and only that: what a service read is compared with what is there."""

import os
import shutil
import subprocess
import time

from machine_world import enter, play, program, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, healthz, kubelet, membership, units  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import bridge_network, kubeadm, load_balancer, service  # noqa: E402

# One unit at a time, in /unit: its state, and each verb that it was given.
program(
    "systemctl",
    r"""
mkdir -p /unit
now() { /usr/bin/python3 -c 'import time; print(time.monotonic_ns() // 1000)'; }
unit=${!#}; [[ $1 == show ]] && unit=$2
case "$1" in
show)
  echo "LoadState=loaded"; echo "NeedDaemonReload=no"; echo "UnitFileState=enabled"
  if [[ -e /unit/$unit.started ]]; then
    echo "ActiveState=active"; echo "InvocationID=$(cat /unit/$unit.id)"; echo "MainPID=$(cat /unit/$unit.pid 2>/dev/null || echo 0)"
    echo "ExecMainStartTimestampMonotonic=$(cat /unit/$unit.started)"; echo "StateChangeTimestampMonotonic=$(cat /unit/$unit.changed)"
  else
    echo "ActiveState=inactive"; echo "InvocationID="; echo "MainPID=0"; echo "ExecMainStartTimestampMonotonic=0"
  fi ;;
start|restart)
  echo "$1" >> /unit/verbs; now > /unit/$unit.started; now > /unit/$unit.changed; cat /proc/sys/kernel/random/uuid > /unit/$unit.id ;;
reload) echo "$1" >> /unit/verbs; now > /unit/$unit.changed ;;
esac
""",
)
CONFIGURATION = "/etc/thing/config"
UNIT = "thing.service"
OURS = "# Ours."


def verbs() -> list:
    """What the unit was told since the last time."""
    try:
        with open("/unit/verbs", encoding="utf-8") as source:
            return source.read().split()
    except FileNotFoundError:
        return []
    finally:
        if os.path.exists("/unit/verbs"):
            os.unlink("/unit/verbs")


def ensure(content: str, check: bool = False, live: tuple = ()) -> tuple:
    """(what the step says it changed, what the unit was told)."""
    wanted = [{"path": CONFIGURATION, "content": content, "mode": "0644"}]
    wanted += [{"path": f"/etc/thing/live/{name}/hosts", "content": f"{OURS}\n{name}\n", "mode": "0644"} for name in live]
    result, failure = play(
        service, check, name=UNIT, files=wanted, secrets=[], remove=[], no_restart_for=["/etc/thing/live"], reads=["/usr/local/bin/thing"],
        start=True, socket=None, prune=[{"path": "/etc/thing/live", "first_line": OURS}],
    )
    assert failure is None, failure.message
    return result["due"], verbs()


class Cut(Exception):
    """The connection breaks."""


def cut_short(content: str) -> None:
    """A run that ends after the files and before the restart."""
    real, units.ensure = units.ensure, lambda *_arguments, **_more: (_ for _ in ()).throw(Cut())
    try:
        ensure(content)
        raise AssertionError("not cut")
    except Cut:
        pass
    finally:
        units.ensure = real


def a_restart_that_was_cut_off_is_made_by_the_next_run() -> None:
    write("/usr/local/bin/thing", "1", 0o755)
    assert ensure("a") == (True, ["start"])
    assert ensure("a") == (False, [])
    cut_short("b")
    assert ensure("b", check=True) == (True, []), "the probe sees that the service runs with another configuration"
    assert ensure("b") == (True, ["restart"])
    assert ensure("b", check=True) == (False, []) and ensure("b") == (False, [])


def what_is_ours_and_not_wanted_any_more_goes_and_what_is_not_ours_stays() -> None:
    assert ensure("b", live=("one", "two")) == (True, []), "the service reads them by itself"
    write("/etc/thing/live/one/theirs", "theirs")
    write("/etc/thing/live/three/hosts", "theirs")
    assert ensure("b", live=("one", "two")) == (False, [])
    assert ensure("b", check=True) == (True, []) and os.path.exists("/etc/thing/live/two/hosts")
    assert ensure("b") == (True, []) and ensure("b") == (False, [])
    assert sorted(os.listdir("/etc/thing/live")) == ["one", "three"]
    assert os.listdir("/etc/thing/live/one") == ["theirs"] and os.listdir("/etc/thing/live/three") == ["hosts"]


def a_program_that_was_replaced_counts() -> None:
    files.write("/usr/local/bin/thing", "2", 0o755)
    assert ensure("b", check=True) == (True, [])
    assert ensure("b") == (True, ["restart"])
    # The running one, as the kernel shows it, also where nothing is remembered and clocks are wrong.
    shutil.copy("/usr/bin/sleep", "/usr/local/bin/runs")
    process = subprocess.Popen(("/usr/local/bin/runs", "600"))
    write(f"/unit/{UNIT}.pid", str(process.pid))
    assert ensure("b") == (False, [])
    os.unlink("/usr/local/bin/runs")
    assert ensure("b", check=True) == (True, [])
    process.kill()
    process.wait()
    os.unlink(f"/unit/{UNIT}.pid")
    verbs()


def a_start_that_nobody_remembers_is_compared_by_its_time() -> None:
    ensure("b")
    subprocess.run(("systemctl", "restart", UNIT), check=True)
    verbs()
    assert ensure("b") == (False, []), "it read these files when it was started by hand"
    cut_short("c")
    shutil.rmtree("/run/clusterwright/read")
    assert ensure("c") == (True, ["restart"]), "installed by a release that remembered nothing"
    # What it reads while it runs is no reason.
    write("/etc/thing/live/x")
    assert ensure("c") == (False, [])


def a_clock_that_was_wrong_costs_one_restart_at_most() -> None:
    real = time.time
    time.time = lambda: real() - 7200
    try:
        shutil.rmtree("/run/clusterwright/read")
        ensure("c")
        assert ensure("c") == (False, []) and ensure("c", check=True) == (False, [])
    finally:
        time.time = real


def the_kubelet_and_the_load_balancer_and_the_network_do_the_same() -> None:
    """Each after a run that wrote everything and told nobody."""
    for path in kubelet.READS:
        write(path, "old\n")
    write("/usr/local/bin/kubelet", "1", 0o755)
    membership.save(membership.KUBEADM, {"identity": "a"})
    healthz.answer = lambda *_arguments, **_more: (True, "ok")
    kubeadm.wait_until_healthy = lambda _params: None
    wanted = [{"path": kubelet.READS[0], "content": "old\n", "mode": "0644"}]
    params = {"identity": "a", "kubelet": "/usr/local/bin/kubelet", "files": wanted, "secrets": [], "role": "worker"}
    assert play(kubeadm, **params)[1] is None and verbs() == ["start"]
    assert play(kubeadm, **params)[0]["changed"] is False and verbs() == []
    files.write("/usr/local/bin/kubelet", "2", 0o755)
    assert play(kubeadm, **params)[0]["changed"] is True and verbs() == ["restart"]
    files.write(kubelet.READS[1], "new\n")
    assert play(kubeadm, True, **params)[0]["changed"] is True and verbs() == []
    assert play(kubeadm, **params)[0]["changed"] is True and verbs() == ["restart"]
    assert play(kubeadm, **params)[0]["changed"] is False

    written = [load_balancer.HAPROXY, load_balancer.CA]
    for path in written:
        write(path, "old\n")
    balance = lambda check=False: units.ensure_read(load_balancer.HAPROXY_UNIT, False, check, written)  # noqa: E731
    assert balance() and verbs() == ["start"]
    assert not balance() and verbs() == []
    files.write(load_balancer.HAPROXY, "new\n")
    assert balance(check=True) and verbs() == []
    assert balance() and verbs() == ["reload"]
    assert not balance() and not balance(check=True) and verbs() == []

    for path in (bridge_network.SCRIPT, bridge_network.UNIT_FILE):
        write(path, "old\n")
    reads = (bridge_network.SCRIPT, bridge_network.UNIT_FILE)
    units.ensure(bridge_network.UNIT, reads=reads)
    files.write(bridge_network.SCRIPT, "new\n")
    verbs()
    assert units.ensure(bridge_network.UNIT, reads=reads) and verbs() == ["restart"]


a_restart_that_was_cut_off_is_made_by_the_next_run()
what_is_ours_and_not_wanted_any_more_goes_and_what_is_not_ours_stays()
a_program_that_was_replaced_counts()
a_start_that_nobody_remembers_is_compared_by_its_time()
a_clock_that_was_wrong_costs_one_restart_at_most()
the_kubelet_and_the_load_balancer_and_the_network_do_the_same()
