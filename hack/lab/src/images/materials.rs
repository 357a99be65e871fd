//! What an image is made of, as a bill of materials in CycloneDX's JSON: the crates of its program, Debian's packages
//! and Python's, each by its package URL.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::layout::Labels;
use crate::project;

/// Components by their package URL, so that each is there once.
pub type Components = BTreeMap<String, Value>;

/// The whole bill of an image.
pub fn bill(labels: &Labels, architecture: &str, components: &Components) -> Value {
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": labels.created,
            "component": {
                "type": "container", "name": labels.name, "version": labels.version,
                "properties": [{"name": "architecture", "value": architecture}],
            },
        },
        "components": components.values().collect::<Vec<_>>(),
    })
}

/// The crates that are linked into a package of ours for a target, as Cargo resolves them.
pub fn crates(package: &str, target: &str) -> Result<Components> {
    let said = Command::new("cargo")
        .current_dir(project::path(""))
        .args(["tree", "--locked", "--package", package, "--edges", "normal", "--target", target])
        .args(["--prefix", "none", "--format", "{p}\t{l}"])
        .output()
        .context("failed to run cargo tree")?;
    if !said.status.success() {
        bail!("cargo tree of {package}: {}", String::from_utf8_lossy(&said.stderr).trim());
    }
    Ok(of_cargo(&String::from_utf8_lossy(&said.stdout)))
}

/// Lines of `NAME vVERSION [(PATH)]`, a tab and the licence.
fn of_cargo(said: &str) -> Components {
    let lines = said.lines().filter_map(|line| {
        let (package, license) = line.split_once('\t')?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        let license = license.trim_end_matches(" (*)").trim();
        Some(component(format!("pkg:cargo/{name}@{version}"), name, version, Some(license)))
    });
    lines.collect()
}

/// The packages of Debian and Python in these layers, of which a later one has the last word.
pub fn packages(layers: &[&Path], architecture: &str) -> Result<Components> {
    let (mut debian, mut python) = (Components::new(), Components::new());
    for layer in layers {
        let reading = || format!("failed to read {}", layer.display());
        let mut archive = tar::Archive::new(File::open(layer).with_context(reading)?);
        for entry in archive.entries().with_context(reading)? {
            let mut entry = entry.with_context(reading)?;
            let path = entry.path().with_context(reading)?.to_string_lossy().trim_start_matches("./").to_owned();
            if path == "var/lib/dpkg/status" {
                let mut text = String::new();
                entry.read_to_string(&mut text).with_context(reading)?;
                debian = of_dpkg(&text, architecture);
            } else if let Some((url, value)) = of_python(&path) {
                python.insert(url, value);
            }
        }
    }
    debian.extend(python);
    Ok(debian)
}

/// The installed packages of dpkg's status file.
fn of_dpkg(text: &str, architecture: &str) -> Components {
    let paragraphs = text.split("\n\n").filter_map(|paragraph| {
        let field = |name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let (name, version) = (field("Package:")?, field("Version:")?);
        let installed = field("Status:")? == "install ok installed";
        let encoded = version.replace('+', "%2B").replace(':', "%3A");
        let url = format!("pkg:deb/debian/{name}@{encoded}?arch={architecture}");
        installed.then(|| component(url, name, version, None))
    });
    paragraphs.collect()
}

/// The package whose directory of metadata this path is: `.../site-packages/NAME-VERSION.dist-info/`.
fn of_python(path: &str) -> Option<(String, Value)> {
    let directory = path.strip_suffix(".dist-info/")?.rsplit_once("site-packages/")?.1;
    let (name, version) = directory.rsplit_once('-')?;
    let name = name.to_lowercase().replace('_', "-");
    Some(component(format!("pkg:pypi/{name}@{version}"), &name, version, None))
}

fn component(url: String, name: &str, version: &str, license: Option<&str>) -> (String, Value) {
    let mut value = json!({"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url});
    if let Some(license) = license.filter(|license| !license.is_empty()) {
        // Older crates write a slash for OR.
        value["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    (url, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_lines_are_crates_each_once() {
        let said = "operator v0.1.0 (/src/operator)\tApache-2.0\naxum v0.8.1\tMIT\nserde v1.0.1\tMIT/Apache-2.0\n\
                    axum v0.8.1\tMIT (*)\nnothing\n";
        let found = of_cargo(said);
        let urls: Vec<&String> = found.keys().collect();
        assert_eq!(urls, ["pkg:cargo/axum@0.8.1", "pkg:cargo/operator@0.1.0", "pkg:cargo/serde@1.0.1"]);
        assert_eq!(found["pkg:cargo/serde@1.0.1"]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(found["pkg:cargo/axum@0.8.1"]["licenses"][0]["expression"], "MIT");
    }

    #[test]
    fn packages_that_were_removed_do_not_count() {
        let text = "Package: ca-certificates\nStatus: install ok installed\nVersion: 20230311+deb12u1\n\n\
                    Package: python3-venv\nStatus: deinstall ok config-files\nVersion: 3.11\n";
        let found = of_dpkg(text, "arm64");
        let urls: Vec<&String> = found.keys().collect();
        assert_eq!(urls, ["pkg:deb/debian/ca-certificates@20230311%2Bdeb12u1?arch=arm64"]);
    }

    #[test]
    fn a_layer_is_looked_through_and_the_last_status_counts() {
        let directory = tempfile::tempdir().unwrap();
        let layer = |name: &str, status: &str, wheel: &str| {
            let path = directory.path().join(name);
            let mut tar = tar::Builder::new(File::create(&path).unwrap());
            let mut add = |path: &str, content: &str, kind: tar::EntryType| {
                let mut header = tar::Header::new_gnu();
                header.set_entry_type(kind);
                header.set_size(content.len() as u64);
                tar.append_data(&mut header, path, content.as_bytes()).unwrap();
            };
            add("./var/lib/dpkg/status", status, tar::EntryType::Regular);
            add(wheel, "", tar::EntryType::Directory);
            tar.finish().unwrap();
            path
        };
        let of = |name: &str| format!("Package: {name}\nStatus: install ok installed\nVersion: 1\n");
        let below = layer("a", &of("old"), "./opt/x/");
        let above = layer("b", &of("new"), "./opt/ansible/lib/python3.11/site-packages/ansible_core-2.19.1.dist-info/");
        let found = packages(&[&below, &above], "amd64").unwrap();
        let urls: Vec<&String> = found.keys().collect();
        assert_eq!(urls, ["pkg:deb/debian/new@1?arch=amd64", "pkg:pypi/ansible-core@2.19.1"]);
        let labels = Labels {
            name: "executor".into(),
            version: "1".into(),
            revision: "a".into(),
            created: "2026-11-01T00:00:00Z".into(),
        };
        let bill = bill(&labels, "amd64", &found);
        assert_eq!(bill["components"].as_array().unwrap().len(), 2);
        assert_eq!(bill["metadata"]["component"]["name"], "executor");
    }
}
