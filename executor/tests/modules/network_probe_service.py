"""The probe of the Pod network is installed as a service on a machine, is not what preflight calls clean, and leaves with a reset. A
machine that was given up probes no more."""

import json
import os
import subprocess

from machine_world import enter, play, program, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, leftovers, membership  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import fence, network_probe, reset  # noqa: E402
from network_probe_program import PROGRAM, load  # noqa: E402

# One unit: whether it is enabled and runs, and each verb with the files that were there then.
program(
    "systemctl",
    f"""
mkdir -p /unit
case "$1" in
show)
  [[ -e {network_probe.UNIT_FILE} ]] && echo LoadState=loaded || echo LoadState=not-found
  [[ -e /unit/active ]] && echo ActiveState=active || echo ActiveState=inactive
  [[ -e /unit/enabled ]] && echo UnitFileState=enabled || echo UnitFileState=disabled
  echo "InvocationID=$(cat /unit/active 2>/dev/null)"; echo NeedDaemonReload=no; echo MainPID=0; echo ExecMainStartTimestampMonotonic=0 ;;
enable) touch /unit/enabled; echo enable >> /unit/verbs ;;
start|restart) cat /proc/sys/kernel/random/uuid > /unit/active; echo "$1" >> /unit/verbs ;;
disable)
  rm -f /unit/active /unit/enabled
  [[ -e {network_probe.PROGRAM} && -e {membership.NETWORK_PROBE} && -e {network_probe.UNIT_FILE} ]] && echo "disabled: ${{*:2}}" >> /unit/verbs ;;
esac
exit 0
""",
)
SOURCE = PROGRAM.read_text(encoding="utf-8")
WRITTEN = [network_probe.PROGRAM, membership.NETWORK_PROBE, network_probe.UNIT_FILE]


def verbs():
    """What systemd was told since the last time."""
    try:
        with open("/unit/verbs", encoding="utf-8") as source:
            return source.read().split("\n")[:-1]
    except FileNotFoundError:
        return []
    finally:
        if os.path.exists("/unit/verbs"):
            os.unlink("/unit/verbs")


def install(check=False, source=SOURCE, domain="cluster.local"):
    result, failure = play(network_probe, check, node_name="w1", dns_domain=domain, program=source)
    assert failure is None, failure.message
    assert result["changed"] == bool(result["written"])
    return result["written"], verbs()


def the_service_is_installed_once_and_restarted_when_it_differs():
    assert install(check=True) == ([*WRITTEN, network_probe.UNIT], []) and not any(map(os.path.exists, WRITTEN)), "a probe writes nothing"
    assert install() == ([*WRITTEN, network_probe.UNIT], ["enable", "start"])
    assert install() == ([], []) and install(check=True) == ([], [])
    assert install(check=True, domain="other") == ([membership.NETWORK_PROBE, network_probe.UNIT], [])
    assert install(domain="other") == ([membership.NETWORK_PROBE, network_probe.UNIT], ["restart"])
    assert install() == ([membership.NETWORK_PROBE, network_probe.UNIT], ["restart"])
    assert install(source=SOURCE + "\n") == ([network_probe.PROGRAM, network_probe.UNIT], ["restart"])
    assert install() == ([network_probe.PROGRAM, network_probe.UNIT], ["restart"])
    os.unlink("/unit/active")
    assert install(check=True) == ([network_probe.UNIT], []), "a probe sees that it does not run"
    assert install() == ([network_probe.UNIT], ["start"])


def a_restart_that_was_cut_off_is_made_by_the_next_run():
    real, network_probe.units.ensure = network_probe.units.ensure, lambda *_arguments, **_more: False
    install(domain="other")
    network_probe.units.ensure = real
    assert install(check=True, domain="other") == ([network_probe.UNIT], [])
    assert install(domain="other") == ([network_probe.UNIT], ["restart"])
    install()


def the_unit_starts_the_program_with_what_the_machine_has():
    with open(network_probe.UNIT_FILE, encoding="utf-8") as unit:
        settings = [line.partition("=") for line in unit.read().splitlines() if "=" in line]
    (command,) = [value.split() for name, _equals, value in settings if name == "ExecStart"]
    assert command[1:] == ["-I", "-S", network_probe.PROGRAM, membership.NETWORK_PROBE] and os.access(command[0], os.X_OK), command
    # It must not bring back a kubelet that somebody stopped.
    assert not any("kubelet" in value for name, _equals, value in settings if name in ("Wants", "Requires", "BindsTo"))
    installed = load(network_probe.PROGRAM)
    made = []
    installed.Service = lambda *arguments: made.append(arguments) or type("Stopped", (), {"run": lambda _self: None})()
    installed.main(membership.NETWORK_PROBE)
    node, name, client, timing = made[0]
    assert (node, name, client.kubeconfig, timing) == ("w1", "kubernetes.default.svc.cluster.local.", api.KUBELET, installed.Timing())
    # By the very command, with a configuration that is not there: no module is missing, and it ends.
    ended = subprocess.run((*command[:4], "/absent"), capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "No such file or directory: '/absent'" in ended.stderr, ended.stderr


def a_machine_that_was_given_up_probes_no_more():
    os.makedirs("/guard")
    os.environ["CLUSTERWRIGHT_FENCED_BY"] = "/guard"
    write("/guard/fence", json.dumps({"epoch": 3}))
    result, failure = play(fence, claim_epoch=3)
    assert failure is None, failure.message
    assert f"unit {network_probe.UNIT}" in result["msg"] and verbs() == [f"disabled: --now {network_probe.UNIT}"], result
    assert all(map(os.path.exists, WRITTEN)), "nothing is deleted"


def a_reset_stops_it_and_then_removes_all_of_it():
    install()
    membership.save(membership.CLUSTER, {"identity": "a"})
    left = leftovers.find_all()
    assert f"unit {network_probe.UNIT}" in left and all(f"file {path}" in left for path in WRITTEN[:2]), left
    result, failure = play(reset)
    assert failure is None, failure.message
    assert result["changed"] and verbs() == [f"disabled: --now {network_probe.UNIT}"], "its files go after it"
    assert not any(map(os.path.lexists, WRITTEN)) and leftovers.find_all() == []


the_service_is_installed_once_and_restarted_when_it_differs()
a_restart_that_was_cut_off_is_made_by_the_next_run()
the_unit_starts_the_program_with_what_the_machine_has()
a_machine_that_was_given_up_probes_no_more()
a_reset_stops_it_and_then_removes_all_of_it()
