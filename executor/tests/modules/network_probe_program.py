"""The program that probes the Pod network, as a module, and Nodes for it."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib

PROGRAM = pathlib.Path(os.environ["PYTHONPATH"]) / "roles/network/files/network_probe.py"


def load(path):
    # On a machine the file's name has no suffix.
    loader = importlib.machinery.SourceFileLoader("network_probe_program_source", str(path))
    specification = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(specification)
    loader.exec_module(module)
    return module


program = load(PROGRAM)


def annotation(*peers, source="10.220.9.1", dns="10.96.0.10:53"):
    value = {"source": source, "peers": [{"node": peer.node, "address": f"{peer.address}:{peer.port}"} for peer in peers], "dns": dns}
    return json.dumps({key: item for key, item in value.items() if item})


def node_of(text, *conditions):
    metadata = {"name": "m", "annotations": {} if text is None else {program.ANNOTATION: text}}
    return {"kind": "Node", "metadata": metadata, "status": {"conditions": [{"type": "Ready", "status": "True"}, *conditions]}}
