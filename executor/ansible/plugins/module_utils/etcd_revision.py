# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The highest revision that this machine's data of etcd holds, whether etcd runs or not."""

from __future__ import annotations

import json
import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_data
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

STATUS_SECONDS = 120


def of_file(path: str) -> int | None:
    """Of a database that no etcd has open; None when it cannot be read. A child reads it, for it may be damaged."""
    output = attempt("etcdutl", "snapshot", "status", path, "--write-out=json", timeout=STATUS_SECONDS)
    try:
        revision = json.loads(output.out)["revision"]
    except (ValueError, KeyError, TypeError):
        return None
    return revision if output.ok and isinstance(revision, int) else None


def known(local: Etcd, member: str) -> int | None:
    """As the member says, which it does without a majority too; as its file does when it does not run."""
    try:
        return local.status()["header"]["revision"]
    except (StepFailure, KeyError, IndexError, TypeError):
        path = etcd_data.database(member)
        return of_file(path) if os.path.exists(path) and not etcd_data.in_use(member) else None
