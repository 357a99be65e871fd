//! A container as a process of this machine: with the command, the arguments and the files of its Pod, as its user and
//! without a capability, and with a root that has nothing else. Only its address is its own, where the Pod has a network
//! of its own: it listens there in place of 0.0.0.0.

use std::fs::{self, File, Permissions};
use std::net::Ipv4Addr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use serde_json::Value;
use std::collections::BTreeMap;

use super::given::Given;

/// The only container of a Pod.
pub struct Container {
    root: PathBuf,
    child: Child,
}

/// What one is started with.
pub struct Start<'a> {
    pub given: &'a Given,
    /// The name of its Pod.
    pub pod: &'a str,
    pub template: &'a Value,
    /// What the Secret of its files holds.
    pub secret: &'a BTreeMap<String, ByteString>,
    /// Its directory, which holds what its volumes hold when it is started anew.
    pub root: PathBuf,
    pub address: Ipv4Addr,
    /// What names lead to.
    pub hosts: &'a str,
}

impl Container {
    /// Starts it.
    pub fn start(start: &Start<'_>) -> Result<Self> {
        let spec = &start.template["spec"];
        let root = start.root.clone();
        for directory in ["etc", "usr/local/bin", "bin"] {
            fs::create_dir_all(root.join(directory))?;
        }
        mount(start)?;
        let arguments = arguments(start)?;
        let (program, arguments) = arguments.split_first().context("it has no command")?;
        let name = Path::new(program).file_name().context("its command has no name")?.to_string_lossy().into_owned();
        let place = if program.starts_with('/') { program.clone() } else { format!("/usr/local/bin/{name}") };
        let copy = root.join(place.trim_start_matches('/'));
        if !copy.exists() {
            let given = start.given.program(&name)?;
            fs::hard_link(&given, &copy).or_else(|_| fs::copy(&given, &copy).map(drop))?;
        }
        let number =
            |field: &str| spec["securityContext"][field].as_i64().with_context(|| format!("it has no {field}"));
        let log = File::options().create(true).append(true).open(log(&root))?;
        let mut command = Command::new("chroot");
        command
            .arg(format!("--userspec={}:{}", number("runAsUser")?, number("runAsGroup")?))
            .arg(format!("--groups={}", number("fsGroup")?))
            .arg(&root)
            .arg(&place)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = command.spawn().with_context(|| format!("failed to start {name} by chroot, as root"))?;
        let container = Self { root, child };
        container.resolve(start.hosts)?;
        Ok(container)
    }

    /// Lets names lead elsewhere.
    pub fn resolve(&self, hosts: &str) -> Result<()> {
        let path = self.root.join("etc/hosts");
        match fs::read_to_string(&path).is_ok_and(|now| now == hosts) {
            true => Ok(()),
            false => Ok(fs::write(path, hosts)?),
        }
    }

    /// How it ended, if it has, and the end of its log.
    pub fn ended(&mut self) -> Result<Option<String>> {
        let ended = self.child.try_wait()?;
        Ok(ended.map(|status| format!("{status}\n{}", tail(&self.root))))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where what it prints goes.
fn log(root: &Path) -> PathBuf {
    root.with_extension("log")
}

/// The end of what it has printed.
pub fn tail(root: &Path) -> String {
    let log = fs::read(log(root)).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().rev().take(15).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// Its volumes: the files of a Secret, which it may read, and directories, which it may write.
fn mount(start: &Start<'_>) -> Result<()> {
    let spec = &start.template["spec"];
    let id = |field: &str| spec["securityContext"][field].as_u64().and_then(|id| u32::try_from(id).ok());
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for mount in list(&spec["containers"][0]["volumeMounts"]) {
        let path = mount["mountPath"].as_str().context("a mount has no path")?;
        let directory = start.root.join(path.trim_start_matches('/'));
        fs::create_dir_all(&directory)?;
        let volume = list(&spec["volumes"]).into_iter().find(|volume| volume["name"] == mount["name"]);
        let Some(secret) = volume.map(|volume| volume["secret"].clone()).filter(Value::is_object) else {
            chown(&directory, id("runAsUser"), id("fsGroup"))?;
            continue;
        };
        for item in list(&secret["items"]) {
            let (key, path) = (item["key"].as_str().unwrap_or_default(), item["path"].as_str().unwrap_or_default());
            let content = start.secret.get(key).with_context(|| format!("the Secret has no {key}"))?;
            let file = directory.join(path);
            fs::create_dir_all(file.parent().unwrap_or(&directory))?;
            fs::write(&file, &content.0)?;
            chown(&file, None, id("fsGroup"))?;
            let mode = secret["defaultMode"].as_u64().and_then(|mode| u32::try_from(mode).ok());
            fs::set_permissions(&file, Permissions::from_mode(mode.unwrap_or(0o644)))?;
        }
    }
    Ok(())
}

/// Its command, as the kubelet completes it; but for where it listens.
fn arguments(start: &Start<'_>) -> Result<Vec<String>> {
    let container = &start.template["spec"]["containers"][0];
    let command = container["command"].as_array().context("it has no command")?;
    let address = start.address.to_string();
    let mut arguments: Vec<String> = command
        .iter()
        .filter_map(Value::as_str)
        .map(|argument| argument.replace("$(POD_NAME)", start.pod).replace("0.0.0.0", &address))
        .collect();
    let has_address = arguments.iter().any(|argument| argument.starts_with("--bind-address="));
    // 0.0.0.0 is what these have by default.
    if !has_address && container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS" {
        arguments.push(format!("--bind-address={address}"));
    }
    Ok(arguments)
}
