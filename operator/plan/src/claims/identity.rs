//! Which machine a Host is: what is written beside the claim, so that a changed address leads no run to another one.

use crds::inputs::HostIdentity;
use crds::names::condition;
use crds::{Host, conditions};

/// What a probe found; none while no host key is known to be the machine's. Of several keys that are pinned it is the first.
pub fn found(host: &Host) -> Option<HostIdentity> {
    let status = host.status.as_ref()?;
    if !conditions::is_true(&status.conditions, condition::HOST_KEY_VERIFIED) {
        return None;
    }
    let given = host.spec.ssh.host_keys.first().map(String::as_str);
    let key = given.or(status.host_keys.first().map(String::as_str))?;
    let machine_id = status.facts.as_ref().map(|facts| facts.machine_id.clone());
    Some(HostIdentity {
        host_key: super::identities::without_comment(key).to_owned(),
        machine_id: machine_id.filter(|id| !id.is_empty()),
    })
}

/// What the Host has from its claim on. What is there already was of the same claim, or is what a person expects.
pub fn at_claim(host: &Host) -> Option<HostIdentity> {
    host.spec.identity.clone().or_else(|| found(host))
}
