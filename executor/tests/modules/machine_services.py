"""Services of the distribution have what is configured of them, and what is taken back is as it was; files of others are refused by name.

The machine is a root of its own; systemd's own programs read what is written there. systemctl is a stand-in."""

import json
import os
import pathlib
import time

from machine_world import enter, program, sh, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import (  # noqa: E402
    journal_limits,
    machine_settings,
    name_servers,
    proxies,
    restarts,
    time_servers,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure  # noqa: E402

UNITS: dict = {}
RESTARTED: list = []


def start(unit: str) -> None:
    UNITS[unit] = {"ActiveState": "active", "InvocationID": f"{unit}{time.monotonic_ns()}"}
    UNITS[unit]["ExecMainStartTimestampMonotonic"] = str(int(time.monotonic() * 1_000_000))


def restart(_verb: str, unit: str, **_more: object) -> None:
    RESTARTED.append(unit)
    time.sleep(0.05)
    start(unit)


def restarted() -> list:
    told, RESTARTED[:] = list(RESTARTED), []
    return told


units.state = lambda unit: UNITS.get(unit, {"ActiveState": "inactive"})
units.systemctl = restart
units.exists = UNITS.__contains__


def apply(settings: dict, check: bool = False) -> list:
    return machine_settings.apply(settings, "root", [], check)


def refused(settings: dict, reason: str, *parts: str) -> None:
    try:
        apply(settings)
        raise AssertionError("it was accepted")
    except StepFailure as failure:
        assert failure.reason == reason and all(part in failure.message for part in parts), failure.message


def brought(settings: dict, *unit: str) -> None:
    """It differs, is brought with a restart of these, and differs no more."""
    assert apply(settings, check=True) and not RESTARTED
    assert apply(settings) and restarted() == list(unit), settings
    assert apply(settings, check=True) == [] and apply(settings) == [] and restarted() == []


def cat(name: str) -> str:
    return sh("systemd-analyze", "cat-config", f"systemd/{name}")


def read(path: str) -> str:
    return pathlib.Path(path).read_text(encoding="utf-8")


# Nothing is asked for: nothing is touched, and no unit is looked at.
known, units.state = units.state, None
assert apply({}) == []
units.state = known

# The clock: nobody keeps it, then systemd-timesyncd, then chrony instead.
SERVERS = ["ntp1.example", "192.0.2.1"]
refused({"timeServers": SERVERS}, "TimeServiceMissing", "neither runs", "apt-get install systemd-timesyncd")
assert [(found["name"], found["severity"]) for found in machine_settings.machine_services({"machine_settings": {"timeServers": SERVERS}})] == [
    ("time-service", "error")
]
assert machine_settings.machine_services({"machine_settings": {}}) == []
write("/etc/systemd/timesyncd.conf", "[Time]\nNTP=of.the.distribution\n")
start(time_servers.TIMESYNCD)
time.sleep(0.05)
brought({"timeServers": SERVERS}, time_servers.TIMESYNCD)
lines = [line for line in cat("timesyncd.conf").splitlines() if line.startswith("NTP=")]
assert lines == ["NTP=of.the.distribution", "NTP=", "NTP=ntp1.example 192.0.2.1"], lines
# Cut off between the file and the restart, and between its removal and the restart.
for settings in ({"timeServers": SERVERS[:1]}, {}):
    units.systemctl = lambda *_words, **_more: 1 / 0
    try:
        apply(settings)
        raise AssertionError("it was not cut off")
    except ZeroDivisionError:
        units.systemctl = restart
    assert apply(settings, check=True) == [time_servers.TIMESYNCD], settings
    assert apply(settings) and restarted() == [time_servers.TIMESYNCD] and apply(settings, check=True) == []
assert not os.path.exists(time_servers.TIMESYNCD_FILE)
# Another start of it has read what there is.
brought({"timeServers": SERVERS}, time_servers.TIMESYNCD)
start(time_servers.TIMESYNCD)
assert apply({"timeServers": SERVERS}, check=True) == []

DEBIANS, RHELS = time_servers.CHRONY_CONFIGURATIONS.values()
# Debian's has the other name too.
start(time_servers.CHRONYD)
start(time_servers.CHRONY)
write(DEBIANS, "pool debian.example iburst\n")
refused({"timeServers": SERVERS}, "TimeServiceMissing", "add the line `sourcedir /etc/chrony/sources.d`")
write(DEBIANS, "sourcedir /etc/chrony/sources.d\n")
time.sleep(0.05)
brought({"timeServers": SERVERS}, time_servers.TIMESYNCD, time_servers.CHRONY)
assert not os.path.exists(time_servers.TIMESYNCD_FILE)
assert read(time_servers.CHRONY_FILE).splitlines()[1:] == ["server ntp1.example iburst", "server 192.0.2.1 iburst"]
brought({}, time_servers.CHRONY)
del UNITS[time_servers.CHRONY]

# chrony of the RHEL family: another unit, another file, and no folder that it reads from the first.
write("/etc/os-release", 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n')
for name in ("rpm", "dnf"):
    program(name, "exit 0")
assert UNITS.pop(time_servers.CHRONYD) and UNITS.pop(time_servers.TIMESYNCD)
refused({"timeServers": SERVERS}, "TimeServiceMissing", "neither runs", "dnf install chrony")
start(time_servers.CHRONYD)
write(RHELS, "pool 2.rhel.pool.ntp.org iburst\nsourcedir /run/chrony-dhcp\n")
refused({"timeServers": SERVERS}, "TimeServiceMissing", "`sourcedir /etc/chrony/sources.d` to /etc/chrony.conf", "systemctl restart chronyd")
write(RHELS, "sourcedir /run/chrony-dhcp\nsourcedir /etc/chrony/sources.d\n")
time.sleep(0.05)
brought({"timeServers": SERVERS}, time_servers.CHRONYD)
brought({}, time_servers.CHRONYD)
# Its dnf has the proxy in the environment alone.
assert apply({"proxy": {"httpProxy": "http://proxy.test:3128"}}) == [] and not os.path.exists(proxies.APT)
write(name_servers.PATH, "# Generated by NetworkManager\nnameserver 192.0.2.9\n")
refused({"dnsServers": ["192.0.2.53"]}, "ResolverManaged", "dnf install systemd-resolved")
os.unlink(name_servers.PATH)
for name in ("rpm", "dnf"):
    os.unlink(f"/usr/local/sbin/{name}")
del UNITS[time_servers.CHRONYD]

# In a container the clock is the host's: what is written there is for whoever starts it.
UNITS[time_servers.TIMESYNCD] = {"ActiveState": "inactive"}
time_servers.machine.container = lambda: "systemd-nspawn"
brought({"timeServers": SERVERS})
brought({})

# The proxy, for apt: what it says is what apt takes.
PROXY = {"httpProxy": "http://proxy.test:3128", "noProxy": ["bundle.test", ".svc", "10.0.0.0/8", "192.0.2.7"]}
brought({"proxy": PROXY})
dumped = sh("apt-config", "dump")
for line in (
    'Acquire::http::Proxy "http://proxy.test:3128";',
    'Acquire::http::Proxy::bundle.test "DIRECT";',
    'Acquire::http::Proxy::192.0.2.7 "DIRECT";',
):
    assert line in dumped, (line, dumped)
assert "svc" not in read(proxies.APT) and "10.0.0.0" not in read(proxies.APT)
assert apply({}) == [proxies.APT] and not os.path.exists(proxies.APT)

# The journal.
write("/etc/systemd/journald.conf", "[Journal]\nSystemMaxUse=9G\n")
start(journal_limits.UNIT)
time.sleep(0.05)
brought({"journal": {"maxUseMegabytes": 500, "maxRetentionDays": 30}}, journal_limits.UNIT)
assert cat("journald.conf").splitlines()[-4:] == ["[Journal]", "SystemMaxUse=500M", "RuntimeMaxUse=500M", "MaxRetentionSec=30day"]
assert sh("systemd-analyze", "timespan", "30day"), "systemd knows the unit of time"
brought({"journal": {"maxRetentionDays": 1}}, journal_limits.UNIT)
assert "MaxUse" not in read(journal_limits.FILE)
brought({}, journal_limits.UNIT)

# Names: a plain file. What is not asked for is as it was, also after others have written it.
WAS = "domain was.example\nnameserver 192.0.2.9\noptions ndots:2\n"
write(name_servers.PATH, WAS)
os.chmod(name_servers.PATH, 0o640)
NAMES = {"dnsServers": ["192.0.2.53", "2001:db8::53"], "searchDomains": ["example.org", "example.net"]}
brought(NAMES)
assert read(name_servers.PATH).splitlines()[1:] == [
    "search example.org example.net", "nameserver 192.0.2.53", "nameserver 2001:db8::53", "options ndots:2"
]
brought({"dnsServers": ["192.0.2.54"]})
assert read(name_servers.PATH).splitlines()[1:] == ["domain was.example", "nameserver 192.0.2.54", "options ndots:2"]
write(name_servers.PATH, "nameserver 192.0.2.99\n", 0o640)
brought({"searchDomains": ["example.org"]})
assert read(name_servers.PATH).splitlines()[1:] == ["search example.org", "nameserver 192.0.2.99"]
brought({})
assert read(name_servers.PATH) == "nameserver 192.0.2.99\n" and os.stat(name_servers.PATH).st_mode & 0o777 == 0o640
# Cut off between the memory and the file.
replace, name_servers.files.replace_foreign = name_servers.files.replace_foreign, lambda *_words: 1 / 0
try:
    apply(NAMES)
    raise AssertionError("it was not cut off")
except ZeroDivisionError:
    name_servers.files.replace_foreign = replace
assert read(name_servers.PATH) == "nameserver 192.0.2.99\n"
brought(NAMES)
# Taken back after others have replaced it: theirs stays.
write(name_servers.PATH, "# of a person\nnameserver 192.0.2.7\n")
brought({})
assert read(name_servers.PATH) == "# of a person\nnameserver 192.0.2.7\n"

# Of others.
write(name_servers.PATH, "# Generated by NetworkManager\nnameserver 192.0.2.9\n")
refused(NAMES, "ResolverManaged", "/etc/resolv.conf is written by NetworkManager", "configuration.machine.dnsServers")
assert [found["name"] for found in machine_settings.machine_services({"machine_settings": NAMES})] == ["resolver"]
write(name_servers.PATH, WAS)
name_servers.WRITERS = (pathlib.Path("/proc/self/comm").read_text(encoding="ascii").strip(),)
refused(NAMES, "ResolverManaged", f"{name_servers.WRITERS[0]} (process 1)")
os.unlink(name_servers.PATH)
write("/run/resolvconf/resolv.conf")
os.symlink("/run/resolvconf/resolv.conf", name_servers.PATH)
refused(NAMES, "ResolverManaged", "leads to /run/resolvconf/resolv.conf")

# systemd-resolved.
os.unlink(name_servers.PATH)
write("/run/systemd/resolve/stub-resolv.conf", "nameserver 127.0.0.53\n")
os.symlink("../run/systemd/resolve/stub-resolv.conf", name_servers.PATH)
refused(NAMES, "ResolverManaged", "systemd-resolved's, which does not run")
start(name_servers.RESOLVED)
write("/etc/systemd/resolved.conf", "[Resolve]\n")
time.sleep(0.05)
brought(NAMES, name_servers.RESOLVED)
assert cat("resolved.conf").splitlines()[-5:] == [
    "[Resolve]", "DNS=", "DNS=192.0.2.53 2001:db8::53", "Domains=", "Domains=example.org example.net ~."
]
brought({"searchDomains": ["example.org"]}, name_servers.RESOLVED)
assert read(name_servers.RESOLVED_FILE).splitlines()[1:] == ["[Resolve]", "Domains=", "Domains=example.org"]
assert read("/run/systemd/resolve/stub-resolv.conf") == "nameserver 127.0.0.53\n" and os.path.islink(name_servers.PATH)
brought({}, name_servers.RESOLVED)

# A machine that leaves is as it was.
start(time_servers.TIMESYNCD)
time.sleep(0.05)
apply({**NAMES, "timeServers": SERVERS, "journal": {"maxUseMegabytes": 500}})
restarted()
machine_settings.forget([])
assert sorted(restarted()) == sorted([time_servers.TIMESYNCD, name_servers.RESOLVED, journal_limits.UNIT])
assert not any(map(os.path.exists, (*time_servers.FILES, name_servers.RESOLVED_FILE, journal_limits.FILE)))
assert json.loads(read(f"{restarts.FOLDER}/{journal_limits.UNIT}.json"))["paths"] == [journal_limits.FILE]
