"""Authorities are trusted for as long as they are configured, and containerd is restarted once it has yet to read them.

Once as Debian and Ubuntu have it, once as RHEL 9 and its family. systemd and the distributions' programs are stand-ins."""

import os
import pathlib
import subprocess
import sys
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import command, trusted_authorities, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

PLACE = pathlib.Path(sys.argv[1])
if len(sys.argv) == 2:
    for family in ("debian", "rhel"):
        (PLACE / family).mkdir()
        subprocess.run([sys.executable, sys.argv[0], PLACE / family, family], check=True)
    sys.exit()
FOLDER, BUNDLE, GOING = PLACE / "certificates", PLACE / "bundle.crt", PLACE / "going"
for name in ("bin", "certificates"):
    (PLACE / name).mkdir()
# Of the RHEL family every file counts, whatever its name, and what is made of them has its lines broken otherwise.
PROGRAM, READS, GOES = {
    "debian": ("update-ca-certificates", f"cat {FOLDER}/*.crt", FOLDER),
    "rhel": ("update-ca-trust", f"cat {FOLDER}/* | sed -E 's/^(A{{5}}|B{{5}})(.+)/\\1\\n\\2/; /CA:FALSE/,$d'", GOING),
}[sys.argv[2]]
trusted_authorities.STORES = (trusted_authorities.Store(PROGRAM, str(FOLDER), str(BUNDLE), str(GOES)),)
command.PATH = f"{PLACE}/bin:/usr/bin:/bin"
(FOLDER / "another.crt").write_text("ANOTHER\n", encoding="ascii")
FAILS = f"[ -e {PLACE}/fails ] && {{ echo no room >&2; exit 1; }}"
(PLACE / "bin" / PROGRAM).write_text(f"#!/bin/sh\n{FAILS}\n{READS} > {BUNDLE}\n", encoding="ascii")
(PLACE / "bin" / PROGRAM).chmod(0o755)
A, B = (f"-----BEGIN CERTIFICATE-----\n{letter * 20}\n-----END CERTIFICATE-----" for letter in "AB")
STARTED = {"at": time.monotonic() - 100, "restarts": 0, "active": "active"}


def restart(*_arguments: str, **_more: object) -> None:
    time.sleep(0.05)
    STARTED.update(at=time.monotonic(), restarts=STARTED["restarts"] + 1)


units.state = lambda _unit: {"ActiveState": STARTED["active"], "ExecMainStartTimestampMonotonic": str(int(STARTED["at"] * 1_000_000))}
units.systemctl = restart


def bundle() -> str:
    """Its certificates as they were given."""
    return BUNDLE.read_text(encoding="ascii").replace("AAAAA\nA", "AAAAAA").replace("BBBBB\nB", "BBBBBB")


assert trusted_authorities.apply([], False) == [] and STARTED["restarts"] == 0 and not BUNDLE.exists()
assert len(trusted_authorities.apply([A, B], True)) == 2 and not trusted_authorities.ours()
trusted_authorities.apply([A, B], False)
assert A in bundle() and B in bundle() and "ANOTHER" in bundle() and STARTED["restarts"] == 1
assert trusted_authorities.apply([A, B], True) == [] and trusted_authorities.apply([B, A], False) == [] and STARTED["restarts"] == 1
trusted_authorities.apply([B], False)
assert A not in bundle() and B in bundle() and STARTED["restarts"] == 2

# Cut short before the update, and before the restart.
(FOLDER / f"{trusted_authorities.PREFIX}x.crt").write_text(A, encoding="ascii")
(PLACE / "fails").touch()
try:
    trusted_authorities.apply([A, B], False)
    raise AssertionError("it was made")
except StepFailure as failure:
    assert failure.reason == "AuthoritiesRefused" and "no room" in failure.message
(PLACE / "fails").unlink()
assert trusted_authorities.apply([A, B], True) == [str(BUNDLE)]
trusted_authorities.apply([A, B], False)
assert A in bundle() and STARTED["restarts"] == 3
(PLACE / "fails").touch()
try:
    trusted_authorities.apply([A], False)
    raise AssertionError("it was made")
except StepFailure:
    (PLACE / "fails").unlink()
assert trusted_authorities.apply([A], True) and trusted_authorities.apply([A], False) and B not in bundle()
assert trusted_authorities.apply([A], True) == [] and not trusted_authorities.going() and trusted_authorities.apply([A, B], False)
assert STARTED["restarts"] == 5
STARTED["at"] -= 1000
assert trusted_authorities.apply([A, B], True) == [trusted_authorities.CONTAINERD]
assert trusted_authorities.apply([A, B], False) == [trusted_authorities.CONTAINERD] and STARTED["restarts"] == 6
# A machine that has no containerd yet.
STARTED.update(active="inactive", at=0)
assert trusted_authorities.apply([A], False) and STARTED["restarts"] == 6

if PROGRAM == "update-ca-trust":
    # It leaves out a certificate that is no authority's, and says nothing.
    try:
        trusted_authorities.apply([A, "CA:FALSE\n" + B], False)
        raise AssertionError("it was made")
    except StepFailure as failure:
        assert failure.reason == "AuthoritiesRefused" and "no authority's" in failure.message, failure.message
    trusted_authorities.apply([A], False)

trusted_authorities.forget()
assert bundle() == "ANOTHER\n" and not trusted_authorities.ours()
