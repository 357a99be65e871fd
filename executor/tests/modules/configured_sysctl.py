"""What the cluster's configuration asks of the kernel is set, and written for the next boot; what it does not ask for any more is as it was."""

import os
import pathlib
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import files
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import prepare

PLACE = pathlib.Path(sys.argv[1])
prepare.path_of = lambda name: str(PLACE / "sys" / name)
prepare.SYSCTL_FILE = str(PLACE / "90.conf")
prepare.FORMER_FILE = str(PLACE / "former.json")
prepare.machine.container = lambda: ""
(PLACE / "sys").mkdir()
OURS = {"net.ipv4.ip_forward": 1, "fs.inotify.max_user_watches": 1000}
for name, value in {"net.ipv4.ip_forward": "0", "fs.inotify.max_user_watches": "5", "net.core.somaxconn": "4096", "net.ipv4.tcp_rmem": "1\t2\t3"}.items():
    (PLACE / "sys" / name).write_text(f"{value}\n", encoding="ascii")


def value(name: str) -> str:
    return (PLACE / "sys" / name).read_text(encoding="ascii").strip()


def play(configured: dict, check: bool = False) -> list:
    return prepare.sysctl(OURS, configured, check)


def written() -> str:
    return pathlib.Path(prepare.SYSCTL_FILE).read_text(encoding="utf-8")


assert len(play({}, check=True)) == 3 and value("net.ipv4.ip_forward") == "0"
play({})
assert value("fs.inotify.max_user_watches") == "1000" and play({}, check=True) == [] and not os.path.exists(prepare.FORMER_FILE)
asked = {"net.core.somaxconn": "8192", "net.ipv4.tcp_rmem": "4 5 6", "fs.inotify.max_user_watches": "2000"}
assert len(play(asked, check=True)) == 5, play(asked, check=True)
play(asked)
assert [value(name) for name in asked] == ["8192", "4 5 6", "2000"] and "net.core.somaxconn = 8192\n" in written()
assert play(asked, check=True) == []
play({"net.core.somaxconn": "16384"})
assert [value(name) for name in asked] == ["16384", "1 2 3", "1000"], "what is ours is as we want it, the rest as it was"
play({})
assert value("net.core.somaxconn") == "4096" and play({}, check=True) == [] and "somaxconn" not in written()

# One that the kernel does not know leaves all others as they are.
before = written()
try:
    play({"net.core.somaxconn": "1", "vm.nothing/below": "1"})
    raise AssertionError("it was set")
except StepFailure as failure:
    assert failure.reason == "SysctlRefused" and "vm.nothing/below" in failure.message, failure.message
assert value("net.core.somaxconn") == "4096" and written() == before
play({})
assert play({}, check=True) == [] and files.remove(prepare.SYSCTL_FILE)
