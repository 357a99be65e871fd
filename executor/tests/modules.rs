//! Modules of the collection, run by Python as a machine would run them, with real etcd processes on this machine. What
//! a machine does for them (systemd) is a stand-in. The programs of etcd and Kubernetes are found in
//! `CLUSTERWRIGHT_CACHE`, as `lab build` puts them there.

#[cfg(test)]
mod scripts {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::{Mutex, PoisonError};

    use lab::cache::Cache;
    use lab::programs::{Programs, component};

    /// Loop devices are the kernel's: a reset or a preflight in one script's machine would take those of another for
    /// its own.
    static LOOP_DEVICES: Mutex<()> = Mutex::new(());

    /// Plays a script that looks for loop devices.
    fn play_with_loop_devices(script: &str) {
        let _alone = LOOP_DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        play(script);
    }

    /// The root of a machine of the lab with the distribution of this one, for the programs that it has more; empty:
    /// none was made here.
    fn machine_image() -> String {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")).unwrap_or("none");
        let prefix = format!("machine-{codename}-");
        let images = fs::read_dir(Cache::from_env().rootfs()).into_iter().flatten().flatten().map(|entry| entry.path());
        let has_name =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
        let image = images.filter(has_name).find(|path| path.join("usr/sbin/haproxy").is_file());
        image.map(|path| path.display().to_string()).unwrap_or_default()
    }

    /// Plays one script of `modules/`; it ends well or says what is wrong. Gives the directory that it was given.
    fn play(script: &str) -> tempfile::TempDir {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let place = tempfile::tempdir().unwrap();
        let output = Command::new("python3")
            .arg(here.join("tests/modules").join(script))
            .arg(place.path())
            .env("PYTHONPATH", here.join("ansible"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("ETCD_PROGRAMS", programs("etcd"))
            .env("KUBERNETES_PROGRAMS", programs("kubernetes"))
            .env("HAPROXY_ROOT", machine_image())
            .output()
            .unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        println!("{said}");
        assert!(output.status.success(), "{script}: {said}");
        place
    }

    /// Where the programs of a component are: of the lab's own version, whatever else was built.
    fn programs(name: &str) -> PathBuf {
        Programs::from_env(&Cache::from_env()).bin(component(name).unwrap())
    }

    #[test]
    fn kubeadms_lists_are_read_and_set_and_the_rest_stays() {
        play("kubeadm_config.py");
    }

    #[test]
    fn the_kubelet_is_restarted_once_for_each_static_pod_that_it_holds_back() {
        play("prompt_start.py");
    }

    #[test]
    fn names_that_are_given_come_into_the_api_servers_certificate_and_those_taken_back_leave_it() {
        play("apiserver_names.py");
    }

    #[test]
    fn pods_with_an_address_of_another_nodes_range_are_ended_and_no_others() {
        play("pod_addresses.py");
    }

    #[test]
    fn an_external_etcd_is_reached_believed_well_and_nobody_elses_before_a_cluster_uses_it() {
        play("external_etcd.py");
    }

    #[test]
    fn a_service_or_pod_address_without_an_endpoint_is_rejected_on_the_node() {
        play("bridge_rejects.py");
    }

    #[test]
    fn who_holds_an_endpoints_address_is_named_as_a_host() {
        play("address_holder.py");
    }

    #[test]
    fn a_join_proves_the_machine_that_joins_and_reports_what_is_sick_elsewhere() {
        play("smoke_join.py");
    }

    #[test]
    fn a_worker_that_joins_proves_itself_and_a_fault_elsewhere_does_not_fail_its_join() {
        play("worker_join.py");
    }

    #[test]
    fn a_workers_kubelet_finds_its_directory_of_static_pods_and_a_reset_removes_a_smoke_test_that_was_cut_off() {
        play_with_loop_devices("worker_manifests.py");
    }

    #[test]
    fn a_machine_is_upgraded_by_the_right_command_of_kubeadms_once_and_no_kubelet_is_newer_than_its_api_server() {
        play("kubeadm_upgrade.py");
    }

    #[test]
    fn kubeadm_takes_our_configuration_of_an_upgrade_and_leaves_coredns_out() {
        play("kubeadm_upgrade_dry.py");
    }

    #[test]
    fn flags_and_files_of_a_control_plane_are_proved_or_put_back_wherever_the_attempt_is_cut_off() {
        play("control_plane_configuration.py");
    }

    #[test]
    fn flags_that_are_edited_are_those_that_kubeadm_makes_of_the_same_configuration() {
        play("control_plane_configuration_dry.py");
    }

    #[test]
    fn a_control_plane_is_waited_for_until_its_new_kubelet_has_started_it_anew() {
        play("kubeadm_quiet.py");
    }

    #[test]
    fn a_kubelet_that_does_not_work_with_its_configuration_has_the_former_one_again() {
        play("kubelet_configuration.py");
    }

    #[test]
    fn what_is_configured_of_the_kernel_is_set_and_what_is_taken_back_is_as_it_was_before() {
        play("configured_kernel.py");
    }

    #[test]
    fn authorities_are_trusted_for_as_long_as_they_are_configured_and_containerd_reads_them() {
        play("trusted_authorities.py");
    }

    #[test]
    fn packages_are_found_and_installed_by_dpkg_and_apt_or_by_rpm_and_dnf() {
        play("os_packages.py");
    }

    #[test]
    fn network_manager_leaves_interfaces_of_pods_alone_until_a_reset() {
        play_with_loop_devices("network_manager.py");
    }

    #[test]
    fn files_have_the_labels_of_selinuxs_policy_and_the_balancer_is_let_to_its_ports_until_a_reset() {
        play_with_loop_devices("selinux_labels.py");
    }

    #[test]
    fn containerd_labels_containers_and_kubernetes_own_pods_read_the_machine_where_selinux_is_at_work() {
        play("selinux_containers.py");
    }

    #[test]
    fn services_of_the_machine_have_what_is_configured_and_files_of_others_stay() {
        play("machine_services.py");
    }

    #[test]
    fn the_mode_of_kube_proxy_is_brought_and_taken_back_wherever_the_attempt_is_cut_off() {
        play("kube_proxy_mode.py");
    }

    #[test]
    fn a_cluster_without_kube_proxy_gets_none_and_waits_for_none() {
        play("kube_proxy_none.py");
    }

    #[test]
    fn containerd_asks_mirrors_with_the_login_and_the_authority_that_are_configured() {
        play("registry_mirrors.py");
    }

    #[test]
    fn administrators_keys_let_them_in_while_they_are_configured_and_the_runs_own_stays() {
        play("authorized_keys.py");
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
    fn without_a_bundle_everything_comes_from_upstream_by_a_digest_and_through_the_proxy() {
        play("upstream_direct.py");
    }

    #[test]
    fn a_component_keeps_its_version_and_its_file_whatever_a_newer_bundle_has() {
        play("component_versions.py");
    }

    #[test]
    fn a_run_reads_the_bundles_index_once_on_a_machine_and_keeps_no_login() {
        play("bundle_index_cache.py");
    }

    #[test]
    fn machines_report_the_components_that_they_resolved_and_those_that_they_have() {
        play("component_reports.py");
    }

    #[test]
    fn every_task_that_reads_the_bundle_is_given_all_of_it() {
        play("bundle_tasks.py");
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
    fn programs_lie_ready_before_the_run_that_installs_them_and_nothing_is_switched_until_then() {
        play("prefetch.py");
    }

    #[test]
    fn what_an_upgrade_needs_is_prefetched_on_all_machines_and_its_steps_download_nothing() {
        play("upgrade_plays.py");
    }

    #[test]
    fn what_stands_against_an_upgrade_is_found_at_once_and_names_what_to_do() {
        play("preflight_upgrade.py");
    }

    #[test]
    fn an_import_that_fails_leaves_no_lock_in_containerd() {
        play("images_import.py");
    }

    #[test]
    fn a_machine_that_was_given_up_and_is_back_serves_nothing_and_keeps_its_data() {
        play("fence.py");
    }

    #[test]
    fn networkd_learns_what_was_written_and_the_guard_is_told_what_to_keep_until_a_reset_begins() {
        let place = play("pod_network.py");
        let text = fs::read(place.path().join("wanted.json")).unwrap();
        let wanted: guard::network::Wanted = serde_json::from_slice(&text).unwrap();
        assert_eq!(wanted.pods.to_string(), "10.220.0.0/16");
        assert_eq!(wanted.gateway.to_string(), "10.220.3.1/24");
        assert_eq!((wanted.protocol, wanted.sysctl.len(), wanted.files.len()), (77, 4, 1));
    }

    #[test]
    fn a_node_is_cut_off_when_most_peers_or_the_dns_are_silent_for_three_rounds_and_not_after_one_answer() {
        play("network_probe.py");
    }

    #[test]
    fn a_machine_that_is_cut_off_says_so_in_its_node_and_says_when_it_is_not_any_more() {
        play("network_probe_live.py");
    }

    #[test]
    fn the_probe_of_the_pod_network_is_a_service_that_a_fence_stops_and_a_reset_removes() {
        play_with_loop_devices("network_probe_service.py");
    }

    #[test]
    fn a_reset_deletes_nothing_below_a_mount_or_behind_a_link_that_was_not_recorded() {
        play_with_loop_devices("reset_mounts.py");
    }

    #[test]
    fn another_container_runtime_is_refused_and_kept_and_a_machine_whose_pods_run_is_not_clean() {
        play_with_loop_devices("foreign_runtime.py");
    }

    #[test]
    fn a_reset_leaves_nothing_of_a_network_plugin_and_preflight_accepts_its_own_clusters_routes() {
        play_with_loop_devices("network_remains.py");
    }

    #[test]
    fn preflight_finds_what_would_undo_the_steps_and_reservations_follow_the_machines_size() {
        play_with_loop_devices("preflight_host.py");
    }

    #[test]
    fn a_restart_that_a_run_was_cut_short_before_is_made_by_the_next_one() {
        play("restarts_owed.py");
    }

    #[test]
    fn etcd_grows_from_one_to_three_and_back_under_a_writer_and_takes_up_what_was_cut_short() {
        play("etcd_members.py");
    }

    #[test]
    fn each_machine_says_how_its_member_is_and_which_others_answer() {
        play("etcd_info.py");
    }

    #[test]
    fn etcd_is_defragmented_one_member_at_a_time_under_a_writer_the_leader_last_and_never_beside_a_dead_one() {
        play("etcd_defragment.py");
    }

    #[test]
    fn a_member_is_restarted_once_another_one_leads_and_never_where_etcd_would_lose_its_majority() {
        play("etcd_restart.py");
    }

    #[test]
    fn a_member_goes_to_the_next_minor_of_etcd_at_most_and_never_back_to_one() {
        play("etcd_version.py");
    }

    #[test]
    fn coredns_is_given_its_image_and_kubeadms_configuration_the_tag_once() {
        play("coredns_image.py");
    }

    #[test]
    fn an_etcd_without_space_accepts_writes_again_and_one_that_is_full_says_so() {
        play("etcd_no_space.py");
    }

    #[test]
    fn a_machine_says_when_its_certificates_end_as_they_are_served_and_which_are_not_in_use_yet() {
        play("certificates_probe.py");
    }

    #[test]
    fn leaves_are_renewed_by_kubeadm_and_from_a_run_while_clients_work_and_when_all_have_ended() {
        play("certificates_renewal.py");
    }

    #[test]
    fn authorities_and_the_service_account_key_are_replaced_under_a_client_and_the_old_ones_are_refused() {
        play("authorities_rotation.py");
    }

    #[test]
    fn authorities_that_another_one_has_issued_are_believed_for_themselves_and_replaced() {
        play("authorities_issued.py");
    }

    #[test]
    fn the_key_and_the_encrypted_resources_change_under_two_api_servers_and_etcd_keeps_nothing_of_the_former_ones() {
        play("encryption_rotation.py");
    }

    #[test]
    fn a_kms_plugin_takes_the_place_of_a_key_its_own_key_is_replaced_and_a_key_takes_its_place() {
        play("encryption_kms.py");
    }

    #[test]
    fn an_attempt_to_replace_authorities_that_is_cut_off_anywhere_is_taken_up() {
        play("authorities_cut_off.py");
    }

    #[test]
    fn an_authority_that_does_not_go_with_the_one_that_signs_is_refused() {
        play("succession.py");
    }

    #[test]
    fn authorities_come_to_the_modules_as_the_run_brings_them_and_the_probes_change_nothing() {
        play("authority_plays.py");
    }

    #[test]
    fn containers_that_began_before_the_authorities_they_mount_are_started_anew_and_no_others() {
        play("pods_restart.py");
    }

    #[test]
    fn members_that_hold_different_data_are_found_by_their_hashes() {
        play("etcd_hashes.py");
    }

    #[test]
    fn a_backup_is_read_from_the_follower_that_applied_most_and_from_the_leader_where_no_other_answers() {
        play("backup_member.py");
    }

    #[test]
    fn each_machine_reports_whether_its_member_can_be_backed_up_from() {
        play("etcd_backup_candidate.py");
    }

    #[test]
    fn etcd_goes_on_from_one_survivor_only_when_its_majority_is_lost() {
        play("etcd_recovery.py");
    }

    #[test]
    fn a_backup_is_restored_above_all_revisions_seen_where_there_is_room_and_the_same_everywhere() {
        play("staging_plan.py");
    }

    #[test]
    fn etcd_goes_on_from_a_backup_on_all_members_and_back_and_takes_up_what_was_cut_short() {
        play("etcd_restore.py");
    }

    #[test]
    fn a_restore_over_members_with_an_alarm_or_of_a_backup_that_has_one_leaves_none_and_is_undone_with_it_row_38() {
        play("etcd_restore_alarms.py");
    }

    #[test]
    fn the_steps_of_a_restore_end_for_all_machines_with_the_first_that_fails() {
        play("restore_plays.py");
    }

    #[test]
    fn a_control_plane_is_held_until_nothing_of_it_runs_and_released_until_it_is_healthy() {
        play("control_plane_hold.py");
    }

    #[test]
    fn after_a_restore_kube_proxy_and_coredns_are_started_anew_and_nothing_else() {
        play("restart_watchers.py");
    }

    #[test]
    fn a_new_cluster_begins_with_a_backup_once_and_loses_what_stands_for_the_old_machines() {
        play("etcd_new_cluster.py");
    }

    #[test]
    fn a_restored_cluster_loses_tokens_requests_and_nodes_of_the_past_and_nothing_else() {
        play("restore_cleanup.py");
    }

    #[test]
    fn a_component_of_karmada_is_a_service_that_is_waited_for_and_a_reset_removes_it_and_nobody_elses() {
        play_with_loop_devices("karmada_service.py");
    }

    #[test]
    fn programs_of_karmada_lie_beside_those_of_before_and_going_back_downloads_nothing() {
        play("karmada_programs.py");
    }

    #[test]
    fn a_machines_balancer_takes_another_configuration_and_closes_no_connection() {
        play("karmada_balancer.py");
    }

    #[test]
    fn a_machine_of_a_karmada_control_plane_is_played_on_as_one_that_runs_no_pods() {
        play("karmada_plays.py");
    }

    #[test]
    fn a_machine_of_a_karmada_control_plane_is_judged_by_what_that_needs_and_by_nothing_of_nodes() {
        play_with_loop_devices("karmada_preflight.py");
    }

    /// A run with a custom playbook refuses what that may not look up; our own steps in it are to go on.
    #[test]
    fn what_our_steps_look_up_is_not_refused_beside_a_custom_playbook() {
        let collection = Path::new(env!("CARGO_MANIFEST_DIR")).join("ansible");
        let fence = fs::read_to_string(collection.join("plugins/callback/fence.py")).unwrap();
        let (mut names, mut left) = (BTreeSet::new(), vec![collection.join("roles")]);
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let text = fs::read_to_string(path).unwrap_or_default();
            for call in ["lookup('", "query('", "q('"] {
                let begun = text.split(call).skip(1);
                names.extend(begun.filter_map(|rest| Some(rest.split_once('\'')?.0.to_owned())));
            }
        }
        assert!(names.contains("clusterwright.cluster.encryption") && names.len() > 3, "{names:?}");
        let short = |name: &str| name.strip_prefix("ansible.builtin.").unwrap_or(name).to_owned();
        let refused: Vec<_> = names.iter().filter(|name| !fence.contains(&format!("\"{}\"", short(name)))).collect();
        assert!(refused.is_empty(), "plugins/callback/fence.py refuses {refused:?}");
    }

    /// A module is its `work`: what calls it on a machine is sent there by the collection's own action plugin.
    #[test]
    fn every_module_is_sent_to_machines_by_the_action_plugin_that_calls_its_work() {
        let collection = Path::new(env!("CARGO_MANIFEST_DIR")).join("ansible");
        let routes = fs::read_to_string(collection.join("meta/runtime.yml")).unwrap();
        let modules = fs::read_dir(collection.join("plugins/modules")).unwrap().map(|entry| entry.unwrap().path());
        let names: Vec<String> = modules
            .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        assert!(names.len() > 50, "only {} modules were found: are they still read?", names.len());
        let route = |name: &String| format!("\n    {name}:\n      redirect: clusterwright.cluster.remote\n");
        let lost: Vec<&String> = names.iter().filter(|name| !routes.contains(&route(name))).collect();
        assert!(lost.is_empty(), "meta/runtime.yml has no route for {lost:?}");
    }
}
