"""A component of a Karmada control plane is a service that is waited for until it is well, changed only by another digest, and gone after a
reset. Its program is a stand-in on the component's port, a copy of Python; systemd is a stand-in that runs it as the unit's user."""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import time

from machine_world import enter, play, write

import tls_world

if "CLUSTERWRIGHT_INSIDE" not in os.environ:
    tls_world.certificate("plane")
    tls_world.certificate("stranger")
else:
    STRANGER = tls_world.authority("stranger")
    PAIR = {name: (tls_world.PLACE / f"plane{end}").read_text(encoding="utf-8") for name, end in
            {"tls.crt": ".crt", "tls.key": ".key", "ca.crt": ".ca.crt"}.items()}  # fmt: skip
enter()

import systemd_standin  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.module_utils import (  # noqa: E402
    accounts,
    findings,
    karmada,
    leftovers,
    membership,
    processes,
)
from ansible_collections.clusterwright.cluster.plugins.modules import (  # noqa: E402
    fence,
    karmada_info,
    karmada_service,
    reboot_mark,
    reset,
    restart_services,
)

systemd_standin.install()
write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
write("/etc/group", "root:x:0:\n")
write("/etc/shadow", "root:*:1::::::\n", 0o640)
write("/etc/login.defs", "SYS_UID_MAX 999\nSYS_GID_MAX 999\nSYS_UID_MIN 100\nSYS_GID_MIN 100\n")
STANDIN = write("/opt/standin.py", pathlib.Path(os.path.dirname(os.path.realpath(__file__)), "karmada_standin.py").read_text(encoding="utf-8"))
PROGRAM = f"{karmada.PROGRAMS}/1.18.2/bin/karmada-scheduler"
UNIT = "clusterwright-karmada-scheduler.service"
DIRECTORY = "/etc/karmada/pki/scheduler"
HEALTH = {"url": "http://127.0.0.1:10351/healthz"}


def service(digest: str, state: str = "started", more: str = "", name: str = "scheduler", port: int = 10351, **options: object) -> dict:
    directory = f"/etc/karmada/pki/{name}"
    return {
        "name": name, "unit": f"clusterwright-karmada-{name}.service", "state": state, "program": PROGRAM, "digest": digest, "directory": directory,
        "exec_start": f'{PROGRAM} {STANDIN} "--port={port}" "--file={directory}/kubeconfig"{more}', "files": {"kubeconfig": f"{name}.kubeconfig"},
        "health": {"url": f"http://127.0.0.1:{port}/healthz"}, **options,
    }  # fmt: skip


def wanted(content: str = "well", secrets: dict | None = None, timeout_seconds: int = 20, **options: object) -> dict:
    known = {"scheduler.kubeconfig": content} if secrets is None else secrets
    return {"services": [service(**options)], "secrets": known, "timeout_seconds": timeout_seconds}


def bring(check: bool = False, **options: object) -> tuple:
    """(changed, what systemd was told)."""
    result, failure = play(karmada_service, check, **wanted(**options))
    assert failure is None, failure.message
    return result["changed"], systemd_standin.verbs()


def probe(**options: object) -> str:
    """What is not done, or nothing: as the probe asks, without the content of files."""
    result, failure = play(karmada_service, True, **wanted(secrets={}, timeout_seconds=1, **options))
    assert systemd_standin.verbs() == [], "a probe changes nothing"
    return failure.message if failure else result["msg"] if result["changed"] else ""


def refused(reason: str, *parts: str, **options: object) -> list:
    """What systemd was told before."""
    _result, failure = play(karmada_service, **wanted(**options))
    assert failure and failure.reason == reason and all(part in failure.message for part in parts), failure and failure.message
    return systemd_standin.verbs()


def seen(health: dict = HEALTH) -> dict:
    result, failure = play(karmada_info, parts=[{"name": "scheduler", "unit": UNIT, "health": health}])
    assert failure is None and result["changed"] is False
    return result["clusterwright"]["parts"][0]


def a_service_that_is_brought_runs_as_its_user_and_a_second_time_changes_nothing() -> None:
    assert seen() == {"name": "scheduler", "digest": "", "healthy": False, "message": f"there is no {UNIT}"}
    refused("ServiceFailed", PROGRAM, "karmada-programs", digest="1.18.2-a")
    os.makedirs(os.path.dirname(PROGRAM))
    shutil.copy(os.path.realpath(sys.executable), PROGRAM)
    # The attempt before was cut off ahead of the start.
    assert probe(digest="1.18.2-a").endswith("it did not run, or not with what is in its files")
    changed, told = bring(digest="1.18.2-a")
    assert changed and told == [f"enable {UNIT}", f"reset-failed {UNIT}", f"start {UNIT}"], told
    assert bring(digest="1.18.2-a") == (False, []) and probe(digest="1.18.2-a") == ""
    unit = pathlib.Path(karmada.unit_path(UNIT)).read_text(encoding="utf-8")
    assert unit.splitlines()[1] == "# digest: 1.18.2-a"
    status = os.stat(f"{DIRECTORY}/kubeconfig")
    group = accounts.ensure("karmada", karmada.STATE)
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, group, 0o640) and group > 0
    assert stat.S_IMODE(os.stat(DIRECTORY).st_mode) == 0o750
    pid = systemd_standin.known(UNIT)["pid"]
    assert f"Uid:\t{group}" in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    assert seen() == {"name": "scheduler", "digest": "1.18.2-a", "healthy": True}
    assert processes.of_planes() == {pid: PROGRAM} and leftovers.processes.find()[processes.PLANE] == [pid]


def systemds_own_program_finds_nothing_wrong_in_the_unit() -> None:
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", karmada.unit_path(UNIT)], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if UNIT in line]
    assert not said, done.stderr


def another_digest_or_other_files_restart_it_and_files_that_are_not_wanted_go() -> None:
    write(f"{DIRECTORY}/old.key", "of before")
    assert "old.key" in probe(digest="1.18.2-a") and UNIT in probe(digest="1.18.2-b")
    assert bring(digest="1.18.2-b") == (True, [f"restart {UNIT}"]) and os.listdir(DIRECTORY) == ["kubeconfig"]
    assert bring(digest="1.18.2-b", content="well again") == (True, [f"restart {UNIT}"])
    assert bring(digest="1.18.2-b", content="well again") == (False, [])
    # Somebody stopped it.
    systemd_standin.stop(UNIT)
    assert "unit" not in probe(digest="1.18.2-b") and "it did not run" in probe(digest="1.18.2-b")
    assert "is inactive" in seen()["message"]
    assert bring(digest="1.18.2-b", content="well again") == (True, [f"reset-failed {UNIT}", f"start {UNIT}"])


def one_that_is_not_well_fails_with_what_it_says_and_the_end_of_its_journal() -> None:
    refused("ServiceFailed", "no good file", "it began with 4 characters", digest="1.18.2-c", content="sick", timeout_seconds=5)
    assert "no good file" in probe(digest="1.18.2-c") and seen()["message"] == "the stand-in was given no good file"
    refused("ServiceFailed", "10351", "it ends, since it is of no use", digest="1.18.2-d", more=' "--ends=it is of no use"', timeout_seconds=5)
    assert seen()["healthy"] is False and "auto-restart" in seen()["message"]
    assert bring(digest="1.18.2-a")[0] and probe(digest="1.18.2-a") == ""


def several_come_in_their_order_up_to_the_first_that_does_not_work() -> None:
    names = ("scheduler", "webhook", "search")
    ports = dict(zip(names, (10351, 18000, 19444)))
    units = {name: f"clusterwright-karmada-{name}.service" for name in names}

    def bring_all(check: bool = False, **digests: str) -> tuple:
        services = [service(digests[name], name=name, port=ports[name]) for name in names]
        secrets = {f"{name}.kubeconfig": "sick" if digests[name].endswith("sick") else "well" for name in names}
        result, failure = play(karmada_service, check, services=services, secrets={} if check else secrets, timeout_seconds=1 if check else 6)
        return failure or result, systemd_standin.verbs()

    assert bring(digest="1.18.2-a") in ((True, [f"restart {UNIT}"]), (False, []))
    failure, told = bring_all(scheduler="1.18.2-a", webhook="1.18.2-sick", search="1.18.2-c")
    assert failure.reason == "ServiceFailed" and units["webhook"] in failure.message and "no good file" in failure.message, failure
    assert failure.extra["clusterwright"] == {"kind": "brought", "parts": {"scheduler": "1.18.2-a"}}, failure.extra
    assert {verb.split()[-1] for verb in told} == {units["webhook"]}, "the one ahead is as it was, and the one after it was not begun"
    result, told = bring_all(scheduler="1.18.2-a", webhook="1.18.2-b", search="1.18.2-c")
    assert result["clusterwright"]["parts"] == {"scheduler": "1.18.2-a", "webhook": "1.18.2-b", "search": "1.18.2-c"}, result
    assert [verb for verb in told if "start " in verb] == [f"restart {units['webhook']}", f"start {units['search']}"], told
    assert units["webhook"] in result["msg"] and units["search"] in result["msg"] and UNIT not in result["msg"]
    result, told = bring_all(check=True, scheduler="1.18.2-a", webhook="1.18.2-b", search="1.18.2-c")
    assert result["changed"] is False and "clusterwright" not in result and told == []
    result, _told = bring_all(check=True, scheduler="1.18.2-a", webhook="1.18.2-b", search="1.18.2-d")
    assert result["changed"] and result["msg"].startswith(units["search"])
    for name in names[1:]:
        gone = {"name": name, "unit": units[name], "state": "absent", "directory": f"/etc/karmada/pki/{name}"}
        gone.update({"program": "", "exec_start": "", "digest": "", "files": {}, "health": {}})
        result, failure = play(karmada_service, services=[gone], secrets={}, timeout_seconds=20)
        assert failure is None and result["clusterwright"]["parts"] == {name: "absent"}
    systemd_standin.verbs()


def estimators_of_members_come_together_and_none_is_touched_that_has_not_changed() -> None:
    def estimator(member: str, port: int, digest: str = "1.18.2-a") -> dict:
        return service(digest, name=f"estimator-{member}", port=port)

    def bring_them(digest: str, *estimators: dict, check: bool = False, sick: tuple = ()) -> tuple:
        secrets = {name: "sick" if name.split(".")[0] in sick else "well" for one in estimators for name in one["files"].values()}
        result, failure = play(
            karmada_service, check, services=[], secrets={} if check else secrets, timeout_seconds=1, estimators=list(estimators), estimators_digest=digest
        )
        return failure or result, systemd_standin.verbs()

    def look(*members: tuple, opens: int = 0) -> dict:
        health = {name: {"url": f"http://127.0.0.1:{port}/healthz", **({"opens": opens} if opens else {})} for name, port in members}
        wanted_here = [{"name": name, "unit": f"{karmada.ESTIMATOR_UNIT}{name}.service", "health": health[name]} for name, _port in members]
        result, failure = play(karmada_info, parts=[], estimators=wanted_here)
        assert failure is None, failure
        return result["clusterwright"]["parts"][0]

    units = {member: f"{karmada.ESTIMATOR_UNIT}{member}.service" for member in "abc"}
    first, second = estimator("a", 21001), estimator("b", 21002)
    result, told = bring_them("1.18.2-x", first, second, sick=("estimator-b",))
    assert result["clusterwright"] == {"kind": "brought", "parts": {"estimators": "1.18.2-x"}}, result
    assert [verb for verb in told if verb.startswith("start")] == [f"start {units['a']}", f"start {units['b']}"], "the sick one is not waited for"
    for _attempt in range(50):
        seen_now = look(("a", 21001), ("b", 21002))
        if list(seen_now["members"]) == ["b"] and "no good file" in seen_now["members"]["b"]:
            break
        time.sleep(0.1)
    assert seen_now["members"] == {"b": "the stand-in was given no good file"} and seen_now["healthy"], seen_now
    assert seen_now["digest"] == "1.18.2-x" and look(("a", 21001), ("b", 21002), opens=21001)["members"].keys() == {"b"}
    assert "does not listen at port 21009" in look(("a", 21001), opens=21009)["members"]["a"]
    result, told = bring_them("1.18.2-x", first, second, sick=("estimator-b",))
    assert (result["changed"], told) == (False, [])
    result, told = bring_them("1.18.2-x", first, second, check=True)
    assert (result["changed"], told) == (False, []), result
    # Another member has the port of one that goes: that one ends first. What has not changed goes on.
    pid = systemd_standin.known(units["a"])["pid"]
    third = estimator("c", 21002)
    result, told = bring_them("1.18.2-y", first, third, check=True)
    assert result["changed"] and told == [] and units["b"] in result["msg"] and units["c"] in result["msg"], result
    result, told = bring_them("1.18.2-y", first, third)
    assert told.index(f"disable --now {units['b']}") < told.index(f"start {units['c']}"), told
    assert systemd_standin.known(units["a"])["pid"] == pid and not any(units["a"] in verb for verb in told), told
    assert not os.path.exists("/etc/karmada/pki/estimator-b") and karmada.estimators() == [units["a"], units["c"]]
    assert look(("a", 21001), ("b", 21002), ("c", 21002))["digest"] == "incomplete", "it was brought others"
    # A run of other parts leaves them alone.
    result, failure = play(karmada_service, services=[], secrets={}, timeout_seconds=1)
    assert failure is None and result["clusterwright"]["parts"] == {} and len(karmada.estimators()) == 2
    failure, told = bring_them("1.18.2-z", service("1.18.2-a"))
    assert failure.reason == "InvalidVariables" and UNIT in failure.message and told == []
    result, told = bring_them("")
    assert result["clusterwright"]["parts"] == {"estimators": "absent"} and karmada.estimators() == [] and not os.path.exists(karmada.ESTIMATORS)
    assert bring_them("") == (result | {"changed": False, "files_changed": [], "msg": "nothing to do"}, [])
    assert look()["digest"] == ""


def what_would_be_written_elsewhere_or_start_something_else_is_refused() -> None:
    for options, part in (
        ({"unit": "sshd.service"}, "sshd.service"),
        ({"directory": "/etc/karmada/../ssh"}, "/etc/karmada/../ssh"),
        ({"directory": "/etc/karmada"}, "below /etc/karmada"),
        ({"files": {"../x": "scheduler.kubeconfig"}}, "../x"),
        ({"files": {"x": "scheduler.other"}}, "scheduler.other"),
        ({"program": "/bin/sh"}, "/bin/sh"),
        ({"exec_start": f"{PROGRAM} x\nExecStartPre=+/bin/true"}, "one line"),
        ({"exec_start": f"{PROGRAM}-other"}, "one line"),
        ({"digest": "a b"}, "a b"),
    ):
        assert refused("InvalidVariables", part, **{"digest": "1.18.2-a", **options}) == []


def a_restart_and_a_reboot_wait_until_the_services_that_are_to_run_are_well() -> None:
    parts = [{"name": "scheduler", "unit": UNIT, "health": HEALTH}, {"name": "search", "unit": "clusterwright-karmada-search.service", "health": {}}]

    def restart(check: bool = False, timeout: int = 20) -> tuple:
        return play(restart_services, check, parts=parts, timeout_seconds=timeout, watchers=False)

    assert bring(digest="1.18.2-a") in ((True, [f"restart {UNIT}"]), (False, []))
    before = systemd_standin.known(UNIT)["pid"]
    assert restart(check=True)[0]["changed"], "it was not restarted lately"
    result, failure = restart()
    assert failure is None and result["msg"] == f"restarted {UNIT}", failure and failure.message
    assert systemd_standin.verbs() == [f"restart {UNIT}"] and systemd_standin.known(UNIT)["pid"] != before
    assert seen()["healthy"] and restart(check=True)[0]["changed"] is False
    # It comes back with other content than it is well with.
    kept = pathlib.Path(f"{DIRECTORY}/kubeconfig").read_text(encoding="utf-8")
    pathlib.Path(f"{DIRECTORY}/kubeconfig").write_text("sick", encoding="utf-8")
    _result, failure = restart(timeout=2)
    assert failure.reason == "ServiceFailed" and "scheduler does not work: the stand-in was given no good file" in failure.message, failure.message
    assert play(reboot_mark, moment="before", request="r")[0]["due"]
    boot, reboot_mark.BOOT = reboot_mark.BOOT, write("/data/boot_id", "another")
    _result, failure = play(reboot_mark, moment="after", request="r", parts=parts, timeout_seconds=1)
    assert failure.reason == "ServiceFailed" and "scheduler does not work" in failure.message, failure.message
    pathlib.Path(f"{DIRECTORY}/kubeconfig").write_text(kept, encoding="utf-8")
    assert restart()[1] is None and play(reboot_mark, moment="after", request="r", parts=parts, timeout_seconds=20)[1] is None
    reboot_mark.BOOT = boot
    # What an upgrade stopped on purpose stays so, and there is nothing else here.
    assert bring(digest="1.18.2-a", state="stopped")[0]
    _result, failure = restart()
    assert failure.reason == "ServiceFailed" and "nor services of a Karmada control plane" in failure.message, failure.message
    assert systemd_standin.verbs() == [] and bring(digest="1.18.2-a")[0]


def its_certificate_is_believed_by_its_authority_alone_where_one_is_given() -> None:
    more = f' "--certificate={DIRECTORY}/tls.crt" "--key={DIRECTORY}/tls.key"'
    secrets = {"scheduler.kubeconfig": "well", **PAIR}
    names = {"kubeconfig": "scheduler.kubeconfig", **{name: name for name in PAIR}}
    health = {"url": "https://127.0.0.1:10351/readyz", "authority": f"{DIRECTORY}/ca.crt"}
    changed, _told = bring(digest="1.18.2-tls", more=more, secrets=secrets, files=names, health=health)
    assert changed and seen(health)["healthy"] and seen({"url": health["url"]})["healthy"]
    stranger = write("/data/stranger.crt", STRANGER)
    assert "certificate verify failed" in seen({**health, "authority": stranger})["message"]
    assert "cannot be asked" in seen({**health, "authority": "/nowhere"})["message"]


def a_service_is_stopped_and_comes_back_and_one_that_is_not_wanted_leaves_nothing() -> None:
    assert bring(digest="1.18.2-a")[0]
    changed, told = bring(digest="1.18.3-a", state="stopped")
    assert changed and told[-1] == f"disable --now {UNIT}" and karmada.digest_of(UNIT) == "1.18.3-a"
    assert bring(digest="1.18.3-a", state="stopped")[0] is False and probe(digest="1.18.3-a", state="stopped") == ""
    assert "did not run" in probe(digest="1.18.3-a")
    assert bring(digest="1.18.3-a")[0] and "is to be stopped" in probe(digest="1.18.3-a", state="stopped")
    only = {"state": "absent", "program": "", "exec_start": "", "digest": "", "files": {}, "health": {}}
    assert UNIT in probe(**only)
    assert bring(secrets={}, **only)[0] and bring(secrets={}, **only) == (False, [])
    assert probe(**only) == "" and karmada.units() == [] and not os.path.exists(DIRECTORY)
    assert processes.of_planes() == {}


def a_reset_leaves_nothing_and_takes_nobody_elses_karmada() -> None:
    assert bring(digest="1.18.2-a")[0]
    for part in (f"unit {UNIT}", "directory /etc/karmada", "process Karmada control plane", "user karmada", f"file {membership.KARMADA}"):
        assert any(left.startswith(part) for left in leftovers.find_all()), (part, leftovers.find_all())
    os.environ["CLUSTERWRIGHT_FENCED_BY"] = "/data/guard"
    write("/data/guard/fence", json.dumps({"epoch": 3}))
    looked, _failure = play(fence, True, claim_epoch=3)
    assert looked["changed"] and f"unit {UNIT}" in looked["msg"] and "port 10351" in looked["msg"], looked
    fenced, failure = play(fence, claim_epoch=3)
    assert failure is None and fenced["changed"] and os.path.exists(DIRECTORY), "a fence deletes no data"
    assert play(fence, True, claim_epoch=3)[0]["changed"] is False
    result, failure = play(reset, login_keys=[])
    assert failure is None, failure.message
    for path in (karmada.HOME, karmada.STATE, karmada.PROGRAMS, os.path.dirname(karmada.PROGRAMS), karmada.unit_path(UNIT)):
        assert not os.path.lexists(path), path
    assert leftovers.find_all() == [] and not accounts.made("karmada"), result
    # A Karmada that an administrator installed by hand.
    precious = write("/etc/karmada/pki/ca.key", "precious")
    assert leftovers.find_all() == [] and play(reset, login_keys=[])[0]["changed"] is False and os.path.exists(precious)
    os.makedirs(os.path.dirname(PROGRAM))
    shutil.copy(os.path.realpath(sys.executable), PROGRAM)
    refused("KarmadaForeignFiles", "/etc/karmada", digest="1.18.2-a")
    found = findings.remains({"roles": ["karmada-control-plane"], "identity": "x"})
    assert [finding["name"] for finding in found if "/etc/karmada" in finding["message"]] == ["karmada-files"], found
    assert findings.remains({"roles": ["control-plane"], "identity": "x"}) == [], "it is in no cluster's way"


a_service_that_is_brought_runs_as_its_user_and_a_second_time_changes_nothing()
systemds_own_program_finds_nothing_wrong_in_the_unit()
another_digest_or_other_files_restart_it_and_files_that_are_not_wanted_go()
one_that_is_not_well_fails_with_what_it_says_and_the_end_of_its_journal()
several_come_in_their_order_up_to_the_first_that_does_not_work()
estimators_of_members_come_together_and_none_is_touched_that_has_not_changed()
what_would_be_written_elsewhere_or_start_something_else_is_refused()
a_restart_and_a_reboot_wait_until_the_services_that_are_to_run_are_well()
its_certificate_is_believed_by_its_authority_alone_where_one_is_given()
a_service_is_stopped_and_comes_back_and_one_that_is_not_wanted_leaves_nothing()
a_reset_leaves_nothing_and_takes_nobody_elses_karmada()
