//! The command line of `begin`, `end`, `read`, `watch` and `connect`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use guard::Fence;
use guard::comparison::Comparison;
use guard::fence::FenceState;
use guard::grace_period::GracePeriod;
use guard::network::WANTED;

use crate::failure::Failure;

const USAGE: &str = "guard begin --epoch E --token T --cluster C --host H --run NAMESPACE/NAME --attempt N \
    --steps A,B,C [--uid UID] [--claim UID] [--comparisons RFC3339=TOKEN,...] [--expect-epoch E] [--wait-seconds 45] \
    [--kill-after-seconds 10] | \
    guard end --epoch E --token T [--uid UID] [--wait-seconds 20] [--kill-after-seconds 10] | guard read | guard watch [--wanted FILE] | \
    guard connect ADDRESS:PORT";

/// The verb of the command line, with its options.
#[derive(Debug, PartialEq, Eq)]
pub enum Verb {
    Begin(Begin),
    End(End),
    Read,
    Watch(Watch),
    /// To a port of this machine.
    Connect(SocketAddr),
}

/// A run that wants the machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Begin {
    pub fence_state: FenceState,
    pub steps: Vec<String>,
    /// Of the cluster's machines with the store that gave out the token, oldest first.
    pub comparisons: Vec<Comparison>,
    /// The machine must have been left by exactly this claim, or nothing is touched.
    pub expected_epoch: Option<i64>,
    pub grace_period: GracePeriod,
}

/// A run that leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub fence: Fence,
    /// The UID of the run; empty where it is not known.
    pub uid: String,
    pub grace_period: GracePeriod,
}

/// A machine's Pod network that is kept as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// The file that says what is wanted.
    pub wanted: PathBuf,
}

/// Reads the arguments after the program's name.
pub fn parse(arguments: Vec<OsString>) -> Result<Verb, Failure> {
    let mut arguments = arguments.into_iter().map(|argument| {
        argument.into_string().map_err(|argument| wrong(&format!("{} is no text", argument.display())))
    });
    let verb = arguments.next().unwrap_or_else(|| Ok(String::new()))?;
    if verb == "connect" {
        let address = arguments.next().unwrap_or_else(|| Ok(String::new()))?;
        return match arguments.next() {
            Some(_) => Err(wrong("connect takes one address")),
            None => loopback(&address).map(Verb::Connect),
        };
    }
    let mut options = Options(BTreeMap::new());
    while let Some(name) = arguments.next() {
        let name = name?;
        let value = arguments.next().ok_or_else(|| wrong(&format!("{name} needs a value")))??;
        if options.0.insert(name.clone(), value).is_some() {
            return Err(wrong(&format!("{name} is there twice")));
        }
    }
    let verb = match verb.as_str() {
        "begin" => Verb::Begin(begin(&mut options)?),
        "end" => {
            Verb::End(End { fence: options.fence()?, uid: options.uid()?, grace_period: options.grace_period(20)? })
        }
        "read" => Verb::Read,
        "watch" => Verb::Watch(Watch { wanted: options.path("--wanted", WANTED)? }),
        other => return Err(wrong(&format!("there is no {other:?}"))),
    };
    match options.0.first_key_value() {
        Some((unknown, _)) => Err(wrong(&format!("there is no {unknown}"))),
        None => Ok(verb),
    }
}

fn begin(options: &mut Options) -> Result<Begin, Failure> {
    let comparisons = options.comparisons()?;
    Ok(Begin {
        fence_state: FenceState {
            fence: options.fence()?,
            cluster: options.name("--cluster")?,
            host: options.name("--host")?,
            run: options.name("--run")?,
            uid: options.uid()?,
            claim: options.name_if_any("--claim")?,
            compared_since: comparisons.last().map(|last| last.since.clone()).unwrap_or_default(),
            attempt: options.number("--attempt", Some(0))?,
            open: false,
        },
        steps: options
            .text("--steps")?
            .split(',')
            .filter(|step| !step.is_empty())
            .map(step)
            .collect::<Result<_, _>>()?,
        comparisons,
        expected_epoch: options.optional("--expect-epoch")?,
        grace_period: options.grace_period(45)?,
    })
}

/// An address of the machine itself: the guard is no way into the network behind it.
fn loopback(address: &str) -> Result<SocketAddr, Failure> {
    let parsed: Option<SocketAddr> = address.parse().ok();
    parsed
        .filter(|address| address.ip().is_loopback() && address.port() > 0)
        .ok_or_else(|| wrong(&format!("{address:?} is no loopback address with a port, such as 127.0.0.1:2379")))
}

/// A step's name becomes the name of a link.
fn step(name: &str) -> Result<String, Failure> {
    let fits = name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    fits.then(|| name.to_owned())
        .ok_or_else(|| wrong(&format!("step {name:?} is not a name of lower-case letters, digits and '-'")))
}

struct Options(BTreeMap<String, String>);

impl Options {
    fn text(&mut self, name: &str) -> Result<String, Failure> {
        self.0.remove(name).ok_or_else(|| wrong(&format!("{name} is missing")))
    }

    fn name(&mut self, name: &str) -> Result<String, Failure> {
        let text = self.text(name)?;
        // Two names of 253 characters and a slash; a line of the log has to stay small.
        if text.is_empty() || text.len() > 600 || text.chars().any(char::is_control) {
            return Err(wrong(&format!("{name} is not a name")));
        }
        Ok(text)
    }

    fn uid(&mut self) -> Result<String, Failure> {
        self.name_if_any("--uid")
    }

    fn name_if_any(&mut self, name: &str) -> Result<String, Failure> {
        if self.0.contains_key(name) { self.name(name) } else { Ok(String::new()) }
    }

    fn comparisons(&mut self) -> Result<Vec<Comparison>, Failure> {
        let text = self.0.remove("--comparisons");
        let parsed = text.iter().flat_map(|text| text.split(',')).map(str::parse);
        parsed.collect::<Result<_, _>>().map_err(|none| wrong(&format!("--comparisons: {none}")))
    }

    fn path(&mut self, name: &str, default: &str) -> Result<PathBuf, Failure> {
        let path = PathBuf::from(self.0.remove(name).unwrap_or_else(|| default.to_owned()));
        if path.is_absolute() { Ok(path) } else { Err(wrong(&format!("{name} is not a path from the root"))) }
    }

    fn number(&mut self, name: &str, default: Option<i64>) -> Result<i64, Failure> {
        match (self.0.remove(name), default) {
            (Some(text), _) => text
                .parse()
                .ok()
                .filter(|number| *number >= 0)
                .ok_or_else(|| wrong(&format!("{name} is not a number from 0"))),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(wrong(&format!("{name} is missing"))),
        }
    }

    fn optional(&mut self, name: &str) -> Result<Option<i64>, Failure> {
        if self.0.contains_key(name) { self.number(name, None).map(Some) } else { Ok(None) }
    }

    fn fence(&mut self) -> Result<Fence, Failure> {
        Ok(Fence { epoch: self.number("--epoch", None)?, token: self.number("--token", None)? })
    }

    fn grace_period(&mut self, wait: i64) -> Result<GracePeriod, Failure> {
        let mut seconds = |name, default| {
            let number = self.number(name, Some(default))?;
            // A day is more than anybody waits, and far from any overflow.
            Ok(Duration::from_secs(u64::try_from(number).unwrap_or_default().min(86_400)))
        };
        Ok(GracePeriod { wait: seconds("--wait-seconds", wait)?, kill_after: seconds("--kill-after-seconds", 10)? })
    }
}

fn wrong(what: &str) -> Failure {
    Failure::Usage(format!("{what}; usage: {USAGE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Verb, Failure> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    const BEGIN: &str = "begin --epoch 3 --token 41 --cluster a --host h --run ns/r --attempt 2 --steps etcd,node";

    #[test]
    fn a_begin_names_all_of_its_run() {
        let Ok(Verb::Begin(begin)) = parsed(BEGIN) else { panic!("refused") };
        assert_eq!(begin.fence_state.fence, Fence { epoch: 3, token: 41 });
        assert_eq!((begin.fence_state.run.as_str(), begin.fence_state.attempt), ("ns/r", 2));
        assert_eq!(begin.steps, ["etcd", "node"]);
        assert_eq!(begin.grace_period.wait, Duration::from_secs(45));
        assert!(!begin.fence_state.open);
        assert_eq!(begin.expected_epoch, None);
        let Ok(Verb::Begin(begin)) = parsed(&format!("{BEGIN} --expect-epoch 3")) else { panic!("refused") };
        assert_eq!(begin.expected_epoch, Some(3));
        assert_eq!(begin.fence_state.uid, "");
        let Ok(Verb::Begin(begin)) = parsed(&format!("{BEGIN} --uid 0a-1")) else { panic!("refused") };
        assert_eq!(begin.fence_state.uid, "0a-1");
        assert_eq!(begin.fence_state.claim, "");
        let Ok(Verb::Begin(begin)) = parsed(&format!("{BEGIN} --claim 0b-2")) else { panic!("refused") };
        assert_eq!(begin.fence_state.claim, "0b-2");
    }

    #[test]
    fn a_begin_brings_comparisons_and_remembers_the_newest() {
        let Ok(Verb::Begin(begin)) = parsed(BEGIN) else { panic!("refused") };
        assert_eq!((begin.comparisons.len(), begin.fence_state.compared_since.as_str()), (0, ""));
        let two = format!("{BEGIN} --comparisons 2026-03-01T00:00:00Z=7,2026-05-01T00:00:00Z=40");
        let Ok(Verb::Begin(begin)) = parsed(&two) else { panic!("refused") };
        let tokens: Vec<i64> = begin.comparisons.iter().map(|comparison| comparison.last_token).collect();
        assert_eq!((tokens, begin.fence_state.compared_since.as_str()), (vec![7, 40], "2026-05-01T00:00:00Z"));
    }

    #[test]
    fn an_end_waits_less() {
        let Ok(Verb::End(end)) = parsed("end --epoch 1 --token 2 --kill-after-seconds 0") else { panic!("refused") };
        assert_eq!((end.grace_period.wait, end.grace_period.kill_after), (Duration::from_secs(20), Duration::ZERO));
    }

    #[test]
    fn a_watch_knows_where_the_step_writes_what_is_wanted() {
        let wanted = |line| match parsed(line) {
            Ok(Verb::Watch(watch)) => watch.wanted,
            other => panic!("{other:?}"),
        };
        assert_eq!(wanted("watch"), PathBuf::from("/etc/clusterwright/network.json"));
        assert_eq!(wanted("watch --wanted /tmp/w.json"), PathBuf::from("/tmp/w.json"));
    }

    #[test]
    fn a_connection_goes_to_the_machine_itself_only() {
        for (line, expected) in [("connect 127.0.0.1:2379", "127.0.0.1:2379"), ("connect [::1]:80", "[::1]:80")] {
            assert_eq!(parsed(line).unwrap(), Verb::Connect(expected.parse().unwrap()));
        }
        for line in [
            "connect",
            "connect 10.0.0.1:2379",
            "connect 0.0.0.0:2379",
            "connect localhost:2379",
            "connect 127.0.0.1",
            "connect 127.0.0.1:0",
            "connect 127.0.0.1:2379 127.0.0.1:2380",
        ] {
            assert_eq!(parsed(line).expect_err(line).exit_code(), 64);
        }
    }

    #[test]
    fn what_is_not_meant_is_refused() {
        for line in [
            "",
            "start",
            "read --epoch",
            "read --epoch 1",
            "watch --wanted network.json",
            "watch --epoch 1",
            "end --epoch 1",
            "end --epoch -1 --token 1",
            "end --epoch 1 --token x",
            "end --epoch 1 --epoch 1 --token 1",
            &format!("{BEGIN} --comparisons 7"),
            &format!("{BEGIN} --comparisons 2026-03-01T00:00:00Z=7,"),
            &BEGIN.replace("etcd", "../etcd"),
            &BEGIN.replace("etcd", "run.json"),
            &BEGIN.replace("etcd", "a b"),
        ] {
            let refused = parsed(line).expect_err(line);
            assert_eq!(refused.exit_code(), 64);
            assert!(refused.to_string().contains("usage: guard begin"), "{refused}");
        }
    }
}
