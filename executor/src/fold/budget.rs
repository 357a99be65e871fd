//! Keeps a status of many hosts below what the API server stores: details go before facts, facts before
//! failures.

use crds::inputs::Severity;
use crds::playbook_run::HostResult;

use crate::sanitize::cut;

/// Bytes of JSON for all hosts. etcd takes 1.5 MiB a request, and the object has other parts.
const BUDGET: usize = 600 * 1024;

pub(super) fn fit(mut hosts: Vec<HostResult>) -> Vec<HostResult> {
    let savings: [fn(&mut HostResult); 4] = [
        |host| host.findings.retain(|finding| finding.severity == Severity::Error),
        |host| {
            host.findings.truncate(4);
            host.findings.iter_mut().for_each(|finding| finding.message = cut(&finding.message, 160));
            host.leftovers.truncate(4);
            for message in host.parts.iter_mut().filter_map(|part| part.message.as_mut()) {
                *message = cut(message, 160);
            }
            for why in host.parts.iter_mut().flat_map(|part| part.members.values_mut()) {
                *why = cut(why, 40);
            }
            host.differences.iter_mut().for_each(|difference| difference.message = cut(&difference.message, 160));
        },
        |host| {
            if let Some(failure) = &mut host.failure {
                failure.message = cut(&failure.message, 200);
                failure.task = cut(&failure.task, 80);
            }
        },
        |host| {
            host.findings.clear();
            host.leftovers.clear();
            host.parts.iter_mut().for_each(|part| part.message = None);
            // What nobody knows to be there is brought once more.
            host.brought.clear();
        },
    ];
    for save in savings {
        if size(&hosts) <= BUDGET {
            break;
        }
        hosts.iter_mut().for_each(save);
    }
    hosts
}

fn size(hosts: &[HostResult]) -> usize {
    serde_json::to_vec(hosts).map_or(usize::MAX, |text| text.len())
}
