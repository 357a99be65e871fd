# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""kubeadm's program: run with a configuration that is on no disk, and what it says when it stops."""

from __future__ import annotations

import os
import re
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import files
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import Output, attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

# What kubeadm's preflight prints of the system is coloured.
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
RUN_DIRECTORY = "/run/clusterwright"


def run(arguments: list, config: str, node_name: str, timeout: float, again=lambda _output: False) -> None:
    """Runs kubeadm with the configuration in memory only: it may hold a bootstrap token. Its environment is clean: kubeadm would copy
    each *_proxy variable into Pods. It is run again, within the same time, while `again` says so of how it failed."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    path = f"{RUN_DIRECTORY}/kubeadm-{'-'.join(words)}.yaml"
    os.makedirs(RUN_DIRECTORY, mode=0o700, exist_ok=True)
    files.write(path, config, files.SECRET)
    command = ("kubeadm", *words, f"--config={path}", *(argument for argument in arguments if argument.startswith("-")))
    deadline = time.monotonic() + timeout
    try:
        output = attempt(*command, timeout=timeout)
        while not output.ok and again(output) and time.monotonic() < deadline:
            time.sleep(5)
            output = attempt(*command, timeout=timeout)
    finally:
        files.remove(path)
    if not output.ok:
        raise StepFailure("KubeadmFailed", f"kubeadm {' '.join(words)} failed on {node_name}: {complaint(output)}")


def complaint(output: Output) -> str:
    """Why kubeadm stopped, and behind it what it did: a status keeps the beginning of a long text, and kubeadm says its error last."""
    out, err = (COLOUR.sub("", text).strip() for text in (output.out, output.err))
    before, mark, why = err.rpartition("error: error execution phase")
    return "\n".join(part for part in ((mark + why)[:1500], before.strip()[-700:], out[-600:]) if part)
