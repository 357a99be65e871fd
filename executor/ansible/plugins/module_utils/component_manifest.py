# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The flags and volumes in a static Pod's manifest as kubeadm writes it. Only what is named is touched: the image, the certificates and
etcd's endpoints are other steps'."""

from __future__ import annotations

import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import kubeadm_config, yaml_items
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

COMMAND = re.compile(r"^(?P<indent> *)- command:\n(?P<words>(?:(?P=indent)  - .*\n)+)", re.MULTILINE)
MOUNTS = re.compile(r"^    volumeMounts:\n(?P<items>(?:    (?:- |  ).*\n)+)", re.MULTILINE)
# Volumes of ours begin with it.
VOLUME = "clusterwright-"
# What kubeadm sets where nobody else does, among the flags that may be set.
DEFAULTS = {"kube-apiserver": {"enable-admission-plugins": "NodeRestriction"}}


def command(text: str) -> re.Match:
    found = COMMAND.search(text)
    if not found:
        raise StepFailure("ManifestRefused", "a manifest has no command as kubeadm writes it: correct it by hand")
    return found


def flags(text: str) -> list:
    """The flags of the command, as the process sees them."""
    words = [yaml_items.unquoted(line.strip()[2:]) for line in command(text).group("words").splitlines()]
    return [word for word in words if word.startswith("--")]


def name_of(flag: str) -> str:
    return flag.removeprefix("--").partition("=")[0]


def with_flags(text: str, component: str, wanted: list, ours: list) -> str:
    """The text with each {name, value} of `wanted`, and without the flags named in `ours` that are not. A default comes back."""
    values = {name: DEFAULTS[component][name] for name in ours if name in DEFAULTS.get(component, {})}
    values.update((entry["name"], entry["value"]) for entry in wanted)
    found = command(text)
    indent = f"{found.group('indent')}  - "
    kept: list = []
    for line in found.group("words").splitlines(keepends=True):
        flag = yaml_items.unquoted(line.strip()[2:])
        name = name_of(flag)
        if not flag.startswith("--") or name not in {*values, *ours}:
            kept.append(line)
        elif name in values:
            # In its place, once: an order alone is no difference.
            kept.append(f"{indent}{yaml_items.quoted(f'--{name}={values.pop(name)}')}\n")
            ours = [*ours, name]
    kept += [f"{indent}{yaml_items.quoted(f'--{name}={value}')}\n" for name, value in sorted(values.items())]
    return text[: found.start("words")] + "".join(kept) + text[found.end("words"):]


def with_volumes(text: str, wanted: list) -> str:
    """The text with each {name, path, read_only} of `wanted`, mounted at its own path, and no other volume of ours."""
    mounts = [
        {"mountPath": entry["path"], "name": entry["name"], **({"readOnly": True} if entry["read_only"] else {})} for entry in wanted
    ]
    volumes = [{"hostPath": {"path": entry["path"], "type": "DirectoryOrCreate"}, "name": entry["name"]} for entry in wanted]
    found = MOUNTS.search(text)
    if not found:
        raise StepFailure("ManifestRefused", "a manifest has no volumeMounts as kubeadm writes them: correct it by hand")
    text = text[: found.start("items")] + with_items(found.group("items"), mounts, 4) + text[found.end("items"):]
    place = kubeadm_config.block(text, ("spec", "volumes"))
    if not place:
        raise StepFailure("ManifestRefused", "a manifest has no volumes as kubeadm writes them: correct it by hand")
    begin, end, indent = place
    return text[:begin] + with_items(text[begin:end], volumes, indent) + text[end:]


def with_items(text: str, wanted: list, indent: int) -> str:
    """The items of others, and ours: those that are there already stay as they are."""
    written = [yaml_items.item(values, indent) for values in wanted]
    present = yaml_items.split(text, indent)
    ours = [item for item in present if yaml_items.fields(item).get("name", "").startswith(VOLUME)]
    if yaml_items.same(ours, written):
        return text
    return "".join([item for item in present if item not in ours] + written)
