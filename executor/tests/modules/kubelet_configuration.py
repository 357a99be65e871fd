"""A kubelet gets another configuration and keeps it only if it works with it: else it has the former one again, and the step says why.

kubeadm, systemd and the kubelet are stand-ins: what the kubelet does depends on what is in its file when it is started."""

import json
import os
import pathlib
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    command,
    healthz,
    kubeadm_program,
    kubelet,
    manifest_backups,
    membership,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import kubelet_configuration as module

PLACE = pathlib.Path(sys.argv[1])
PATCH = "kubeletconfiguration+merge.json"
kubelet.CONFIG = str(PLACE / "config.yaml")
kubelet.PATCHES = str(PLACE / "patches")
kubelet.RECORD = str(PLACE / "record.json")
kubelet.FORMER = str(PLACE / "former.json")
membership.KUBEADM = str(PLACE / "kubeadm.json")
manifest_backups.FOLDER = str(PLACE / "tmp")
kubeadm_program.RUN_DIRECTORY = str(PLACE / "run")
module.CPU_STATE = str(PLACE / "cpu_manager_state")
module.QUIET_SECONDS = 0.2
command.PATH = f"{PLACE}/bin:{command.PATH}"
for name in ("bin", "patches"):
    (PLACE / name).mkdir()


def program(name: str, text: str) -> None:
    path = PLACE / "bin" / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


# As the real one: the cluster's configuration, with the patch laid over it.
program(
    "kubeadm",
    f"""#!/usr/bin/python3
import json, pathlib, sys
assert sys.argv[1:5] == ["upgrade", "node", "phase", "kubelet-config"], sys.argv
place = pathlib.Path({str(PLACE)!r})
if (place / "no-api").exists():
    sys.exit("error: error execution phase kubelet-config: the API does not answer")
patch = json.loads((place / "patches" / {PATCH!r}).read_text())
lines = [f"{{key}}: {{value}}" for key, value in sorted({{"cgroupDriver": "systemd", **patch}}.items())]
(place / "config.yaml").write_text("".join(line + chr(10) for line in lines))
""",
)
COMPLAINT = "panic: failed to merge global and in-flight KubeletConfiguration, error: unrecognized feature gate: Nope"
TRACE = "goroutine 1 [running]:\\nmain.main()\\n\\tcmd/kubelet.go:37 +0x2a"
program("journalctl", f"#!/bin/sh\necho 'I1125 12:00:00 starts'\nprintf '%b' '{COMPLAINT}\\n{TRACE}'\n")


class Machine:
    """systemd and the kubelet: what it was started with, how often, and what was done to it."""

    def __init__(self) -> None:
        self.config, self.start, self.done, self.ready = "", 0, [], True

    def works(self) -> bool:
        noted = membership.read(module.CPU_STATE).get("policyName", "none")
        return "bad" not in self.config and (noted == "static") == ("cpuManagerPolicy: static" in self.config)

    def begin(self) -> None:
        self.config = pathlib.Path(kubelet.CONFIG).read_text(encoding="utf-8")
        self.start += 1
        if "cpuManagerPolicy: static" in self.config and not os.path.exists(module.CPU_STATE):
            pathlib.Path(module.CPU_STATE).write_text('{"policyName": "static"}', encoding="utf-8")

    def state(self, _unit: str) -> dict:
        if not self.works():
            self.start += 1
        return {"InvocationID": str(self.start), "ActiveState": "active"}

    def ensure(self, _unit: str, restart: bool = False, **_more: object) -> bool:
        again = restart or self.config != pathlib.Path(kubelet.CONFIG).read_text(encoding="utf-8")
        if again:
            self.done.append("restart")
            self.begin()
        return again

    def answer(self, _endpoint: tuple) -> tuple:
        return self.works(), "connection refused"

    def ask(self, _path: str) -> dict:
        return {"status": {"conditions": [{"type": "Ready", "status": str(self.ready)}]}}


def begin() -> Machine:
    """A node as kubeadm made it, with an operator of before."""
    machine = Machine()
    for path in (kubelet.RECORD, kubelet.FORMER, module.CPU_STATE):
        pathlib.Path(path).unlink(missing_ok=True)
    pathlib.Path(kubelet.CONFIG).write_text("cgroupDriver: systemd\n", encoding="utf-8")
    pathlib.Path(kubelet.PATCHES, PATCH).write_text("{}", encoding="utf-8")
    membership.save(membership.KUBEADM, {"identity": "a"})
    machine.begin()
    units.state, units.ensure, healthz.answer = machine.state, machine.ensure, machine.answer
    units.systemctl = lambda verb, *_arguments, **_more: machine.done.append(verb)
    module.Api = lambda _kubeconfig: machine
    return machine


def play(settings: dict, check: bool = False, identity: str = "a", timeout: int = 60) -> dict:
    params = {
        "identity": identity, "settings": settings, "patches": {PATCH: json.dumps(settings)}, "program": "/usr/local/bin/kubelet",
        "node_name": "n1", "timeout_seconds": timeout,
    }  # fmt: skip
    return module.work(type("Call", (), {"params": params, "check_mode": check}))


def refused(settings: dict, **more: object) -> StepFailure:
    try:
        play(settings, **more)
    except StepFailure as failure:
        return failure
    raise AssertionError(f"{settings} was taken")


def one_of_before_for_which_nothing_is_configured_is_left_alone():
    machine = begin()
    assert play({})["changed"] is False and machine.done == []
    assert play({"maxPods": 50}, identity="another")["changed"] is False, "no node yet: kubeadm brings it"


def what_is_given_is_taken_up_by_one_restart_and_what_is_taken_back_goes():
    machine = begin()
    assert play({"maxPods": 50}, check=True)["changed"] and machine.done == []
    assert play({"maxPods": 50})["changed"] and machine.done == ["restart"] and "maxPods: 50" in machine.config
    assert not play({"maxPods": 50})["changed"] and not play({"maxPods": 50}, check=True)["changed"] and machine.done == ["restart"]
    assert play({})["changed"] and machine.done == ["restart"] * 2 and machine.config == "cgroupDriver: systemd\n"
    assert not play({}, check=True)["changed"] and not os.path.exists(kubelet.RECORD)


def a_file_that_is_the_same_restarts_nothing():
    machine = begin()
    assert play({"cgroupDriver": "systemd"})["changed"] and machine.done == []


def one_that_keeps_ending_has_its_former_configuration_again_and_the_step_says_why():
    machine = begin()
    play({"maxPods": 50})
    failure = refused({"featureGates": "bad"})
    assert failure.reason == "ConfigurationRefused", failure.reason
    assert COMPLAINT in failure.message and "main.main" not in failure.message
    assert "starts" not in failure.message.splitlines()[1], failure.message
    assert "featureGates" in failure.message and "it works" in failure.message, failure.message
    assert machine.works() and "maxPods: 50" in machine.config
    assert json.loads(pathlib.Path(kubelet.PATCHES, PATCH).read_text(encoding="utf-8")) == {"maxPods": 50}
    assert not play({"maxPods": 50}, check=True)["changed"], "what it has is what it had"


def one_whose_node_is_not_ready_any_more_too():
    machine = begin()
    ask = machine.ask
    machine.ask = lambda path: {} if "maxPods" in machine.config else ask(path)
    failure = refused({"maxPods": 50}, timeout=8)
    assert failure.reason == "ConfigurationRefused" and machine.config == "cgroupDriver: systemd\n", failure.message
    # One that was not before proves nothing.
    machine.ready = False
    assert play({"maxPods": 50})["changed"]


def one_that_is_not_well_with_what_it_had_either_refuses_nothing():
    machine = begin()
    works = machine.works
    machine.works = lambda: machine.start < 2 and works()
    failure = refused({"maxPods": 50})
    assert failure.reason == "KubeletNotHealthy" and "nor with what it had before" in failure.message, failure.message
    assert pathlib.Path(kubelet.CONFIG).read_text(encoding="utf-8") == "cgroupDriver: systemd\n"
    machine.works = works
    assert play({"maxPods": 50})["changed"] and "maxPods" in machine.config


def an_attempt_that_was_cut_short_is_made_again_and_falls_back_on_what_was_proved_before_it():
    machine = begin()
    ensure = units.ensure
    units.ensure = lambda *_arguments, **_more: sys.exit("killed")
    try:
        play({"featureGates": "bad"})
        raise AssertionError("it goes on")
    except SystemExit:
        units.ensure = ensure
    assert "bad" in pathlib.Path(kubelet.CONFIG).read_text(encoding="utf-8")
    assert play({}, check=True)["changed"], "nobody knows how far it came"
    assert refused({"featureGates": "bad"}).reason == "ConfigurationRefused" and machine.config == "cgroupDriver: systemd\n"
    machine.begin()
    assert not play({})["changed"]


def without_an_api_nothing_is_changed():
    machine = begin()
    (PLACE / "no-api").touch()
    failure = refused({"maxPods": 50})
    (PLACE / "no-api").unlink()
    assert failure.reason == "KubeadmFailed" and machine.done == []
    assert pathlib.Path(kubelet.PATCHES, PATCH).read_text(encoding="utf-8") == "{}"
    assert play({})["changed"] and machine.done == [] and not play({}, check=True)["changed"]


def what_another_policy_noted_of_cpus_goes_while_the_kubelet_is_stopped():
    machine = begin()
    pathlib.Path(module.CPU_STATE).write_text('{"policyName": "none"}', encoding="utf-8")
    assert play({"cpuManagerPolicy": "static"})["changed"] and machine.done == ["stop", "restart"]
    assert play({})["changed"] and machine.done == ["stop", "restart"] * 2


one_of_before_for_which_nothing_is_configured_is_left_alone()
what_is_given_is_taken_up_by_one_restart_and_what_is_taken_back_goes()
a_file_that_is_the_same_restarts_nothing()
one_that_keeps_ending_has_its_former_configuration_again_and_the_step_says_why()
one_whose_node_is_not_ready_any_more_too()
one_that_is_not_well_with_what_it_had_either_refuses_nothing()
an_attempt_that_was_cut_short_is_made_again_and_falls_back_on_what_was_proved_before_it()
without_an_api_nothing_is_changed()
what_another_policy_noted_of_cpus_goes_while_the_kubelet_is_stopped()
