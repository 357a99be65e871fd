"""The steps of a restore as Ansible plays them, on two machines whose /var/lib/etcd and programs are their own: the executor's program
is asked once, brings the snapshot to each, and one machine that fails ends it for all.

The program is a stand-in that says and sends what the executor's does; etcd's programs are real, and no etcd runs."""

import hashlib
import json
import os
import socket
import stat
import subprocess
import sys

PLACE = sys.argv[1]
PROGRAMS = os.environ["ETCD_PROGRAMS"]
COLLECTION = os.environ["PYTHONPATH"]
VENV = os.environ.get("CLUSTERWRIGHT_ANSIBLE_VENV") or os.path.expanduser("~/.cache/clusterwright/venv")
ID, HOSTS = "k3x9a0pq", ("a", "b")
MEMBERS = [{"name": host, "host": host, "peer_url": f"https://10.0.0.{at}:2380", "client_url": f"https://10.0.0.{at}:2379"}
           for at, host in enumerate(HOSTS, 1)]
# Each command of a machine sees its own data directory; of etcd's programs those that were built.
PYTHON = """#!/bin/sh
export HERE={place}/{host}
exec unshare --mount sh -c 'mount --bind $HERE/etcd /var/lib/etcd && mount --bind $HERE/clusterwright /etc/clusterwright &&
mount --bind {programs} /usr/local/bin && exec {python} "$@"' sh "$@"
"""
PROGRAM = """#!/bin/sh
[ "$1" = report ] || echo "$@" >>{place}/asked
echo progress
case "$1" in
inspect) echo '{{"message": "well", "backup": {backup}}}' ;;
report) echo report >>{place}/asked; echo "$2" >{place}/reported; echo '{{"message": "reported"}}' ;;
send) [ ! -e {place}/unreachable ] || {{ echo '{{"message": "no", "reason": "Unreachable"}}'; exit 20; }}
  umask 077; cp {place}/snapshot.db {place}/$2/etcd/restore-{id}/snapshot.db.part; echo '{{"message": "sent"}}' ;;
esac
"""


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    os.chmod(path, mode)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def snapshot():
    """One of a real etcd."""
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    etcd = subprocess.Popen(
        [f"{PROGRAMS}/etcd", f"--data-dir={PLACE}/seed", "--log-level=error", f"--listen-client-urls={client}",
         f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
         f"--initial-cluster=default={peer}"])
    try:
        ctl = [f"{PROGRAMS}/etcdctl", f"--endpoints={client}", "--dial-timeout=30s", "--command-timeout=30s"]
        subprocess.run([*ctl, "put", "key", "value"], check=True, capture_output=True)
        subprocess.run([*ctl, "snapshot", "save", f"{PLACE}/snapshot.db"], check=True, capture_output=True)
    finally:
        etcd.kill()
        etcd.wait()


def play(*playbooks, hosts=HOSTS, restore=None):
    """(exit code, results by host as (task, status, changed, reason, message, finding))."""
    events = f"{PLACE}/run/events"
    write(events, "")
    variables = {"etcd_members": MEMBERS, "etcd_restore": restore or {"id": ID}, "etcd_cluster_token": "t", "ansible_connection": "local"}
    inventory = {"etcd": {"hosts": {host: {"etcd_member_name": host, "ansible_python_interpreter": f"{PLACE}/{host}/python"}
                                    for host in hosts}, "vars": variables}}
    write(f"{PLACE}/inventory.yml", json.dumps({"all": {"children": inventory}}))
    paths = [f"{COLLECTION}/playbooks/{name}.yml" for name in playbooks]
    environment = {"PATH": f"{VENV}/bin:{os.environ['PATH']}", "HOME": PLACE, "LC_ALL": "C.UTF-8", "CLUSTERWRIGHT_EVENTS": events,
                   "ANSIBLE_CONFIG": f"{COLLECTION}/ansible.cfg", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([f"{VENV}/bin/ansible-playbook", "-i", f"{PLACE}/inventory.yml", *paths], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    found = {host: [] for host in HOSTS}
    with open(events, encoding="utf-8") as source:
        for event in map(json.loads, source):
            if event["event"] == "result" and event["status"] != "skipped":
                found[event["host"]].append(event)
    return done.returncode, found


def asked():
    """What the program was asked since the last time."""
    try:
        with open(f"{PLACE}/asked", encoding="utf-8") as source:
            return sorted(source.read().splitlines())
    except FileNotFoundError:
        return []
    finally:
        if os.path.exists(f"{PLACE}/asked"):
            os.unlink(f"{PLACE}/asked")


def last(results, host):
    return results[host][-1]


def changed(results):
    return [event["task"] for events in results.values() for event in events if event["changed"]]


def expect(found, wanted, what):
    assert found == wanted, f"{what}: {found!r}, not {wanted!r}"


# A machine has these; this one may not.
for directory in ("/var/lib/etcd", "/etc/clusterwright"):
    os.makedirs(directory, exist_ok=True)
snapshot()
with open(f"{PLACE}/snapshot.db", "rb") as source:
    content = source.read()
SHA256 = hashlib.sha256(content).hexdigest()
backup = {"location": "c/u/1", "backup": "b", "revision": 2, "keys": 1, "size": len(content), "sha256": SHA256, "etcdVersion": "3.5.1",
          "takenAt": "2026-11-24T08:00:00Z"}
for host in HOSTS:
    for directory in ("etcd", "clusterwright"):
        os.makedirs(f"{PLACE}/{host}/{directory}")
    write(f"{PLACE}/{host}/python", PYTHON.format(place=PLACE, host=host, programs=PROGRAMS, python=sys.executable), 0o755)

# Played by hand there is no program.
code, results = play("stage-backup")
expect((code != 0, last(results, "a")["reason"]), (True, "InvalidVariables"), "without the executor")
write(f"{PLACE}/run/etcd-backup", PROGRAM.format(place=PLACE, backup=json.dumps(backup), id=ID), 0o755)
expect(play("stage-backup", hosts=["a"])[1]["a"][-1]["reason"], "InvalidVariables", "on a part of the members")
expect(asked(), [], "nothing is asked")
code, results = play("restore-etcd", restore={"id": ID, "sha256": SHA256, "cluster_id": "77"})
expect([last(results, host)["reason"] for host in HOSTS], ["BackupNotStaged"] * 2, "nothing lies ready")

# A machine to which nothing can be sent ends it before any prepares.
write(f"{PLACE}/unreachable", "")
code, results = play("stage-backup")
expect((code != 0, [last(results, host)["reason"] for host in HOSTS]), (True, ["Unreachable"] * 2), "what the program says")
os.unlink(f"{PLACE}/unreachable")
expect(asked(), ["inspect", "send a", "send b"], "inspected once, sent to each")

code, results = play("stage-backup", "probe/stage-backup")
expect(code, 0, "staged")
expect(asked(), ["inspect", "inspect", "report", "send a", "send b"], "the probe asks again, and has the program tell the run")
with open(f"{PLACE}/reported", encoding="utf-8") as source:
    report = json.load(source)
cluster = report.pop("clusterID")
expect(report, {"bump": 1_000_000_000}, "what lies ready")
for host in HOSTS:
    path = f"{PLACE}/{host}/etcd/restore-{ID}/snapshot.db"
    expect(stat.S_IMODE(os.stat(path).st_mode), 0o600, "closed")
code, results = play("stage-backup", "probe/stage-backup")
expect((code, changed(results), asked()), (0, [], ["inspect", "inspect", "report"]), "again")

# The check of one machine, and an ID that names a path, end the restore for all.
os.rename(f"{PLACE}/b/etcd/restore-{ID}/staged.json", f"{PLACE}/staged.json")
restore = {"id": ID, "sha256": SHA256, "cluster_id": cluster, "nodes": []}
code, results = play("restore-etcd", restore=restore)
expect((last(results, "a")["status"], last(results, "b")["reason"]), ("ok", "BackupNotStaged"), "one machine is not ready")
expect((last(results, "a")["task"], changed(results)), (last(results, "b")["task"], []), "nobody goes on")
code, results = play("probe/stage-backup")
expect((last(results, "b")["reason"], "nothing was prepared" in last(results, "b")["msg"]), ("BackupNotStaged", True), "the probe")
os.rename(f"{PLACE}/staged.json", f"{PLACE}/b/etcd/restore-{ID}/staged.json")
expect(last(play("probe/restore-etcd", restore=restore)[1], "a")["reason"], "EtcdNotRestored", "the probe of the next step")
expect(last(play("undo-restore")[1], "a")["reason"], "EtcdDataMissing", "there is nothing to undo")
expect(last(play("stage-backup", restore={"id": "../../ab"})[1], "a")["reason"], "InvalidVariables", "a path")

code, results = play("probe/remove-old-data")
expect(last(results, "a")["reason"], "OldDataRemains", "what is left")
code, results = play("remove-old-data", "probe/remove-old-data")
expect((code, [os.listdir(f"{PLACE}/{host}/etcd") for host in HOSTS]), (0, [[], []]), "removed")
expect(changed(play("remove-old-data", "probe/remove-old-data")[1]), [], "again")
