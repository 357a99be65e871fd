"""A file of others is replaced whole or not at all, and stays as it is but for our lines."""

import errno
import os
import pathlib
import resource
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import host_file

place = pathlib.Path(sys.argv[1])
hosts = place / "hosts"
host_file.PATH = str(hosts)
BEFORE = "127.0.0.1 localhost\n# a person's\n10.0.0.1 printer\n"


def fresh() -> None:
    hosts.unlink(missing_ok=True)
    hosts.write_text(BEFORE, encoding="utf-8")
    hosts.chmod(0o640)
    os.chown(hosts, 7, 8)


def leftovers() -> list:
    return sorted(entry.name for entry in place.iterdir() if entry.name.startswith(".cw-"))


# Cut off in its middle, as by a full disk: what was there is there.
fresh()
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))
try:
    host_file.set_lines(["10.0.0.2 node-1"])
    raise AssertionError("nothing was cut off")
except OSError as error:
    assert error.errno == errno.EFBIG, error
finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
assert hosts.read_text(encoding="utf-8") == BEFORE, hosts.read_text(encoding="utf-8")
assert leftovers() == []

# Whoever has it open reads the old one to its end; owner and mode stay.
with open(hosts, encoding="utf-8") as reader:
    assert host_file.set_lines(["10.0.0.2 node-1"]) and not host_file.set_lines(["10.0.0.2 node-1"])
    assert reader.read() == BEFORE
status = hosts.stat()
assert (status.st_mode & 0o7777, status.st_uid, status.st_gid) == (0o640, 7, 8), status
assert hosts.read_text(encoding="utf-8").startswith(BEFORE) and "10.0.0.2 node-1" in hosts.read_text(encoding="utf-8")

# Behind a link, the file is replaced and not the link.
fresh()
link = place / "link"
link.symlink_to(hosts)
host_file.PATH = str(link)
assert host_file.set_lines(["10.0.0.2 node-1"]) and link.is_symlink()
assert "node-1" in hosts.read_text(encoding="utf-8")
host_file.PATH = str(hosts)

# In a container it may be a mount of its own, which cannot be replaced.
fresh()
replace = os.replace


def busy(source: str, target: str) -> None:
    raise OSError(errno.EBUSY, "Device or resource busy")


os.replace = busy
assert host_file.set_lines(["10.0.0.2 node-1"])
os.replace = replace
assert "node-1" in hosts.read_text(encoding="utf-8") and leftovers() == []
assert host_file.set_lines([]) and hosts.read_text(encoding="utf-8") == BEFORE
