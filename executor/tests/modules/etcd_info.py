"""Each machine says how its own member is, and who else answers."""

from etcd_world import Machine, expect

a, b, c = (Machine(name) for name in ("a", "b", "c"))
a.join([a], "new")
b.join([a, b])
c.join([a, b, c])


def look(machine):
    return machine.look((a, b, c))


def seen(machine):
    report = look(machine)
    return report["well"], report["wellPeers"], report["sickPeers"]


expect(seen(a), (True, ["b", "c"], []), "all are well")
expect(look(a)["memberID"], f"{a.etcd().list()[1]:x}", "its own ID")
assert look(a)["memberID"] != look(b)["memberID"]
seen_by_all = [look(machine) for machine in (a, b, c)]
expect(sorted(told["isLeader"] for told in seen_by_all), [False, False, True], "one leads")
expect({told["isLearner"] for told in seen_by_all}, {False}, "all vote")
assert all(told["version"].startswith("3.") and told["sizeBytes"] >= told["inUseBytes"] > 0 for told in seen_by_all), seen_by_all
assert all(told["raftTerm"] > 0 and told["appliedIndex"] > 0 for told in seen_by_all), seen_by_all
assert all(told["quotaBytes"] >= 2 * 1024**3 for told in seen_by_all), seen_by_all
expect([told["alarms"] for told in seen_by_all], [[], [], []], "no alarm")
c.kill()
expect(seen(a), (True, ["b"], ["c"]), "one is dead, as another sees it")
expect(seen(c), (False, ["a", "b"], []), "and as its own machine does")
assert "memberID" not in look(c) and look(c)["message"], "what is wrong is said"
b.kill()
expect(seen(a), (False, [], ["b", "c"]), "without a majority nobody is well")
