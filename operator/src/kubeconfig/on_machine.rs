//! The administrator's kubeconfig of a machine's own cluster, as its file has it, made one that is used from elsewhere.

use http::Uri;
use kube::config::{Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};

use super::check::{Rejected, check, is_local};

/// What is made of the file.
#[derive(Debug)]
pub struct FromMachine {
    /// The kubeconfig, with its current context alone.
    pub text: String,
    /// The server of the file, where it is one of the machine alone: it is asked at the machine's address.
    pub server: Option<String>,
}

/// Takes the current context of a machine's kubeconfig. A server that is the machine itself is asked at `address`.
///
/// # Errors
/// It is none, or one that would run programs, read files, or trust anybody.
pub fn from_machine(text: &str, address: &str) -> Result<FromMachine, Rejected> {
    let reject = |why: &str| Rejected(why.to_owned());
    // The parser's message may quote the text, which holds keys: it is not passed on.
    let mut kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| reject("it is no kubeconfig in YAML"))?;
    let current = kubeconfig.current_context.clone().unwrap_or_default();
    kubeconfig.contexts.retain(|one: &NamedContext| one.name == current);
    let context = kubeconfig.contexts.first().and_then(|one| one.context.clone()).unwrap_or_default();
    kubeconfig.clusters.retain(|one: &NamedCluster| one.name == context.cluster);
    kubeconfig.auth_infos.retain(|one: &NamedAuthInfo| Some(&one.name) == context.user.as_ref());
    (kubeconfig.extensions, kubeconfig.preferences) = (None, None);
    let mut replaced = None;
    let clusters = kubeconfig.clusters.iter_mut().filter_map(|one| one.cluster.as_mut());
    for server in clusters.filter_map(|cluster| cluster.server.as_mut()) {
        if let Some(other) = elsewhere(server, address) {
            replaced = Some(std::mem::replace(server, other));
        }
    }
    let text = serde_yaml::to_string(&kubeconfig).map_err(|_| reject("it cannot be written down"))?;
    check(&text)?;
    Ok(FromMachine { text, server: replaced })
}

/// The same server at this address; none: it is not the machine itself.
fn elsewhere(server: &str, address: &str) -> Option<String> {
    let uri: Uri = server.parse().ok()?;
    if !is_local(uri.host()?) {
        return None;
    }
    let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}://{host}{port}", uri.scheme_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::from_machine;

    fn file(server: &str, user: Value) -> String {
        let file = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "default", "preferences": {},
            "clusters": [
                {"name": "default", "cluster": {"server": server}},
                {"name": "other", "cluster": {"server": "https://192.0.2.9:6443", "insecure-skip-tls-verify": true}},
            ],
            "users": [{"name": "default", "user": user}, {"name": "other", "user": {"password": "hunter2"}}],
            "contexts": [
                {"name": "default", "context": {"cluster": "default", "user": "default"}},
                {"name": "other", "context": {"cluster": "other", "user": "other"}},
            ],
        });
        serde_yaml::to_string(&file).unwrap()
    }

    #[test]
    fn a_server_of_the_machine_alone_is_asked_at_the_hosts_address_and_any_other_as_the_file_says() {
        let check = |server: &str, address: &str, expected: &str| {
            let made = from_machine(&file(server, json!({"token": "canary"})), address).unwrap();
            let kubeconfig: Value = serde_yaml::from_str(&made.text).unwrap();
            assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], expected);
            assert_eq!(made.server.as_deref(), Some(server).filter(|_| server != expected));
            assert_eq!(kubeconfig["users"], json!([{"name": "default", "user": {"token": "canary"}}]), "no other user");
            assert_eq!(kubeconfig["clusters"].as_array().unwrap().len(), 1);
        };
        check("https://127.0.0.1:6443", "192.0.2.7", "https://192.0.2.7:6443");
        check("https://localhost:6443", "m.example", "https://m.example:6443");
        check("https://[::1]:6444", "2001:db8::7", "https://[2001:db8::7]:6444");
        check("https://0.0.0.0", "192.0.2.7", "https://192.0.2.7");
        check("https://10.0.0.9:6443", "192.0.2.7", "https://10.0.0.9:6443");
    }

    #[test]
    fn what_is_no_kubeconfig_or_would_run_or_read_something_is_refused_and_nothing_of_it_is_said() {
        let check = |text: &str, expected: &str| {
            let why = from_machine(text, "192.0.2.7").unwrap_err().to_string();
            assert!(why.contains(expected) && !why.contains("canary"), "{why}");
        };
        let server = "https://127.0.0.1:6443";
        check("canary: [", "no kubeconfig");
        check("canary: 1", "current-context names no context");
        check(&file(server, json!({"exec": {"command": "canary"}})), "exec is not allowed");
        check(&file(server, json!({"auth-provider": {"name": "canary", "config": {}}})), "auth-provider");
        check(&file(server, json!({"client-certificate": "/canary", "client-key": "/canary"})), "client-certificate");
        check(&file("http://127.0.0.1:8080", json!({"token": "canary"})), "not https");
    }
}
