//! Runs one program to its end under a deadline; a failure carries the program's own words.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// What a program left behind when it ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// The exit code; 128 + signal when a signal ended it.
    pub code: i32,
    /// Everything it wrote to standard output.
    pub stdout: String,
    /// Everything it wrote to standard error.
    pub stderr: String,
}

impl Output {
    /// Whether the program exited with 0.
    pub fn ok(&self) -> bool {
        self.code == 0
    }
}

enum Input {
    Empty,
    Bytes(Vec<u8>),
    File(File),
}

/// A program about to be run.
pub struct Invocation {
    command: Command,
    words: String,
    input: Input,
    deadline: Duration,
}

impl Invocation {
    /// A run of `program` without arguments, with a minute of time.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            words: program.as_ref().to_string_lossy().into_owned(),
            command: Command::new(program),
            input: Input::Empty,
            deadline: Duration::from_secs(60),
        }
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            self.words.push(' ');
            self.words.push_str(&arg.as_ref().to_string_lossy());
            self.command.arg(arg);
        }
        self
    }

    /// Sets one environment variable.
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Gives these bytes as standard input; without it the input is empty.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// Gives a file as standard input.
    pub fn input_file(mut self, path: &Path) -> Result<Self> {
        self.input = Input::File(File::open(path).with_context(|| format!("failed to open {}", path.display()))?);
        Ok(self)
    }

    /// How long the program may take in all.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs the program; any exit code is a result, only not running or not ending in time is an error.
    pub fn output(mut self) -> Result<Output> {
        let (stdin, bytes) = match self.input {
            Input::Empty => (Stdio::null(), None),
            Input::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
            Input::File(file) => (Stdio::from(file), None),
        };
        let mut child = self
            .command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("failed to start {}", self.words))?;
        let until = Instant::now() + self.deadline;
        if let (Some(bytes), Some(mut pipe)) = (bytes, child.stdin.take()) {
            // The program may end without reading; that is its own affair.
            thread::spawn(move || pipe.write_all(&bytes).ok());
        }
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let status = wait_until(&mut child, until)?;
        // A grandchild may hold the pipes open: what arrived in a moment after the end is all there is.
        let stdout = stdout.recv_timeout(Duration::from_secs(2)).unwrap_or_default();
        let stderr = stderr.recv_timeout(Duration::from_secs(2)).unwrap_or_default();
        let Some(status) = status else {
            bail!("{} did not end within {} s: {}", self.words, self.deadline.as_secs(), stderr.trim());
        };
        Ok(Output { code: exit_code(status), stdout, stderr })
    }

    /// Runs the program and gives its standard output; another exit code than 0 is an error.
    pub fn run(self) -> Result<String> {
        let words = self.words.clone();
        let output = self.output()?;
        if !output.ok() {
            let said = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
            bail!("{words} failed with {}: {}", output.code, said.trim());
        }
        Ok(output.stdout)
    }
}

/// Runs `program` with `args` within a minute and gives its standard output.
pub fn run<S: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> Result<String> {
    Invocation::new(program).args(args).run()
}

/// The exit code as a shell would tell it.
pub fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).ok();
        }
        sender.send(String::from_utf8_lossy(&bytes).into_owned()).ok();
    });
    receiver
}

fn wait_until(child: &mut Child, until: Instant) -> Result<Option<ExitStatus>> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().context("failed to wait for a program")? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            child.kill().ok();
            child.wait().ok();
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_exit_code_come_back() {
        let output = Invocation::new("sh").args(["-c", "cat; echo err >&2; exit 3"]).input("in").output().unwrap();
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (3, "in", "err\n"));
    }

    #[test]
    fn a_failure_says_what_was_run_and_what_it_said() {
        let error = run("sh", ["-c", "echo no such thing >&2; exit 1"]).unwrap_err().to_string();
        assert!(error.contains("sh -c") && error.contains("no such thing"), "{error}");
    }

    #[test]
    fn a_program_that_hangs_is_ended_at_its_deadline() {
        let started = Instant::now();
        let error = Invocation::new("sleep").args(["30"]).within(Duration::from_millis(50)).run().unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}
