"""An authority comes to a machine only where the one that signs there is among those that are trusted from then on."""

import json
import pathlib
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import certificate_places, membership, succession
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

place = pathlib.Path(sys.argv[1]) / "ca.crt"


def pem(name: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n"


def refused(*wanted: str, there: str = "") -> str:
    place.write_text(there, encoding="ascii")
    try:
        succession.check([{"path": str(place), "content": "".join(map(pem, wanted))}], (str(place),))
    except StepFailure as failure:
        assert failure.reason == "AuthorityReplaced", failure.reason
        return str(failure)
    return ""


OLD, NEW = "OLD", "NEW"
# Each stage of a rotation follows the one before.
assert not refused(OLD, NEW, there=pem(OLD))
assert not refused(NEW, OLD, there=pem(OLD) + pem(NEW))
assert not refused(NEW, there=pem(NEW) + pem(OLD))
# A machine that has nothing yet takes what comes.
assert not refused(NEW)
assert not refused(NEW, there="no certificate")
# Line ends are no difference.
assert not refused(OLD, there=pem(OLD).replace("\n", "\r\n"))
# What is skipped is refused, and a Secret of before as well.
assert "Put into the cluster's Secret what" in refused(NEW, there=pem(OLD))
membership.CLUSTER = f"{place}.json"
pathlib.Path(membership.CLUSTER).write_text('{"identity": "a", "name": "prod-a"}', encoding="ascii")
assert "nothing was changed. Put into Secret prod-a-pki what" in refused(NEW, there=pem(OLD))
assert str(place) in refused(OLD, there=pem(NEW) + pem(OLD)[:20])
# Of public keys the same holds, and of other files nothing.
place.write_text(pem(OLD).replace("CERTIFICATE", "PUBLIC KEY"), encoding="ascii")
entry = {"path": str(place), "content": pem(NEW).replace("CERTIFICATE", "PUBLIC KEY")}
succession.check([entry], ())
try:
    succession.check([entry], (str(place),))
    raise AssertionError("it was not refused")
except StepFailure:
    pass
# What encrypts on a machine is known by name and secret, or by its socket, and must be what decrypts the same resources from then on.
ONE, OTHER = {"name": "key1", "secret": "AAA"}, {"name": "key-b", "secret": "BBB"}
IDENTITY = {"identity": {}}
certificate_places.ENCRYPTION = str(place)


def entry_of(resources: list, *providers: dict) -> dict:
    return {"resources": resources, "providers": list(providers)}


def box(*keys: dict) -> dict:
    return {"secretbox": {"keys": list(keys)}}


def kms(name: str, socket: str = "a") -> dict:
    return {"kms": {"apiVersion": "v2", "name": name, "endpoint": f"unix:///run/kms/{socket}.sock", "timeout": "3s"}}


def written(*entries: dict) -> str:
    return json.dumps({"kind": "EncryptionConfiguration", "resources": list(entries)})


def configuration(*keys: dict) -> str:
    return written(entry_of(["secrets"], box(*keys), IDENTITY))


WIDE = written(entry_of(["configmaps", "secrets"], box(ONE), IDENTITY), entry_of(["*.apps"], box(ONE), IDENTITY))
for there, wanted, is_refused in (
    (configuration(ONE), configuration(ONE, OTHER), False),
    (configuration(ONE, OTHER), configuration(OTHER, ONE), False),
    (configuration(OTHER, ONE), configuration(OTHER), False),
    (configuration(ONE), configuration(OTHER), True),
    (configuration(ONE, OTHER), configuration(OTHER), True),
    (configuration(ONE), configuration({**ONE, "secret": "CCC"}), True),
    (configuration(ONE), configuration({**ONE, "name": "key2"}), True),
    ("", configuration(OTHER), False),
    ("[]", configuration(OTHER), False),
    # A resource that is not decrypted any more, and one that is.
    (configuration(ONE), WIDE, False),
    (WIDE, configuration(ONE), True),
    (WIDE, written(entry_of(["secrets"], box(ONE), IDENTITY), entry_of(["configmaps"], IDENTITY, box(ONE)), entry_of(["*.apps"], IDENTITY, box(ONE))), False),
    (WIDE, written(entry_of(["secrets", "configmaps"], box(ONE), IDENTITY), entry_of(["deployments.apps"], box(ONE), IDENTITY)), True),
    (written(entry_of(["deployments.apps"], box(ONE), IDENTITY)), WIDE, False),
    (written(entry_of(["secrets"], IDENTITY, box(ONE))), configuration(OTHER), False),
    # A plug-in.
    (configuration(ONE), written(entry_of(["secrets"], box(ONE), kms("k"), IDENTITY)), False),
    (written(entry_of(["secrets"], kms("k"), IDENTITY)), written(entry_of(["secrets"], box(ONE), kms("k"), IDENTITY)), False),
    (written(entry_of(["secrets"], kms("k"), IDENTITY)), written(entry_of(["secrets"], kms("k", "b"), IDENTITY)), True),
    (written(entry_of(["secrets"], kms("k"), IDENTITY)), configuration(ONE), True),
):  # fmt: skip
    place.write_text(there, encoding="ascii")
    try:
        succession.check([{"path": str(place), "content": wanted}], (str(place),))
        assert not is_refused, (there, wanted)
    except StepFailure as failure:
        assert is_refused and "AAA" not in failure.message and "BBB" not in failure.message, failure.message
