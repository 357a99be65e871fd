//! `spec.configuration`, and what sets of machines say otherwise.

use anyhow::Result;
use e2e::api_server::ApiServer;
use serde_json::{Value, json};

use super::{Admitted, check, check_changes, deployment, refused, refused_at, with};

fn demo() -> Value {
    deployment("demo")
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn kubelets_are_configured_in_their_own_words_and_within_what_they_take() -> Result<()> {
    let server = ApiServer::shared().await?;
    for kubelet in ["spec.configuration.kubelet", "spec.controlPlane.kubelet", "spec.workers[0].kubelet"] {
        let at = |name: &str| format!("{kubelet}.{name}");
        check(&server, [
            (0, "all that may be said", demo(), kubelet, json!([{}, {
                "maxPods": 200, "systemReserved": {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "2Gi", "pid": "1000"},
                "kubeReserved": {"cpu": "1"}, "evictionHard": {"memory.available": "5%", "nodefs.inodesFree": "1000"},
                "imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 70, "containerLogMaxSize": "50Mi",
                "containerLogMaxFiles": 3, "serializeImagePulls": false, "maxParallelImagePulls": 4, "registryPullQPS": 0,
                "cpuManagerPolicy": "static", "topologyManagerPolicy": "single-numa-node", "podPidsLimit": 4096,
                "featureGates": {"GracefulNodeShutdown": true}, "nodeStatusUpdateFrequencySeconds": 20,
                "shutdownGracePeriodSeconds": 60, "shutdownGracePeriodCriticalPodsSeconds": 20,
            }]), Admitted),
            (0, "more Pods than addresses", demo(), &at("maxPods"), json!([0, 9, 251]), refused("should be")),
            (0, "no amount", demo(), &at("systemReserved.memory"), json!(["1GB", "0", "lots"]), refused("should match")),
            (0, "no resource", demo(), &at("kubeReserved.gpu"), json!(["1"]), refused("unknown field")),
            (0, "no signal", demo(), &at("evictionHard"), json!([{"memory": "5%"}]), refused("unknown field")),
            (0, "no threshold", demo(), &at("evictionHard"), json!([{"memory.available": "100%"}]), refused("should match")),
            (0, "one of two", demo(), &at("imageGCHighThresholdPercent"), json!([80]), refused_at(kubelet, "given together")),
            (0, "the wrong way round", demo(), kubelet,
                json!([{"imageGCHighThresholdPercent": 70, "imageGCLowThresholdPercent": 70}]), refused("below the high one")),
            (0, "one after the other, and at once", demo(), kubelet,
                json!([{"maxParallelImagePulls": 2}, {"serializeImagePulls": true, "maxParallelImagePulls": 2}]),
                refused_at(kubelet, "maxParallelImagePulls needs serializeImagePulls: false")),
            (0, "no gate", demo(), &at("featureGates"), json!([{"a b": true}, {"x": false}]), refused("a feature gate's name")),
            (0, "more for some than for all", demo(), kubelet,
                json!([{"shutdownGracePeriodSeconds": 10, "shutdownGracePeriodCriticalPodsSeconds": 20}]),
                refused("a part of the former")),
            (0, "one of ours", demo(), &at("clusterDNS"), json!([["10.0.0.1"]]), refused("unknown field")),
        ]).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn what_a_cluster_depends_on_is_no_sysctl_of_the_users() -> Result<()> {
    let (machine, sysctls) = ("spec.configuration.machine", "spec.configuration.machine.sysctls");
    let authorities = "spec.configuration.machine.trustedCAs";
    check(&ApiServer::shared().await?, [
        (0, "sysctls and modules", demo(), machine, json!([{
            "sysctls": {"net.core.somaxconn": "8192", "net.ipv4.tcp_rmem": "4096 87380 6291456", "vm.swappiness": "0"},
            "kernelModules": ["ip_vs", "nf-conntrack"],
        }]), Admitted),
        (0, "an authority", demo(), authorities, json!([[], ["-----BEGIN CERTIFICATE-----\nMIIB\nAAA=\n-----END CERTIFICATE-----\n"]]),
            Admitted),
        (0, "no authority", demo(), authorities,
            json!([["x"], ["-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"]]), refused("should match")),
        (0, "ours", demo(), sysctls, json!([{"net.ipv4.ip_forward": "0"}, {"net.bridge.bridge-nf-call-iptables": "0"},
            {"kernel.panic_on_oops": "0"}, {"net.ipv4.conf.eth0.forwarding": "0"}, {"vm.overcommit_memory": "0"}]),
            refused("the cluster depends on")),
        (0, "no name", demo(), sysctls, json!([{"net/core/somaxconn": "1"}, {"net..core": "1"}, {"dev.x": "1"}, {"vm": "1"}]),
            refused("as `sysctl -a` prints it")),
        (0, "no value", demo(), sysctls, json!([{"vm.swappiness": ""}, {"vm.swappiness": "1\n2"}]), refused("sysctls")),
        (0, "a number", demo(), sysctls, json!([{"vm.swappiness": 1}]), refused("must be of type string")),
        (0, "no module", demo(), "spec.configuration.machine.kernelModules", json!([["../x"], ["a b"], [""]]), refused("kernelModules")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn servers_and_keys_of_machines_are_named_as_their_programs_take_them() -> Result<()> {
    let machine = "spec.configuration.machine";
    let at = |name: &str| format!("{machine}.{name}");
    let ed25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEnJoYh36jxBUJPQ9VfzBckR8tgoRgzNK8jmE7F9TFYO";
    let ecdsa = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBJKOfbxcNd+O";
    check(&ApiServer::shared().await?, [
        (0, "all of them", demo(), machine, json!([{
            "timeServers": ["ntp.example.org", "192.0.2.1", "2001:db8::1"], "dnsServers": ["192.0.2.53", "2001:db8::53"],
            "searchDomains": ["example.org", "_tcp.example", "local"], "authorizedKeys": [format!("{ed25519} ann's, 2026"), ecdsa],
            "journal": {"maxUseMegabytes": 500, "maxRetentionDays": 30},
        }, {"journal": {"maxRetentionDays": 1}}, {"timeServers": []}]), Admitted),
        (0, "no time server", demo(), &at("timeServers"), json!([["ntp.example.org:123"], ["a b"], ["x iburst"], ["1.2.3"], ["-x"]]),
            refused_at(&at("timeServers"), "a time server is an IP address or a lowercase DNS name")),
        (0, "no DNS server", demo(), &at("dnsServers"), json!([["dns.example.org"], ["192.0.2.53:53"], ["0.0.0.0"], ["1.1.1.1\n"]]),
            refused_at(&at("dnsServers"), "a DNS server is an IP address")),
        (0, "more than a resolver asks", demo(), &at("dnsServers"), json!([["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]]),
            refused("must have at most 3 items")),
        (0, "no domain", demo(), &at("searchDomains"), json!([["example.org."], ["~."], ["a b"], ["A.example"]]),
            refused_at(&at("searchDomains"), "a search domain is a lowercase DNS name")),
        (0, "no key", demo(), &at("authorizedKeys"), json!([
            ["x"], [format!("no-pty {ed25519}")], [format!("command=\"x\" {ed25519}")], [format!("{ed25519}\n{ecdsa}")],
            ["ssh-dss AAAAB3NzaC1kc3MAAACBAJK"], ["ssh-ed25519 AAAAB3NzaC1yc2EAAAADAQABAAABgQC7"], ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"],
            [format!("{ed25519} tab\there")],
        ]), refused_at(&at("authorizedKeys"), "a key is one line of type, base64 and an optional comment")),
        (0, "the same twice", demo(), &at("authorizedKeys"), json!([[ed25519, ed25519]]), refused("Duplicate value")),
        (0, "no limit", demo(), &at("journal"), json!([{}]), refused_at(&at("journal"), "give maxUseMegabytes, maxRetentionDays, or both")),
        (0, "too little", demo(), &at("journal.maxUseMegabytes"), json!([0, 15]), refused("should be greater than or equal to 16")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_runtime_has_what_its_shim_takes_and_another_name_than_runc() -> Result<()> {
    let runtimes = "spec.configuration.containerd.runtimes";
    let runsc = json!({"name": "gvisor", "type": "io.containerd.runsc.v1"});
    let with = |more: Value| {
        let mut runtime = runsc.clone();
        runtime.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([runtime])
    };
    check(&ApiServer::shared().await?, [
        (0, "runtimes", demo(), runtimes, json!([
            [runsc, {"name": "crun", "type": "io.containerd.runc.v2", "binaryName": "/usr/bin/crun"}],
            with(json!({"path": "/opt/gvisor/containerd-shim-runsc-v1", "configPath": "/etc/containerd/runsc.toml"})),
        ]), Admitted),
        (0, "ours", demo(), runtimes, json!([with(json!({"name": "runc"}))]), refused("runc is there already")),
        (0, "one twice", demo(), runtimes, json!([[runsc, runsc]]), refused("Duplicate value")),
        (0, "no type", demo(), runtimes, json!([with(json!({"type": "runsc"})), with(json!({"type": "io.containerd.a.b.v1"}))]),
            refused("should match")),
        (0, "no path", demo(), runtimes, json!([with(json!({"path": "shim"})), with(json!({"path": "/a b"})), with(json!({"path": "/x/"}))]),
            refused("should match")),
        (0, "another's program", demo(), runtimes, json!([with(json!({"binaryName": "/usr/bin/crun"}))]),
            refused("binaryName goes with type io.containerd.runc.v2")),
        (0, "a file that is not read", demo(), runtimes, json!([with(json!({"type": "io.containerd.runc.v2", "configPath": "/x"}))]),
            refused("configPath goes with other types")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn mirrors_log_in_only_where_it_is_known_who_they_are() -> Result<()> {
    let mirrors = "spec.containerRuntime.registryMirrors";
    let mirror = |endpoint: &str, more: Value| {
        let mut mirror = json!({"prefix": "registry.example:5000", "endpoints": [endpoint]});
        mirror.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([mirror])
    };
    let login = json!({"credentialsRef": {"name": "mirror"}});
    check(&ApiServer::shared().await?, [
        (0, "a login and an authority", demo(), mirrors, json!([
            mirror("https://m.example", json!({"credentialsRef": {"name": "mirror"}, "caRef": {"name": "ca"}})),
            mirror("https://m.example", json!({"skipVerify": true})), mirror("http://m.example", json!({"skipVerify": false})),
        ]), Admitted),
        (0, "over plain HTTP", demo(), mirrors, json!([mirror("http://m.example", login),
                mirror("http://m", json!({"caRef": {"name": "ca"}}))]),
            refused("caRef and credentialsRef need https endpoints")),
        (0, "to whoever answers", demo(), mirrors, json!([mirror("https://m", json!({"skipVerify": true, "credentialsRef": {"name": "mirror"}}))]),
            refused("skipVerify goes with neither caRef nor credentialsRef")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn kube_proxy_works_in_a_mode_that_is_not_deprecated() -> Result<()> {
    let mode = "spec.configuration.kubeProxy.mode";
    check(&ApiServer::shared().await?, [
        (0, "modes", demo(), mode, json!(["iptables", "nftables"]), Admitted),
        (0, "others", demo(), mode, json!(["ipvs", "none", "", "Iptables"]), refused("Unsupported value")),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_cluster_is_without_kube_proxy_from_its_beginning_on_and_with_a_plugin_that_serves_services() -> Result<()> {
    let mode = "spec.configuration.kubeProxy.mode";
    let plugin = json!({"name": "manifests", "manifestsRef": {"name": "net"}});
    let of = |name: &str, configuration: Value| {
        with(with(deployment(name), "spec.networking.plugin", plugin.clone()), "spec.configuration", configuration)
    };
    let is = |mode: &str| json!({"kubeProxy": {"mode": mode}});
    let mut nulled = demo();
    nulled["spec"]["configuration"] = Value::Null;
    let server = ApiServer::shared().await?;
    check(&server, [
        (0, "null", nulled, "spec.paused", json!([true]), Admitted),
        (0, "null", demo(), "spec.configuration", json!([{"kubeProxy": null}]), Admitted),
        (0, "a plugin of the owner's", of("demo", json!({})), mode, json!(["None", "iptables"]), Admitted),
        (0, "bridge", demo(), mode, json!(["None"]), refused_at(mode, "bridge does not: give it as networking.plugin {name: manifests")),
    ]).await?;
    let (has, made) = ("this one has kube-proxy: choose iptables or nftables", "was made with None and has no kube-proxy");
    check_changes(&server, of("proxied", is("nftables")), [
        (0, "away", json!({"configuration": is("None")}), refused_at(mode, has)),
        (0, "another mode", json!({"configuration": is("iptables")}), Admitted),
        (0, "taken back", json!({"configuration": null}), Admitted),
    ]).await?;
    check_changes(&server, of("unconfigured", Value::Null), [
        (0, "away", json!({"configuration": is("None")}), refused_at(mode, has)),
    ]).await?;
    check_changes(&server, of("unproxied", is("None")), [
        (0, "a mode", json!({"configuration": is("nftables")}), refused_at(mode, made)),
        (0, "no mode", json!({"configuration": {"kubeProxy": {"mode": null}}}), refused_at(mode, made)),
        (0, "no kube-proxy", json!({"configuration": {"kubeProxy": null}}), refused_at(mode, made)),
        (0, "nothing", json!({"configuration": null}), refused_at(mode, made)),
        (0, "something else", json!({"configuration": {"kubelet": {"maxPods": 50}}}), Admitted),
    ]).await
}

#[tokio::test(flavor = "multi_thread")]
#[rustfmt::skip]
async fn a_proxy_is_a_url_without_a_login() -> Result<()> {
    let proxy = "spec.configuration.containerd.proxy";
    check(&ApiServer::shared().await?, [
        (0, "a proxy", demo(), proxy,
            json!([{"httpProxy": "http://proxy.example:3128", "noProxy": [".example", "10.0.0.0/8", "*.x", "[::1]"]}]), Admitted),
        (0, "neither", demo(), proxy, json!([{}, {"noProxy": ["x"]}]), refused_at(proxy, "give httpProxy, httpsProxy, or both")),
        (0, "a login", demo(), "spec.configuration.containerd.proxy.httpsProxy", json!(["http://me:secret@proxy:3128"]),
            refused("should match")),
        (0, "no host", demo(), proxy, json!([{"httpProxy": "http://proxy", "noProxy": ["a,b"]}]), refused("should match")),
        (0, "a machine's", demo(), "spec.configuration.machine.proxy", json!([{"httpsProxy": "http://proxy:3128"}]), Admitted),
    ]).await
}
