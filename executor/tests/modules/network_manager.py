"""NetworkManager leaves the interfaces of Pods alone from the prepare step on, is told so once, and a reset takes it back.

systemctl and nmcli are stand-ins: nmcli notes how it was called."""

import os
import pathlib
import time

from machine_world import enter, play, program, sh, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import (  # noqa: E402
    leftovers,
    network_manager,
    restarts,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import prepare, reset  # noqa: E402

CALLS = pathlib.Path(write("/data/calls", ""))
STATE = {"ActiveState": "inactive"}
units.state = lambda _unit: dict(STATE)


def start() -> None:
    STATE.update(ActiveState="active", InvocationID=f"{time.monotonic_ns()}", MainPID="1")
    STATE["ExecMainStartTimestampMonotonic"] = str(int(time.monotonic() * 1_000_000))
    time.sleep(0.05)


def reloads() -> int:
    return CALLS.read_text(encoding="ascii").splitlines().count("general reload conf")


program("nmcli", "echo \"$*\" >> /data/calls; [ ! -e /data/fails ] || { echo 'Error: NetworkManager is not running.' >&2; exit 8; }")

# A machine without it gets no directory of it.
assert network_manager.leave_interfaces() == [] and not os.path.exists(network_manager.HOME)

# It is installed, and does not run: the next one reads the file.
os.makedirs(network_manager.HOME)
assert network_manager.leave_interfaces(check=True) == [network_manager.FILE] and not os.path.exists(network_manager.FILE)
assert network_manager.leave_interfaces() == [network_manager.FILE] and network_manager.leave_interfaces() == [] and reloads() == 0
start()
assert network_manager.leave_interfaces(check=True) == [] and network_manager.leave_interfaces() == [] and reloads() == 0
sections = [line for line in pathlib.Path(network_manager.FILE).read_text(encoding="ascii").splitlines() if not line.startswith("#")]
# The name of such a section begins with `device`, and one that two files have would be merged.
assert sections == ["[device-clusterwright]", "match-device=interface-name:cni0;interface-name:veth*", "managed=0"]

# It runs: it is told once.
os.unlink(network_manager.FILE)
assert network_manager.leave_interfaces(check=True) == [network_manager.FILE, network_manager.UNIT] and reloads() == 0
assert network_manager.leave_interfaces() == [network_manager.FILE, network_manager.UNIT] and reloads() == 1
assert network_manager.leave_interfaces(check=True) == [] and network_manager.leave_interfaces() == [] and reloads() == 1
# Its program was replaced by an update: it has read the file still.
restarts.replaced = lambda _pid: True
assert network_manager.leave_interfaces() == [] and reloads() == 1

# Cut off between the file and the reload.
os.unlink(network_manager.FILE)
write("/data/fails")
try:
    network_manager.leave_interfaces()
    raise AssertionError("it was told")
except StepFailure as failure:
    assert failure.reason == "ServiceFailed" and "NetworkManager is not running" in failure.message, failure.message
os.unlink("/data/fails")
# As by an earlier run, of which nothing is known any more.
sh("rm", "-rf", restarts.FOLDER)
assert network_manager.leave_interfaces(check=True) == [network_manager.UNIT]
assert network_manager.leave_interfaces() == [network_manager.UNIT] and network_manager.leave_interfaces() == []

# The step asks for it where the plugin is ours, and a machine that has the file is not clean until it is reset.
os.unlink(network_manager.FILE)
PREPARE = {
    "cluster": {"identity": "a", "name": "a"}, "sysctl": {}, "modules": [], "configured_sysctl": {}, "configured_modules": [],
    "configured_authorities": [], "machine_settings": {}, "user": "root", "login_keys": [], "swap_off": False, "hosts": [],
}  # fmt: skip
assert network_manager.FILE not in play(prepare, True, leave_routes=False, **PREPARE)[0]["differences"]
assert network_manager.FILE in play(prepare, True, leave_routes=True, **PREPARE)[0]["differences"]
assert network_manager.FILE in play(prepare, leave_routes=True, **PREPARE)[0]["differences"]
assert play(prepare, True, leave_routes=True, **PREPARE)[0]["differences"] == []
assert f"file {network_manager.FILE}" in leftovers.find_all()
before = reloads()
result, failure = play(reset, login_keys=[])
assert failure is None and not os.path.exists(network_manager.FILE) and reloads() == before + 1, (result, failure)
network_manager.forget()
assert reloads() == before + 1
