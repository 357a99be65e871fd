//! A process in the middle of an exec shows nothing of itself for a moment: it is not overlooked.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use super::place::{Place, answer, eventually, started};

/// Shows nothing, and after so many seconds what it is again. What a process shows is a part of its memory that it may
/// choose itself.
const HIDES: &str = r#"
import ctypes, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
stat = open('/proc/self/stat').read().rsplit(')', 1)[1].split()
field = lambda number: int(stat[number - 3])
def show(arg_end, env_end):
    text = struct.pack('=12QIi', field(26), field(27), field(45), field(46), field(47), brk, field(28),
                       field(48), arg_end, field(50), env_end, 0, 0, -1)
    map = ctypes.create_string_buffer(text)
    if libc.prctl(35, 14, map, ctypes.c_ulong(len(text)), 0):
        sys.exit('prctl: %d' % ctypes.get_errno())
libc.sbrk.restype = ctypes.c_void_p
brk = libc.sbrk(0)
show(field(48), field(50))
open(sys.argv[1], 'w').close()
time.sleep(float(sys.argv[2]))
show(field(49), field(51))
time.sleep(60)
"#;

/// Hides in its own session, as what a killed run left.
fn hidden(place: &Place, fence: Option<&str>, seconds: &str) -> std::process::Child {
    let ready = place.file("ready");
    let mut hides = Command::new("setsid");
    hides.args(["python3", "-c", HIDES]).arg(&ready).arg(seconds);
    if let Some(fence) = fence {
        let directory = place.file("");
        let directory = directory.to_str().unwrap().trim_end_matches('/').to_owned();
        hides.env(guard::MARK, fence).env(guard::FENCED_BY, directory);
    }
    let child = started(&mut hides);
    eventually("it hides", || ready.exists());
    let shown = |name: &str| fs::read(format!("/proc/{}/{name}", child.id())).unwrap();
    assert!(shown("environ").is_empty() && shown("cmdline").is_empty());
    child
}

#[test]
fn what_shows_nothing_for_a_moment_is_waited_for_and_found() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut hides = hidden(&place, Some("1-1"), "0.4");
    let mut begin = place.begin(1, 2);
    let answer = answer(begin.args(["--wait-seconds", "0", "--kill-after-seconds", "0"]));
    assert_eq!(answer["ended"][0]["pid"], json!(hides.id()), "{answer}");
    assert!(!hides.wait().unwrap().success());
    place.report();
}

#[test]
fn what_shows_nothing_for_good_costs_a_moment_and_is_left_alone() {
    let Some(place) = Place::new() else { return };
    place.begun(1, 1);
    let mut hides = hidden(&place, None, "600");
    let since = Instant::now();
    let mut begin = place.begin(1, 2);
    let answer = answer(begin.args(["--wait-seconds", "0", "--kill-after-seconds", "0"]));
    assert_eq!(answer["ended"], json!([]));
    assert!(since.elapsed() < Duration::from_secs(300), "{:?}", since.elapsed());
    assert!(hides.try_wait().unwrap().is_none(), "it was ended");
    hides.kill().unwrap();
    hides.wait().unwrap();
    place.report();
}

/// It becomes another program all the time, in nobody's scope: as often as it is looked at, some of the looks fall into
/// the middle of it.
#[test]
fn what_becomes_another_program_all_the_time_is_found_each_time() {
    let Some(place) = Place::new() else { return };
    fs::write(place.file("again"), "[ -e ready ] || : >ready; exec sh ./again").unwrap();
    let directory = place.file("");
    let marked = directory.to_str().unwrap().trim_end_matches('/').to_owned();
    place.begun(1, 1);
    for token in 1..=40 {
        let _ = fs::remove_file(place.file("ready"));
        let mut again = Command::new("setsid");
        again.args(["sh", "./again"]).current_dir(&directory);
        again.env(guard::MARK, format!("1-{token}")).env(guard::FENCED_BY, &marked);
        let mut again = started(&mut again);
        eventually("it runs", || place.file("ready").exists());
        let mut begin = place.begin(1, token + 1);
        let answer = answer(begin.args(["--wait-seconds", "0", "--kill-after-seconds", "0"]));
        // Where it was overlooked, the test is not to wait for it.
        if answer["ended"][0]["pid"] != json!(again.id()) {
            again.kill().unwrap();
        }
        assert_eq!(again.wait().unwrap().signal(), Some(Signal::SIGKILL as i32));
        assert_eq!(answer["ended"][0]["pid"], json!(again.id()), "it was overlooked at token {token}: {answer}");
    }
    place.report();
}
