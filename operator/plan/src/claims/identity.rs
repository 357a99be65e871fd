//! Which machine a Host is: what is written beside the claim, so that a changed address leads no run to another one.

use crds::inputs::HostIdentity;
use crds::names::condition;
use crds::{Host, conditions};

/// What a probe found; none while no host key is known to be the machine's. Which of several pinned keys the machine
/// shows is ssh's choice: all of them are its own.
pub fn found(host: &Host) -> Option<HostIdentity> {
    let status = host.status.as_ref()?;
    if !conditions::is_true(&status.conditions, condition::HOST_KEY_VERIFIED) {
        return None;
    }
    let given = &host.spec.ssh.host_keys;
    let keys = if given.is_empty() { &status.host_keys } else { given };
    let without_comment = |key: &String| super::identities::without_comment(key).to_owned();
    let host_keys: Vec<String> = keys.iter().map(without_comment).collect();
    let machine_id = status.facts.as_ref().map(|facts| facts.machine_id.clone());
    (!host_keys.is_empty()).then(|| HostIdentity { host_keys, machine_id: machine_id.filter(|id| !id.is_empty()) })
}

/// What the Host has from its claim on. What is there already was of the same claim, or is what a person expects.
pub fn at_claim(host: &Host) -> Option<HostIdentity> {
    host.spec.identity.clone().or_else(|| found(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_is_pinned_is_the_machines_own() {
        let found_of = |ssh: &str, status: &str| {
            let yaml = format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: a}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: c}}, hostKeys: [{ssh}]}}}}, status: {{{status}}}}}"
            );
            found(&serde_yaml::from_str(&yaml).unwrap()).map(|identity| identity.host_keys)
        };
        let verified = |status: &str| {
            format!(
                "hostKeys: [ssh-rsa C], conditions: [{{type: HostKeyVerified, status: '{status}', reason: Pinned, message: so, lastTransitionTime: '2026-01-01T00:00:00Z'}}]"
            )
        };
        let pinned = "ssh-rsa A root@a, ssh-ed25519 B";
        assert_eq!(found_of(pinned, &verified("True")).unwrap(), ["ssh-rsa A", "ssh-ed25519 B"]);
        assert_eq!(found_of("", &verified("True")).unwrap(), ["ssh-rsa C"]);
        assert_eq!(found_of(pinned, &verified("False")), None);
    }
}
