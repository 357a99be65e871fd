"""A run reads the bundle's index once on a machine; what it keeps is for root and for this run, and has no login in it."""

import os
import stat

from bundle_world import PLACE, Served, entry, refused

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle_cache
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle

bundle_cache.FOLDER = str(PLACE / "run" / "index")
FENCE = "CLUSTERWRIGHT_FENCE"
OLD, NEW = entry("etcd", "3.6.9"), entry("etcd", "3.6.16")


def version(served: Served, run: str = "", **options: object) -> str:
    os.environ.pop(FENCE, None)
    if run:
        os.environ[FENCE] = run
    return Bundle(served.options(**options)).resolve([{"name": "etcd"}])[0]["version"]


def kept() -> list:
    return sorted(os.listdir(bundle_cache.FOLDER)) if os.path.isdir(bundle_cache.FOLDER) else []


served = Served(OLD)

# Without a run nothing is kept, and a word that is no fence is none.
for unknown in ("", "../3-41", "3-41/x", "3"):
    assert version(served, unknown) == "3.6.9" and kept() == []
assert served.asked == ["index.json"] * 4

# Once in a run, whatever becomes of the bundle.
assert version(served, "3-41") == "3.6.9"
served.say(OLD, NEW)
served.asked.clear()
assert version(served, "3-41") == "3.6.9" and served.asked == [], "the steps of one run see one index"
(name,) = kept()
status = os.stat(bundle_cache.FOLDER)
assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o700, os.getuid())
assert stat.S_IMODE(os.stat(f"{bundle_cache.FOLDER}/{name}").st_mode) == 0o600

# Another address is another index; another run reads anew, and removes what others kept.
other = Served(NEW)
assert version(other, "3-41") == "3.6.16" and len(kept()) == 2
assert version(served, "3-42") == "3.6.16" and served.asked == ["index.json"]
assert [file.partition(".")[0] for file in kept()] == ["3-42"], kept()

# What was promised of the index holds for what is kept as well.
path = f"{bundle_cache.FOLDER}/{kept()[0]}"
promised = bundle_cache.hashlib.sha256(served.index).hexdigest()
served.asked.clear()
assert version(served, "3-42", index_sha256=promised) == "3.6.16" and served.asked == []
with open(path, "wb") as out:
    out.write(b'{"formatVersion": 1, "artifacts": []}')
assert version(served, "3-42", index_sha256=promised) == "3.6.16" and served.asked == ["index.json"], "another one is not used"
refused("DigestMismatch", ("spec.artifacts.indexSHA256",), lambda: version(served, "3-42", index_sha256="0" * 64))

# An index that was refused is not kept, and no login is.
broken = Served()
broken.index = b"{}"
refused("ArtifactIndexInvalid", ("formatVersion",), lambda: version(broken, "3-43"))
assert [file.partition(".")[0] for file in kept()] == ["3-42"], "not even in place of another run's"
SECRET = "canary-Zk3-secret"
login = {"username": "fleet", "password": SECRET}
refused("InvalidVariables", ("HTTPS only",), lambda: version(served, "3-42", **login))
assert SECRET not in "".join(open(f"{bundle_cache.FOLDER}/{file}", encoding="utf-8").read() + file for file in kept())
assert served.url.rpartition("/")[2] not in "".join(kept())
