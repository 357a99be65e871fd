"""What the cluster's configuration asks of the kernel is set, now and for the next boot; what it does not ask for any more is as it was."""

import os
import pathlib
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, kernel_settings
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import Output
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import prepare

PLACE = pathlib.Path(sys.argv[1])
kernel_settings.path_of = lambda name: str(PLACE / "sys" / name)
kernel_settings.SYSCTL_FILE = str(PLACE / "90.conf")
kernel_settings.FORMER_FILE = str(PLACE / "former.json")
kernel_settings.machine.container = lambda: ""
(PLACE / "sys").mkdir()
OURS = {"net.ipv4.ip_forward": 1, "fs.inotify.max_user_watches": 1000}
HAS = {"net.ipv4.ip_forward": "0", "fs.inotify.max_user_watches": "5", "net.core.somaxconn": "4096", "net.ipv4.tcp_rmem": "1\t2\t3"}
for name, value in HAS.items():
    (PLACE / "sys" / name).write_text(f"{value}\n", encoding="ascii")


def value(name: str) -> str:
    return (PLACE / "sys" / name).read_text(encoding="ascii").strip()


def play(configured: dict, check: bool = False) -> list:
    return kernel_settings.apply(OURS, configured, check)


def written() -> str:
    return pathlib.Path(kernel_settings.SYSCTL_FILE).read_text(encoding="utf-8")


assert len(play({}, check=True)) == 3 and value("net.ipv4.ip_forward") == "0"
play({})
assert value("fs.inotify.max_user_watches") == "1000" and play({}, check=True) == [] and not os.path.exists(kernel_settings.FORMER_FILE)
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
assert play({}, check=True) == [] and files.remove(kernel_settings.SYSCTL_FILE)

play(asked)
kernel_settings.set_back()
assert [value(name) for name in asked] == ["4096", "1 2 3", "1000"], "a machine that leaves is as it was"

# Modules: an alias is loaded under another name, by which nobody would find it again.
LOADED = {"overlay"}
prepare.MODULES_FILE = str(PLACE / "modules.conf")
prepare.loaded = LOADED.__contains__
prepare.attempt = lambda _program, name: LOADED.add("algif_hash" if name == "an_alias" else name) or Output(0, "", "")
assert prepare.load_modules(["overlay"], ["ip_vs", "overlay"], True) == [prepare.MODULES_FILE, "module ip_vs"]
prepare.load_modules(["overlay"], ["ip_vs", "overlay"], False)
assert pathlib.Path(prepare.MODULES_FILE).read_text(encoding="utf-8").splitlines()[1:] == ["overlay", "ip_vs"]
assert prepare.load_modules(["overlay"], ["ip_vs"], True) == [] and prepare.load_modules(["overlay"], [], False) == [prepare.MODULES_FILE]


def module_missing(part: str, name: str) -> None:
    try:
        prepare.load_modules(["overlay"], [name], False)
        raise AssertionError("it was loaded")
    except StepFailure as failure:
        assert failure.reason == "KernelModuleMissing" and part in failure.message, failure.message


module_missing("another name", "an_alias")
prepare.machine.container = lambda: "docker"
module_missing("its host has to load ip_set", "ip_set")
assert prepare.load_modules(["br_netfilter"], ["ip_vs"], True) == []
