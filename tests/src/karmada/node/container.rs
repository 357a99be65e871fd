//! A container as a process of this machine: with the command, the arguments and the files of its Pod, as its user and
//! without a capability, and with a root that has nothing else. Only its address is its own, where a Pod has a network
//! of its own: it listens there in place of 0.0.0.0.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::net::Ipv4Addr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Pod, PodSecurityContext, PodSpec};

use super::super::given::Given;
use super::volumes::Volume;

/// The only container of a Pod.
pub struct Container {
    root: PathBuf,
    child: Child,
}

/// What one is started with.
pub struct Start<'a> {
    pub given: &'a Given,
    pub pod: &'a Pod,
    pub volumes: Vec<Volume>,
    /// Its directory; what its other volumes hold is still there when it is started anew.
    pub root: PathBuf,
    pub address: Ipv4Addr,
    /// What names lead to.
    pub hosts: &'a str,
    /// Where it reaches the API of its cluster.
    pub environment: &'a [(&'static str, String)],
    /// What its command refers to, by name.
    pub variables: BTreeMap<String, String>,
}

impl Container {
    /// Starts it.
    pub fn start(start: &Start<'_>) -> Result<Self> {
        let spec = start.pod.spec.as_ref().context("it has no spec")?;
        let (root, user) = (&start.root, spec.security_context.clone().unwrap_or_default());
        for directory in ["etc", "usr/local/bin", "bin"] {
            fs::create_dir_all(root.join(directory))?;
        }
        start.volumes.iter().try_for_each(|volume| mount(root, volume, &user))?;
        let arguments = arguments(spec, &start.variables, start.address);
        let (program, arguments) = arguments.split_first().context("it has no command")?;
        let name = Path::new(program).file_name().context("its command has no name")?.to_string_lossy().into_owned();
        let place = if program.starts_with('/') { program.clone() } else { format!("/usr/local/bin/{name}") };
        let copy = root.join(place.trim_start_matches('/'));
        if !copy.exists() {
            let image = spec.containers.first().and_then(|container| container.image.as_deref()).unwrap_or_default();
            let given = start.given.program(&name, image)?;
            fs::hard_link(&given, &copy).or_else(|_| fs::copy(&given, &copy).map(drop))?;
        }
        ensure!(user.run_as_non_root == Some(true), "it may run as root");
        let id = |id: Option<i64>| id.context("its security context has no user or group");
        let log = File::options().create(true).append(true).open(log(root))?;
        let mut command = Command::new("chroot");
        command
            .arg(format!("--userspec={}:{}", id(user.run_as_user)?, id(user.run_as_group)?))
            .arg(format!("--groups={}", id(user.fs_group)?))
            .arg(root)
            .arg(&place)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin")
            .envs(start.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        resolve(root, start.hosts)?;
        let child = command.spawn().with_context(|| format!("failed to start {name} by chroot, as root"))?;
        Ok(Self { root: root.clone(), child })
    }

    /// Its process: who starts it becomes it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets names lead elsewhere.
    pub fn resolve(&self, hosts: &str) -> Result<()> {
        resolve(&self.root, hosts)
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // One that has ended already is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resolve(root: &Path, hosts: &str) -> Result<()> {
    let path = root.join("etc/hosts");
    match fs::read_to_string(&path).is_ok_and(|now| now == hosts) {
        true => Ok(()),
        false => Ok(fs::write(path, hosts)?),
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

/// Files that it may read, or a directory that it may write.
fn mount(root: &Path, volume: &Volume, user: &PodSecurityContext) -> Result<()> {
    let id = |id: Option<i64>| id.and_then(|id| u32::try_from(id).ok());
    let directory = root.join(volume.path.trim_start_matches('/'));
    fs::create_dir_all(&directory)?;
    let Some(files) = &volume.files else {
        return Ok(chown(&directory, id(user.run_as_user), id(user.fs_group))?);
    };
    for (path, content) in files {
        let file = directory.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&directory))?;
        fs::write(&file, content)?;
        chown(&file, None, id(user.fs_group))?;
        fs::set_permissions(&file, Permissions::from_mode(volume.mode))?;
    }
    Ok(())
}

/// Its command, as a kubelet completes it; but for where it listens.
fn arguments(spec: &PodSpec, variables: &BTreeMap<String, String>, address: Ipv4Addr) -> Vec<String> {
    let Some(container) = spec.containers.first() else { return Vec::new() };
    let address = address.to_string();
    let command = container.command.iter().chain(&container.args).flatten();
    let mut arguments: Vec<String> = command
        .map(|argument| {
            let expand = |text: String, (name, value): (&String, &String)| text.replace(&format!("$({name})"), value);
            let expanded = variables.iter().fold(argument.clone(), expand);
            expanded.replace("0.0.0.0", &address).replace("=:", &format!("={address}:"))
        })
        .collect();
    let probe = container.readiness_probe.as_ref().and_then(|probe| probe.http_get.as_ref());
    let is_https = probe.and_then(|probe| probe.scheme.as_deref()) == Some("HTTPS");
    let is_agent = arguments.iter().any(|argument| argument.ends_with("/karmada-agent"));
    // What these listen at by default, everywhere.
    for (flag, value, has_it) in
        [("--bind-address", address.clone(), is_https), ("--metrics-bind-address", format!("{address}:8080"), is_agent)]
    {
        if has_it && !arguments.iter().any(|argument| argument.starts_with(&format!("{flag}="))) {
            arguments.push(format!("{flag}={value}"));
        }
    }
    arguments
}
