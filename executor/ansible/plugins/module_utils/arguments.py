# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Options that several modules share, written as in DOCUMENTATION.

A module has the groups that its `extends_documentation_fragment` names, as `clusterwright.cluster.arguments.GROUP`.
The action checks tasks against them (plugins/action/remote.py), and ansible-doc shows them
(plugins/doc_fragments/arguments.py).
"""

from __future__ import annotations


def files(description: str, mode: str) -> dict:
    """An option that is a list of files to write."""
    return {
        "description": description,
        "type": "list",
        "elements": "dict",
        "default": [],
        "suboptions": {
            "path": {"description": "Where.", "type": "path", "required": True},
            "content": {"description": "What.", "type": "str", "required": True},
            "mode": {"description": "Octal mode.", "type": "str", "default": mode},
        },
    }


GROUPS = {
    "apiserver": {
        "address": {
            "description": "Address of this machine in the cluster.",
            "type": "str",
            "required": True,
        },
        "port": {
            "description": "Port of this machine's API server.",
            "type": "int",
            "default": 6443,
        },
    },
    "bundle": {
        "bundle": {
            "description": "The bundle and which of its components are meant, as C(artifacts_bundle) has it.",
            "type": "dict",
            "required": True,
        },
    },
    "etcd": {
        "pki_directory": {
            "description": "Holds ca.crt and healthcheck-client.crt and .key.",
            "type": "path",
            "required": True,
        },
    },
    "files": {
        "files": files("Files to write first.", "0644"),
        "secrets": files("Like files, for content that must not show anywhere.", "0600"),
    },
    "installed": {
        "version": {
            "description": "Version of Kubernetes, with v, that must run on this machine. Empty - any.",
            "type": "str",
            "default": "",
        },
        "identity": {
            "description": "Identity of the cluster for which kubeadm must have succeeded here. Empty - not checked.",
            "type": "str",
            "default": "",
        },
    },
    "karmada_parts": {
        "parts": {
            "description": "Services of a Karmada control plane that may be on this machine.",
            "type": "list",
            "elements": "dict",
            "default": [],
            "suboptions": {
                "name": {"description": "What messages call it.", "type": "str", "required": True},
                "unit": {"description": "Its unit.", "type": "str", "required": True},
                "health": {
                    "description": "As of C(karmada_service). Empty - the unit alone says how it is.",
                    "type": "dict",
                    "default": {},
                },
            },
        },
    },
    "node": {
        "node_name": {
            "description": "Name of this machine's Node.",
            "type": "str",
            "required": True,
        },
    },
    "restore": {
        "id": {
            "description": "The restore's ID, 8 characters of a-z and 0-9, which names its directories.",
            "type": "str",
            "required": True,
        },
        "data_directory": {
            "description": "Data of this machine's member of etcd.",
            "type": "path",
            "default": "/var/lib/etcd",
        },
    },
    "smoke_test": {
        "image": {
            "description": "Name of an image with busybox, without tag.",
            "type": "str",
            "required": True,
        },
        "version": {
            "description": "Its tag; the component's when empty (see docs/playbooks.md).",
            "type": "str",
            "default": "",
        },
        "dns_domain": {
            "description": "Domain of the cluster.",
            "type": "str",
            "default": "cluster.local",
        },
    },
}
