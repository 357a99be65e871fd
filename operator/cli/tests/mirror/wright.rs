//! The program, with a bundle and a catalogue of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bundle::index::Index;

use crate::upstream::Upstream;

/// Kubernetes of this catalogue is three small files and an image; `tool` has no checksums.
const SOURCES: &str = "
kubernetes:
  kubelet:
    kind: file
    url: https://dl.example/v{version}/{arch}/kubelet
    checksums: https://dl.example/v{version}/{arch}/kubelet.sha256
  registry.example/kube-proxy: {kind: image, from: 'registry.example/kube-proxy:v{version}'}
components:
  etcd:
    kind: archive
    url: https://releases.example/etcd/v{version}/etcd-v{version}-linux-{arch}.tar.gz
    checksums: https://releases.example/etcd/v{version}/SHA256SUMS
  tool: {kind: file, url: 'https://releases.example/tool-{version}-{arch}'}
";
const MINOR: &str = "{etcd: 3.6.16, tool: '1.0'}";

/// Runs of the program in one directory.
pub struct Wright {
    pub directory: tempfile::TempDir,
    mirror: Option<String>,
}

/// What a run said and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub text: String,
}

impl Wright {
    /// With the small catalogue, and `upstream` as the mirror of everything.
    pub fn new(upstream: &Upstream) -> Self {
        let wright = Self { directory: tempfile::tempdir().unwrap(), mirror: Some(upstream.address()) };
        let catalogue = wright.path("catalogue");
        std::fs::create_dir(&catalogue).unwrap();
        std::fs::write(catalogue.join("sources.yaml"), SOURCES).unwrap();
        std::fs::write(catalogue.join("1.35.yaml"), MINOR).unwrap();
        wright
    }

    /// Without a catalogue of its own, and without a mirror.
    pub fn plain() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), mirror: None }
    }

    /// A path in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `wright bundle` with these arguments, which are relative to its directory; nothing of this machine's
    /// configuration (proxies, logins) is seen.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wright"));
        command.arg("bundle").args(arguments).current_dir(self.directory.path()).env_clear();
        command.env("HOME", self.directory.path()).stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Said {
        said(&self.command(arguments).output().unwrap())
    }

    /// Arguments of a download from the mirror: those given, and where from.
    pub fn with_mirror<'a>(&'a self, arguments: &[&'a str]) -> Vec<String> {
        let host = self.mirror.as_deref().unwrap();
        let mut all: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let options = ["--mirror", &format!("http://{host}/up"), "--image-mirror", host, "--insecure-registry", host];
        all.extend(options.map(str::to_owned));
        all
    }

    /// Arguments of `create` for amd64 by the small catalogue, and more.
    pub fn create_arguments(&self, bundle: &str, more: &[&str]) -> Vec<String> {
        let fixed = ["create", bundle, "--kubernetes", "1.35.4", "--arch", "amd64", "--catalogue", "catalogue"];
        self.with_mirror(&[&fixed, more].concat())
    }

    /// Runs `create`.
    pub fn create(&self, bundle: &str, more: &[&str]) -> Said {
        self.run_all(&self.create_arguments(bundle, more))
    }

    /// Runs it with arguments that are owned.
    pub fn run_all(&self, arguments: &[String]) -> Said {
        self.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The index of a bundle in its directory.
    pub fn index(&self, bundle: &str) -> Index {
        Index::read(&self.path(bundle)).unwrap()
    }
}

impl Said {
    /// Fails unless it ended with that code, and said all of these.
    #[track_caller]
    pub fn ended(self, code: i32, parts: &[&str]) -> String {
        assert_eq!(self.code, code, "{}", self.text);
        for part in parts {
            assert!(self.text.contains(part), "{part:?} is not in\n{}", self.text);
        }
        self.text
    }
}

pub fn said(output: &Output) -> Said {
    let text = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned()).concat();
    println!("{text}");
    Said { code: output.status.code().unwrap_or(-1), text }
}

/// Every file below a directory, by its path there.
pub fn files(directory: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.push(path.strip_prefix(directory).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}
