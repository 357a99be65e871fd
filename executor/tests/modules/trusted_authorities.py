"""Authorities are trusted for as long as they are configured, and containerd is restarted once it has yet to read them.

systemd and the distribution's program are stand-ins."""

import os
import pathlib
import sys
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import command, trusted_authorities, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

PLACE = pathlib.Path(sys.argv[1])
FOLDER = PLACE / "certificates"
trusted_authorities.FOLDER = str(FOLDER)
trusted_authorities.BUNDLE = str(PLACE / "bundle.crt")
command.PATH = f"{PLACE}/bin:{command.PATH}"
for name in ("bin", "certificates"):
    (PLACE / name).mkdir()
(FOLDER / "another.crt").write_text("ANOTHER\n", encoding="ascii")
PROGRAM = PLACE / "bin" / "update-ca-certificates"
FAILS = f"[ -e {PLACE}/fails ] && {{ echo no room >&2; exit 1; }}"
PROGRAM.write_text(f"#!/bin/sh\n{FAILS}\ncat {FOLDER}/*.crt > {PLACE}/bundle.crt\n", encoding="ascii")
PROGRAM.chmod(0o755)
A, B = (f"-----BEGIN CERTIFICATE-----\n{letter * 20}\n-----END CERTIFICATE-----" for letter in "AB")
STARTED = {"at": time.monotonic() - 100, "restarts": 0, "active": "active"}


def restart(*_arguments: str, **_more: object) -> None:
    time.sleep(0.05)
    STARTED.update(at=time.monotonic(), restarts=STARTED["restarts"] + 1)


units.state = lambda _unit: {"ActiveState": STARTED["active"], "ExecMainStartTimestampMonotonic": str(int(STARTED["at"] * 1_000_000))}
units.systemctl = restart


def bundle() -> str:
    return pathlib.Path(trusted_authorities.BUNDLE).read_text(encoding="ascii")


assert trusted_authorities.apply([], False) == [] and STARTED["restarts"] == 0 and not os.path.exists(trusted_authorities.BUNDLE)
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
assert trusted_authorities.apply([A, B], True) == [trusted_authorities.BUNDLE]
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

trusted_authorities.forget()
assert bundle() == "ANOTHER\n" and not trusted_authorities.ours()
