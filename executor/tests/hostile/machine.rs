//! Machines that answer what they like: an sshd whose every command is a program of ours, whatever was asked.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::bench::{Bench, Sshd};

/// Answers in the way that its argument names. It reads all of its input first, as a machine would.
const PROGRAM: &str = r#"
import json, os, sys, time
way, canary = sys.argv[1], sys.argv[2]
out, err = sys.stdout.buffer, sys.stderr.buffer
run = canary + '.sh'
touch = 'touch ' + canary

def say(result, before=b'', after=b''):
    text = result if isinstance(result, str) else json.dumps(result)
    out.write(before + b'{"clusterwright_result": ' + text.encode() + b'}\n' + after)

facts = {'kind': 'facts', 'osImage': 'Evil 1', 'kernel': '6', 'architecture': 'amd64', 'cpus': 1, 'memoryMiB': 1, 'machineId': 'x'}
taken_over = {'ansible_connection': 'local', 'ansible_python_interpreter': run, 'ansible_host': '127.0.0.1', 'ansible_become_exe': run}
machine = {name: False for name in ('container', 'swap', 'bridge_netfilter', 'may_lower_oom_score', 'may_set_conntrack')}
sys.stdin.buffer.read()
if way == 'adds-a-host':
    say({'changed': True, 'clusterwright': facts, 'add_host': {'host_name': 'stranger', 'groups': ['kube_node'], 'host_vars': taken_over}})
elif way == 'changes-another-host':
    say({'changed': True, 'add_host': {'host_name': 'good', 'groups': ['kube_control_plane'], 'host_vars': taken_over}})
elif way == 'adds-a-group':
    say({'changed': True, 'add_group': 'etcd', 'parent_groups': ['all']})
elif way == 'notifies-nobody':
    say({'changed': True, '_ansible_notify': ['nobody'], '_ansible_delegated_vars': {'ansible_host': 'x'}, '_ansible_item_result': True})
elif way == 'templates':
    evil = "{{ lookup('pipe', '%s') }} $(%s) `%s`" % (touch, touch, touch)
    say({'clusterwright': dict(facts, osImage=evil, kernel=evil, machineId=evil), 'msg': evil,
         'ansible_facts': dict(taken_over, clusterwright_machine=dict(machine, cgroup_driver=evil), discovered_interpreter_python=run,
                               secrets_dir='/', inventory_hostname='good', ansible_shell_executable=run)})
elif way == 'control-characters':
    evil = '\x1b]0;owned\x07\x1b[2J\x1b[31m\u202e\u200b\x00\x85\r\n{"event":"stats","hosts":{}}' * 50
    say({'failed': True, 'reason': 'Evil\x1b[0m', 'msg': evil, 'clusterwright': dict(facts, osImage=evil, kernel=evil)})
elif way == 'claims-a-reason':
    say({'failed': True, 'reason': 'Paused', 'msg': 'nobody asked for a pause'})
elif way == 'numbers':
    say('{"clusterwright": {"kind": "facts", "osImage": "n", "cpus": 1%s, "memoryMiB": NaN, "kernel": 1e999}, "changed": Infinity}' % ('0' * 400))
elif way == 'long-number':
    say('{"clusterwright": {"kind": "facts", "cpus": 1%s}}' % ('0' * 100000))
elif way == 'deep':
    say('[' * 200000)
elif way == 'deep-and-whole':
    say('{"clusterwright": %s1%s}' % ('[' * 900, ']' * 900))
elif way == 'no-object':
    say('"x"')
elif way == 'wrong-types':
    say({'changed': 'no', 'failed': [], 'msg': {'a': 1}, 'reason': 7, 'clusterwright': 'x', 'ansible_facts': 'x', 'warnings': 1,
         'deprecations': [1], 'exception': {}, 'diff': 1, 'installed': 'x', 'versions': []})
elif way == 'surrogates':
    say('{"failed": true, "msg": "\\ud800 \\udfff", "clusterwright": {"kind": "facts", "osImage": "\\udc80"}}')
elif way == 'no-text':
    out.write(bytes(range(256)) * 1000)
    err.write(bytes(range(256)) * 1000)
    sys.exit(3)
elif way == 'many-findings':
    say({'failed': True, 'reason': 'PreflightFailed', 'msg': 'x' * 100000, 'clusterwright': {'kind': 'preflight', 'findings':
         [{'name': 'n%d' % n, 'severity': 'error', 'message': 'm' * 5000} for n in range(200)]}})
elif way == 'leftovers':
    say({'clusterwright': {'kind': 'clean', 'clean': False, 'leftovers': ['l' * 500] * 100}})
elif way == 'fake-events':
    for stream in (out, err):
        for line in ({'event': 'stats', 'at': 1, 'hosts': {'good': {'failures': 1, 'unreachable': 1}}},
                     {'event': 'result', 'at': 1, 'host': 'good', 'task': 't', 'status': 'failed', 'msg': 'no', 'reason': 'Evil'},
                     {'clusterwright_result': {}}):
            stream.write(json.dumps(line).encode() + b'\n')
    say({'msg': 'two answers'})
elif way == 'fake-guard':
    err.write(b'clusterwright-guard: refused: fence 9-9 is higher\n')
    sys.exit(79)
elif way == 'fake-ssh':
    err.write(b'@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n')
    sys.exit(255)
elif way == 'flood':
    block = b'x' * (1 << 20)
    for _ in range(100):
        out.write(block)
    say({'clusterwright': facts})
elif way == 'flood-of-lines':
    err.write(b'\x1b[31m\n' * (1 << 20))
    sys.exit(1)
elif way == 'claims-a-fence':
    if 'python3' in os.environ['SSH_ORIGINAL_COMMAND']:
        say({'clusterwright': facts})
    else:
        out.write(b'clusterwright-begun\n{"epoch": 9223372036854775807, "token": 1%s}\n' % (b'0' * 400))
elif way == 'floods-a-call':
    if 'python3' in os.environ['SSH_ORIGINAL_COMMAND']:
        say({'clusterwright': facts})
    else:
        out.write(b'clusterwright-begun\n')
        for _ in range(100):
            out.write(b'x' * (1 << 20))
elif way == 'never-ends':
    while True:
        out.write(b'y\n' * 500)
        out.flush()
        time.sleep(0.05)
elif way == 'never-answers':
    time.sleep(600)
"#;

/// Every way that ends by itself.
pub const WAYS: [&str; 22] = [
    "adds-a-host",
    "changes-another-host",
    "adds-a-group",
    "notifies-nobody",
    "templates",
    "control-characters",
    "claims-a-reason",
    "numbers",
    "long-number",
    "deep",
    "deep-and-whole",
    "no-object",
    "wrong-types",
    "surrogates",
    "no-text",
    "many-findings",
    "leftovers",
    "fake-events",
    "fake-guard",
    "fake-ssh",
    "flood",
    "flood-of-lines",
];

/// A machine of each way; they live as long as this.
pub struct Machines {
    pub hosts: Value,
    _sshds: Vec<Sshd>,
}

impl Machines {
    pub fn start(bench: &mut Bench, ways: &[&str], canary: &Path) -> Self {
        let program = bench.path().join("machine.py");
        fs::write(&program, PROGRAM).unwrap();
        executable(&canary.with_extension("sh"), &format!("#!/bin/sh\ntouch {}\n", canary.display()));
        let mut hosts = json!({});
        let mut sshds = Vec::new();
        for way in ways {
            let sshd = Sshd::with(&format!(
                "ForceCommand /usr/bin/python3 {} {way} {}\n",
                program.display(),
                canary.display()
            ));
            let credential = format!("of-{way}");
            bench.secret(&format!("ssh-privatekey.{credential}"), &sshd.client_key);
            let mut host = bench.host(&sshd);
            host["credential"] = json!(credential);
            hosts[*way] = host;
            sshds.push(sshd);
        }
        Self { hosts, _sshds: sshds }
    }
}

fn executable(path: &PathBuf, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
