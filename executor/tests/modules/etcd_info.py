"""Each machine says how its own member is, and who else answers."""

from ansible_collections.clusterwright.cluster.plugins.modules import etcd_info
from etcd_world import PKI, Machine, expect

a, b, c = (Machine(name) for name in ("a", "b", "c"))
a.join([a], "new")
b.join([a, b])
c.join([a, b, c])


def look(machine):
    """What a look from the machine reports; it is never a failure."""
    etcd_info.LOCAL = machine.client
    members = [{"host": other.name, **other.member()} for other in (a, b, c)]
    params = {"name": machine.name, "members": members, "pki_directory": PKI}
    result = etcd_info.work(type("Call", (), {"params": params, "check_mode": False}))
    assert result["changed"] is False
    return result["clusterwright"]


def seen(machine):
    report = look(machine)
    return report["well"], report["wellPeers"], report["sickPeers"]


expect(seen(a), (True, ["b", "c"], []), "all are well")
expect(look(a)["memberID"], f"{a.etcd().list()[1]:x}", "its own ID")
assert look(a)["memberID"] != look(b)["memberID"]
c.kill()
expect(seen(a), (True, ["b"], ["c"]), "one is dead, as another sees it")
expect(seen(c), (False, ["a", "b"], []), "and as its own machine does")
assert "memberID" not in look(c) and look(c)["message"], "what is wrong is said"
b.kill()
expect(seen(a), (False, [], ["b", "c"]), "without a majority nobody is well")
