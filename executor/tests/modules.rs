//! Modules of the collection, run by Python as a machine would run them, with real etcd processes on this machine. What a machine
//! does for them (systemd) is a stand-in. etcd's programs are found in `CLUSTERWRIGHT_CACHE`, as `lab build` puts them there.

#[cfg(test)]
mod scripts {
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::{env, fs};

    /// Plays one script of `modules/`; it ends well or says what is wrong.
    fn play(script: &str) {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let place = tempfile::tempdir().unwrap();
        let output = Command::new("python3")
            .arg(here.join("tests/modules").join(script))
            .arg(place.path())
            .env("PYTHONPATH", here.join("ansible"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("ETCD_PROGRAMS", etcd())
            .output()
            .unwrap();
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        println!("{said}");
        assert!(output.status.success(), "{script}: {said}");
    }

    /// Where etcd's programs are: of the newest version that was built.
    fn etcd() -> PathBuf {
        let cache = env::var_os("CLUSTERWRIGHT_CACHE").map_or_else(
            || Path::new(&env::var_os("HOME").unwrap()).join(".cache/clusterwright"),
            PathBuf::from,
        );
        let versions = cache.join("programs/etcd");
        let mut found: Vec<_> = fs::read_dir(&versions)
            .unwrap_or_else(|_| panic!("{} is missing: run `lab build programs`", versions.display()))
            .map(|entry| entry.unwrap().path().join("bin"))
            .collect();
        found.sort();
        found.pop().unwrap()
    }

    #[test]
    fn kubeadms_lists_are_read_and_set_and_the_rest_stays() {
        play("kubeadm_config.py");
    }

    #[test]
    fn kubeadms_error_stands_before_all_else_that_it_says() {
        play("kubeadm_complaint.py");
    }

    #[test]
    fn a_machine_that_takes_sixteen_minutes_to_boot_is_rebooted_once() {
        play("reboot_mark.py");
    }

    #[test]
    fn the_bundle_comes_over_https_with_a_private_ca_and_logins_and_its_index_is_held_to_its_digest() {
        play("bundle_https.py");
    }

    #[test]
    fn a_file_of_others_is_replaced_whole_or_not_at_all() {
        play("hosts_file.py");
    }

    #[test]
    fn a_manifest_is_applied_whatever_an_autoscaler_does_with_the_fields_that_it_took_over() {
        play("manifest_ownership.py");
    }

    #[test]
    fn an_import_that_fails_leaves_no_lock_in_containerd() {
        play("images_import.py");
    }

    #[test]
    fn etcd_grows_from_one_to_three_and_back_under_a_writer_and_takes_up_what_was_cut_short() {
        play("etcd_members.py");
    }

    #[test]
    fn each_machine_says_how_its_member_is_and_which_others_answer() {
        play("etcd_look.py");
    }

    #[test]
    fn etcd_goes_on_from_one_survivor_only_when_its_majority_is_lost() {
        play("etcd_recovery.py");
    }
}
