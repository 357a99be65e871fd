//! The real collection, roles and all, with one module more: it writes the files that it is given in the way in which
//! the collection's modules write theirs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::Bench;

const WRITE: &str = r#"
DOCUMENTATION = """
module: write
short_description: Writes files
options:
  files:
    type: list
    elements: dict
    suboptions:
      path: {type: str, required: true}
      content: {type: str, required: true}
"""
from ansible_collections.clusterwright.cluster.plugins.module_utils import files

def work(call):
    return {"changed": bool(files.write_all(call.params["files"]))}
"#;

/// Gives a bench the module and the roles.
pub fn complete(bench: &Bench) {
    let cluster = bench.path().join("ansible/ansible_collections/clusterwright/cluster");
    for name in ["plugins", "meta"] {
        fs::remove_file(cluster.join(name)).unwrap();
        let copied = Command::new("cp").arg("-r").arg(source().join(name)).arg(cluster.join(name)).status().unwrap();
        assert!(copied.success());
    }
    fs::write(cluster.join("plugins/modules/write.py"), WRITE).unwrap();
    let runtime = cluster.join("meta/runtime.yml");
    let mut routes = fs::read_to_string(&runtime).unwrap();
    routes.push_str("    write:\n      redirect: clusterwright.cluster.remote\n");
    fs::write(runtime, routes).unwrap();
    symlink(roles(), cluster.join("roles")).unwrap();
    // A lookup of a role's template finds it beside the playbook.
    symlink(roles().join("containerd/templates"), bench.path().join("ansible/playbooks/templates")).unwrap();
}

/// Where the roles are.
pub fn roles() -> PathBuf {
    source().join("roles")
}

/// The collection as it is shipped.
pub fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ansible")
}
