//! Checks a model before anything is made of it: each name, address, key and variable must keep its meaning in an
//! inventory, an SSH configuration and a file name. The API's schema has refused most of it before; this check is the
//! last.

use std::collections::{BTreeMap, BTreeSet};

use crds::inputs::{
    CredentialKind, HostInputs, RunInputs, VARIABLE_DEPTH_LIMIT, depth, is_reserved_variable, is_variable_name,
    secret_key,
};
use crds::playbook_run::check_steps;
use crds::step::{CustomStep, Step};
use serde_json::Value;

use super::error::InputsError;
use crate::secrets::{Secrets, is_name, without_newline};

const HOSTS_LIMIT: usize = 500;
const BASTIONS_LIMIT: usize = 4;

/// Names that are groups, or that Ansible knows.
const NOT_HOSTS: &[&str] = &["localhost", "all", "ungrouped", "etcd"];

pub(super) fn check(model: &RunInputs, secrets: &Secrets) -> Result<(), InputsError> {
    let least = usize::from(!super::backup::needs_no_machine(model));
    if model.hosts.len() < least || model.hosts.len() > HOSTS_LIMIT {
        return invalid("hosts", format!("{} hosts: {least} to {HOSTS_LIMIT} are allowed", model.hosts.len()));
    }
    if model.steps.is_empty() {
        return invalid("steps", "at least one step is needed");
    }
    let distinct: BTreeSet<_> = model.steps.iter().collect();
    if distinct.len() != model.steps.len() {
        return invalid("steps", "each step may stand once");
    }
    check_steps(model.intent, &model.steps)?;
    check_vars("vars", &model.vars)?;
    check_playbooks(model)?;
    for (name, host) in &model.hosts {
        let at = format!("hosts.{}", shown(name));
        if !is_label(name) || NOT_HOSTS.contains(&name.as_str()) {
            return refused(
                &at,
                name,
                "a host's name is an RFC 1123 label (a-z, 0-9, -; at most 63) that has no meaning of its own in \
                 inventories: give the Host another name",
            );
        }
        check_vars(&format!("{at}.vars"), &host.vars)?;
        check_host(&at, host, name, secrets, 0)?;
    }
    Ok(())
}

/// Each step of the user's has its playbook, and each playbook its step.
fn check_playbooks(model: &RunInputs) -> Result<(), InputsError> {
    let custom = model.steps.iter().filter_map(Step::custom);
    let named: BTreeSet<&str> = custom.map(CustomStep::playbook).collect();
    if let Some(name) = named.iter().find(|name| !model.playbooks.contains_key(**name)) {
        return invalid(&format!("playbooks.{name}"), format!("step custom-{name} has no playbook"));
    }
    for (name, playbook) in &model.playbooks {
        let at = format!("playbooks.{}", shown(name));
        if !named.contains(name.as_str()) {
            return invalid(&at, "there is no step of this playbook");
        }
        check_vars(&format!("{at}.vars"), &playbook.vars)?;
    }
    Ok(())
}

fn check_host(at: &str, host: &HostInputs, name: &str, secrets: &Secrets, bastions: usize) -> Result<(), InputsError> {
    check_login(at, host)?;
    check_credential(at, host, name, secrets)?;
    check_host_keys(at, host)?;
    let Some(bastion) = &host.bastion else {
        return Ok(());
    };
    if bastions == BASTIONS_LIMIT {
        return invalid(&format!("{at}.bastion"), format!("at most {BASTIONS_LIMIT} bastions in a row are allowed"));
    }
    check_host(&format!("{at}.bastion"), bastion, name, secrets, bastions + 1)
}

fn check_login(at: &str, host: &HostInputs) -> Result<(), InputsError> {
    if !is_address(&host.address) {
        return refused(
            &format!("{at}.address"),
            &host.address,
            "an IP address or a DNS name in lower case is needed, without a port: correct the Host's spec.address",
        );
    }
    if host.port == 0 {
        return refused(&format!("{at}.port"), "0", "1 to 65535 are allowed: correct the Host's spec.ssh.port");
    }
    if !is_user(&host.user) {
        return refused(
            &format!("{at}.user"),
            &host.user,
            "a user's name matches ^[a-z_][-a-z0-9_]*$, at most 32 characters: correct the Host's spec.ssh.user",
        );
    }
    Ok(())
}

fn check_credential(at: &str, host: &HostInputs, name: &str, secrets: &Secrets) -> Result<(), InputsError> {
    let key = secret_key(host.credential_kind, &host.credential);
    if !is_name(&host.credential) || !is_name(&key) {
        return refused(
            &format!("{at}.credential"),
            &host.credential,
            "the name of a Secret is needed: correct the Host's spec.ssh.credentialsRef",
        );
    }
    let credential = secrets.get(&key).map(without_newline).unwrap_or_default();
    if credential.is_empty() {
        return Err(InputsError::SecretMissing { host: name.to_owned(), key });
    }
    if host.credential_kind == CredentialKind::Password && !is_password(credential) {
        return invalid(&format!("{at}.credential"), "a password is one line of UTF-8 text: correct the Secret");
    }
    Ok(())
}

fn check_host_keys(at: &str, host: &HostInputs) -> Result<(), InputsError> {
    if let Some(index) = host.host_keys.iter().position(|key| !is_host_key(key)) {
        return refused(
            &format!("{at}.hostKeys[{index}]"),
            host.host_keys.get(index).map_or("", String::as_str),
            "TYPE BASE64 as in known_hosts is needed, without a name (ssh-keyscan ADDRESS): correct the Host's \
             spec.ssh.hostKeys",
        );
    }
    let own = host.identity.as_ref().map(|identity| identity.host_keys.as_slice());
    let own = own.unwrap_or_default().iter().enumerate();
    if let Some((index, key)) = own.into_iter().find(|(_, key)| !is_host_key(key)) {
        return refused(
            &format!("{at}.identity.hostKeys[{index}]"),
            key,
            "TYPE BASE64 as in known_hosts is needed, without a name: correct the Host's spec.identity.hostKeys, or remove \
             spec.identity",
        );
    }
    Ok(())
}

fn check_vars(at: &str, vars: &BTreeMap<String, Value>) -> Result<(), InputsError> {
    for (name, value) in vars {
        let at = format!("{at}.{}", shown(name));
        if is_reserved_variable(name) {
            return Err(InputsError::ReservedVariable { at });
        }
        if !is_variable_name(name) {
            return refused(
                &at,
                name,
                "a variable's name is letters, digits and _, at most 128, and begins with no digit: choose another",
            );
        }
        let depth = depth(value);
        if depth > VARIABLE_DEPTH_LIMIT {
            return invalid(
                &at,
                format!("nested {depth} levels deep: {VARIABLE_DEPTH_LIMIT} are allowed: give it as text, or flatter"),
            );
        }
    }
    Ok(())
}

fn is_label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len()) && name.chars().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

fn is_address(address: &str) -> bool {
    address.parse::<std::net::IpAddr>().is_ok() || (address.len() <= 253 && address.split('.').all(is_label))
}

fn is_user(user: &str) -> bool {
    (1..=32).contains(&user.len())
        && user.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && user.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
}

fn is_password(content: &[u8]) -> bool {
    std::str::from_utf8(content).is_ok_and(|text| !text.chars().any(char::is_control))
}

fn is_host_key(key: &str) -> bool {
    const TYPES: [&str; 5] =
        ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"];
    let mut words = key.split(' ');
    let kind = words.next().is_some_and(|kind| TYPES.contains(&kind));
    let material = words.next().is_some_and(|text| {
        let base64 = text.trim_end_matches('=');
        !base64.is_empty() && base64.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/'))
    });
    kind && material && key.len() <= 1400 && !key.chars().any(char::is_control)
}

/// A value as a message shows it.
fn shown(value: &str) -> String {
    crate::sanitize::clean(value, 64)
}

fn refused<T>(at: &str, given: &str, needed: &str) -> Result<T, InputsError> {
    invalid(at, format!("\"{}\" is refused: {needed}", shown(given)))
}

fn invalid<T>(at: &str, problem: impl Into<String>) -> Result<T, InputsError> {
    Err(InputsError::Invalid { at: at.to_owned(), problem: problem.into() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::check;
    use crate::secrets::Secrets;

    fn model() -> Value {
        json!({"namespace": "fleet", "run": "r", "intent": "Join", "steps": ["prepare", "node"], "vars": {"kube_version": "1.35.4"},
            "hosts": {"w1": {"address": "10.0.0.1", "port": 22, "user": "root", "useSudo": false, "credential": "fleet",
                "credentialKind": "SshKey", "hostKeys": ["ssh-ed25519 AAAA"], "hostKeyPolicy": "Strict",
                "groups": ["kube_node"], "vars": {"node_labels": {"pool": "general"}}}}})
    }

    /// Puts a value at a pointer of a good model; the answer is the reason and the path, or "".
    fn refused(pointer: &str, value: Value) -> String {
        let mut model = model();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        model.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(key.to_owned(), value);
        let secrets: Secrets =
            [("ssh-privatekey.fleet".to_owned(), b"key".to_vec()), ("ssh-privatekey.empty".to_owned(), b"\n".to_vec())]
                .into_iter()
                .collect();
        match check(&serde_json::from_value(model).unwrap(), &secrets) {
            Ok(()) => String::new(),
            Err(error) => {
                let text = error.to_string();
                format!("{} {}", error.reason(), text.split(": ").next().unwrap_or_default())
            }
        }
    }

    #[test]
    fn good_inputs_pass() {
        let check = |pointer: &str, value: Value| assert_eq!(refused(pointer, value), "", "{pointer}");
        check("/vars/kube_version", json!("1.35.4"));
        check("/vars/evil", json!("{{ lookup('pipe','id') }}"));
        check("/vars/nested", json!({"__ansible_unsafe": "x", "!vault": "y", "a b": ["$(id)"]}));
        check("/hosts/w1/address", json!("2001:db8::1"));
        check("/hosts/w1/address", json!("w1.example.com"));
        check("/hosts/w1/hostKeys", json!(["ssh-rsa AAAA+/== root@w1", "ecdsa-sha2-nistp256 AAAA"]));
    }

    fn check_refused(pointer: &str, value: Value, expected: &str) {
        assert_eq!(refused(pointer, value.clone()), expected, "{pointer} {value}");
    }

    #[test]
    fn names_of_hosts_that_change_meaning_are_refused_with_their_path() {
        let host = model()["hosts"]["w1"].clone();
        for name in
            ["n[1:200000]", "a,b", "all", "localhost", "etcd", "*", "!x", "-o", "A", "a.b", "a b", "é", "", "a\u{1b}"]
        {
            let name_shown = name.replace('\u{1b}', "");
            check_refused(&format!("/hosts/{name}"), host.clone(), &format!("InputsInvalid hosts.{name_shown}"));
        }
        check_refused("/hosts", json!({}), "InputsInvalid hosts");
    }

    #[test]
    fn values_of_hosts_that_change_meaning_are_refused_with_their_path() {
        for address in ["-oProxyCommand=x", "10.0.0.1:22", "a b", "", "a\nb", "%h", "A.example"] {
            check_refused("/hosts/w1/address", json!(address), "InputsInvalid hosts.w1.address");
        }
        for user in ["-l", "root x", "Root", "", "a\n"] {
            check_refused("/hosts/w1/user", json!(user), "InputsInvalid hosts.w1.user");
        }
        for key in
            ["ssh-ed25519", "ssh-ed25519 A\nhost ssh-rsa B", "ssh-dss AAAA", "* ssh-ed25519 AAAA", "ssh-rsa ===="]
        {
            check_refused("/hosts/w1/hostKeys", json!([key]), "InputsInvalid hosts.w1.hostKeys[0]");
        }
        check_refused("/hosts/w1/port", json!(0), "InputsInvalid hosts.w1.port");
        check_refused("/hosts/w1/credential", json!("../x"), "InputsInvalid hosts.w1.credential");
        check_refused("/hosts/w1/credential", json!("other"), "SecretMissing host w1");
        check_refused("/hosts/w1/credential", json!("empty"), "SecretMissing host w1");
    }

    #[test]
    fn steps_and_playbooks_that_do_not_belong_together_are_refused_with_their_path() {
        check_refused("/steps", json!(["node", "node"]), "InputsInvalid steps");
        check_refused("/steps", json!([]), "InputsInvalid steps");
        check_refused("/steps", json!(["custom-x"]), "InputsInvalid playbooks.x");
        check_refused("/playbooks", json!({"x": {"content": "[]"}}), "InputsInvalid playbooks.x");
        check_refused("/playbooks", json!({"../../etc/x": {"content": "[]"}}), "InputsInvalid playbooks.../../etc/x");
    }

    #[test]
    fn variables_that_change_meaning_are_refused_with_their_path() {
        for name in ["ansible_connection", "ansible_become_password", "hostvars", "environment", "secrets_dir"] {
            check_refused(&format!("/vars/{name}"), json!("x"), &format!("ReservedVariable vars.{name}"));
            check_refused(
                &format!("/hosts/w1/vars/{name}"),
                json!(1),
                &format!("ReservedVariable hosts.w1.vars.{name}"),
            );
        }
        for name in ["a-b", "1a", "a b", "", "{{x}}"] {
            check_refused(&format!("/vars/{name}"), json!("x"), &format!("InputsInvalid vars.{name}"));
        }
        let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
        check_refused("/vars/deep", deep, "InputsInvalid vars.deep");
    }

    #[test]
    fn steps_that_the_intent_does_not_have_are_refused_whoever_wrote_the_model() {
        let refusal = |intent: &str, step: &str| {
            let mut model = model();
            model["intent"] = json!(intent);
            model["steps"] = json!([step]);
            let secrets = [("ssh-privatekey.fleet".to_owned(), b"key".to_vec())];
            let secrets: Secrets = secrets.into_iter().collect();
            let error = check(&serde_json::from_value(model).unwrap(), &secrets).unwrap_err();
            assert_eq!(error.reason(), "StepNotAllowed", "{intent} {step}");
            error.to_string()
        };
        assert_eq!(
            refusal("Probe", "reset"),
            "steps: step reset is not allowed in a run of intent Probe; allowed are: probe-host, probe-etcd, probe-certificates, probe-karmada, read-kubeconfig"
        );
        refusal("Probe", "prepare");
        refusal("Custom", "reset");
        refusal("Custom", "recover-etcd");
        refusal("Upgrade", "prepare");
    }

    #[test]
    fn a_chain_of_bastions_has_an_end() {
        let mut chain = model()["hosts"]["w1"].clone();
        for _ in 0..6 {
            let mut host = model()["hosts"]["w1"].clone();
            host["bastion"] = chain;
            chain = host;
        }
        assert!(refused("/hosts/w1", chain).starts_with("InputsInvalid hosts.w1.bastion"));
    }
}
