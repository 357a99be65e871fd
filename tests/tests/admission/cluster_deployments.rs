//! ClusterDeployments.

use anyhow::{Result, ensure};
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{
    Admitted, NO_ADDRESSES, check, check_changes, created, deployment, many_hosts, refused, refused_at, try_changes,
    with,
};

fn demo() -> Value {
    deployment("demo")
}

fn with_endpoint(name: &str) -> Value {
    with(deployment(name), "spec.controlPlane.endpoint.host", json!("10.0.0.100"))
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn what_is_missing_or_unknown_is_named_row_2() -> Result<()> {
    let mut nulled = demo();
    nulled["spec"]["controlPlane"] = Value::Null;
    check(&ApiServer::shared().await?, [
        (2, "an empty spec", demo(), "spec", json!([{}]), refused_at("spec.kubernetesVersion", "Required value")),
        (2, "an empty spec", demo(), "spec", json!([{}]), refused_at("spec.controlPlane", "Required value")),
        (2, "no spec", demo(), "spec", json!([null]), refused("Required value")),
        (2, "no control plane", demo(), "spec.controlPlane", json!([null]), refused("Required value")),
        (2, "null", demo(), "spec", json!([nulled["spec"]]), refused_at("spec.controlPlane", "")),
        (2, "an empty control plane", demo(), "spec.controlPlane", json!([{}]),
            refused_at("spec.controlPlane.replicas", "Required value")),
        (1, "misspelt", demo(), "spec.contolPlane", json!([{}]), refused("unknown field")),
        (2, "no name", demo(), "spec.workers[0].name", json!([null]), refused("Required value")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn versions_are_known_ones_and_go_up_one_minor_at_a_time_rows_4_and_5() -> Result<()> {
    let server = ApiServer::shared().await?;
    let field = "spec.kubernetesVersion";
    check(&server, [
        (4, "not supported", demo(), field, json!(["v1.35.4", "v1.99.0", "1.99.0", "1.33.1", "1.37.0", "latest"]),
            refused("UnsupportedVersion")),
        (4, "no version", demo(), field, json!(["1.35.", "1.35.04", "1.35.4-rc.1"]), refused("UnsupportedVersion")),
        (4, "too short", demo(), field, json!(["1.30", ""]), refused("at least 5")),
        (4, "a number", demo(), field, json!([1.3]), refused("must be of type string")),
    ]).await?;
    let to = |version: &str| json!({ "kubernetesVersion": version });
    let by = |version: &str, via: &[&str]| json!({ "kubernetesVersion": version, "upgradePath": { "via": via } });
    let skew = "VersionSkewNotAllowed";
    check_changes(&server, with(deployment("versions"), field, json!("1.34.4")), [
        (5, "a minor skipped", to("1.36.0"), refused_at(field, "VersionSkewNotAllowed: from 1.34.4 to 1.36.0")),
        (5, "a way that lacks a minor", by("1.36.0", &["1.34.9", "1.36.1"]), refused_at(field, "spec.upgradePath.via")),
        (5, "two of a minor on the way", by("1.36.0", &["1.35.4", "1.35.5"]), refused_at("spec.upgradePath.via", "of the same minor")),
        (5, "no version on the way", by("1.36.0", &["v1.35.4"]), refused("should match")),
        (5, "the way", by("1.36.0", &["1.35.4"]), Admitted),
        (5, "a way that is behind", by("1.34.4", &["1.35.4", "1.34.1"]), Admitted),
        (5, "back on the way", by("1.34.3", &["1.35.4"]), refused_at(field, skew)),
        (5, "back", to("1.34.3"), refused_at(field, skew)),
        (5, "the same", to("1.34.4"), Admitted),
        (5, "the next patch", to("1.34.5"), Admitted),
        (5, "a later patch, with more digits", to("1.34.10"), Admitted),
        (5, "the next minor", to("1.35.0"), Admitted),
        (5, "the next minor, patched", to("1.35.4"), Admitted),
    ]).await?;
    check_changes(&server, deployment("newer"), [
        (5, "back by a minor", to("1.34.9"), refused_at(field, skew)),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_version_whose_rollout_has_not_begun_can_be_taken_back() -> Result<()> {
    let server = ApiServer::shared().await?;
    let field = "spec.kubernetesVersion";
    let to = |version: &str| json!({ "kubernetesVersion": version });
    let skew = "VersionSkewNotAllowed: from 1.34.4 to";
    created(&server, with(deployment("edited"), field, json!("1.34.4"))).await?;
    let started = json!({ "status": { "startedKubernetesVersion": "1.34.4" } });
    server.patch("clusterdeployments", "edited/status", &started).await?;
    server.patch("clusterdeployments", "edited", &json!({ "spec": to("1.35.4") })).await?;
    try_changes(&server, "clusterdeployments", "edited", [
        (5, "back to what has begun", to("1.34.4"), Admitted),
        (5, "a patch of what has begun", to("1.34.5"), Admitted),
        (5, "before what has begun", to("1.34.3"), refused_at(field, skew)),
        (5, "a minor after what has begun", to("1.36.0"), refused_at(field, skew)),
        (5, "another field", json!({ "paused": true }), Admitted),
    ]).await?;
    // What stands there is no reason to refuse a status, whatever its version is.
    let newer = json!({ "status": { "startedKubernetesVersion": "1.36.0", "phase": "Running" } });
    let answer = server.patch("clusterdeployments", "edited/status", &newer).await?;
    ensure!(answer.code == 200, "{}", answer.message());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn counts_of_members_are_odd_and_in_range_row_6() -> Result<()> {
    let several = || with_endpoint("demo");
    let dedicated = || with(demo(), "spec.etcd.topology", json!("Dedicated"));
    let (field, etcd) = ("spec.controlPlane.replicas", "spec.etcd.replicas");
    check(&ApiServer::shared().await?, [
        (6, "none", several(), field, json!([0, -1]), refused("greater than or equal to 1")),
        (6, "even", several(), field, json!([2, 4]), refused("must be odd")),
        (6, "too many", several(), field, json!([9]), refused("less than or equal to 7")),
        (6, "no int32", several(), field, json!([2147483648_i64]), refused("")),
        (6, "no integer", several(), field, json!(["3", 1.5]), refused("must be of type integer")),
        (6, "odd", several(), field, json!([1, 3, 5, 7]), Admitted),
        (6, "no endpoint", demo(), field, json!([3]),
            refused_at("controlPlane.endpoint", "is required with more than one control plane")),
        (6, "even", dedicated(), etcd, json!([2]), refused("must be odd")),
        (6, "too many", dedicated(), etcd, json!([9]), refused("less than or equal to 7")),
        (6, "not said", dedicated(), etcd, json!([null]), refused_at("spec.etcd", "goes with topology Dedicated")),
        (6, "odd", dedicated(), etcd, json!([3]), Admitted),
        (6, "stacked", demo(), etcd, json!([3]), refused_at("spec.etcd", "goes with topology Dedicated")),
        (6, "stacked", demo(), "spec.etcd.hosts", json!([["m1"]]),
            refused_at("spec.etcd", "go with topology Dedicated")),
        (6, "no topology", demo(), "spec.etcd.topology", json!(["Elsewhere"]), refused("Unsupported value")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn an_external_etcd_has_endpoints_and_a_secret_and_no_machines_row_6() -> Result<()> {
    let server = ApiServer::shared().await?;
    let url = "https://10.0.0.5:2379";
    let external = |name: &str| {
        let etcd = json!({ "topology": "External", "endpoints": [url], "secretRef": { "name": "etcd" } });
        with(deployment(name), "spec.etcd", etcd)
    };
    let (endpoints, secret, prefix) = ("spec.etcd.endpoints", "spec.etcd.secretRef", "spec.etcd.prefix");
    let only_external = |what: &'static str| refused_at("spec.etcd", what);
    check(&server, [
        (6, "as it is meant", external("demo"), endpoints,
            json!([[url], ["https://etcd-1.example:2379", "https://etcd-2.example:65535"]]), Admitted),
        (6, "no endpoints", external("demo"), endpoints, json!([null]), only_external("etcd.endpoints goes with topology External")),
        (6, "none of them", external("demo"), endpoints, json!([[]]), refused("")),
        (6, "no URLs", external("demo"), endpoints,
            json!([["10.0.0.5:2379"], ["http://10.0.0.5:2379"], ["https://10.0.0.5"], ["https://10.0.0.5:0"],
                ["https://10.0.0.5:65536"], ["https://10.0.0.5:2379/"], ["https://u:p@10.0.0.5:2379"],
                ["https://[fd00::5]:2379"], [format!("https://{}:2379", "a".repeat(300))]]), refused("")),
        (6, "twice", external("demo"), endpoints, json!([[url, url]]), refused("Duplicate value")),
        (6, "too many", external("demo"), endpoints,
            json!([(1..=10).map(|n| format!("https://10.0.0.{n}:2379")).collect::<Vec<_>>()]), refused("at most 9")),
        (6, "no secret", external("demo"), secret, json!([null]), only_external("goes with topology External")),
        (6, "a prefix", external("demo"), prefix, json!(["/registry", "/fleet/prod-a"]), Admitted),
        (6, "no prefix", external("demo"), prefix, json!(["registry", "/", "/a/", "//a", "/a b", "/../a"]), refused("")),
        (6, "machines", external("demo"), "spec.etcd.replicas", json!([3]), only_external("goes with topology Dedicated")),
        (6, "machines", external("demo"), "spec.etcd.hosts", json!([["m1"]]),
            only_external("go with topology Dedicated")),
        (6, "machines", external("demo"), "spec.etcd.hostSelector", json!([{ "matchLabels": { "a": "b" } }]),
            only_external("go with topology Dedicated")),
        (6, "stacked", demo(), endpoints, json!([[url]]), only_external("goes with topology External")),
        (6, "stacked", demo(), secret, json!([{ "name": "etcd" }]), only_external("goes with topology External")),
        (6, "stacked", demo(), prefix, json!(["/a"]), only_external("goes with topology External")),
    ]).await?;
    let etcd = |etcd: Value| json!({ "etcd": etcd });
    check_changes(&server, external("outside"), [
        (15, "another topology", etcd(json!({ "topology": "Stacked", "endpoints": null, "secretRef": null })),
            refused_at("spec.etcd.topology", "Forbidden")),
        (15, "another prefix", etcd(json!({ "prefix": "/b" })), refused_at("spec.etcd", "Forbidden: etcd.prefix")),
        (15, "the prefix that it has", etcd(json!({ "prefix": "/registry" })), Admitted),
        (15, "other members", etcd(json!({ "endpoints": [url, "https://10.0.0.6:2379"] })), Admitted),
        (15, "another Secret", etcd(json!({ "secretRef": { "name": "next" } })), Admitted),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn etcd_is_maintained_by_numbers_within_bounds_and_not_where_others_run_it() -> Result<()> {
    let server = ApiServer::shared().await?;
    let (check_seconds, defragmentation) = ("spec.etcd.hashCheckSeconds", "spec.etcd.defragmentation");
    let schedule = json!({ "schedule": "0 4 * * SUN" });
    let scheduled = || with(demo(), defragmentation, schedule.clone());
    let etcd = json!({ "topology": "External", "endpoints": ["https://10.0.0.5:2379"], "secretRef": { "name": "etcd" } });
    let external = || with(demo(), "spec.etcd", etcd.clone());
    let of_others = refused_at("spec.etcd", "those who run that etcd look after it");
    let (when, zone) = ("spec.etcd.defragmentation.schedule", "spec.etcd.defragmentation.timeZone");
    let percent = "spec.etcd.defragmentation.minFragmentationPercent";
    let reclaim = "spec.etcd.defragmentation.minReclaimMiB";
    check(&server, [
        (6, "how often", demo(), check_seconds, json!([0, 600, 21600, 604_800]), Admitted),
        (6, "too often", demo(), check_seconds, json!([1, 599]), refused_at(check_seconds, "must be 0, which means never, or 600")),
        (6, "out of range", demo(), check_seconds, json!([-1, 604_801]), refused_at(check_seconds, "")),
        (6, "external", external(), check_seconds, json!([0, 21600]), of_others),
        (6, "external", external(), defragmentation, json!([schedule]), of_others),
        (6, "a schedule", demo(), defragmentation, json!([schedule,
            { "schedule": "0 4 * * SUN", "timeZone": "Europe/Paris", "minFragmentationPercent": 30, "minReclaimMiB": 1 }]), Admitted),
        (6, "no schedule", demo(), defragmentation, json!([{}]), refused_at(when, "Required value")),
        (6, "four fields", scheduled(), when, json!(["0 4 * *", "@daily", ""]), refused_at(when, "")),
        (6, "no time zone", scheduled(), zone, json!(["Europe/ Paris", "", "/"]), refused_at(zone, "")),
        (6, "out of range", scheduled(), percent, json!([0, 96]),
            refused_at(percent, "")),
        (6, "out of range", scheduled(), reclaim, json!([0, 16_385]), refused_at(reclaim, "")),
        (6, "misspelt", scheduled(), "spec.etcd.defragmentation.minReclaim", json!([1]), refused("unknown field")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn certificates_last_days_within_bounds_and_are_not_renewed_as_soon_as_they_are_made() -> Result<()> {
    let server = ApiServer::shared().await?;
    let (all, validity, before) =
        ("spec.certificates", "spec.certificates.validityDays", "spec.certificates.renewBeforeDays");
    let at_once = refused_at(all, "renewBeforeDays must be less than certificates.validityDays");
    check(&server, [
        (6, "how long", demo(), validity, json!([1, 365, 1825]), Admitted),
        (6, "out of range", demo(), validity, json!([0, -1, 1826]), refused_at(validity, "")),
        (6, "when", demo(), before, json!([1, 364]), Admitted),
        (6, "out of range", demo(), before, json!([0, -1, 1825]), refused_at(before, "")),
        (6, "always", demo(), before, json!([365, 1824]), at_once),
        (6, "always", demo(), all, json!([{ "validityDays": 30, "renewBeforeDays": 30 }]), at_once),
        (6, "both", demo(), all, json!([{ "validityDays": 30, "renewBeforeDays": 29 }, {}]), Admitted),
        (6, "misspelt", demo(), "spec.certificates.renewDays", json!([1]), refused("unknown field")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn machines_are_compared_every_ten_minutes_at_most_or_never() -> Result<()> {
    let server = ApiServer::shared().await?;
    let (every, repair) = ("spec.drift.checkEverySeconds", "spec.drift.repair");
    check(&server, [
        (6, "how often", demo(), every, json!([0, 600, 86_400, 2_592_000]), Admitted),
        (6, "too often", demo(), every, json!([1, 599]), refused_at(every, "must be 600 or more")),
        (6, "out of range", demo(), every, json!([-1, 2_592_001]), refused_at(every, "")),
        (6, "what is done", demo(), repair, json!(["Never", "Automatic"]), Admitted),
        (6, "something else", demo(), repair, json!(["Always"]), refused_at(repair, "")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn nothing_is_named_twice_row_9() -> Result<()> {
    let (control_planes, workers) = ("spec.controlPlane.hosts", "spec.workers[0].hosts");
    let workers_too = with(demo(), workers, json!(["m3", "m2"]));
    let etcd = json!({ "topology": "Dedicated", "replicas": 1, "hosts": ["m1"] });
    let etcd_too = with(demo(), "spec.etcd", etcd);
    let selecting = with(demo(), "spec.controlPlane.hostSelector.matchLabels", json!({}));
    let twice = json!([["m1", "m1"]]);
    let taint = json!({ "key": "gpu", "effect": "NoSchedule" });
    check(&ApiServer::shared().await?, [
        (9, "Hosts", demo(), control_planes, twice.clone(),
            refused_at("spec.controlPlane.hosts[1]", "Duplicate value")),
        (9, "Hosts", demo(), workers, twice, refused_at("spec.workers[0].hosts[1]", "Duplicate value")),
        (9, "sets", demo(), "spec.workers[1]", json!([{ "name": "general" }]), refused("Duplicate value")),
        (9, "taints", demo(), "spec.workers[0].taints", json!([[taint, taint]]),
            refused_at("spec.workers[0].taints[1]", "Duplicate value")),
        (9, "workers too", workers_too, control_planes, json!([["m1", "m2"]]), refused_at("spec", "one role only")),
        (9, "etcd too", etcd_too, control_planes, json!([["m1"]]), refused_at("spec", "one role only")),
        (9, "a selector too", selecting, control_planes, json!([["m1"]]),
            refused_at("spec.controlPlane", "exclude each other")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn approvals_canaries_and_windows_are_what_they_can_be() -> Result<()> {
    let server = ApiServer::shared().await?;
    let window = json!({ "schedule": "0 2 * * SAT,SUN", "timeZone": "Europe/Paris", "durationMinutes": 180 });
    let windowed = || with(demo(), "spec.rollout.windows", json!([window]));
    let (rollout, first) = ("spec.rollout", "spec.rollout.windows[0]");
    let many: Vec<Value> = vec![window.clone(); 17];
    check(&server, [
        (2, "approval", demo(), "spec.approval", json!(["Automatic", "Manual"]), Admitted),
        (2, "no such approval", demo(), "spec.approval", json!(["manual", ""]), refused("Unsupported value")),
        (2, "a rollout", demo(), rollout, json!([{}, { "canaries": 3, "pauseSeconds": 3600 }]), Admitted),
        (2, "no canary", demo(), rollout, json!([{ "canaries": 0 }]), refused("greater than or equal to 1")),
        (2, "too many canaries", demo(), rollout, json!([{ "canaries": 101 }]), refused("less than or equal to 100")),
        (2, "back in time", demo(), rollout, json!([{ "pauseSeconds": -1 }]), refused("greater than or equal to 0")),
        (2, "for ever", demo(), rollout, json!([{ "pauseSeconds": 604801 }]), refused("less than or equal to 604800")),
        (2, "a window", demo(), rollout, json!([{ "windows": [window] }]), Admitted),
        (2, "too many windows", demo(), rollout, json!([{ "windows": many }]), refused("at most 16")),
        (2, "no schedule", windowed(), first, json!([{ "durationMinutes": 60 }]), refused("Required value")),
        (2, "no end", windowed(), first, json!([{ "schedule": "0 2 * * *" }]), refused("Required value")),
        (2, "four fields", windowed(), "spec.rollout.windows[0].schedule", json!(["0 2 * *", "@daily"]), refused("")),
        (2, "too short", windowed(), "spec.rollout.windows[0].durationMinutes", json!([0, 9]),
            refused("greater than or equal to 10")),
        (2, "too long", windowed(), "spec.rollout.windows[0].durationMinutes", json!([10081]),
            refused("less than or equal to 10080")),
        (2, "no zone", windowed(), "spec.rollout.windows[0].timeZone", json!(["", "Europe/ Paris"]), refused("")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn addresses_are_machines_addresses_rows_11_and_12() -> Result<()> {
    check(&ApiServer::shared().await?, [
        (11, "no address", demo(), "spec.controlPlane.endpoint.host", json!(NO_ADDRESSES), refused("must be")),
        (12, "no name", demo(), "spec.controlPlane.certSANs[0]", json!(["", "a b", "*", "a,b", "-x", "http://x"]),
            refused("")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn ports_are_numbers_in_range_row_13() -> Result<()> {
    let (object, field) = (|| with_endpoint("demo"), "spec.controlPlane.endpoint.port");
    check(&ApiServer::shared().await?, [
        (13, "too low", object(), field, json!([0, -22]), refused("greater than or equal to 1")),
        (13, "too high", object(), field, json!([65536]), refused("less than or equal to 65535")),
        (13, "a text", object(), field, json!(["22"]), refused("must be of type integer")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn networks_are_whole_apart_and_large_enough_row_14() -> Result<()> {
    let server = ApiServer::shared().await?;
    let (networking, pods, services) = ("spec.networking", "spec.networking.podCIDR", "spec.networking.serviceCIDR");
    for (pods, services) in [
        ("10.0.0.0/8", "10.96.0.0/16"),
        ("10.96.0.0/20", "10.96.0.0/16"),
        ("10.96.0.0/16", "10.96.0.0/16"),
        ("10.244.0.0/16", "10.244.3.0/24"),
    ] {
        let both = json!([{ "podCIDR": pods, "serviceCIDR": services }]);
        let gist = format!("CIDROverlap: podCIDR {pods}");
        check(&server, [(14, "they overlap", demo(), networking, both, refused(&gist))]).await?;
    }
    let object = || with(demo(), networking, json!({ "podCIDR": "10.244.0.0/16", "serviceCIDR": "10.96.0.0/16" }));
    let small = |replicas: u32| with(object(), "spec.workers[0].replicas", json!(replicas));
    let range = "IPv4 network from /8 to /22";
    check(&server, [
        (14, "size", object(), pods, json!(["10.244.0.0/31", "10.244.0.0/23", "10.0.0.0/7"]), refused(range)),
        (14, "no IPv4 network", object(), pods,
            json!(["10.244.1.0/16", "10.244.0.0", "999.0.0.0/16", "fd00::/48", "010.0.0.0/16"]), refused(range)),
        (14, "size", object(), services, json!(["10.96.0.0/31", "10.96.0.0/25", "10.0.0.0/11"]), refused("")),
        (14, "no IPv4 network", object(), services, json!(["10.96.1.0/16", "10.96.0.1/32", "services"]), refused("")),
        (14, "too small for 5 nodes", small(4), pods, json!(["10.244.0.0/22"]), refused("CIDRTooSmall")),
        (14, "enough for 4 nodes", small(3), pods, json!(["10.244.0.0/22"]), Admitted),
        (14, "an endpoint inside", demo(), "spec.controlPlane.endpoint.host", json!(["10.244.7.7", "10.96.0.10"]),
            refused("lies in podCIDR or serviceCIDR")),
        (14, "no domain", demo(), "spec.networking.dnsDomain",
            json!(["", "Cluster.Local", "a..b", "-a", "a b", "a".repeat(200)]), refused("")),
    ]).await?;
    let (manifests, reference) = (json!({ "name": "manifests" }), json!({ "name": "cni" }));
    let plugin = "spec.networking.plugin";
    check(&server, [
        (14, "no manifests", demo(), plugin, json!([manifests]), refused("manifestsRef")),
        (14, "manifests beside", demo(), plugin, json!([{ "manifestsRef": reference }]), refused("manifestsRef")),
        (14, "not known", demo(), "spec.networking.plugin.name", json!(["calico"]), refused("Unsupported value")),
        (14, "manifests", with(demo(), plugin, manifests), "spec.networking.plugin.manifestsRef", json!([reference]),
            Admitted),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn what_a_cluster_is_made_of_cannot_be_changed_row_15() -> Result<()> {
    let server = ApiServer::shared().await?;
    let networking = |networking: Value| json!({ "networking": networking });
    let endpoint = |endpoint: Value| json!({ "controlPlane": { "endpoint": endpoint } });
    let manifests = json!({ "name": "manifests", "manifestsRef": { "name": "cni" } });
    let network_stays = refused_at("spec.networking", "Forbidden");
    let endpoint_stays = refused_at("spec.controlPlane", "Forbidden");
    check_changes(&server, with_endpoint("fixed"), [
        (15, "Pods", networking(json!({ "podCIDR": "10.245.0.0/16" })), network_stays),
        (15, "Services", networking(json!({ "serviceCIDR": "10.97.0.0/16" })), network_stays),
        (15, "domain", networking(json!({ "dnsDomain": "other.local" })), network_stays),
        (15, "plugin", networking(json!({ "plugin": manifests })), network_stays),
        (15, "etcd", json!({ "etcd": { "topology": "Dedicated", "replicas": 3 } }),
            refused_at("spec.etcd.topology", "Forbidden")),
        (15, "another host", endpoint(json!({ "host": "10.0.0.101" })), endpoint_stays),
        (15, "another port", endpoint(json!({ "port": 7443 })), endpoint_stays),
        (15, "no endpoint", endpoint(json!(null)), endpoint_stays),
        // There is one container runtime only: another name is no value of the field.
        (15, "runtime", json!({ "containerRuntime": { "name": "crio" } }),
            refused_at("spec.containerRuntime.name", "Unsupported value")),
        (15, "the defaults", json!({ "networking": null, "etcd": null }), Admitted),
        (15, "what may change", json!({ "workers": [{ "name": "general", "replicas": 5 }], "paused": true }), Admitted),
    ]).await?;
    check_changes(&server, deployment("no-endpoint"), [
        (15, "an endpoint later", endpoint(json!({ "host": "10.0.0.100" })), endpoint_stays),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn what_is_too_large_is_refused_row_20() -> Result<()> {
    let sets: Value = (0..33).map(|n| json!({ "name": format!("s{n}") })).collect();
    let (hosts, few) = (json!([many_hosts(10_000)]), json!([many_hosts(17)]));
    check(&ApiServer::shared().await?, [
        (20, "workers", demo(), "spec.workers[0].hosts", hosts, refused("at most 500 items")),
        (20, "control planes", demo(), "spec.controlPlane.hosts", few, refused("at most 16 items")),
        (20, "sets", demo(), "spec.workers", json!([sets]), refused("at most 32 items")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn artifacts_come_from_a_bundle_or_from_upstream_by_what_goes_with_it() -> Result<()> {
    let (url, named) = (json!("https://bundle.example"), json!({"name": "x"}));
    let upstream = json!([null, {}, {"lockRef": named}, {"caRef": named}, {"caRef": named, "lockRef": named}]);
    let key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n";
    let of_bundle = json!([
        {"indexSHA256": "a".repeat(64)}, {"credentialsRef": named}, {"osPackages": {"signedBy": key}},
    ]);
    let (artifacts, both) = ("spec.artifacts", json!([{"url": url, "lockRef": named}]));
    let login = json!([{"url": "http://bundle.example", "caRef": named}]);
    check(&ApiServer::shared().await?, [
        (0, "upstream", demo(), artifacts, upstream, Admitted),
        (0, "no bundle", demo(), artifacts, of_bundle, refused("give its url")),
        (0, "a lock of a bundle", demo(), artifacts, both, refused_at("spec.artifacts.lockRef", "give url or lockRef")),
        (0, "an authority over HTTP", demo(), artifacts, login, refused("need an https URL")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn artifact_sources_and_mirrors_are_plain_urls() -> Result<()> {
    let mirrored = with(demo(), "spec.containerRuntime.registryMirrors[0].prefix", json!("registry.k8s.io"));
    let endpoint = "spec.containerRuntime.registryMirrors[0].endpoints[0]";
    let urls = json!([
        "", "file:///etc", "ftp://x/bundle", "172.30.0.1:8080", "http://user:password@x/", "http://",
        "http://x/?a=b", "http://x y", "http://x/{{ y }}",
    ]);
    let images = json!(["", "x; rm -rf /", "-x", "a b", "$(id)"]);
    check(&ApiServer::shared().await?, [
        (26, "no plain URL", demo(), "spec.artifacts.url", urls.clone(), refused("")),
        (26, "no plain URL", mirrored, endpoint, urls, refused("")),
        (27, "no image", demo(), "spec.executor.image", images, refused("")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn max_unavailable_is_a_count_or_a_percentage_row_39() -> Result<()> {
    let field = "spec.workers[0].maxUnavailable";
    check(&ApiServer::shared().await?, [
        (39, "none", demo(), field, json!([0, -1]), refused("greater than or equal to 1")),
        (39, "no part", demo(), field, json!(["100%", "0%", "abc", "10", "-1%"]), refused("should match")),
        (39, "too many", demo(), field, json!([3]), refused("more than there are replicas")),
        (39, "neither", demo(), field, json!([1.5, true]), refused("")),
        (39, "right", demo(), field, json!([1, 2, "1%", "99%"]), Admitted),
        (39, "less than none", demo(), "spec.workers[0].maxSurge", json!([-1]), refused("greater than or equal to 0")),
        (39, "no part", demo(), "spec.workers[0].maxSurge", json!(["100%", "0%", "abc"]), refused("should match")),
        (39, "right", demo(), "spec.workers[0].maxSurge", json!([0, 1, 5, "25%"]), Admitted),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn an_endpoint_that_control_planes_hold_is_an_address_row_16() -> Result<()> {
    let held = |endpoint: serde_json::Value| with(deployment("d"), "spec.controlPlane.endpoint", endpoint);
    let address = held(json!({ "host": "10.0.0.9", "provider": "Keepalived" }));
    let plain = held(json!({ "host": "10.0.0.9" }));
    let at = "spec.controlPlane.endpoint";
    check(&ApiServer::shared().await?, [
        (0, "an address", address.clone(), "spec.controlPlane.endpoint.host", json!(["10.0.0.100"]), Admitted),
        (16, "a name", address.clone(), "spec.controlPlane.endpoint.host", json!(["api.example", "fd00::9"]),
            refused("a free IPv4 address of the machines' network")),
        (16, "a Pod's address", address.clone(), "spec.controlPlane.endpoint.host", json!(["10.244.0.9"]), refused("podCIDR or serviceCIDR")),
        (0, "a router id", address.clone(), "spec.controlPlane.endpoint.keepalived.virtualRouterID", json!([0, 256]), refused("virtualRouterID")),
        (0, "an interface", address, "spec.controlPlane.endpoint.keepalived.interface", json!(["a b", "-x", "../x"]), refused("interface")),
        (0, "another's endpoint", plain, "spec.controlPlane.endpoint.keepalived", json!([{ "interface": "eth1" }]), refused_at(at, "goes with provider Keepalived")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn hooks_are_named_and_have_playbooks_row_28() -> Result<()> {
    let bare = deployment("d");
    let d = with(bare.clone(), "spec.executor.customPlaybooksRef.name", json!("mine"));
    let one = json!({ "name": "x" });
    check(&ApiServer::shared().await?, [
        (0, "a hook", d.clone(), "spec.hooks", json!([{ "beforeJoin": [{ "name": "x", "vars": { "a": "{{ b }}" } }] }]), Admitted),
        (28, "no playbooks", bare, "spec.hooks", json!([{ "beforeJoin": [one] }]), refused_at("spec.executor", "customPlaybooksRef is required")),
        (28, "text of a shell", d.clone(), "spec.hooks.beforeJoin[0]", json!([{ "command": "id" }, { "name": "x", "shell": "id" }]), refused("")),
        (28, "no name", d.clone(), "spec.hooks.beforeJoin[0].name", json!(["../x", "x;id", "X", ""]), refused("")),
        (9, "twice", d.clone(), "spec.hooks.beforeJoin", json!([[one, one]]), refused("Duplicate value")),
        (9, "twice in a run", d, "spec.hooks", json!([{ "beforeJoin": [one], "afterJoin": [one] }, { "beforeRemove": [one], "afterRemove": [one] },
            { "beforeUpgrade": [one], "afterUpgrade": [one] }]),
            refused("one run plays once")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_cluster_begins_with_a_backup_only_when_it_is_made_and_with_an_etcd_of_its_own() -> Result<()> {
    let server = ApiServer::shared().await?;
    let backup = json!({ "source": { "backupRef": { "name": "monday" } }, "identityRef": { "name": "age" } });
    let stored = json!({ "stored": { "storageRef": { "name": "s3" }, "location": "paris/u/1" } });
    let (at, given) = ("spec.restoreFrom", with(demo(), "spec.restoreFrom", backup.clone()));
    let external = json!({ "topology": "External", "endpoints": ["https://10.0.0.9:2379"], "secretRef": { "name": "etcd" } });
    let latest = with(demo(), "spec.recovery", json!({ "strategy": "RestoreLatest", "identityRef": { "name": "age" } }));
    check(&server, [
        (0, "a backup", demo(), at, json!([backup]), Admitted),
        (0, "a stored one", given.clone(), "spec.restoreFrom.source", json!([stored.clone()]), Admitted),
        (0, "both, or none", given.clone(), "spec.restoreFrom.source", json!([{}, { "backupRef": { "name": "x" }, "stored": stored["stored"] }]),
            refused("exactly one of backupRef and stored")),
        (0, "no identity", given.clone(), "spec.restoreFrom.identityRef", json!([null]), refused("Required value")),
        (0, "out of the storage", given.clone(), "spec.restoreFrom.source",
            json!([{ "stored": { "storageRef": { "name": "s3" }, "location": "a/../b" } }]), refused("no part of it may be . or ..")),
        (0, "another's etcd", given.clone(), "spec.etcd", json!([external.clone()]), refused_at(at, "whoever runs the external etcd restores it")),
        (0, "the latest", demo(), "spec.recovery", json!([latest["spec"]["recovery"]]), Admitted),
        (0, "the latest of another's etcd", latest.clone(), "spec.etcd", json!([external]),
            refused_at("spec.recovery.strategy", "with an external etcd, Rebuild keeps")),
        (0, "the latest without identity", latest, "spec.recovery.identityRef", json!([null]),
            refused_at("spec.recovery", "identityRef is required with RestoreLatest")),
    ]).await?;
    check_changes(&server, with(given, "metadata.name", json!("begins")), [
        (0, "another backup", json!({ "restoreFrom": { "identityRef": { "name": "other" } } }), refused_at(at, "restoreFrom is immutable")),
        (0, "none", json!({ "restoreFrom": null }), refused_at(at, "restoreFrom is immutable")),
    ]).await?;
    check_changes(&server, deployment("empty"), [
        (0, "a backup later", json!({ "restoreFrom": backup }), refused_at(at, "restoreFrom is immutable")),
    ]).await
}
