"""One survivor."""

import os

from etcd_world import Machine, expect

a, b, c = (Machine(name) for name in ("a", "b", "c"))
expect(a.join([a], "new"), True, "a begins")
expect(b.join([a, b]), True, "b joins")
expect(c.join([a, b, c]), True, "c joins")
a.etcd().command("put", "key", "value")

expect(a.recover([b, c]), "QuorumNotLost", "all are well")
c.kill()
expect(a.recover([b, c]), "QuorumNotLost", "one is dead")
a.kill()
expect(a.recover(), "QuorumNotLost", "the survivor's own process is dead, and knows of the others when it comes back")
b.kill()
expect(a.recover([b, c], check=True), True, "not recovered")
expect(a.recover([b, c]), True, "two are dead")
expect(a.names(), ["a"], "members")
expect(a.recover([b, c]), False, "again")
expect(os.path.exists(f"{a.home}/force.conf"), False, "nothing is forced from now on")
expect(os.path.isdir(f"{a.data()}/before-recovery"), True, "a copy")
assert '"kvs"' in a.etcd().command("get", "key"), "the data is gone"
for machine in (b, c):
    machine.wipe()
expect(b.join([a, b]), True, "b joins anew")
a.kill()
a.ensure("")
expect(a.names(), ["a", "b"], "members after a start")
