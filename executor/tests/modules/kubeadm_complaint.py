"""What is kept of what kubeadm says when it stops: its error first."""

from ansible_collections.clusterwright.cluster.plugins.module_utils.command import Output
from ansible_collections.clusterwright.cluster.plugins.module_utils.kubeadm_program import complaint

ERROR = "error: error execution phase kubelet-start: a Node with this name exists\nTo see the stack trace"
out = "CGROUPS_\x1b[0;37mCPU\x1b[0m: \x1b[0;32menabled\x1b[0m\n" * 200 + "[preflight] Reading configuration"

said = complaint(Output(1, out, "W1121 a warning\n" * 300 + ERROR))
assert said.startswith(ERROR + "\n"), said
assert "\x1b" not in said and said.endswith("[preflight] Reading configuration"), said
assert "a warning" in said and len(said) < 3000, len(said)

assert complaint(Output(1, "", ERROR)) == ERROR
assert complaint(Output(124, "[init] began", "kubeadm did not end within 300 s")).startswith("kubeadm did not end"), "no error line"
