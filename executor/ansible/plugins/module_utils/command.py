# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Runs programs on the machine, with a deadline and a PATH that holds what we install."""

from __future__ import annotations

import os
import shutil
import subprocess

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure, redacted

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Output:
    """What a program said and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def said(self) -> str:
        return redacted(self.err.strip() or self.out.strip() or f"exit code {self.code}")


def find(program: str) -> str | None:
    """The path of a program, or None."""
    return shutil.which(program, path=PATH)


def attempt(*argv: str, stdin: str | None = None, timeout: float = 60, env: dict | None = None) -> Output:
    """Runs the program and returns what happened, also when it failed, is not there or took too long."""
    environment = {"PATH": PATH, "LC_ALL": "C.UTF-8", "HOME": os.environ.get("HOME", "/root"), **(env or {})}
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        said = (expired.stdout or b"").decode("utf-8", "replace") if isinstance(expired.stdout, bytes) else expired.stdout or ""
        return Output(124, said, f"{argv[0]} did not end within {timeout:.0f} s")
    except OSError as error:
        return Output(127, "", f"failed to run {argv[0]}: {error}")
    return Output(done.returncode, done.stdout, done.stderr)


def run(*argv: str, reason: str, stdin: str | None = None, timeout: float = 60, env: dict | None = None) -> str:
    """Runs the program and returns its output; its failure is the step's, with the given reason."""
    output = attempt(*argv, stdin=stdin, timeout=timeout, env=env)
    if not output.ok:
        raise StepFailure(reason, f"{' '.join(argv[:4])}: {output.said}")
    return output.out
