"""What the role secrets_encryption makes of lines, as Ansible plays it."""

import json
import os
import subprocess


def render(place, stages):
    collection = os.environ["PYTHONPATH"]
    venv = os.environ.get("CLUSTERWRIGHT_ANSIBLE_VENV") or os.path.expanduser("~/.cache/clusterwright/venv")
    hosts = {}
    for stage, lines in stages.items():
        (place / stage).mkdir()
        (place / stage / "pki.encryption.key").write_text(lines, encoding="utf-8")
        hosts[stage] = {"secrets_dir": str(place / stage)}
    inventory = {"all": {"hosts": hosts, "vars": {"ansible_connection": "local", "kube_version": "1.35.4", "cluster_name": "a"}}}
    (place / "inventory.yml").write_text(json.dumps(inventory), encoding="utf-8")
    playbook = [{
        "hosts": "all", "gather_facts": False, "roles": ["clusterwright.cluster.secrets_encryption"],
        "tasks": [{"ansible.builtin.copy": {"content": "{{ [secrets_encryption_files, secrets_encryption_plugins] | to_json }}", "mode": "0600",
                                            "dest": f"{place}/{{{{ inventory_hostname }}}}.json"}}],
    }]  # fmt: skip
    (place / "render.yml").write_text(json.dumps(playbook), encoding="utf-8")
    environment = {"PATH": f"{venv}/bin:{os.environ['PATH']}", "HOME": str(place), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
                   "ANSIBLE_CONFIG": f"{collection}/ansible.cfg", "CLUSTERWRIGHT_EVENTS": str(place / "events")}  # fmt: skip
    (place / "events").write_text("", encoding="utf-8")
    done = subprocess.run([f"{venv}/bin/ansible-playbook", "-i", str(place / "inventory.yml"), str(place / "render.yml")], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return {stage: json.loads((place / f"{stage}.json").read_text(encoding="utf-8")) for stage in stages}


def rendered(place, stages):
    """[files, plug-ins] of each. Ansible is out of reach of the machine that is made next, which begins this script anew."""
    if "RENDERED" not in os.environ:
        os.environ["RENDERED"] = json.dumps(render(place, stages))
    return json.loads(os.environ["RENDERED"])
