# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Keys of etcd, read and deleted through etcdctl, and what of an API server's values must be understood for that."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd_data import fields

# What an API server's values begin with; a message runtime.Unknown follows.
MAGIC = b"k8s\x00"
# Fields of runtime.Unknown, Pod and PodSpec.
RAW, SPEC, NODE_NAME = 2, 2, 10
PAGE = 200


def node_of_pod(value: bytes) -> str:
    """The Node that a Pod is bound to; empty of one that waits. ValueError: it is no Pod as an API server stores it."""
    if not value.startswith(MAGIC):
        raise ValueError("not of an API server")
    pod = fields(fields(value[len(MAGIC):])[RAW])
    return fields(pod[SPEC]).get(NODE_NAME, b"").decode() if SPEC in pod else ""


class Keys:
    """What is stored in a cluster of etcd."""

    def __init__(self, etcd: Etcd) -> None:
        self.etcd = etcd

    def exists(self, key: str) -> bool:
        return bool(self.etcdctl("get", key, "--keys-only").get("kvs"))

    def put(self, key: str, value: str) -> None:
        self.etcdctl("put", key, value)

    def delete_prefix(self, prefix: str) -> int:
        """How many there were."""
        return int(self.etcdctl("del", prefix, "--prefix").get("deleted") or 0)

    def delete(self, keys: list) -> int:
        return sum(int(self.etcdctl("del", key).get("deleted") or 0) for key in keys)

    def each(self, prefix: str) -> Iterator[tuple]:
        """All below the prefix, as (key, value), a page at a time."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        last = ""
        while True:
            # A page begins with the last key of the one before: the next possible one cannot be an argument.
            page = self.etcdctl("get", last or prefix, end, f"--limit={PAGE}").get("kvs") or []
            for entry in page:
                key = base64.b64decode(entry["key"]).decode()
                if key != last:
                    yield key, base64.b64decode(entry.get("value") or "")
            if len(page) < PAGE:
                return
            last = base64.b64decode(page[-1]["key"]).decode()

    def etcdctl(self, *arguments: str) -> dict:
        return self.etcd.etcdctl(*arguments, timeout=60)
