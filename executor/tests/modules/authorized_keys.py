"""Keys of administrators let in for as long as they are configured; those of others, and that of the run itself, stay.

The machine is a root of its own, with a real sshd."""

import os
import pathlib
import pwd
import socket
import subprocess
import time

from machine_world import enter, program, sh, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import authorized_keys  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure  # noqa: E402

PORT = "2222"
CONFIGURATION = "/etc/ssh/sshd_config"
write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nsshd:x:101:65534::/run/sshd:/bin/false\nadmin:x:1000:1000::/home/admin:/bin/sh\n")
write("/etc/group", "root:x:0:\nadmin:x:1000:\nnogroup:x:65534:\n")
write("/etc/shadow", "root:*:1::::::\nadmin:*:1::::::\n", 0o600)
write("/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\n")
os.makedirs("/run/sshd")
os.makedirs("/home/admin")
os.chown("/home/admin", 1000, 1000)
os.makedirs("/keys")
os.makedirs("/etc/ssh")
for name in ("host", "run", "one", "two", "other"):
    sh("ssh-keygen", "-q", "-t", "ecdsa" if name == "two" else "ed25519", "-N", "", "-C", f"{name} key", "-f", f"/keys/{name}")
TEXT = f"Port {PORT}\nListenAddress 127.0.0.1\nHostKey /keys/host\nUsePAM no\nPasswordAuthentication no\nStrictModes yes\n"
write(CONFIGURATION, TEXT)
DAEMON = subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", CONFIGURATION])
ADMIN = pwd.getpwnam("admin")
FILE = pathlib.Path("/home/admin/.ssh/authorized_keys")


def public(name: str) -> str:
    return pathlib.Path(f"/keys/{name}.pub").read_text(encoding="ascii").strip()


def key(name: str) -> str:
    return public(name).split()[1]


def wait() -> None:
    for _round in range(100):
        try:
            socket.create_connection(("127.0.0.1", int(PORT)), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("sshd does not answer")


def gets_in(name: str) -> bool:
    options = ["-F", "none", "-p", PORT, "-i", f"/keys/{name}", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"]
    options += ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    done = subprocess.run(["ssh", *options, "admin@127.0.0.1", "true"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 255), done.stderr
    return done.returncode == 0


def apply(*names: str, login: tuple = (), check: bool = False) -> list:
    return authorized_keys.apply("admin", [public(name) for name in names], [key(name) for name in login], check)


def refused(part: str, user: str = "admin") -> None:
    try:
        authorized_keys.apply(user, [public("one")], [], False)
        raise AssertionError("it was accepted")
    except StepFailure as failure:
        assert failure.reason == "AuthorizedKeysRefused" and part in failure.message, failure.message


wait()
assert apply() == [] and not FILE.exists()
# Where there is nothing yet.
assert apply("one", check=True) == [str(FILE)] and not FILE.exists()
assert apply("one") == [str(FILE)] and apply("one") == [] and apply("one", check=True) == []
status = FILE.stat()
assert (status.st_mode & 0o777, status.st_uid) == (0o600, 1000) and FILE.parent.stat().st_uid == 1000
assert gets_in("one") and not gets_in("two")
assert apply("two", "one") and gets_in("two") and gets_in("one")
assert apply("two") and gets_in("two") and not gets_in("one")
assert apply() and not gets_in("two") and not os.path.exists(authorized_keys.KNOWN) and apply() == []

# Lines of others, with options and bytes that are no text, stay; a key that is there already comes no second time.
THEIRS = f'# key of Andr\xe9\nrestrict,command="true ssh-ed25519 x" {public("other")}\n{public("run")}\n'.encode("latin-1")
FILE.write_bytes(THEIRS)
apply("one", "run")
assert FILE.read_bytes().startswith(THEIRS) and FILE.read_bytes().count(key("run").encode()) == 1
assert all(map(gets_in, ("one", "run", "other")))
assert apply() and FILE.read_bytes() == THEIRS and gets_in("run") and gets_in("other")

# The key of the run, also where only we have put it there, and for as long as the run comes in with it.
FILE.write_text(f"{public('other')}\n", encoding="ascii")
apply("run", "one", login=("run",))
assert apply("one", login=("run",)) == [] and gets_in("run"), "it stays, and makes no difference"
apply("two", login=("run",))
assert gets_in("run") and gets_in("two") and not gets_in("one")
assert apply(login=("run",)) and gets_in("run") and not gets_in("two")
assert FILE.read_text(encoding="ascii").splitlines()[-2] == public("run")

# Another user, and what sshd does not read.
FILE.unlink()
apply("one")
assert gets_in("one")
authorized_keys.apply("root", [public("one")], [], False)
assert not gets_in("one") and key("one") in pathlib.Path("/root/.ssh/authorized_keys").read_text(encoding="ascii")
authorized_keys.apply("root", [], [], False)
assert key("one") not in pathlib.Path("/root/.ssh/authorized_keys").read_text(encoding="ascii")
refused("the machine has no user nobody-here", "nobody-here")
write(CONFIGURATION, f"{TEXT}AuthorizedKeysFile /etc/ssh/keys/%u\n")
refused("sshd reads keys of admin from /etc/ssh/keys/%u, and not from /home/admin/.ssh/authorized_keys")
program("sshd", "exit 1")
assert apply("one"), "an sshd that does not tell is believed to be as it comes"

# What a run may have come in with: as ssh itself finds it.
from ansible_collections.clusterwright.cluster.plugins.plugin_utils.login_keys import login_keys  # noqa: E402

write("/keys/config", "Host *\n  IdentitiesOnly yes\n  IdentityFile /keys/run\n")
write("/keys/by_password", "Host *\n  PubkeyAuthentication no\n  IdentityFile /keys/run\n")
assert login_keys("192.0.2.1", "-F /keys/config", "") == [key("run")]
assert login_keys("192.0.2.1", "-F /keys/config", "/keys/one") == [key("one"), key("run")]
assert login_keys("192.0.2.1", "-F /keys/by_password", "") == [] and login_keys("", "-F /keys/absent", "") == []
DAEMON.terminate()
