//! Through a proxy that stands in for all of upstream's servers.

use std::process::Command;

use lab::cache::Cache;
use lab::images::architecture;
use lab::programs::component;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::upstream::Upstream;
use crate::wright::{Wright, said};

/// The proxy before what the lab has built, and what it runs on.
struct Proxy {
    upstream: lab::upstream::proxy::Proxy,
    _runtime: Runtime,
}

impl Proxy {
    fn start() -> Self {
        let mirror = lab::upstream::router(&Cache::from_env().bundle()).unwrap();
        let runtime = Runtime::new().unwrap();
        let upstream = runtime.block_on(async {
            lab::upstream::proxy::Proxy::start(TcpListener::bind("127.0.0.1:0").await.unwrap(), mirror).unwrap()
        });
        Self { upstream, _runtime: runtime }
    }

    fn hosts(&self) -> Vec<String> {
        self.upstream.hosts().into_iter().collect()
    }
}

/// The hosts of the catalogue. The API of Docker Hub has two names: wright's library takes the one, and machines take
/// the other.
fn all_hosts(docker: &str) -> [&str; 4] {
    ["dl.k8s.io", "github.com", docker, "registry.k8s.io"]
}

fn through(wright: &Wright, proxy: &Proxy, arguments: &[&str]) -> crate::wright::Said {
    let mut command = wright.command(arguments);
    said(&command.env("HTTPS_PROXY", &proxy.upstream.url).env("NO_PROXY", "10.0.0.0/8,.svc").output().unwrap())
}

/// The catalogue as it is, upstream's own names, and programs and images as the lab has built them.
#[test]
fn machines_take_all_from_upstream_by_a_lock_through_a_proxy() {
    let kubernetes = component("kubernetes").unwrap().version;
    let proxy = Proxy::start();
    let wright = Wright::plain();
    std::fs::write(wright.path("ca.crt"), &proxy.upstream.ca).unwrap();
    let lock = ["lock", "--kubernetes", kubernetes, "--arch", architecture(), "--ca", "ca.crt"];
    through(&wright, &proxy, &lock).ended(0, &["7 digests were trusted on first use", "[14/14]", "lockRef"]);
    assert_eq!(proxy.hosts(), all_hosts("index.docker.io"));

    for lock in ["bundle.lock", ""] {
        let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Command::new("python3")
            .arg(here.join("tests/mirror/read_upstream.py"))
            .args([&here.join("../../hack/bundle/catalogue"), &wright.path("ca.crt")])
            .args([&proxy.upstream.url, kubernetes, &wright.path("cache").to_string_lossy(), lock])
            .current_dir(wright.directory.path())
            .env("PYTHONPATH", here.join("../../executor/ansible"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap();
        said(&output).ended(0, &["14 artifacts"]);
        assert_eq!(proxy.hosts(), all_hosts("registry-1.docker.io"), "everything passes the proxy");
    }
}

#[test]
fn a_bundle_is_made_through_the_proxy_of_the_environment_but_for_what_is_reached_without() {
    let kubernetes = component("kubernetes").unwrap().version;
    let proxy = Proxy::start();
    let wright = Wright::plain();
    std::fs::write(wright.path("ca.crt"), &proxy.upstream.ca).unwrap();
    let create = ["create", "--kubernetes", kubernetes, "--arch", architecture()];
    through(&wright, &proxy, &create).ended(2, &["certificate"]);
    through(&wright, &proxy, &[&create[..], &["--ca", "ca.crt"]].concat()).ended(0, &["7 digests were"]);
    through(&wright, &proxy, &["verify"]).ended(0, &["nothing is missing"]);
    proxy.hosts();

    // A mirror of the site is asked without it.
    let upstream = Upstream::small();
    let direct = Wright::new(&upstream);
    let arguments = direct.create_arguments("b", &[]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = direct.command(&arguments);
    command.env("HTTP_PROXY", "http://127.0.0.1:1").env("HTTPS_PROXY", "http://127.0.0.1:1");
    said(&command.output().unwrap()).ended(2, &["127.0.0.1"]);
    said(&command.env("NO_PROXY", "127.0.0.1").output().unwrap()).ended(0, &[]);
    assert_eq!(proxy.hosts(), [""; 0]);
}
