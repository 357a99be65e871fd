"""A stand-in for systemd in a script's machine: it runs the process of a unit as the unit's user, and knows nothing of its hardening.

As a program (`systemctl` and `journalctl` call it) it does one verb; `install` makes those programs."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid

FOLDER, UNITS = "/unit", "/etc/systemd/system"


def install() -> None:
    from machine_world import program

    os.makedirs(FOLDER, exist_ok=True)
    here = os.path.realpath(__file__)
    program("systemctl", f'exec /usr/bin/python3 {here} systemctl "$@"')
    program("journalctl", f'exec /usr/bin/python3 {here} journalctl "$@"')


def verbs() -> list:
    """What was asked since the last time, but for looks."""
    path = f"{FOLDER}/verbs"
    try:
        with open(path, encoding="utf-8") as source:
            found = source.read().splitlines()
        os.unlink(path)
        return found
    except FileNotFoundError:
        return []


def known(unit: str) -> dict:
    try:
        with open(f"{FOLDER}/{unit}.json", encoding="utf-8") as source:
            return json.load(source)
    except FileNotFoundError:
        return {}


def keep(unit: str, **values: object) -> None:
    value = {**known(unit), **values}
    with open(f"{FOLDER}/{unit}.json", "w", encoding="utf-8") as out:
        json.dump(value, out)


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as source:
            return source.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def setting(unit: str, name: str) -> str:
    with open(f"{UNITS}/{unit}", encoding="utf-8") as source:
        found = re.search(rf"^{name}=(.*)$", source.read(), re.MULTILINE)
    return found.group(1) if found else ""


def show(unit: str) -> None:
    there = os.path.exists(f"{UNITS}/{unit}")
    state, pid = known(unit), known(unit).get("pid", 0)
    active = bool(pid) and alive(pid)
    # One that ended is started anew after a while: it is `activating` meanwhile.
    lines = {
        "LoadState": "loaded" if there else "not-found",
        "NeedDaemonReload": "no",
        "UnitFileState": "enabled" if state.get("enabled") else "disabled",
        "ActiveState": "active" if active else "activating" if pid else "inactive",
        "SubState": "running" if active else "auto-restart" if pid else "dead",
        "InvocationID": state.get("id", "") if pid else "",
        "MainPID": pid if active else 0,
        "ExecMainStartTimestampMonotonic": state.get("started", 0),
        "StateChangeTimestampMonotonic": state.get("changed", 0),
    }
    print("\n".join(f"{name}={value}" for name, value in lines.items()))


def now() -> int:
    return time.monotonic_ns() // 1000


def start(unit: str) -> None:
    words = [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(setting(unit, "ExecStart"))]
    user = setting(unit, "User")
    if user:
        words = ["setpriv", f"--reuid={user}", f"--regid={setting(unit, 'Group')}", "--clear-groups", *words]
    directory = setting(unit, "WorkingDirectory") or "/"
    os.makedirs(directory, exist_ok=True)
    with open(f"{FOLDER}/{unit}.log", "ab") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=directory)
    keep(unit, pid=process.pid, id=uuid.uuid4().hex, started=now(), changed=now())


def stop(unit: str) -> None:
    pid = known(unit).get("pid", 0)
    if pid and alive(pid):
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 20
        while alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
    keep(unit, pid=0)


def systemctl(verb: str, *words: str) -> None:
    if verb == "show":
        show(words[0])
        return
    names = [word for word in words if not word.startswith("--")]
    with open(f"{FOLDER}/verbs", "a", encoding="utf-8") as out:
        out.write(f"{' '.join((verb, *words))}\n")
    for unit in names:
        if verb in ("stop", "restart") or (verb == "disable" and "--now" in words):
            stop(unit)
        if verb in ("start", "restart"):
            start(unit)
        if verb in ("enable", "disable"):
            keep(unit, enabled=verb == "enable")
        if verb == "reload":
            os.kill(known(unit)["pid"], signal.SIGUSR2)
            keep(unit, changed=now())


def journalctl(*words: str) -> None:
    unit, lines = words[words.index("-u") + 1], int(words[words.index("-n") + 1])
    try:
        with open(f"{FOLDER}/{unit}.log", encoding="utf-8", errors="replace") as source:
            print("".join(source.readlines()[-lines:]), end="")
    except FileNotFoundError:
        pass


if __name__ == "__main__":
    {"systemctl": systemctl, "journalctl": journalctl}[sys.argv[1]](*sys.argv[2:])
