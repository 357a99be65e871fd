//! What everything says of itself, and what was done last, for whoever has to understand a failure.

use std::fmt::Write;

use super::world::World;

impl World {
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (time, entry) in &self.log {
            let entry: String = format!("{entry:?}").chars().take(900).collect();
            writeln!(text, "{time} {entry}").unwrap();
        }
        self.report_clusters(&mut text);
        for request in &self.requests {
            let (name, status) = (&request.metadata.name, request.status.clone().unwrap_or_default());
            writeln!(text, "request {name:?} {:?} {:?}: {:?}", request.spec, status.answer, status.message).unwrap();
        }
        for machine in &self.machines {
            let (name, status) = (&machine.metadata.name, machine.status.as_ref());
            let message = status.and_then(|status| status.message.as_ref());
            let (host, deleted) = (&machine.spec.host_ref, &machine.metadata.deletion_timestamp);
            writeln!(text, "machine {name:?} on {host:?} deleted {deleted:?}: {message:?}").unwrap();
        }
        for host in &self.hosts {
            let status = host.status.clone().unwrap_or_default();
            let (name, claim) = (&host.metadata.name, host.spec.claim_ref.as_ref().map(|claim| &claim.name));
            writeln!(text, "host {name:?} {:?} claimed {claim:?}: {:?}", status.phase, status.message).unwrap();
        }
        for run in self.runs.iter().filter(|run| run.spec.cluster_name.is_some()) {
            let (name, spec, status) = (&run.metadata.name, &run.spec, run.status.clone().unwrap_or_default());
            let end = (status.phase, status.message);
            writeln!(text, "run {name:?} {:?} {:?}: {end:?}", spec.intent, spec.hosts).unwrap();
        }
        let dead = self.silent.intersection(&self.silent_nodes);
        let dead: Vec<&String> = dead.collect();
        writeln!(text, "dead {dead:?} sick {:?} dirty {:?}", self.sick_nodes, self.dirty).unwrap();
        writeln!(text, "failing {:?} returned {:?} guards {:?}", self.always_fails, self.returned, self.guards)
            .unwrap();
        text
    }

    fn report_clusters(&self, text: &mut String) {
        for cluster in &self.clusters {
            let status = cluster.status().cloned().unwrap_or_default();
            writeln!(text, "cluster {}: {:?}", cluster.name(), status.message).unwrap();
            for stated in &status.conditions {
                writeln!(text, "  {} {} {} {}", stated.type_, stated.status, stated.reason, stated.message).unwrap();
            }
            writeln!(text, "  repairs {:?}\n  operations {:?}", status.repairs, status.operations).unwrap();
            let (members, nodes, cut) = (&cluster.voters, &cluster.nodes, cluster.cut);
            writeln!(text, "  members {members:?} nodes {nodes:?} cut {cut}").unwrap();
        }
        for set in &self.sets {
            let message = set.status.as_ref().and_then(|status| status.message.as_ref());
            writeln!(text, "set {:?} {}: {message:?}", set.metadata.name, set.spec.replicas).unwrap();
        }
    }
}
