# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""One component of this machine's control plane as its configuration is wanted: its manifest, the files that it reads, and whether its
process runs with them."""

from __future__ import annotations

import glob
import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    apiserver_process,
    component_manifest,
    component_process,
    control_plane,
    encryption_mounts,
    files,
    restarts,
    static_pod,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

FILES = "/etc/kubernetes/clusterwright"
LOGS = "/var/log/pods"
LOG_LINES = 40
# What the runtime writes before each line: time, stream, whether the line is whole.
LOG_PREFIX = re.compile(r"^\S+ (?:stdout|stderr) [FP] ")
COMPLAINT = re.compile(r"^Error:|^F\d{4} |^panic:|command failed|unknown flag|invalid|failed to", re.IGNORECASE)


class Component:
    """`wanted` has name, arguments ({name, value}), files ({path, content, mode}) and volumes ({name, path, read_only}); `ours` are the
    names of the flags that were set before."""

    def __init__(self, wanted: dict, ours: list) -> None:
        self.name = wanted["name"]
        self.arguments = wanted.get("arguments") or []
        self.files = wanted.get("files") or []
        self.volumes = encryption_mounts.with_needed(self.name, wanted.get("volumes") or [])
        self.ours = ours
        self.manifest = f"{static_pod.FOLDER}/{self.name}.yaml"
        self.folder = f"{FILES}/{self.name}"

    @property
    def is_configured(self) -> bool:
        """Whether anything of it is ours, or was."""
        return bool(self.arguments or self.files or self.volumes or self.ours or self.present_files())

    def flag_names(self) -> list:
        return sorted(entry["name"] for entry in self.arguments)

    @property
    def reads(self) -> list:
        return [entry["path"] for entry in self.files]

    def present(self) -> str:
        """The manifest as it is."""
        try:
            with open(self.manifest, encoding="utf-8") as source:
                return source.read()
        except OSError as error:
            raise StepFailure(
                "ManifestMissing", f"failed to read {self.manifest}: {error}: put it back from another control plane"
            ) from error

    def planned(self) -> str:
        """The manifest as it is wanted."""
        return component_manifest.with_volumes(
            component_manifest.with_flags(self.present(), self.name, self.arguments, self.ours), self.volumes
        )

    def present_files(self) -> list:
        return sorted(glob.glob(f"{self.folder}/*"))

    def stale(self) -> list:
        """Files of before that nobody wants any more."""
        return [path for path in self.present_files() if path not in self.reads]

    def runs(self) -> bool:
        """Whether what runs was started with the flags of the manifest that is in place, and with the files as they are."""
        flags = component_manifest.flags(self.present())
        pids = component_process.pids(self.name)
        return bool(pids) and all(sorted(flags) == sorted(component_process.flags(pid)) for pid in pids) and not self.outdated()

    def outdated(self) -> list:
        """The processes that have read other files."""
        return [pid for pid in component_process.pids(self.name) if restarts.due(self.record, apiserver_process.state(pid), self.reads)]

    @property
    def record(self) -> str:
        return f"{self.name}-configuration"

    def remember(self) -> None:
        """Notes that what runs has read the files as they are."""
        for pid in component_process.pids(self.name)[:1]:
            restarts.remember(self.record, apiserver_process.state(pid), self.reads)

    def difference(self) -> str:
        """What is not yet as it is wanted; empty when all is."""
        if self.planned() != self.present():
            return f"{self.manifest} has other flags or volumes"
        written = files.write_all(self.files, check=True)
        if written:
            return f"{', '.join(written)} differ"
        return "" if self.runs() else f"{self.name} does not run with what {self.manifest} says"

    def write(self) -> None:
        """Puts the files and then the manifest into their places: the kubelet takes it up as a whole."""
        files.write_all(self.files)
        for entry in self.volumes:
            os.makedirs(entry["path"], mode=0o700, exist_ok=True)
        files.write(self.manifest, self.planned(), files.SECRET)

    def unhealthy(self, address: str, port: int) -> str:
        return control_plane.unhealthy([self.name], address, port).get(self.name, "")

    def logs(self, since: float) -> dict:
        """When each log of its containers was written last that was written since then: each start has a log of its own."""
        written = {}
        for path in glob.glob(f"{LOGS}/kube-system_{self.name}-*/{self.name}/*.log"):
            try:
                status = os.stat(path)
            except OSError:
                continue
            if status.st_size and status.st_mtime >= since:
                written[path] = status.st_mtime
        return written

    def log(self, since: float) -> list:
        """The last lines that its container wrote since then."""
        written = self.logs(since)
        lines = text(max(written, key=written.__getitem__)).splitlines()[-LOG_LINES:] if written else []
        return [LOG_PREFIX.sub("", line) for line in lines]


def complaint(lines: list) -> str:
    """The line that says why, so far as can be told."""
    return next((line for line in reversed(lines) if COMPLAINT.search(line)), lines[-1] if lines else "")
