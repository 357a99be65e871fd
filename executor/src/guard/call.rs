//! A call to a machine over SSH: one command and its standard input. Pure.
//!
//! The login shell may be any, so the command is one line with words in single quotes. Where root is reached by sudo,
//! its password goes first through the standard input; sudo may not ask for it, so the script reads up to a line that
//! it knows.

use std::fmt::Write as _;

use crds::StoreComparison;
use crds::inputs::HostIdentity;
use crds::playbook_run::Fence;

use super::binary::{Binary, Guards};
use super::end_budget::EndBudget;
use super::identity;

/// Ends what is for sudo on the standard input; on the standard output it says that the script runs.
pub const BEGUN: &str = "clusterwright-begun";
/// A file that was sent is on the machine's disk.
pub const RECEIVED: &str = "clusterwright-received";
/// The machine has no guard, or another; what `uname -m` says there follows.
pub const MISSING: &str = "clusterwright-guard-missing";

/// How the script comes to run as root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// The user is root, or need not be.
    Already,
    /// Through sudo, with a password if there is one.
    Sudo(Option<Vec<u8>>),
}

/// One command and what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// For the login shell.
    pub command: String,
    /// Its standard input: may hold a password.
    pub input: Vec<u8>,
}

/// The arguments of the guard for a run on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// The Host's claim epoch.
    pub epoch: i64,
    /// The run's token.
    pub token: i64,
    /// The cluster's name; empty for none.
    pub cluster: String,
    /// The Host's name.
    pub host: String,
    /// NAMESPACE/NAME.
    pub run: String,
    /// The UID of the PlaybookRun, if it is known.
    pub uid: Option<String>,
    /// The UID of the Machine that has claimed the Host, if one has.
    pub claim: Option<String>,
    /// The attempt.
    pub attempt: i32,
    /// The steps' names.
    pub steps: Vec<String>,
    /// Of the cluster's machines with the metadata cluster, oldest first.
    pub comparisons: Vec<StoreComparison>,
    /// The machine must have been left by exactly this claim.
    pub expected_epoch: Option<i64>,
    /// Which machine it must be.
    pub identity: Option<HostIdentity>,
}

impl Begin {
    fn arguments(&self) -> String {
        let words = [
            ("--epoch", self.epoch.to_string()),
            ("--token", self.token.to_string()),
            ("--cluster", self.cluster.clone()),
            ("--host", self.host.clone()),
            ("--run", self.run.clone()),
            ("--attempt", self.attempt.to_string()),
            ("--steps", self.steps.join(",")),
        ];
        let uid = self.uid.clone().map(|uid| ("--uid", uid));
        let claim = self.claim.clone().map(|claim| ("--claim", claim));
        let comparisons = self.comparisons.iter();
        let comparisons: Vec<String> = comparisons.map(|one| format!("{}={}", one.since.0, one.last_token)).collect();
        let comparisons = (!comparisons.is_empty()).then(|| ("--comparisons", comparisons.join(",")));
        let expected = self.expected_epoch.map(|epoch| ("--expect-epoch", epoch.to_string()));
        let all = words.iter().chain(&uid).chain(&claim).chain(&comparisons).chain(&expected);
        all.fold(String::from("begin"), |mut text, (name, value)| {
            // Writing to a String cannot fail.
            let _ = write!(text, " {name} {}", quoted(value));
            text
        })
    }
}

/// Lets the guard begin, if it is the one for the machine.
pub fn begin(root: &Root, directory: &str, guards: &Guards, begin: &Begin) -> Call {
    let script = format!(
        "{}d={directory}; {}; if [ \"$(sha256sum 2>/dev/null <\"$d/guard\")\" = \"$s  -\" ]; then exec \"$d/guard\" {}; fi; \
         echo {MISSING} \"$(uname -m)\"",
        identity::check(begin.identity.as_ref()),
        guards.digest_script(),
        begin.arguments(),
        directory = quoted(directory),
    );
    call(root, &script, &[])
}

/// Sends the guard and lets it begin. It comes to its place only after it has taken the machine over: a run that was
/// overtaken does not put its own, older one there. What was left of an upload long ago is removed.
pub fn install(root: &Root, directory: &str, guard: &Binary, begin: &Begin) -> Call {
    let script = format!(
        "{}umask 022; d={directory}; mkdir -p \"$d\" && find \"$d\" -maxdepth 1 -name \".guard.*\" -mmin +60 -delete && \
         t=$(mktemp \"$d/.guard.XXXXXXXX\") || exit 1; \
         cat >\"$t\" && [ \"$(sha256sum <\"$t\")\" = \"{sha256}  -\" ] && chmod 755 \"$t\" && sync \"$t\" && \
         \"$t\" {} </dev/null && mv -f \"$t\" \"$d/guard\" && sync \"$d\"; c=$?; rm -f \"$t\"; exit $c",
        identity::check(begin.identity.as_ref()),
        begin.arguments(),
        directory = quoted(directory),
        sha256 = guard.sha256,
    );
    call(root, &script, &guard.content)
}

/// Asks the guard to end what this run left, and whether the machine is quiet. Where no guard is, the run was stopped
/// before its first command.
pub fn end(root: &Root, directory: &str, fence: Fence, uid: Option<&str>, each: &EndBudget) -> Call {
    let Fence { epoch, token } = fence;
    let uid = uid.map(|uid| format!(" --uid {}", quoted(uid))).unwrap_or_default();
    let script = format!(
        "g={}/guard; if [ -x \"$g\" ]; then exec \"$g\" end --epoch {epoch} --token {token}{uid} --wait-seconds {} \
         --kill-after-seconds {}; fi; echo \"{{\\\"quiet\\\":true}}\"",
        quoted(directory),
        each.wait.as_secs(),
        each.kill_after.as_secs()
    );
    call(root, &script, &[])
}

/// Reads the highest fence, as any user; nothing where no guard is.
pub fn read(directory: &str, identity: Option<&HostIdentity>) -> Call {
    let script = format!(
        "{}g={}/guard; if [ -x \"$g\" ]; then exec \"$g\" read; fi; echo \"{{}}\"",
        identity::check(identity),
        quoted(directory)
    );
    call(&Root::Already, &script, &[])
}

/// The words for the login shell that connect to a port of the machine, as any user, by the shell of a step: what they
/// read and say is the port's.
pub fn connect(directory: &str, shell: &str, address: &str) -> String {
    let script = format!("exec {}/guard connect {address}", quoted(directory));
    format!("{} -c {}", quoted(shell), quoted(&script))
}

/// The words for the login shell that write what they read into a file, as root, by the shell of a step. Before it they
/// read [`head`]. [`RECEIVED`] is said once what was read to its end is on the disk; a part stays where it is not. The
/// directory is there, and the file is made anew: nobody else may read it.
pub fn receive(root: &Root, shell: &str, file: &str) -> String {
    let script = format!(
        "umask 077; f={}; rm -f \"$f\" && set -C && cat >\"$f\" && sync \"$f\" && echo {RECEIVED}",
        quoted(file)
    );
    call(root, &format!("exec {} -c {}", quoted(shell), quoted(&script)), &[]).command
}

/// The words for the login shell that write a snapshot of the machine's member of etcd below a directory, as root, by
/// the shell of a step, and say its bytes after [`BEGUN`]. Before it they read [`head`]. The directory is made anew,
/// and removed however this ends but by a kill. After the head they read a line with the bytes that must be free;
/// `full` begins the complaint where fewer are.
pub fn spool(root: &Root, shell: &str, directory: &str, etcdctl: &str, full: &str) -> String {
    let script = format!(
        "IFS= read -r n; umask 077; d={}; rm -rf \"$d\"; trap 'rm -rf \"$d\"' EXIT; trap 'exit 1' HUP INT TERM PIPE; \
         PATH=/usr/local/bin:$PATH; mkdir -p \"$d\" || exit 1; f=$(($(stat -f -c \"%a * %S\" \"$d\"))) || exit 1; \
         if [ \"$f\" -lt \"$n\" ]; then echo \"{full}$f bytes are free in $d, and $n are needed\" >&2; exit 1; fi; \
         s=$({etcdctl} snapshot save \"$d/snapshot.db\" 2>&1) || {{ echo \"$s\" >&2; exit 1; }}; cat \"$d/snapshot.db\"",
        quoted(directory)
    );
    call(root, &format!("exec {} -c {}", quoted(shell), quoted(&script)), &[]).command
}

/// What a call reads before its data: a password for sudo, if there is one, and the line that ends it.
pub fn head(password: Option<&[u8]>) -> Vec<u8> {
    let mut head = password.map(<[u8]>::to_vec).unwrap_or_default();
    if password.is_some() {
        head.push(b'\n');
    }
    head.extend_from_slice(BEGUN.as_bytes());
    head.push(b'\n');
    head
}

fn call(root: &Root, script: &str, data: &[u8]) -> Call {
    let (sudo, password) = match root {
        Root::Already => ("", None),
        Root::Sudo(None) => ("sudo -n ", None),
        // An empty prompt is no text for the log.
        Root::Sudo(Some(password)) => ("sudo -S -p \"\" ", Some(password.as_slice())),
    };
    let mut input = head(password);
    input.extend_from_slice(data);
    let whole = format!("while IFS= read -r l && [ \"$l\" != {BEGUN} ]; do :; done; l=; echo {BEGUN}; {script}");
    Call { command: format!("{sudo}/bin/sh -c {}", quoted(&whole)), input }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::{Command, Output, Stdio};

    use sha2::{Digest, Sha256};

    use std::time::Duration;

    use super::super::end_budget::end_budget;
    use super::{
        BEGUN, Begin, Binary, Call, Fence, Guards, MISSING, RECEIVED, Root, begin, connect, end, head, install, read,
        receive,
    };

    fn run(call: &Call, path: &Path) -> Output {
        let path = format!("{}:/usr/bin:/bin", path.display());
        let mut child = Command::new("/bin/sh")
            .args(["-c", &call.command])
            .env("PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let _ = stdin.write_all(&call.input);
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    fn text(output: &Output) -> (Option<i32>, String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn program(file: &Path, content: &str) {
        std::fs::write(file, content).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn asked() -> Begin {
        Begin {
            epoch: 3,
            token: 41,
            cluster: String::new(),
            host: "w1".into(),
            run: "n/r".into(),
            uid: None,
            claim: None,
            attempt: 0,
            steps: vec!["prepare".into(), "node".into()],
            comparisons: Vec::new(),
            expected_epoch: None,
            identity: None,
        }
    }

    fn binary(content: &str) -> Binary {
        Binary { content: content.into(), sha256: sha256(content) }
    }

    fn sha256(content: &str) -> String {
        Sha256::digest(content.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    const FENCE: Fence = Fence { epoch: 3, token: 41 };

    /// A program in the guard's place that says how it was called.
    const SAYS: &str = "#!/bin/sh\nprintf '[%s]' \"$@\"; echo; cat\n";

    #[test]
    fn the_guard_is_put_in_its_place_and_the_next_time_it_is_there() {
        let machine = tempfile::tempdir().unwrap();
        let directory = machine.path().join("it's here/guard");
        let directory = directory.to_str().unwrap();
        let guard = binary(SAYS);
        let guards = Guards::Any(guard.clone());
        let said = "[begin][--epoch][3][--token][41][--cluster][][--host][w1][--run][n/r][--attempt][0][--steps][prepare,node]\n";
        let first = run(&begin(&Root::Already, directory, &guards, &asked()), machine.path());
        assert_eq!(text(&first), (Some(0), format!("{BEGUN}\n{MISSING} {}\n", std::env::consts::ARCH), String::new()));
        let call = install(&Root::Already, directory, &guard, &asked());
        assert_eq!(text(&run(&call, machine.path())), (Some(0), format!("{BEGUN}\n{said}"), String::new()));
        let names: Vec<_> = std::fs::read_dir(directory).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["guard"]);
        let again = run(&begin(&Root::Already, directory, &guards, &asked()), machine.path());
        assert_eq!(text(&again), (Some(0), format!("{BEGUN}\n{said}"), String::new()));
    }

    #[test]
    fn a_run_that_fences_says_which_claim_must_have_left_the_machine() {
        let mut asked = asked();
        assert!(!asked.arguments().contains("--expect-epoch"));
        asked.uid = Some("u1".into());
        asked.expected_epoch = Some(3);
        assert!(asked.arguments().contains(" --uid 'u1'"), "{}", asked.arguments());
        assert!(asked.arguments().ends_with(" --expect-epoch '3'"), "{}", asked.arguments());
    }

    #[test]
    fn a_run_brings_the_comparisons_that_its_cluster_had() {
        let mut asked = asked();
        assert!(!asked.arguments().contains("--comparisons"));
        let comparison = |since: &str, last_token| {
            serde_json::from_value(serde_json::json!({"since": since, "lastToken": last_token})).unwrap()
        };
        asked.comparisons = vec![comparison("2026-03-01T00:00:00Z", 7), comparison("2026-05-01T00:00:00Z", 40)];
        let expected = " --comparisons '2026-03-01T00:00:00Z=7,2026-05-01T00:00:00Z=40'";
        assert!(asked.arguments().ends_with(expected), "{}", asked.arguments());
    }

    #[test]
    fn a_guard_that_refuses_is_not_put_in_the_others_place() {
        let machine = tempfile::tempdir().unwrap();
        let directory = machine.path().to_str().unwrap();
        program(&machine.path().join("guard"), "newer");
        let refuses = "#!/bin/sh\necho clusterwright-guard: refused: lower >&2; exit 79\n";
        let call = install(&Root::Already, directory, &binary(refuses), &asked());
        let (code, _, stderr) = text(&run(&call, machine.path()));
        assert_eq!((code, stderr.as_str()), (Some(79), "clusterwright-guard: refused: lower\n"));
        assert_eq!(std::fs::read_to_string(machine.path().join("guard")).unwrap(), "newer");
        assert_eq!(std::fs::read_dir(machine.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_guard_that_did_not_arrive_whole_is_not_run() {
        let machine = tempfile::tempdir().unwrap();
        let directory = machine.path().to_str().unwrap();
        let other = Binary { content: SAYS.into(), sha256: sha256("another") };
        let call = install(&Root::Already, directory, &other, &asked());
        let (code, stdout, _) = text(&run(&call, machine.path()));
        assert_eq!((code, stdout), (Some(1), format!("{BEGUN}\n")));
        assert_eq!(std::fs::read_dir(machine.path()).unwrap().count(), 0);
    }

    #[test]
    fn sudo_gets_its_password_and_the_guard_does_not_whether_it_is_asked_for_or_not() {
        let machine = tempfile::tempdir().unwrap();
        let directory = machine.path().to_str().unwrap();
        program(&machine.path().join("guard"), SAYS);
        // Stands for sudo: asks for a password, or does not.
        let asks = "#!/bin/sh\nread -r p; [ \"$p\" = 'a b\\' ] || exit 1; while [ \"$1\" != /bin/sh ]; do shift; done; exec \"$@\"\n";
        let not = "#!/bin/sh\nwhile [ \"$1\" != /bin/sh ]; do shift; done; exec \"$@\"\n";
        for sudo in [asks, not] {
            program(&machine.path().join("sudo"), sudo);
            let root = Root::Sudo(Some(b"a b\\".to_vec()));
            let call = end(&root, directory, FENCE, None, &end_budget(1, Duration::from_secs(70)));
            assert!(!call.command.contains("a b"), "{}", call.command);
            let (code, stdout, _) = text(&run(&call, machine.path()));
            let expected =
                format!("{BEGUN}\n[end][--epoch][3][--token][41][--wait-seconds][15][--kill-after-seconds][8]\n");
            assert_eq!((code, stdout), (Some(0), expected));
        }
    }

    #[test]
    fn a_machine_that_the_guard_never_came_to_is_quiet() {
        let machine = tempfile::tempdir().unwrap();
        let call =
            end(&Root::Already, machine.path().to_str().unwrap(), FENCE, None, &end_budget(1, Duration::from_secs(70)));
        assert_eq!(text(&run(&call, machine.path())).1, format!("{BEGUN}\n{{\"quiet\":true}}\n"));
    }

    #[test]
    fn a_connection_is_made_by_the_shell_of_its_step() {
        let machine = tempfile::tempdir().unwrap();
        let directory = machine.path().join("it's here");
        std::fs::create_dir(&directory).unwrap();
        program(&directory.join("guard"), SAYS);
        // Stands for the shell of the step.
        let shell = directory.join("backup-etcd");
        program(&shell, "#!/bin/sh\nprintf 'by %s: ' \"${0##*/}\"; exec /bin/sh \"$@\"\n");
        let command = connect(directory.to_str().unwrap(), shell.to_str().unwrap(), "127.0.0.1:2379");
        let said = run(&Call { command, input: b"bytes".to_vec() }, machine.path());
        let expected = "by backup-etcd: [connect][127.0.0.1:2379]\nbytes";
        assert_eq!(text(&said), (Some(0), expected.to_owned(), String::new()));
    }

    #[test]
    fn a_file_is_received_as_root_by_the_shell_of_its_step_and_is_its_owners_alone() {
        let machine = tempfile::tempdir().unwrap();
        let place = machine.path().join("it's here");
        std::fs::create_dir(&place).unwrap();
        let shell = place.join("stage-backup");
        program(&shell, "#!/bin/sh\necho by \"${0##*/}\" >&2; exec /bin/sh \"$@\"\n");
        program(
            &machine.path().join("sudo"),
            "#!/bin/sh\nread -r p; [ \"$p\" = a-password ] || exit 1; shift 3; exec \"$@\"\n",
        );
        let file = place.join("snapshot.db.part");
        let data = [&b"clusterwright-begun\nbinary\0\xff\n"[..], &[7; 100_000]].concat();
        for (root, password) in
            [(Root::Already, None), (Root::Sudo(Some(b"a-password".to_vec())), Some(&b"a-password"[..]))]
        {
            // Longer, and with other rights: nothing of it stays.
            std::fs::write(&file, vec![1; 200_000]).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
            let command = receive(&root, shell.to_str().unwrap(), file.to_str().unwrap());
            assert!(!command.contains("a-password"), "{command}");
            let said = run(&Call { command, input: [head(password), data.clone()].concat() }, machine.path());
            let expected = format!("{BEGUN}\n{RECEIVED}\n");
            assert_eq!(text(&said), (Some(0), expected, "by stage-backup\n".to_owned()));
            assert!(std::fs::read(&file).unwrap() == data);
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let nowhere = place.join("none/snapshot.db.part");
        let command = receive(&Root::Already, shell.to_str().unwrap(), nowhere.to_str().unwrap());
        let (code, said, _) = text(&run(&Call { command, input: head(None) }, machine.path()));
        assert!(code != Some(0) && !said.contains(RECEIVED), "{said}");
    }

    #[test]
    fn a_snapshot_is_written_to_a_directory_that_is_removed_and_refused_where_it_has_no_room() {
        let machine = tempfile::tempdir().unwrap();
        let place = machine.path().join("it's here/spool");
        let shell = machine.path().join("backup-etcd");
        program(&shell, "#!/bin/sh\nexec /bin/sh \"$@\"\n");
        // Stands for etcdctl.
        program(&machine.path().join("saves"), "#!/bin/sh\necho noise >&2; printf 'bin\\0ary' >\"$3\"; echo Saved\n");
        program(
            &machine.path().join("fails"),
            "#!/bin/sh\necho half >\"$3\"; echo first; echo no leader >&2; exit 1\n",
        );
        let spool = |etcdctl: &str, room: u64| {
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("left"), "over").unwrap();
            let (shell, place) = (shell.to_str().unwrap(), place.to_str().unwrap());
            let command = super::spool(&Root::Already, shell, place, etcdctl, "full: ");
            let input = [head(None), format!("{room}\n").into_bytes()].concat();
            text(&run(&Call { command, input }, machine.path()))
        };
        assert_eq!(spool("saves", 1), (Some(0), format!("{BEGUN}\nbin\0ary"), String::new()));
        assert!(!place.exists());
        assert_eq!(spool("fails", 1), (Some(1), format!("{BEGUN}\n"), "first\nno leader\n".to_owned()));
        assert!(!place.exists());
        let (code, said, complaint) = spool("saves", u64::MAX >> 1);
        assert_eq!((code, said), (Some(1), format!("{BEGUN}\n")));
        assert!(complaint.starts_with("full: ") && complaint.contains("9223372036854775807 are needed"), "{complaint}");
        assert!(!place.exists());
    }

    #[test]
    fn a_machine_without_a_guard_knows_no_fence() {
        let machine = tempfile::tempdir().unwrap();
        let directory = machine.path().to_str().unwrap();
        assert_eq!(text(&run(&read(directory, None), machine.path())).1, format!("{BEGUN}\n{{}}\n"));
        program(&machine.path().join("guard"), SAYS);
        assert_eq!(text(&run(&read(directory, None), machine.path())).1, format!("{BEGUN}\n[read]\n"));
    }
}
