#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Brings flags and files to this machine's control plane, and puts back what was there if they are refused."""

from __future__ import annotations

DOCUMENTATION = r"""
module: control_plane_configuration
short_description: Flags, files and volumes of the API server, the controller-manager and the scheduler, proved or put back
description:
  - Sets the flags that are given, takes out those that were given before, and leaves all others as they are. What differs starts anew,
    nothing else.
  - A component has proved itself when its process runs with the new command line and files and stays healthy for some seconds. If it does
    not within C(timeout_seconds), the manifests and files of before come back, all of this machine's, and the module fails with
    C(ConfigurationRefused) and the end of the container's log.
  - Needs no API until all is proved. Then kubeadm's configuration of the cluster gets the same, for machines that join and for upgrades.
  - An attempt that was cut off is taken up where it stands.
options:
  components:
    description:
      - Each with C(name), C(arguments) (C(name), C(value), without dashes), C(files) (C(path), C(content), C(mode)), all below
        C(/etc/kubernetes/clusterwright/NAME), and C(volumes) (C(name), C(path), C(read_only)), mounted at their own path.
    type: list
    elements: dict
    required: true
  timeout_seconds:
    description: For each component to prove itself, and again to come up with what was there before.
    type: int
    default: 120
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
author:
  - Clusterwright developers
"""

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    component_process,
    configuration_trial,
    files,
    kubeadm_arguments,
    kubeadm_config,
    prompt_start,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api
from ansible_collections.clusterwright.cluster.plugins.module_utils.configuration_trial import Trial
from ansible_collections.clusterwright.cluster.plugins.module_utils.control_plane_component import Component, complaint
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

# One that starts, answers and stops again has not proved itself.
STEADY_SECONDS = 5
# One that has been started so often will not come up.
STARTS = 4
PAUSE_SECONDS = 0.5
# Of a message that is too long the beginning would go, which says why.
LOG_LIMIT = 2000


class Machine:
    """The work on one machine."""

    def __init__(self, params: dict) -> None:
        self.params = params
        all_of_them = [Component(entry, configuration_trial.names_set(entry["name"])) for entry in params["components"]]
        self.trial = Trial(all_of_them)
        if not configuration_trial.is_known():
            self.learn_names(all_of_them)
        # Where nothing is wanted and nothing was, there is nothing to look after.
        self.components = [component for component in all_of_them if component.is_configured]

    def client(self) -> Api:
        client = Api(api.ADMIN)
        client.server = f"https://{self.params['address']}:{self.params['port']}"
        return client

    def learn_names(self, components: list) -> None:
        """A machine that has joined by now may have flags that were taken back meanwhile: the cluster remembers whose they are."""
        try:
            found, _text = kubeadm_config.read(self.client())
        except (OSError, api.Refused):
            return
        given = kubeadm_config.remembered(found, kubeadm_config.ARGUMENTS, {})
        for component in components:
            component.ours = given.get(component.name, [])

    def missing(self) -> str:
        """What is not yet as it is wanted; empty when all is."""
        if self.trial.is_open:
            return "an attempt was cut off"
        for component in self.components:
            lack = component.difference() or component.unhealthy(self.params["address"], self.params["port"])
            if lack:
                return lack
            if component.stale():
                return f"{', '.join(component.stale())} is not wanted any more"
        return ""

    def settle_trial(self) -> None:
        """Ends an attempt that was refused, and cut off on its way back."""
        if self.trial.refused:
            self.return_to_former()

    def bring(self) -> bool:
        """Brings what differs, one component after the other. True when it acted."""
        due = [component for component in self.components if component.difference()]
        if not due and not self.trial.is_open:
            return False
        self.trial.begin(due)
        with prompt_start.watched([component.name for component in due]):
            for component in due:
                component.write()
                self.start_anew(component)
                self.prove(component)
        # Of an attempt that was cut off: what runs already has not proved itself yet.
        for component in self.components:
            if component not in due and self.trial.is_of(component):
                self.prove(component)
        return True

    def start_anew(self, component: Component) -> None:
        """The kubelet does it by itself where the manifest is another one; not for files, and not where it had backed off."""
        if component.outdated():
            component_process.end(component.name)
        if not component_process.pids(component.name) or component.unhealthy(self.params["address"], self.params["port"]):
            # One that had backed off would take up to five minutes.
            prompt_start.start_now()

    def is_steady(self, component: Component):
        """A question that is answered with yes once the component has run for a while, as it is wanted, and was healthy each time. Fails when
        it keeps ending."""
        seen: list = []
        since = time.monotonic()
        starts: set = set()

        def answer() -> bool:
            nonlocal seen, since
            starts.update(component.logs(self.trial.began()))
            if len(starts) >= STARTS:
                raise StepFailure("ConfigurationRefused", "it keeps ending")
            now = component_process.pids(component.name)
            well = component.runs() and not component.unhealthy(self.params["address"], self.params["port"])
            if not well or now != seen:
                seen, since = now, time.monotonic()
            return well and time.monotonic() - since >= STEADY_SECONDS

        return answer

    def prove(self, component: Component) -> None:
        """Waits until the component has proved itself; else all goes back, and it fails."""
        try:
            api.wait(self.is_steady(component), self.params["timeout_seconds"], "ConfigurationRefused", lambda: "", PAUSE_SECONDS)
        except StepFailure:
            self.trial.refuse(self.reason(component))
            self.return_to_former()
        component.remember()

    def reason(self, component: Component) -> str:
        """Why a component does not come up, the line that says it first."""
        said = component.unhealthy(self.params["address"], self.params["port"]) or "it keeps stopping, or still runs as before"
        lines = component.log(self.trial.began())
        head = f"{component.name} did not come up with its new configuration: "
        if not lines:
            return f"{head}{said}{units.journal(prompt_start.KUBELET)}"
        return f"{head}{complaint(lines)[:500]} ({said[:200]})\nlast lines of its log:\n" + "\n".join(lines)[-LOG_LIMIT:]

    def return_to_former(self) -> None:
        """Puts back what was there before, and fails with what was refused."""
        why, was_other = self.trial.refused, self.trial.was_other
        changed = self.trial.put_back()
        for component in self.trial.components:
            # Its process may run still, and have read what was refused.
            if component in changed or component.outdated():
                component_process.end(component.name)
        prompt_start.start_now()
        tried = [component for component in self.trial.components if self.trial.is_of(component)]
        sick = self.wait_for_former(tried)
        self.trial.close()
        if not was_other:
            raise StepFailure("ApiserverNotReady", f"{why}\nIt had this configuration before: nothing was changed")
        first, _newline, rest = why.partition("\n")
        outcome = "the former configuration is back, and in use" if not sick else f"the former configuration is back, and is not well either: {sick}"
        raise StepFailure("ConfigurationRefused", f"{first}; {outcome}\n{rest}")

    def wait_for_former(self, tried: list) -> str:
        """What is still not well with the former configuration after a while."""
        deadline = time.monotonic() + self.params["timeout_seconds"]
        while True:
            answers = {component.name: component.unhealthy(self.params["address"], self.params["port"]) for component in tried}
            sick = "; ".join(f"{name}: {said}" for name, said in answers.items() if said)
            if not sick or time.monotonic() > deadline:
                return sick
            time.sleep(PAUSE_SECONDS)

    def finish(self) -> bool:
        """Remembers what was set, and forgets what was before. True when there was something to forget."""
        configuration_trial.remember_names(self.trial.components)
        self.trial.close()
        return any([files.remove(path) for component in self.components for path in component.stale()])

    def configure_cluster(self, check: bool) -> bool:
        """kubeadm's configuration of the cluster gets the same, and remembers whose these flags are. True when it differed."""
        if not self.components:
            return False
        given = {component.name: component.flag_names() for component in self.components}

        def change(found: dict, text: str) -> tuple:
            before = kubeadm_config.remembered(found, kubeadm_config.ARGUMENTS, {})
            for component in self.components:
                ours = [*component.ours, *before.get(component.name, [])]
                text = kubeadm_arguments.with_component(text, component.name, component.arguments, ours, component.volumes)
            now = {name: names for name, names in {**before, **given}.items() if names}
            return text, {kubeadm_config.ARGUMENTS: now}

        try:
            client = self.client()
            found, text = kubeadm_config.read(client)
            wanted, notes = change(found, text)
            differs = wanted != text or not kubeadm_config.is_noted(found, notes)
            if differs and not check:
                kubeadm_config.edit(client, change)
            return differs
        except (OSError, api.Refused) as error:
            raise StepFailure("ApiserverNotReady", f"failed to ask this machine's API server: {error}") from error


def work(call) -> dict:
    machine = Machine(call.params)
    if call.check_mode:
        missing = machine.missing() or ("kubeadm's configuration of the cluster differs" if machine.configure_cluster(True) else "")
        return {"changed": bool(missing), "msg": missing or "the control plane runs with the configuration that is wanted"}
    machine.settle_trial()
    changed = machine.bring()
    # Before it is forgotten here whose flags these are: those that are taken back go there as well.
    written = machine.configure_cluster(False)
    forgotten = machine.finish()
    return {"changed": changed or written or forgotten, "msg": "proved" if changed else "was so"}
