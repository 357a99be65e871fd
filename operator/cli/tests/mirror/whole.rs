//! A whole bundle by the catalogue for users: upstream's servers are a mirror of what the lab has built. The executor's
//! own reader takes everything from it, and containerd an image.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lab::cache::Cache;
use lab::images::architecture;
use lab::programs::{Programs, component};

use crate::upstream::Upstream;
use crate::wright::Wright;

/// Ended when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn machines_take_a_whole_bundle_that_was_made_of_a_mirror() {
    let kubernetes = component("kubernetes").unwrap().version;
    let upstream = Upstream::of_what_was_built();
    let wright = Wright::new(&upstream);
    let (host, url) = (upstream.address(), format!("http://{}", upstream.address()));
    let from = ["--mirror", &url, "--image-mirror", &host, "--insecure-registry", &host];
    let create = ["create", "--kubernetes", kubernetes, "--arch", architecture()];
    wright.run(&[&create[..], &from].concat()).ended(0, &["7 digests were trusted on first use", "dl.k8s.io"]);
    wright.run(&["verify"]).ended(0, &["verified: every file has its digest, and nothing is missing"]);

    let (server, url) = serve(&wright);
    let digest = bundle::digest::of_file(&wright.path("bundle/index.json")).unwrap();
    let output = Command::new("python3")
        .arg(here().join("tests/mirror/read_bundle.py"))
        .args([&url, &digest, kubernetes])
        .arg(wright.path("cache"))
        .env("PYTHONPATH", here().join("../../executor/ansible"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    crate::wright::said(&output).ended(0, &["14 artifacts"]);
    drop(server);
    import_into_containerd(&wright);
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `wright bundle serve`, and its URL.
fn serve(wright: &Wright) -> (Process, String) {
    let mut command = wright.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut server = Process(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    // The rest is read too: what nobody reads would end it.
    std::thread::spawn(move || lines.for_each(drop));
    let url = first.split(" at ").nth(1).unwrap().split(". ").next().unwrap().to_owned();
    (server, url)
}

/// A containerd of its own takes the pause image as machines do, under its name and with upstream's digest.
fn import_into_containerd(wright: &Wright) {
    let bin = Programs::from_env(&Cache::from_env()).bin(component("containerd").unwrap());
    let socket = wright.path("containerd.sock");
    let cri = ["images", "runtime"].map(|part| format!("\"io.containerd.cri.v1.{part}\""));
    let config = format!(
        "version = 3\nroot = {:?}\nstate = {:?}\ndisabled_plugins = [{}, \"io.containerd.grpc.v1.cri\"]\n\
         [grpc]\naddress = {socket:?}\n",
        wright.path("root"),
        wright.path("state"),
        cri.join(", ")
    );
    std::fs::write(wright.path("containerd.toml"), config).unwrap();
    let mut command = Command::new(bin.join("containerd"));
    command.arg("--config").arg(wright.path("containerd.toml")).stdout(Stdio::null()).stderr(Stdio::null());
    let _containerd = Process(command.spawn().unwrap());
    let begun = Instant::now();
    while !ctr(&bin, &socket, &["version"]).0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "containerd does not answer");
        std::thread::sleep(Duration::from_millis(100));
    }
    let index = wright.index("bundle");
    let pause = index.artifacts.iter().find(|it| it.name == "registry.k8s.io/pause").unwrap();
    let platform = format!("linux/{}", architecture());
    let archive = wright.path("bundle").join(&pause.path).to_string_lossy().into_owned();
    let import = ["images", "import", "--local", "--snapshotter", "native", "--platform", &platform, &archive];
    let (ok, said) = ctr(&bin, &socket, &import);
    assert!(ok, "{said}");
    let (_, listed) = ctr(&bin, &socket, &["images", "ls"]);
    let line = listed.lines().find(|line| line.starts_with(&format!("registry.k8s.io/pause:{} ", pause.version)));
    assert!(line.is_some_and(|line| line.contains(&pause.manifest)), "{listed}");
}

fn ctr(bin: &Path, socket: &PathBuf, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(bin.join("ctr"));
    let output = command.arg("-a").arg(socket).args(["-n", "k8s.io"]).args(arguments).output().unwrap();
    let said = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned()).concat();
    (output.status.success(), said)
}
