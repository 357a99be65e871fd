"""Machines with an etcd member each, as processes of this machine: what systemd and /etc are to the modules is per machine here."""

import atexit
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import command, etcd, etcd_trial, membership, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import (
    etcd_defragment,
    etcd_info,
    etcd_member,
    etcd_recover,
    etcd_remove_member,
    etcd_restore,
    etcd_restore_info,
)

PLACE = sys.argv[1]
PROGRAMS = os.environ["ETCD_PROGRAMS"]
PKI = f"{PLACE}/pki"
command.PATH = f"{PROGRAMS}:{command.PATH}"
STARTED = []


def openssl(*arguments, stdin=None):
    return subprocess.run(("openssl", *arguments), check=True, capture_output=True, input=stdin).stdout


def make_pki():
    os.makedirs(PKI)
    key = lambda path: openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
    key(f"{PKI}/ca.key")
    usage = "keyUsage=critical,digitalSignature,keyCertSign"
    openssl("req", "-x509", "-new", "-key", f"{PKI}/ca.key", "-subj", "/CN=ca", "-out", f"{PKI}/ca.crt", "-addext", usage)
    key(f"{PKI}/healthcheck-client.key")
    request = openssl("req", "-new", "-key", f"{PKI}/healthcheck-client.key", "-subj", "/CN=all")
    with open(f"{PKI}/extensions", "w", encoding="ascii") as extensions:
        extensions.write("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    made = openssl("x509", "-req", "-CA", f"{PKI}/ca.crt", "-CAkey", f"{PKI}/ca.key", "-CAcreateserial",
                   "-extfile", f"{PKI}/extensions", stdin=request)
    with open(f"{PKI}/healthcheck-client.crt", "wb") as certificate:
        certificate.write(made)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Machine:
    """A machine with one member, and the `units` that the modules see on it."""

    def __init__(self, name):
        self.name, self.process, self.flags = name, None, []
        self.home = f"{PLACE}/{name}"
        self.client, self.peer = (f"https://127.0.0.1:{free_port()}" for _ in range(2))
        os.makedirs(self.home)

    def member(self):
        return {"name": self.name, "peer_url": self.peer, "client_url": self.client}

    def data(self):
        return f"{self.home}/data"

    def runs(self):
        return self.process is not None and self.process.poll() is None

    # What of module_utils/units.py the modules use.
    def ensure(self, _unit, restart=False, start=True, check=False, block=True, reads=(), before_restart=lambda: None):
        if restart:
            if self.runs():
                before_restart()
            self.kill()
        if self.runs():
            return False
        if check:
            return True
        environment = {"PATH": PROGRAMS}
        with open(f"{self.home}/initial.env", encoding="utf-8") as source:
            environment.update(line.strip().split("=", 1) for line in source if "=" in line)
        # Of what the module writes, only what is an environment: tests give other contents, too.
        with contextlib.suppress(FileNotFoundError), open(f"{self.home}/etcd.env", encoding="utf-8") as source:
            environment.update(line.strip().split("=", 1) for line in source if "=" in line)
        if os.path.exists(f"{self.home}/force.conf"):
            environment["ETCD_FORCE_NEW_CLUSTER"] = "true"
        common = f"--cert-file={PKI}/healthcheck-client.crt --key-file={PKI}/healthcheck-client.key --client-cert-auth"
        tls = f"{common} --trusted-ca-file={PKI}/ca.crt {common.replace('--', '--peer-')} --peer-trusted-ca-file={PKI}/ca.crt"
        with open(f"{self.home}/log", "ab") as log:
            self.process = subprocess.Popen(
                [f"{PROGRAMS}/etcd", f"--name={self.name}", f"--data-dir={self.data()}", "--log-level=warn", *tls.split(), *self.flags,
                 f"--listen-client-urls={self.client}", f"--advertise-client-urls={self.client}",
                 f"--listen-peer-urls={self.peer}", f"--initial-advertise-peer-urls={self.peer}"],
                env=environment, stdout=log, stderr=log)
        STARTED.append(self.process)
        return True

    def systemctl(self, verb, *_rest, **_more):
        if verb in ("stop", "restart", "disable"):
            self.kill()
        if verb in ("start", "restart"):
            self.ensure("")

    def state(self, _unit):
        return {"InvocationID": str(self.process.pid)} if self.runs() else {}

    def journal(self, _unit, lines=8):
        with open(f"{self.home}/log", encoding="utf-8", errors="replace") as log:
            return "".join(log.readlines()[-lines:])

    def reload(self):
        pass

    def kill(self):
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def wipe(self):
        self.kill()
        shutil.rmtree(self.data(), ignore_errors=True)
        shutil.rmtree(f"{self.home}/etc", ignore_errors=True)

    def play(self, module, check=False, **params):
        """Runs the module's work here; a failure is its reason."""
        # Each machine has its own /etc and systemd; the modules know them by these names.
        membership.ETCD = f"{self.home}/etc/etcd.json"
        etcd_trial.FORMER = f"{self.home}/etc/etcd-former.json"
        for place in (etcd_member, etcd_recover, etcd_restore):
            place.units = self
        etcd_member.INITIAL = f"{self.home}/initial.env"
        etcd_recover.DROP_IN = f"{self.home}/force.conf"
        etcd_recover.attempt = lambda *_arguments, **_more: None
        for place in (etcd, etcd_defragment, etcd_info, etcd_member, etcd_recover, etcd_remove_member, etcd_restore, etcd_restore_info):
            place.LOCAL = self.client
        call = type("Call", (), {"params": params, "check_mode": check})
        try:
            return module.work(call)["changed"]
        except StepFailure as failure:
            print(f"  {self.name}: {failure.reason}: {failure.message[:300]}")
            return failure.reason

    def join(self, members, state="existing", **more):
        params = {"catch_up_seconds": 60, "token": "t", "restore": "", "files": [], "timeout_seconds": 60, **more}
        return self.play(
            etcd_member, name=self.name, members=[machine.member() for machine in members], state=state,
            data_directory=self.data(), pki_directory=PKI, secrets=[], program=f"{PROGRAMS}/etcd",
            configuration=f"{self.home}/etcd.env", **params)

    def remove(self, other, check=False):
        return self.play(etcd_remove_member, check, name=other.name, peer_urls=[other.peer], pki_directory=PKI, timeout_seconds=30)

    def recover(self, others=(), check=False):
        return self.play(
            etcd_recover, check, name=self.name, others=[other.client for other in others], data_directory=self.data(),
            pki_directory=PKI, apiserver_address="", apiserver_port=0, timeout_seconds=60)

    def defragment(self, check=False, percent=50, reclaim=1, free_space=False):
        return self.play(
            etcd_defragment, check, min_fragmentation_percent=percent, min_reclaim_mib=reclaim, free_space=free_space,
            timeout_seconds=10, pki_directory=PKI)

    def look(self, machines, hash_check=False):
        """What a look from the machine reports; it is never a failure."""
        etcd_info.LOCAL = self.client
        members = [{"host": other.name, **other.member()} for other in machines]
        params = {"name": self.name, "members": members, "hash_check": hash_check, "pki_directory": PKI}
        result = etcd_info.work(type("Call", (), {"params": params, "check_mode": False}))
        assert result["changed"] is False
        return result["clusterwright"]

    def etcd(self):
        return etcd.Etcd(PKI, [self.client])

    def raise_alarm(self, alarm):
        """Of its own member, as the member itself does."""
        context = ssl.create_default_context(cafile=f"{PKI}/ca.crt")
        context.load_cert_chain(f"{PKI}/healthcheck-client.crt", f"{PKI}/healthcheck-client.key")
        connection = http.client.HTTPSConnection(self.client.removeprefix("https://"), timeout=5, context=context)
        said = {"action": "ACTIVATE", "memberID": str(self.etcd().list()[1]), "alarm": alarm}
        connection.request("POST", "/v3/maintenance/alarm", json.dumps(said))
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        connection.close()

    def names(self):
        return sorted(f"{member.get('name') or '?'}{'*' if member.get('isLearner') else ''}" for member in self.etcd().members())


class Writer(threading.Thread):
    """Writes all the time, to whichever of the machines answers, and knows its largest gap."""

    def __init__(self, machines):
        super().__init__(daemon=True)
        self.machines, self.gap, self.count, self.ended = machines, 0.0, 0, False
        self.context = ssl.create_default_context(cafile=f"{PKI}/ca.crt")
        self.context.load_cert_chain(f"{PKI}/healthcheck-client.crt", f"{PKI}/healthcheck-client.key")

    def put(self, url):
        connection = http.client.HTTPSConnection(url.removeprefix("https://"), timeout=1, context=self.context)
        try:
            connection.request("POST", "/v3/kv/put", json.dumps({"key": "Zm9v", "value": "YmFy"}))
            answer = connection.getresponse()
            answer.read()
            return answer.status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def run(self):
        last = time.monotonic()
        while not self.ended:
            if any(self.put(machine.client) for machine in self.machines):
                now = time.monotonic()
                self.gap, last, self.count = max(self.gap, now - last), now, self.count + 1
            time.sleep(0.02)

    def end(self):
        self.ended = True
        self.join()
        print(f"{self.count} writes, largest gap {self.gap:.2f} s")
        return self.gap


def expect(found, wanted, what):
    assert found == wanted, f"{what}: {found!r}, not {wanted!r}"
    print(f"{what}: {found!r}")


@atexit.register
def end_all():
    for process in STARTED:
        if process.poll() is None:
            process.kill()
            process.wait()


make_pki()
