//! The guard's programs, as they are sent to machines: one for each architecture, or one for all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use crate::inputs;

/// A static program of ours is smaller.
const LIMIT: u64 = 64 << 20;
/// Architectures as images name them, and what `uname -m` says there.
const ARCHITECTURES: [(&str, &[&str]); 2] = [("amd64", &["x86_64"]), ("arm64", &["aarch64", "arm64"])];

/// A program and its digest.
#[derive(Clone)]
pub struct Binary {
    /// Its bytes.
    pub content: Vec<u8>,
    /// Their SHA-256, in hex.
    pub sha256: String,
}

impl Binary {
    /// Reads it.
    pub fn read(file: &Path) -> io::Result<Self> {
        if std::fs::metadata(file)?.len() > LIMIT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let content = std::fs::read(file)?;
        let sha256 = inputs::hex_sha256(&content);
        Ok(Self { content, sha256 })
    }
}

/// The guards that an executor has.
#[derive(Clone)]
pub enum Guards {
    /// One for every machine, whatever its architecture.
    Any(Binary),
    /// By architecture; at least one.
    Each(BTreeMap<&'static str, Binary>),
}

impl Guards {
    /// Reads a program, or a directory that holds one for each architecture, named for it: `amd64`, `arm64`.
    pub fn read(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            return Ok(Self::Any(Binary::read(path)?));
        }
        let mut each = BTreeMap::new();
        for (architecture, _) in ARCHITECTURES {
            match Binary::read(&path.join(architecture)) {
                Ok(binary) => drop(each.insert(architecture, binary)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if each.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it holds neither amd64 nor arm64"));
        }
        Ok(Self::Each(each))
    }

    /// The guard for a machine whose `uname -m` says this. An error says what there is.
    pub fn for_machine(&self, uname: &str) -> Result<&Binary, String> {
        match self {
            Self::Any(binary) => Ok(binary),
            Self::Each(each) => named(uname).and_then(|architecture| each.get(architecture)).ok_or_else(|| {
                let names: Vec<&str> = each.keys().copied().collect();
                format!(
                    "the machine is of the architecture {uname:?}, and this executor has guards for {}",
                    names.join(", ")
                )
            }),
        }
    }

    /// Words for a shell that set `s` to the digest that the machine's guard must have; to nothing where there is none
    /// for it.
    pub fn digest_script(&self) -> String {
        match self {
            Self::Any(binary) => format!("s={}", binary.sha256),
            Self::Each(each) => {
                let mut script = String::from("case \"$(uname -m)\" in ");
                for (architecture, names) in ARCHITECTURES {
                    if let Some(binary) = each.get(architecture) {
                        // Writing to a String cannot fail.
                        let _ = write!(script, "{}) s={};; ", names.join("|"), binary.sha256);
                    }
                }
                script + "*) s=;; esac"
            }
        }
    }
}

fn named(uname: &str) -> Option<&'static str> {
    ARCHITECTURES.iter().find(|(_, names)| names.contains(&uname)).map(|(architecture, _)| *architecture)
}

#[cfg(test)]
mod tests {
    use super::Guards;

    fn guards(names: &[&str]) -> std::io::Result<Guards> {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(directory.path().join(name), format!("guard of {name}")).unwrap();
        }
        Guards::read(directory.path())
    }

    #[test]
    fn each_machine_gets_the_guard_of_its_architecture() {
        let both = guards(&["amd64", "arm64"]).unwrap();
        let check = |uname: &str, expected: &str| {
            assert_eq!(both.for_machine(uname).unwrap().content, expected.as_bytes(), "{uname}");
        };
        check("x86_64", "guard of amd64");
        check("aarch64", "guard of arm64");
        check("arm64", "guard of arm64");
        let error = both.for_machine("riscv64").err().unwrap();
        assert_eq!(
            error,
            "the machine is of the architecture \"riscv64\", and this executor has guards for amd64, arm64"
        );
        let one = guards(&["amd64"]).unwrap();
        assert!(one.for_machine("x86_64").is_ok() && one.for_machine("aarch64").is_err());
    }

    #[test]
    fn a_file_is_for_every_machine_and_a_directory_without_guards_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "one").unwrap();
        let any = Guards::read(file.path()).unwrap();
        assert_eq!(any.for_machine("riscv64").unwrap().content, b"one");
        let error = guards(&["s390x"]).err().unwrap().to_string();
        assert!(error.contains("neither amd64 nor arm64"), "{error}");
    }

    #[test]
    fn the_shell_of_a_machine_finds_the_digest_of_its_own() {
        let both = guards(&["amd64", "arm64"]).unwrap();
        let check = |uname: &str, expected: &str| {
            let script = format!("uname() {{ echo {uname}; }}; {}; echo \"$s\"", both.digest_script());
            let said = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), expected, "{uname}");
        };
        check("x86_64", &both.for_machine("x86_64").unwrap().sha256);
        check("aarch64", &both.for_machine("aarch64").unwrap().sha256);
        check("arm64", &both.for_machine("aarch64").unwrap().sha256);
        check("riscv64", "");
    }
}
