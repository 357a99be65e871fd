//! Repositories of packages: of a small distribution whose lists apt reads from the mirror.

use std::process::Command;

use bundle::digest;

use crate::upstream::Upstream;
use crate::wright::Wright;

const DISTRIBUTION: &str = "
debian12:
  keyring: {path: /etc/os-release, package: small-keyring}
  sources: {amd64: ['deb [trusted=yes] http://debs.example/small stable main']}
  packages: [tool]
";

/// The distribution has `tool` in that version, what it depends on, and something else.
fn distribution(upstream: &Upstream, tool: &str) {
    let package = |name: &str, version: &str, depends: &str| {
        let file = format!("{name}_{version}_amd64.deb");
        let bytes = format!("{name} {version}");
        upstream.publish(&format!("debs.example/small/pool/{file}"), bytes.as_bytes(), None);
        format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\n{depends}Filename: pool/{file}\nSize: {}\nSHA256: {}\n\n",
            bytes.len(),
            digest::of_bytes(bytes.as_bytes())
        )
    };
    let all =
        [package("tool", tool, "Depends: library (>= 1)\n"), package("library", "1.0", ""), package("game", "1", "")];
    let list = all.concat();
    let release = format!(
        "Origin: small\nCodename: stable\nArchitectures: amd64\nComponents: main\nDate: Thu, 26 Nov 2026 10:00:00 UTC\nSHA256:\n {} {} main/binary-amd64/Packages\n",
        digest::of_bytes(list.as_bytes()),
        list.len()
    );
    upstream.publish("debs.example/small/dists/stable/main/binary-amd64/Packages", list.as_bytes(), None);
    upstream.publish("debs.example/small/dists/stable/Release", release.as_bytes(), None);
}

fn wright(upstream: &Upstream) -> Wright {
    let wright = Wright::new(upstream);
    std::fs::write(wright.path("catalogue/distributions.yaml"), DISTRIBUTION).unwrap();
    wright
}

fn add(wright: &Wright) -> Vec<String> {
    let fixed = ["add", "packages", "debian12", "--arch", "amd64", "--bundle", "b", "--catalogue", "catalogue"];
    wright.with_mirror(&fixed)
}

fn names(wright: &Wright, bundle: &str) -> Vec<String> {
    let mut found: Vec<String> =
        wright.index(bundle).artifacts.iter().map(|it| format!("{} {} {}", it.name, it.version, it.os)).collect();
    found.retain(|name| name.ends_with("debian12"));
    found
}

#[test]
fn a_repository_has_what_machines_install_with_all_that_it_needs_and_is_signed() {
    let upstream = Upstream::small();
    distribution(&upstream, "2.0");
    let wright = wright(&upstream);
    let said = wright.create("b", &["--os", "debian12"]).ended(
        0,
        &[
            "a key that signs packages was made in",
            "tool 2.0 debian12/amd64: downloaded, 8 B; its digest is that of the list that debian12 signs",
            "osPackages: {signedBy: ...} is the text of b/os/debian12/amd64/packages.asc",
        ],
    );
    assert!(!said.contains("game"), "{said}");
    let kept = ["InRelease", "Packages", "packages.asc"].map(|name| format!("{name} 20261126T100000Z debian12"));
    let mut expected = [kept.to_vec(), vec!["library 1.0 debian12".into(), "tool 2.0 debian12".into()]].concat();
    expected.sort();
    let mut found = names(&wright, "b");
    found.sort();
    assert_eq!(found, expected);
    is_believed_by_its_key(&wright);
}

/// GnuPG verifies the release by the key beside it, and the list has the digest in the release.
fn is_believed_by_its_key(wright: &Wright) {
    let at = |name: &str| wright.path(&format!("b/os/debian12/amd64/{name}"));
    let keyring = wright.path("key.gpg");
    let gpg = |program: &str, arguments: &[&std::path::Path], flag: &[&str]| {
        let output = Command::new(program).args(flag).args(arguments).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let keyring_text = keyring.display().to_string();
    gpg("gpg", &[&at("packages.asc")], &["--batch", "--output", &keyring_text, "--dearmor"]);
    gpg("gpgv", &[&at("InRelease")], &["--keyring", &keyring_text]);
    let release = std::fs::read_to_string(at("InRelease")).unwrap();
    let list = wright.index("b").artifacts.iter().find(|it| it.name == "Packages").cloned().unwrap();
    assert!(release.contains(&format!("\n {} {} Packages\n", list.sha256, list.size)), "{release}");
}

#[test]
fn the_same_again_changes_nothing_and_a_newer_package_takes_the_place_of_the_former() {
    let upstream = Upstream::small();
    distribution(&upstream, "2.0");
    let wright = wright(&upstream);
    wright.run_all(&add(&wright)).ended(0, &["indexSHA256"]);
    let before = wright.index("b");
    wright.run_all(&add(&wright)).ended(0, &["tool 2.0 debian12/amd64: was there; its digest is that of the lock"]);
    assert_eq!(wright.index("b"), before);
    wright.run(&["import", "b", "far"]).ended(0, &["5 files were copied"]);

    distribution(&upstream, "3.0");
    wright.run_all(&add(&wright)).ended(0, &["tool 3.0 debian12/amd64: downloaded"]);
    let tools = |bundle: &str| -> Vec<String> {
        names(&wright, bundle).into_iter().filter(|name| name.starts_with("tool")).collect()
    };
    assert_eq!(tools("b"), ["tool 3.0 debian12"]);
    wright.run(&["prune", "b"]).ended(0, &["tool_2.0_amd64.deb"]);
    wright.run(&["verify", "b"]).ended(0, &["nothing is missing"]);
    // The far side has the newer one alone, though it had the former.
    wright.run(&["import", "b", "far"]).ended(0, &["+ tool 3.0 debian12/amd64", "- tool 2.0 debian12/amd64"]);
    wright.run(&["verify", "far"]).ended(0, &["nothing is missing"]);
    assert_eq!(tools("far"), ["tool 3.0 debian12"]);
}

#[test]
fn a_package_that_is_not_what_the_list_says_is_refused_and_so_is_what_is_not_known() {
    let upstream = Upstream::small();
    distribution(&upstream, "2.0");
    upstream.publish("debs.example/small/pool/tool_2.0_amd64.deb", b"tool 2.1", None);
    let wright = wright(&upstream);
    wright.run_all(&add(&wright)).ended(2, &["tool 2.0 debian12/amd64", "the list that debian12 signs has"]);
    assert!(!wright.path("b/index.json").exists());
    let with =
        |from: &str, to: &str| add(&wright).into_iter().map(|it| if it == from { to.to_owned() } else { it }).collect();
    let unknown: Vec<String> = with("debian12", "debian9");
    wright.run_all(&unknown).ended(2, &["the catalogue has no packages of debian9, but of debian12"]);
    let other: Vec<String> = with("amd64", "arm64");
    wright.run_all(&other).ended(2, &["the catalogue has no debian12 for arm64"]);
    let more = [add(&wright), vec!["--os-package".into(), "nobody".into()]].concat();
    wright.run_all(&more).ended(2, &["failed to find packages for debian12/amd64", "nobody"]);
}
