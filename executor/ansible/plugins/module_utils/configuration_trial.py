# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""A configuration on trial: what was there before is kept until the new one has proved itself, and comes back whole if it does not. What
is under way is on disk, so that an attempt that was cut off is taken up: nothing of it needs an API."""

from __future__ import annotations

import os
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, membership, moves, removal

HOME = f"{membership.HOME}/control-plane-configuration"
# Names of the flags that were set, by their components.
APPLIED = f"{HOME}/applied.json"


TRIAL = f"{HOME}/trial.json"


def names_set(component: str) -> list:
    """Names of the flags that this machine's component may have of ours: of what was proved, and of what is on trial."""
    on_trial = membership.read(TRIAL).get("arguments", {})
    return sorted({*membership.read(APPLIED).get(component, []), *on_trial.get(component, [])})


def is_known() -> bool:
    """Whether it was ever noted here what was set."""
    return os.path.exists(APPLIED)


def remember_names(components: list) -> bool:
    """Notes what is set by now. True when it was something else."""
    return membership.save(APPLIED, {component.name: component.flag_names() for component in components})


class Trial:
    """The trial that is under way on this machine, if there is one."""

    def __init__(self, components: list) -> None:
        self.components = components
        self.former = f"{HOME}/former"
        self.state = membership.read(TRIAL)

    @property
    def is_open(self) -> bool:
        return bool(self.state)

    @property
    def refused(self) -> str:
        """Why it was refused, when the former configuration is on its way back."""
        return self.state.get("refused", "")

    def is_of(self, component) -> bool:
        return component.name in self.state.get("components", [])

    def began(self) -> float:
        return float(self.state.get("began", 0))

    def begin(self, due: list) -> None:
        """Keeps all that there is; the marker comes last, when it is whole. One that was cut off goes on, with what is wanted by now: what
        was there before it is what comes back."""
        if not self.is_open:
            removal.remove(self.former)
            for component in self.components:
                self.keep(component)
        names = {*self.state.get("components", []), *(component.name for component in due)}
        arguments = {component.name: sorted({*component.ours, *component.flag_names()}) for component in self.components}
        self.save({"components": sorted(names), "arguments": arguments, "began": self.state.get("began") or time.time()})

    def keep(self, component) -> None:
        os.makedirs(self.kept(component), mode=0o700)
        moves.copy(component.manifest, f"{self.kept(component)}.yaml")
        for path in component.present_files():
            moves.copy(path, os.path.join(self.kept(component), os.path.basename(path)))

    def kept(self, component) -> str:
        return os.path.join(self.former, component.name)

    def save(self, state: dict) -> None:
        membership.save(TRIAL, state)
        moves.sync(HOME)
        self.state = state

    def refuse(self, why: str) -> None:
        """From here on there is only the way back."""
        self.save({**self.state, "refused": why, "other": bool(self.put_back(check=True))})

    @property
    def was_other(self) -> bool:
        """Whether what was refused was another configuration than that of before."""
        return bool(self.state.get("other"))

    def put_back(self, check: bool = False) -> list:
        """Brings back the files and manifests of before; the components whose manifest or files were others."""
        changed = []
        for component in self.components:
            former = self.kept(component)
            names = os.listdir(former)
            written = [name for name in names if restore(os.path.join(former, name), os.path.join(component.folder, name), check)]
            added = [path for path in component.present_files() if os.path.basename(path) not in names and files.remove(path, check)]
            if restore(f"{former}.yaml", component.manifest, check) or written or added:
                changed.append(component)
        return changed

    def close(self) -> None:
        """It is over; the marker goes first."""
        if files.remove(TRIAL):
            moves.sync(HOME)
        removal.remove(self.former)
        self.state = {}


def restore(kept: str, place: str, check: bool) -> bool:
    """Copies what was kept into its place. True when something else was there."""
    with open(kept, "rb") as source:
        data = source.read()
    try:
        with open(place, "rb") as present:
            if present.read() == data:
                return False
    except FileNotFoundError:
        pass
    if not check:
        os.makedirs(os.path.dirname(place), mode=0o755, exist_ok=True)
        moves.copy(kept, place)
    return True
