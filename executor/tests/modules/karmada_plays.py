"""The steps of a machine of a Karmada control plane as Ansible plays them: the variables of a run come to the modules, content of files shows
nowhere, and what is of nodes of Kubernetes is left out. Playbooks and roles are the real ones; the component and systemd are stand-ins."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

VENV = os.environ.get("CLUSTERWRIGHT_ANSIBLE_VENV") or os.path.expanduser("~/.cache/clusterwright/venv")
if "MACHINE_SOURCES" not in os.environ:
    # Its Python may be one of its own, too.
    python = os.path.dirname(os.path.dirname(os.path.realpath(f"{VENV}/bin/python3")))
    os.environ["MACHINE_SOURCES"] = ":".join([VENV] if python == "/usr" else [VENV, python])
    os.environ["CLUSTERWRIGHT_ANSIBLE_VENV"] = VENV

from machine_world import SOURCES, enter, write  # noqa: E402

enter()

import systemd_standin  # noqa: E402
from bundle_world import Served, entry  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.module_utils import karmada  # noqa: E402

COLLECTION = os.environ["PYTHONPATH"]
KEY = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LW9mLXRoZS1zY2hlZHVsZXI\n-----END PRIVATE KEY-----\n"
UNIT, DIRECTORY = "clusterwright-karmada-scheduler.service", "/etc/karmada/pki/scheduler"
PROGRAM = f"{karmada.PROGRAMS}/1.18.2/bin/karmada-scheduler"
BUNDLE = Served(entry("karmada-scheduler", "1.18.2"), entry("etcd", "3.6.16", kind="archive"))
BUNDLE.files["karmada-scheduler-1.18.2-1"] = pathlib.Path(os.path.realpath(sys.executable)).read_bytes()
RENDERED = ("preflight_arguments", "bootstrap_os_wanted", "prepare_hosts", "load_balancer_arguments")


def own_digest() -> None:
    """The program of the bundle is a copy of Python, so that the stand-in has one to run with."""
    index = json.loads(BUNDLE.index)
    index["artifacts"][0]["sha256"] = hashlib.sha256(BUNDLE.files["karmada-scheduler-1.18.2-1"]).hexdigest()
    BUNDLE.index = json.dumps(index).encode()


def play(*steps: str, host: dict | None = None, groups: tuple = ("karmada_control_plane", "etcd"), **more: object) -> tuple:
    """(exit code, what it said, results by task)."""
    events = write("/data/events", "")
    variables = {
        "secrets_dir": "/data/secrets", "cluster_kind": "KarmadaDeployment", "kube_version": "1.35.4", "artifacts_url": BUNDLE.url,
        "kube_apiserver_endpoint": {"host": "127.0.0.1", "port": 5443}, "cluster_identity": "uid", "ansible_connection": "local", "ip": "127.0.0.1",
        "ansible_python_interpreter": "/usr/bin/python3", "karmada_programs": [{"name": "karmada-scheduler", "version": "1.18.2"}],
        "karmada_service_timeout_seconds": 10, "clusterwright_probe_seconds": 1, **more,
    }  # fmt: skip
    known = ("kube_control_plane", "kube_node", "etcd", "karmada_control_plane")
    children = {name: {"hosts": {"k1": {}} if name in groups else {}} for name in known}
    inventory = {"all": {"hosts": {"k1": host or {}}, "vars": variables, "children": children}}
    # As the executor writes it: every text is data.
    write("/data/inventory.yml", f"!unsafe {json.dumps(inventory)}")
    environment = {
        "PATH": f"{VENV}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "CLUSTERWRIGHT_EVENTS": events,
        "ANSIBLE_CONFIG": f"{COLLECTION}/ansible.cfg", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    playbooks = [step if step.startswith("/") else f"{COLLECTION}/playbooks/{step}.yml" for step in steps]
    done = subprocess.run([f"{VENV}/bin/ansible-playbook", "-vvv", "-i", "/data/inventory.yml", *playbooks], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
    told = [json.loads(line) for line in pathlib.Path(events).read_text(encoding="utf-8").splitlines()]
    said = done.stdout + done.stderr
    assert "c2VjcmV0" not in said + json.dumps(told), "the content of a file shows"
    return done.returncode, said, {event["task"]: event for event in told if event["event"] == "result" and event["status"] != "skipped"}


def service(digest: str, state: str = "started", more: str = "") -> dict:
    return {
        "karmada_service": {
            "name": "scheduler", "unit": UNIT, "program": PROGRAM, "version": "1.18.2", "digest": digest, "directory": DIRECTORY, "state": state,
            "exec_start": f'{PROGRAM} /opt/standin.py "--port=10351" "--file={DIRECTORY}/kubeconfig"{more}',
            "files": {"kubeconfig": "karmada.scheduler.kubeconfig", "tls.key": "karmada.k1.scheduler.tls.key"},
            "health": {"url": "http://127.0.0.1:10351/healthz"},
        },
        "karmada_parts": [{"name": "scheduler", "unit": UNIT, "health": {"url": "http://127.0.0.1:10351/healthz"}}],
    }  # fmt: skip


def brought(*steps: str, **options: object) -> dict:
    code, said, results = play(*steps, **options)
    assert code == 0, said
    return results


def the_programs_and_a_service_are_brought_and_their_probes_say_what_is_done() -> None:
    code, said, results = play("probe/karmada-programs")
    assert code != 0 and results["The programs are in their places"]["reason"] == "NotPrefetched", said
    brought("karmada-programs", "probe/karmada-programs")
    assert os.access(PROGRAM, os.X_OK)
    code, said, results = play("probe/karmada-service", host=service("1.18.2-a"))
    task = "The services are those that are wanted, and healthy"
    assert code != 0 and results[task]["reason"] == "ServiceOutdated" and results[task]["differs"] and UNIT in results[task]["msg"], said
    results = brought("karmada-service", "probe/karmada-service", host=service("1.18.2-a"))
    assert results["Run the services"]["changed"] and f"start {UNIT}" in systemd_standin.verbs()
    assert pathlib.Path(f"{DIRECTORY}/tls.key").read_text(encoding="utf-8") == KEY
    results = brought("karmada-service", host=service("1.18.2-a"))
    assert not results["Run the services"]["changed"] and systemd_standin.verbs() == []
    code, said, _results = play("probe/karmada-service", host=service("1.18.2-b"))
    assert code != 0
    told = brought("probe-karmada", host=service("1.18.2-a"))["Ask the services how they are"]["finding"]
    assert told == {"kind": "karmada", "parts": [{"name": "scheduler", "digest": "1.18.2-a", "healthy": True}]}, told


def several_services_of_a_run_are_brought_in_their_order_and_a_failure_keeps_those_ahead_of_it() -> None:
    def several(scheduler: str, search: str, more: str = "") -> dict:
        one = service(scheduler)["karmada_service"]
        other = {**one, "name": "search", "unit": UNIT.replace("scheduler", "search"), "directory": DIRECTORY.replace("scheduler", "search"),
                 "digest": search, "exec_start": one["exec_start"].replace("10351", "10358").replace("/scheduler/", "/search/") + more,
                 "health": {"url": "http://127.0.0.1:10358/healthz"}}  # fmt: skip
        return {"karmada_services": [{key: item for key, item in each.items() if key != "version"} for each in (one, other)]}

    code, said, results = play("karmada-service", host=several("1.18.2-b", "1.18.2-c", ' "--ends=it is of no use"'))
    result = results["Run the services"]
    assert code != 0 and "clusterwright-karmada-search.service" in result["msg"] and "it is of no use" in result["msg"], said
    assert result["finding"] == {"kind": "brought", "parts": {"scheduler": "1.18.2-b"}}, result
    results = brought("karmada-service", "probe/karmada-service", host=several("1.18.2-b", "1.18.2-d"))
    assert results["Run the services"]["finding"]["parts"] == {"scheduler": "1.18.2-b", "search": "1.18.2-d"}
    code, said, results = play("probe/karmada-service", host=several("1.18.2-b", "1.18.2-e"))
    assert code != 0 and "karmada-search" in results["The services are those that are wanted, and healthy"]["msg"], said
    absent = {"karmada_services": [{"name": "search", "unit": UNIT.replace("scheduler", "search"), "directory": DIRECTORY.replace("scheduler", "search"), "state": "absent"}]}
    assert brought("karmada-service", "probe/karmada-service", host=absent)["Run the services"]["finding"]["parts"] == {"search": "absent"}
    brought("karmada-service", host=service("1.18.2-a"))
    systemd_standin.verbs()


def estimators_of_members_come_by_the_same_step_and_a_run_of_others_leaves_them_alone() -> None:
    unit, directory = "clusterwright-karmada-estimator-m1.service", "/etc/karmada/pki/estimator-m1"
    write("/data/secrets/karmada-estimator.m1.kubeconfig", "well")
    write("/data/secrets/karmada-estimator.m1.estimator.key", KEY)
    one = {
        "name": "estimator-m1", "unit": unit, "program": PROGRAM, "digest": "1.18.2-m", "directory": directory,
        "exec_start": f'{PROGRAM} /opt/standin.py "--port=21007" "--file={directory}/kubeconfig"',
        "files": {name: f"karmada-estimator.m1.{name}" for name in ("kubeconfig", "estimator.key")},
    }  # fmt: skip
    wanted = {"karmada_estimators": {"digest": "1.18.2-x", "services": [one]}}
    results = brought("karmada-service", "probe/karmada-service", **wanted)
    assert results["Run the services"]["finding"] == {"kind": "brought", "parts": {"estimators": "1.18.2-x"}}, results
    assert f"start {unit}" in systemd_standin.verbs() and pathlib.Path(f"{directory}/estimator.key").read_text(encoding="utf-8") == KEY
    asked = {"name": "m1", "unit": unit, "health": {"url": "http://127.0.0.1:21007/healthz", "opens": 21007}}
    told = brought("probe-karmada", karmada_estimators={"services": [asked]})["Ask the services how they are"]["finding"]
    assert told["parts"] == [{"name": "estimators", "digest": "1.18.2-x", "healthy": True, "members": {}}], told
    brought("karmada-service", host=service("1.18.2-a"))
    assert karmada.estimators() == [unit]
    code, said, _results = play("probe/karmada-service", karmada_estimators={"digest": "1.18.2-y", "services": [one]})
    assert code != 0, said
    results = brought("karmada-service", "probe/karmada-service", karmada_estimators={"digest": "", "services": []})
    assert results["Run the services"]["finding"]["parts"] == {"estimators": "absent"} and karmada.estimators() == []
    systemd_standin.verbs()


def its_services_are_restarted_when_somebody_asks_for_it() -> None:
    results = brought("restart-services", "probe/restart-services", host=service("1.18.2-a"))
    assert systemd_standin.verbs() == [f"restart {UNIT}"], results
    code, said, results = play("restart-services", groups=("etcd",))
    result = results["Restart kubelet and containerd, or etcd and what else serves"]
    assert code != 0 and result["reason"] == "ServiceFailed" and "neither kubelet, nor etcd" in result["msg"], said


def one_that_does_not_get_well_fails_with_the_end_of_its_journal() -> None:
    code, said, results = play("karmada-service", host=service("1.18.2-c", more=' "--ends=it is of no use"'))
    result = results["Run the services"]
    assert code != 0 and result["reason"] == "ServiceFailed" and "it ends, since it is of no use" in result["msg"], said
    told = brought("probe-karmada", host=service("1.18.2-c"))["Ask the services how they are"]["finding"]
    assert told["parts"][0]["healthy"] is False and told["parts"][0]["digest"] == "1.18.2-c"
    brought("karmada-service", "probe/karmada-service", host=service("1.18.2-a"))


def a_service_is_stopped_and_removed_without_the_rest_of_its_variables() -> None:
    brought("karmada-service", "probe/karmada-service", host=service("1.18.2-a", state="stopped"))
    code, _said, _results = play("probe/karmada-service", host=service("1.18.2-a"))
    assert code != 0
    absent = {"karmada_service": {"name": "scheduler", "unit": UNIT, "directory": DIRECTORY, "state": "absent"}}
    brought("karmada-service", "probe/karmada-service", host=absent)
    assert not os.path.exists(DIRECTORY) and karmada.units() == []


def nothing_of_nodes_is_asked_for_or_changed_on_such_a_machine() -> None:
    render = write("/data/render.yml", f"""
- hosts: all
  gather_facts: false
  roles: [clusterwright.cluster.variables]
  tasks:
  - ansible.builtin.include_vars: {{file: "{COLLECTION}/roles/{{{{ item }}}}/vars/main.yml"}}
    loop: [preflight, bootstrap_os, prepare, load_balancer]
  - ansible.builtin.copy:
      content: "{{{{ {{'packages': bootstrap_os_wanted, 'hosts': prepare_hosts, 'roles': preflight_roles, 'artifacts': preflight_artifacts,
        'balancer': load_balancer_arguments, 'memory': preflight_memory_minimum_mib}} | to_json }}}}"
      dest: /data/rendered.json
      mode: "0600"
""")
    endpoint = {"keepalived_virtual_ip": "127.0.0.9", "kube_apiserver_backends": ["127.0.0.1:5443"],
                "load_balancer_ca_path": "/etc/karmada/pki/apiserver/ca.crt", "load_balancer_health_path": "/livez"}  # fmt: skip
    brought(render, role_path="", bootstrap_os_installer="", **endpoint)
    given = json.loads(pathlib.Path("/data/rendered.json").read_text(encoding="utf-8"))
    assert {"haproxy", "keepalived"} < set(given["packages"]) and not {"conntrack", "iptables", "socat"} & set(given["packages"])
    assert given["hosts"] == [] and given["roles"] == ["etcd", "karmada-control-plane"]
    assert [artifact["name"] for artifact in given["artifacts"]] == ["etcd", "karmada-scheduler"]
    assert (given["balancer"]["ca_path"], given["balancer"]["health_path"]) == ("/etc/karmada/pki/apiserver/ca.crt", "/livez")
    brought(render, role_path="", bootstrap_os_installer="", groups=("etcd",))
    given = json.loads(pathlib.Path("/data/rendered.json").read_text(encoding="utf-8"))
    assert "haproxy" not in given["packages"] and given["roles"] == ["etcd"], given
    brought(render, role_path="", bootstrap_os_installer="", groups=("kube_control_plane",), cluster_kind="ClusterDeployment")
    given = json.loads(pathlib.Path("/data/rendered.json").read_text(encoding="utf-8"))
    assert "conntrack" in given["packages"] and given["hosts"] == ["127.0.0.1 k1"] and given["roles"] == ["control-plane"], given

    brought("prepare", "probe/prepare")
    assert "clusterwright" not in pathlib.Path("/etc/hosts").read_text(encoding="utf-8")
    assert not os.path.exists("/etc/sysctl.d/90-clusterwright.conf") or "ip_forward" not in pathlib.Path(
        "/etc/sysctl.d/90-clusterwright.conf"
    ).read_text(encoding="utf-8")
    _code, said, results = play("preflight", preflight_memory_minimum_mib=1, preflight_disk_minimum_mib=1)
    names = {finding["name"] for finding in results["Check everything that could stand against an installation"]["finding"]["findings"]}
    assert not names & {"swap", "zram-swap", "cgroup-v1", "container-runtime", "cidr-invalid", "cpu", "artifacts-missing"}, (names, said)
    assert "programs" in names, "haproxy is not here, and is asked for"


own_digest()
write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
write("/etc/group", "root:x:0:\n")
write("/etc/shadow", "root:*:1::::::\n", 0o640)
write("/etc/login.defs", "SYS_UID_MIN 100\nSYS_UID_MAX 999\nSYS_GID_MIN 100\nSYS_GID_MAX 999\n")
write("/etc/os-release", "ID=debian\nVERSION_ID=12\n")
write("/opt/standin.py", pathlib.Path(SOURCES[0], "karmada_standin.py").read_text(encoding="utf-8"))
write("/data/secrets/karmada.scheduler.kubeconfig", "well")
write("/data/secrets/karmada.k1.scheduler.tls.key", KEY)
systemd_standin.install()
the_programs_and_a_service_are_brought_and_their_probes_say_what_is_done()
several_services_of_a_run_are_brought_in_their_order_and_a_failure_keeps_those_ahead_of_it()
estimators_of_members_come_by_the_same_step_and_a_run_of_others_leaves_them_alone()
its_services_are_restarted_when_somebody_asks_for_it()
one_that_does_not_get_well_fails_with_the_end_of_its_journal()
a_service_is_stopped_and_removed_without_the_rest_of_its_variables()
nothing_of_nodes_is_asked_for_or_changed_on_such_a_machine()
