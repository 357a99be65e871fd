# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""extraArgs and extraVolumes of a component in kubeadm's configuration of the cluster: what the next machine and the next upgrade have.
Entries of others stay."""

from __future__ import annotations

import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import component_manifest, kubeadm_config, yaml_items

SECTIONS = {"kube-apiserver": "apiServer", "kube-controller-manager": "controllerManager", "kube-scheduler": "scheduler"}


def with_component(text: str, component: str, wanted: list, ours: list, volumes: list) -> str:
    """The text with these {name, value} and {name, path, read_only} of the component, without the arguments named in `ours` that are not
    wanted, and without other volumes of ours."""
    names = {*ours, *(entry["name"] for entry in wanted)}
    arguments = [{"name": entry["name"], "value": entry["value"]} for entry in wanted]
    text = with_entries(text, SECTIONS[component], "extraArgs", arguments, lambda name: name in names)
    mounts = [
        {
            "hostPath": entry["path"],
            "mountPath": entry["path"],
            "name": entry["name"],
            "pathType": "DirectoryOrCreate",
            **({"readOnly": True} if entry["read_only"] else {}),
        }
        for entry in volumes
    ]
    return with_entries(text, SECTIONS[component], "extraVolumes", mounts, lambda name: name.startswith(component_manifest.VOLUME))


def with_entries(text: str, section: str, key: str, wanted: list, is_ours) -> str:
    """The text with these entries in the list, instead of those whose name is ours."""
    place = kubeadm_config.block(text, (section, key))
    present = yaml_items.split(text[place[0]:place[1]], place[2]) if place else []
    ours = [item for item in present if is_ours(yaml_items.fields(item).get("name", ""))]
    written = [yaml_items.item(values, 2) for values in wanted]
    if yaml_items.same(ours, written):
        return text
    entries = "".join([item for item in present if item not in ours] + written)
    if not place:
        return with_section(text, section, f"  {key}:\n{entries}")
    if entries:
        return text[:place[0]] + entries + text[place[1]:]
    # The line of the key goes as well.
    begin = text.rindex("\n", 0, place[0] - 1) + 1
    return with_section(text[:begin] + text[place[1]:], section, "")


def with_section(text: str, section: str, more: str) -> str:
    """The text with more lines in the section, which is empty, there or not."""
    found = re.search(rf"^{section}:[ ]*(\{{\}})?[ ]*\n", text, re.MULTILINE)
    if not found:
        return f"{text.rstrip()}\n{section}:\n{more}" if more else text
    is_empty = not text.startswith(" ", found.end())
    header = f"{section}: {{}}\n" if is_empty and not more else f"{section}:\n"
    return text[: found.start()] + header + more + text[found.end():]
