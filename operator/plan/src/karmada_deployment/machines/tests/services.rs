//! What the services of a machine are.

use std::collections::BTreeSet;

use super::super::super::component::Component;
use super::super::super::release::Release;
use super::super::super::tests::world::plane;
use super::super::{Service, Site, exec_start, frontends, served_at, service};
use super::ALL;

/// What else listens on such a machine: SSH, etcd with its metrics, and what says how the endpoint's balancer is.
const OTHERS: [u16; 5] = [22, 2379, 2380, 2381, 8405];

fn services(more: &str, address: &str, files: &str) -> Vec<Service> {
    let object = plane(more);
    let release = Release::wanted(&object.spec).unwrap();
    let etcd = ["https://127.0.0.1:2379".to_owned()];
    let site = Site { address, etcd: &etcd };
    let components = Component::ALL.into_iter().skip(1).filter(|one| one.replicas(&object.spec).is_some());
    components.map(|one| service(&object, release, (one, "1.18.2"), &site, files)).collect()
}

fn value<'a>(service: &'a Service, flag: &str) -> Option<&'a str> {
    let prefix = format!("--{flag}=");
    service.arguments.iter().find_map(|argument| argument.strip_prefix(&prefix))
}

#[test]
fn no_two_programs_of_a_machine_listen_at_the_same_port() {
    let of = |component: Component| {
        let ports = component.ports();
        [ports.serving, ports.health, ports.metrics, ports.balanced].into_iter().flatten()
    };
    let ports: Vec<u16> = Component::ALL.into_iter().flat_map(of).chain(OTHERS).collect();
    assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len(), "{ports:?}");
}

#[test]
fn a_service_listens_at_its_machines_address_or_on_it_alone_and_reads_its_own_files() {
    for service in services(ALL, "10.0.0.7", "f") {
        let ports = service.component.ports();
        for argument in service.arguments.iter().filter(|argument| !argument.starts_with("--service-account-issuer")) {
            assert!(!argument.contains("0.0.0.0") && !argument.contains(".svc"), "{argument}");
            let own = format!("/etc/karmada/pki/{}", service.component.suffix());
            assert!(!argument.contains("/etc/karmada/") || argument.contains(&own), "{argument}");
        }
        let flags: Vec<&str> =
            service.arguments.iter().filter_map(|one| one.split_once('=')).map(|(flag, _)| flag).collect();
        assert_eq!(flags.iter().collect::<BTreeSet<_>>().len(), flags.len(), "{flags:?}");
        assert_eq!(value(&service, "secure-port").map(str::to_owned), ports.serving.map(|port| port.to_string()));
        let expected = match (service.component, ports.serving) {
            (Component::KubeControllerManager, _) => Some("127.0.0.1"),
            (_, serving) => serving.map(|_| "10.0.0.7"),
        };
        assert_eq!(value(&service, "bind-address"), expected, "{:?}", service.component);
        let metrics = ports.metrics.map(|port| format!("127.0.0.1:{port}"));
        assert_eq!(value(&service, "metrics-bind-address").map(str::to_owned), metrics);
        let etcd = service.component.uses_etcd().then_some("https://127.0.0.1:2379");
        assert_eq!(value(&service, "etcd-servers"), etcd);
    }
}

#[test]
fn an_external_etcd_is_asked_where_it_is() {
    let external = "etcd: {external: {endpoints: ['https://10.9.9.9:2379'], secretRef: {name: e}}}";
    let servers = |service: &Service| value(service, "etcd-servers").map(str::to_owned);
    let found: BTreeSet<String> = services(external, "10.0.0.7", "f").iter().filter_map(servers).collect();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["https://10.9.9.9:2379"]);
}

#[test]
fn a_service_is_another_once_its_machine_its_files_or_its_spec_are() {
    let digests = |more, address, files| -> BTreeSet<String> {
        services(more, address, files).into_iter().map(|service| service.digest).collect()
    };
    let now = digests("", "10.0.0.7", "f");
    assert_eq!(now, digests("", "10.0.0.7", "f"));
    assert!(now.is_disjoint(&digests("", "10.0.0.7", "g")));
    let flag = digests("scheduler: {extraArgs: {v: '4'}}", "10.0.0.7", "f");
    assert_eq!(now.difference(&flag).count(), 1);
    // What listens on its machine alone is the same on all.
    assert!(!now.is_disjoint(&digests("", "10.0.0.8", "f")));
}

#[test]
fn what_systemd_would_read_for_itself_reaches_the_program_as_it_is() {
    let mut service = services("", "10.0.0.7", "f").remove(0);
    service.arguments = vec!["--a=50% of $HOME".into(), "--b=\"x\\y\"".into()];
    assert_eq!(
        exec_start(&service),
        r#"/opt/clusterwright/karmada/1.18.2/bin/kube-apiserver "--a=50%% of $$HOME" "--b=\"x\\y\"""#
    );
}

#[test]
fn what_the_api_server_asks_is_behind_the_balancer_of_its_own_machine() {
    let object = plane("search: {}");
    let found = frontends(&object.spec, &["10.0.0.7", "10.0.0.8"]);
    let names: Vec<&str> = found.iter().map(|one| one.component.name()).collect();
    assert_eq!(names, ["karmada-aggregated-apiserver", "karmada-webhook", "karmada-search"]);
    assert_eq!(found[1].backends, ["10.0.0.7:8443", "10.0.0.8:8443"]);
    assert_eq!(served_at(Component::Webhook), Some(("localhost", found[1].port)));
    assert_eq!(served_at(Component::Scheduler), None);
}
