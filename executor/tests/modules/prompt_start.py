"""The kubelet is restarted once for each static Pod that it holds back, when its place is free, and for no other reason.

The manifests are files of this script's; which processes run is given, and the kubelet is a list of its restarts."""

import os
import pathlib
import sys
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    component_process,
    control_plane,
    prompt_start,
    static_pod,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

FOLDER = pathlib.Path(sys.argv[1])
static_pod.FOLDER = str(FOLDER)
prompt_start.PAUSE_SECONDS = 0.01
APISERVER, SCHEDULER = "kube-apiserver", "kube-scheduler"
running: dict = {}
restarts: list = []
control_plane.own_processes = lambda components: {component: list(running[component]) for component in components if running.get(component)}


def systemctl(verb: str, unit: str, **_more) -> None:
    assert (verb, unit) == ("restart", "kubelet.service")
    restarts.append({component: list(pids) for component, pids in running.items()})


units.systemctl = systemctl


def write(component: str, text: str) -> None:
    """As kubeadm does: the one that is there is moved away, and the next one into its place."""
    path = FOLDER / f"{component}.yaml"
    path.unlink(missing_ok=True)
    time.sleep(0.05)
    (FOLDER / "next").write_text(text, encoding="utf-8")
    os.rename(FOLDER / "next", path)


def pause() -> None:
    time.sleep(0.1)


def a_place_that_is_free_is_taken_at_once():
    with prompt_start.watched([APISERVER, SCHEDULER]):
        write(APISERVER, "new")
        pause()
        assert restarts == [], "the process of before still ends"
        running[APISERVER] = []
        pause()
        assert restarts == [{APISERVER: [], SCHEDULER: [2]}]
        pause()
        assert len(restarts) == 1, "once is enough, however long it takes to come"
        running[APISERVER] = [11]
        write(SCHEDULER, "new")
        running[SCHEDULER] = []
        pause()
        assert restarts[1:] == [{APISERVER: [11], SCHEDULER: []}]
        running[SCHEDULER] = [12]
        # The former one is put back.
        write(APISERVER, "old")
        running[APISERVER] = []
        pause()
        assert len(restarts) == 3
        running[APISERVER] = [21]


def what_needs_no_help_gets_none():
    with prompt_start.watched([APISERVER, SCHEDULER]):
        # It ended, and came again, by itself.
        running[SCHEDULER] = []
        pause()
        running[SCHEDULER] = [31]
        pause()
        # The kubelet was faster.
        write(SCHEDULER, "newer")
        running[SCHEDULER] = [32]
        pause()
        # It is gone, and nothing takes its place.
        (FOLDER / f"{APISERVER}.yaml").unlink()
        running[APISERVER] = []
        pause()
    assert restarts == []
    write(APISERVER, "later")
    pause()
    assert restarts == [], "nobody watches any more"


def a_kubelet_that_does_not_restart_is_no_failure_of_what_is_done():
    def refuse(*_words, **_more) -> None:
        restarts.append({})
        raise StepFailure("ServiceFailed", "no")

    units.systemctl = refuse
    with prompt_start.watched([APISERVER]):
        running[APISERVER] = []
        write(APISERVER, "newest")
        pause()
        write(APISERVER, "newest of all")
        pause()
    assert len(restarts) == 2


def one_that_is_started_anew_is_not_held_back():
    ended = []
    component_process.pids = lambda component: list(running.get(component, []))

    def end(component: str) -> None:
        ended.append(component)
        running[component] = [] if component == APISERVER else [32]

    component_process.end = end
    units.systemctl = systemctl
    prompt_start.PATIENCE_SECONDS = 0.2
    prompt_start.start_anew([SCHEDULER])
    assert ended == [SCHEDULER] and restarts == [], "the kubelet has started it by itself"
    prompt_start.start_anew([APISERVER])
    assert ended == [SCHEDULER, APISERVER] and restarts == [{APISERVER: [], SCHEDULER: [32]}]
    ended.clear()
    restarts.clear()
    running[SCHEDULER] = [2]
    prompt_start.start_anew([SCHEDULER, APISERVER])
    assert ended == [SCHEDULER, APISERVER] and restarts == [{APISERVER: [], SCHEDULER: [32]}], "the kubelet is restarted once for both"


for check in (
    a_place_that_is_free_is_taken_at_once,
    what_needs_no_help_gets_none,
    a_kubelet_that_does_not_restart_is_no_failure_of_what_is_done,
    one_that_is_started_anew_is_not_held_back,
):
    running.clear()
    running.update({APISERVER: [1], SCHEDULER: [2]})
    restarts.clear()
    for name in running:
        write(name, "old")
    check()
