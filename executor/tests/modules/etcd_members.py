"""Members come and go, one at a time."""

import os
import shutil

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_data
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from etcd_world import PKI, Machine, Writer, etcd, expect



def cut_short(*_arguments):
    raise StepFailure("EtcdUnhealthy", "cut short")


a, b, c, ghost, other = (Machine(name) for name in ("a", "b", "c", "ghost", "other"))
expect(a.join([a], "new"), True, "a begins")
expect(a.join([a], "new"), False, "again")
expect(etcd_data.identity(a.data())[0], etcd_data.new_cluster([a.member()], "t"), "the data's cluster")
expect(etcd_data.identity(a.data())[0], a.etcd().list()[0], "the cluster's own word")

writer = Writer([a, b, c])
writer.start()
expect(b.join([a, b]), True, "b joins")
expect(c.join([a, b, c]), True, "c joins")
expect(c.join([a, b, c]), False, "again")
expect(a.names(), ["a", "b", "c"], "members")
for machine in (b, c):
    expect(a.remove(machine), True, f"{machine.name} leaves")
    machine.wipe()
expect(a.remove(c), False, "again")
expect(a.names(), ["a"], "members")
expect(b.join([a, b]), True, "b joins again")
expect(c.join([a, b, c]), True, "c joins again")
# The first, and dead.
a.kill()
expect(b.remove(a), True, "a, which is dead, leaves")
a.wipe()
expect(a.join([b, c, a]), True, "another in a's place joins")
gap = writer.end()
assert gap < 6, "longer than an election"

# Attempts that were cut short.
expect(b.remove(c), True, "c leaves")
expect(c.join([a, b, c]), "EtcdMemberRemoved", "c, with the data of a member that was taken out")
c.wipe()
b.etcd().add_learner("c", c.peer)
expect(c.join([a, b, c]), True, "a learner that never started is replaced")
expect(b.remove(c), True, "c leaves")
c.wipe()
promote, etcd.Etcd.promote = etcd.Etcd.promote, cut_short
expect(c.join([a, b, c]), "EtcdUnhealthy", "an attempt that ends before the promotion")
etcd.Etcd.promote = promote
expect(len([name for name in b.names() if name.endswith("*")]), 1, "learners")
expect(c.join([a, b, c]), True, "the next one goes on")
c.kill()
shutil.rmtree(c.data())
expect(c.join([a, b, c]), True, "a member that lost its data is replaced")
expect(b.remove(c), True, "c leaves")
c.wipe()
b.etcd().add_learner("ghost", ghost.peer)
expect(c.join([a, b, c]), True, "another's learner makes room")
expect(a.names(), ["a", "b", "c"], "members")

# What is refused.
expect(other.join([other], "new", token="x"), True, "another cluster")
other.kill()
expect(b.remove(c), True, "c leaves")
c.wipe()
shutil.copytree(other.data(), c.data())
expect(c.join([a, b, c]), "EtcdForeignData", "data of another cluster")
assert os.path.isdir(f"{c.data()}/member"), "it was touched"
expect(c.join([c], "new"), "EtcdForeignData", "for a new cluster, too")
c.wipe()
expect(c.join([a, b, c]), True, "c joins")
c.kill()
expect(a.join([a, b]), False, "a goes on beside a dead one")
ghost.wipe()
expect(ghost.join([a, b, ghost]), "EtcdMemberInTheWay", "the dead one out before a new one in")
expect(a.remove(a), "InvalidVariables", "itself")
expect(a.remove(b), "QuorumRisk", "a healthy one beside a dead one")
expect(a.remove(c), True, "the dead one")
expect(etcd.Etcd(PKI, [a.client, b.client]).healthy(), True, "healthy")
