//! Commands over the connection that a run has to a host.

use crate::ssh::Route;

/// The words of a command that runs `remote` on a host, over the connection that Ansible has to it, or over one of its
/// own that ends with it.
pub fn over_ssh(route: &Route, remote: &str) -> Vec<String> {
    let mut words = ssh(route);
    words.extend(["-T", "host", remote].map(str::to_owned));
    words
}

/// The words of a command that connects to an address of a host, over the connection that Ansible has to it, or over
/// one of its own that ends with it. `remote` is what is run there; without it sshd connects, if it allows that.
pub fn connecting(route: &Route, remote: Option<&str>, address: &str) -> Vec<String> {
    let Some(remote) = remote else {
        let mut words = ssh(route);
        words.extend(["-W", address, "host"].map(str::to_owned));
        return words;
    };
    over_ssh(route, remote)
}

/// Up to the host.
fn ssh(route: &Route) -> Vec<String> {
    let password = route.password.as_ref().map(|file| vec!["sshpass".into(), "-f".into(), file.display().to_string()]);
    let mut words: Vec<String> = password.unwrap_or_default();
    words.extend(["ssh", "-F"].map(str::to_owned));
    words.push(route.config.display().to_string());
    let control = format!("ControlPath={}", route.control.display());
    // Not a master: it would hold this command's streams.
    for option in [
        &control,
        "ControlMaster=no",
        "ServerAliveInterval=10",
        "ServerAliveCountMax=3",
        "PreferredAuthentications=publickey,password",
    ] {
        words.extend(["-o".to_owned(), option.to_owned()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::connecting;
    use crate::guard::call::Root;
    use crate::ssh::Route;

    #[test]
    fn a_member_is_reached_as_ansible_reaches_its_machine() {
        let mut route =
            Route { config: "/p/ssh/config/m1".into(), control: "/p/c/0".into(), password: None, root: Root::Already };
        let words = connecting(&route, Some("'/g/shell' -c 'x'"), "127.0.0.1:2379").join(" ");
        assert!(words.starts_with("ssh -F /p/ssh/config/m1 -o ControlPath=/p/c/0 -o ControlMaster=no "), "{words}");
        assert!(words.ends_with(" -T host '/g/shell' -c 'x'"), "{words}");
        route.password = Some("/p/ssh/passwords/x".into());
        let words = connecting(&route, None, "127.0.0.1:2379").join(" ");
        assert!(words.starts_with("sshpass -f /p/ssh/passwords/x ssh -F "), "{words}");
        assert!(words.ends_with(" -W 127.0.0.1:2379 host"), "{words}");
    }
}
