//! The processes of a Pod, on whichever node of the metadata cluster: machines share the host's process tree.

use std::fs;

use super::Identity;

/// The processes of the Pod with this UID whose command line has `part` in it.
pub fn of_pod(uid: &str, part: &str) -> Vec<Identity> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            is_of_pod(&groups, uid) && command_line(*pid).contains(part)
        })
        .filter_map(Identity::read)
        .collect()
}

/// The words of a process's command line, with blanks between them; empty when it is gone.
pub fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned()
}

/// A Pod's control group has its UID in its name, with dashes or, under systemd, with underscores.
fn is_of_pod(groups: &str, uid: &str) -> bool {
    groups.contains(&format!("pod{uid}")) || groups.contains(&format!("pod{}", uid.replace('-', "_")))
}

#[cfg(test)]
mod tests {
    use super::is_of_pod;

    #[test]
    fn a_pod_is_known_by_its_control_group() {
        let groups = "3:cpu:/clusterwright-lab/metadata-pods/kubepods/besteffort/pod1a-2b/0123\n";
        assert!(is_of_pod(groups, "1a-2b"));
        assert!(is_of_pod("0::/kubepods.slice/kubepods-pod1a_2b.slice\n", "1a-2b"));
        assert!(!is_of_pod(groups, "1a-2c"));
    }
}
