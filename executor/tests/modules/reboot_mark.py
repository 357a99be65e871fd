"""Whether a reboot came is told by the boots, not by the clock."""

import pathlib
import sys
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import reboot_mark

place = pathlib.Path(sys.argv[1])
membership.REBOOT = str(place / "reboot.json")
reboot_mark.BOOT = str(place / "boot_id")
reboot_mark.wait_for_services = lambda timeout, parts: None


class Call:
    check_mode = False

    def __init__(self, moment: str, request: str) -> None:
        self.params = {"moment": moment, "request": request, "timeout_seconds": 1, "parts": []}


def boot(number: int) -> None:
    (place / "boot_id").write_text(f"boot-{number}\n", encoding="utf-8")


def due(request: str = "m1 since 6:00") -> bool:
    return reboot_mark.work(Call("before", request))["due"]


def is_done(request: str = "m1 since 6:00") -> bool:
    try:
        reboot_mark.work(Call("after", request))
    except StepFailure as failure:
        assert failure.reason == "NotRebooted", failure.reason
        return False
    return True


boot(1)
assert due() and not is_done(), "nothing has happened yet"
assert due(), "the machine did not reboot: the next attempt orders it again"

# It takes 16 minutes, and the run that ordered it is over by then. The machine's clock does not matter.
now = time.time
time.time = lambda: now() + 960
boot(2)
assert not due(), "it was rebooted by the attempt before"
assert is_done()
time.time = now

assert due(), "that reboot was used: the same machine is sick again"
boot(3)
assert is_done()

# One that nobody came back for answers no other request, however young it is.
assert due("m1 since 7:00")
boot(4)
assert due("m1 since 9:00") and not is_done("m1 since 9:00")
boot(5)
assert is_done("m1 since 9:00")

# A run by hand reboots each time.
for number in (6, 7):
    assert due("")
    boot(number)
    assert is_done("")
