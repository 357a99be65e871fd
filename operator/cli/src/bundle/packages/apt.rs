//! This machine's apt, with lists of its own: nothing of what is installed here counts.

use std::fs;
use std::path::Path;
use std::process::Command;

use ::bundle::packages::{Distribution, Package, Repository, read};
use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use tempfile::TempDir;

use crate::download::DownloadOptions;

/// Where this machine's own authorities are.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// apt of one distribution and architecture.
pub struct Apt {
    directory: TempDir,
    /// URLs of the catalogue's sources, and where they are mirrored.
    mirrored: Vec<(String, String)>,
}

impl Apt {
    /// Reads the lists. Fails with what apt says.
    pub fn new(
        distribution: &Distribution,
        repository: Repository<'_>,
        sources: Option<&Path>,
        downloads: &DownloadOptions,
    ) -> Result<Self> {
        let directory = tempfile::tempdir().context("failed to make a directory for apt")?;
        let mut apt = Self { directory, mirrored: Vec::new() };
        let sources = match sources {
            Some(file) => apt.copied(file)?,
            None => apt.of_catalogue(distribution, repository, downloads)?,
        };
        apt.write("status", "")?;
        let ca = downloads.connection.authorities()?.map(|pem| apt.with_own_authorities(&pem)).transpose()?;
        apt.write("apt.conf", &configuration(apt.directory.path(), &sources, repository.arch, ca.as_deref()))?;
        for name in ["lists/partial", "cache/archives/partial", "etc/preferences.d"] {
            fs::create_dir_all(apt.directory.path().join(name)).context("failed to make a directory for apt")?;
        }
        apt.run("apt-get", &["-q", "update"])?;
        Ok(apt)
    }

    /// The packages of these names and all that they depend on, as on a machine that has nothing.
    pub fn closure(&self, names: &[String]) -> Result<Vec<Package>> {
        let fixed = ["-qq", "-y", "--no-install-recommends", "--print-uris", "install", "--"];
        let names = names.iter().map(String::as_str);
        let uris = self.run("apt-get", &fixed.into_iter().chain(names).collect::<Vec<_>>())?;
        let mut packages = read(&uris, &self.run("apt-cache", &["dumpavail"])?)?;
        packages.iter_mut().for_each(|package| package.url = self.upstream(&package.url));
        ensure!(!packages.is_empty(), "apt names no package: {uris}");
        Ok(packages)
    }

    /// When the newest of the lists was made.
    pub fn date(&self) -> Result<Timestamp> {
        let mut newest: Option<Timestamp> = None;
        let lists = self.directory.path().join("lists");
        for entry in fs::read_dir(&lists).context("failed to look through apt's lists")? {
            let path = entry.context("failed to look through apt's lists")?.path();
            if path.to_string_lossy().ends_with("Release") {
                let text = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
                newest = newest.max(date_in(&String::from_utf8_lossy(&text)));
            }
        }
        newest.context("none of apt's lists has a date")
    }

    fn copied(&self, file: &Path) -> Result<String> {
        let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
        let is_deb822 = text.lines().any(|line| line.starts_with("Types:"));
        self.write(if is_deb822 { "given.sources" } else { "given.list" }, &text)
    }

    /// By what name the distribution itself has it: that of the lock and the index.
    fn upstream(&self, url: &str) -> String {
        let of =
            |(upstream, mirror): &(String, String)| Some(format!("{upstream}{}", url.strip_prefix(mirror.as_str())?));
        self.mirrored.iter().find_map(of).unwrap_or_else(|| url.to_owned())
    }

    fn of_catalogue(
        &mut self,
        distribution: &Distribution,
        repository: Repository<'_>,
        downloads: &DownloadOptions,
    ) -> Result<String> {
        let Repository { os, arch } = repository;
        let lines = distribution.sources.get(arch).with_context(|| format!("the catalogue has no {os} for {arch}"))?;
        let keyring = &distribution.keyring;
        ensure!(
            Path::new(&keyring.path).is_file(),
            "the keys of {os} are not on this machine: install the package {}, which brings {}; or give --os-sources",
            keyring.package,
            keyring.path
        );
        let mirror = downloads.mirror();
        let mut mirrored = Vec::new();
        let mut words = |line: &String| -> String {
            let line = line.replace("{keyring}", &keyring.path);
            let words = line.split(' ').map(|word| match word.contains("://") {
                true => {
                    mirrored.push((word.to_owned(), mirror.file(word)));
                    mirror.file(word)
                }
                false => word.to_owned(),
            });
            words.collect::<Vec<String>>().join(" ") + "\n"
        };
        let text: String = lines.iter().map(&mut words).collect();
        self.mirrored = mirrored;
        self.write("catalogue.list", &text)
    }

    /// apt believes one file alone.
    fn with_own_authorities(&self, pem: &[u8]) -> Result<String> {
        let own = fs::read_to_string(AUTHORITIES).unwrap_or_default();
        self.write("authorities.pem", &format!("{own}\n{}", String::from_utf8_lossy(pem)))
    }

    /// A file of its directory; its path.
    fn write(&self, name: &str, text: &str) -> Result<String> {
        let path = self.directory.path().join(name);
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path.to_string_lossy().into_owned())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        command.args(arguments).env("APT_CONFIG", self.directory.path().join("apt.conf")).env("LC_ALL", "C.UTF-8");
        let output = command.output().with_context(|| {
            format!("failed to run {program}: packages are found by apt; make them on Debian or Ubuntu, or in a container of it")
        })?;
        // A list that could not be read is a warning to apt, which goes on without it.
        let complaint = String::from_utf8_lossy(&output.stderr);
        let failed = !output.status.success()
            || complaint.lines().any(|line| line.starts_with("W: Failed") || line.starts_with("E:"));
        if failed {
            bail!("{program} {} failed: {}", arguments.first().unwrap_or(&""), complaint.trim());
        }
        String::from_utf8(output.stdout).with_context(|| format!("{program} printed no text"))
    }
}

fn configuration(directory: &Path, sources: &str, arch: &str, ca: Option<&str>) -> String {
    let at = |name: &str| format!("{}/{name}", directory.display());
    let mut lines = vec![
        format!("Dir::State \"{}\";", directory.display()),
        format!("Dir::State::lists \"{}\";", at("lists")),
        format!("Dir::State::status \"{}\";", at("status")),
        format!("Dir::Cache \"{}\";", at("cache")),
        format!("Dir::Etc \"{}\";", at("etc")),
        "Dir::Etc::main \"/dev/null\";".to_owned(),
        "Dir::Etc::parts \"/dev/null\";".to_owned(),
        "Dir::Etc::sourceparts \"/dev/null\";".to_owned(),
        format!("Dir::Etc::sourcelist \"{sources}\";"),
        format!("APT::Architecture \"{arch}\";"),
        format!("APT::Architectures {{\"{arch}\";}};"),
        "Acquire::Languages \"none\";".to_owned(),
        "APT::Sandbox::User \"\";".to_owned(),
    ];
    lines.extend(ca.map(|path| format!("Acquire::https::CaInfo \"{path}\";")));
    lines.join("\n") + "\n"
}

/// The date of a release, of which there is none before its signature.
fn date_in(release: &str) -> Option<Timestamp> {
    let text = release.lines().find_map(|line| line.strip_prefix("Date:"))?.trim();
    DateTimeParser::new().parse_timestamp(text.replace("UTC", "GMT")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_a_date() {
        let release =
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nOrigin: Debian\nDate: Sat, 10 May 2025 09:25:31 UTC\n";
        let date = date_in(release).unwrap();
        assert_eq!(date.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string(), "Sat, 10 May 2025 09:25:31 UTC");
        assert_eq!(date_in("Date: yesterday\n"), None);
    }

    #[test]
    fn nothing_of_this_machines_own_configuration_is_read() {
        let text = configuration(Path::new("/x"), "/x/a.list", "arm64", Some("/x/ca"));
        for part in ["main \"/dev/null\"", "parts \"/dev/null\"", "sourceparts \"/dev/null\"", "status \"/x/status\""] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with("Acquire::https::CaInfo \"/x/ca\";\n"), "{text}");
    }
}
