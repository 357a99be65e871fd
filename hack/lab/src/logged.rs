//! Runs a long tool: what it says goes to a log file and, line by line, to its task; a failure shows the log's end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cache::create_dir;
use crate::progress::Task;

/// How many of the log's last lines an error carries.
const TAIL: usize = 15;

/// Runs `command` to its end with both its outputs appended to `log`.
pub fn run(command: &mut Command, log: &Path, task: &Task) -> Result<()> {
    if let Some(parent) = log.parent() {
        create_dir(parent)?;
    }
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("failed to open {}", log.display()))?;
    let words = words(command);
    writeln!(file, "+ {words}").with_context(|| format!("failed to write {}", log.display()))?;

    let (reader, writer) = std::io::pipe().context("failed to make a pipe")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().context("failed to make a pipe")?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("failed to start {words}"))?;
    // The command holds the pipe's writing ends, which would keep this from ever seeing its end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).with_context(|| format!("failed to read from {words}"))? > 0 {
        file.write_all(&line).with_context(|| format!("failed to write {}", log.display()))?;
        task.at(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    let status = child.wait().with_context(|| format!("failed to wait for {words}"))?;
    if !status.success() {
        bail!("{words} ended with {status}; the end of {}:\n{}", log.display(), tail(log));
    }
    Ok(())
}

fn words(command: &Command) -> String {
    let mut words = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        words.push(' ');
        // A script given as an argument is in the log's own words already.
        words.push_str(arg.to_string_lossy().lines().next().unwrap_or_default());
    }
    words
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].iter().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Progress;

    #[test]
    fn a_failure_shows_the_end_of_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("logs/tool.log");
        let task = Progress::new().task("tool");
        let error = run(Command::new("sh").args(["-c", "seq 100; exit 3"]), &log, &task).unwrap_err().to_string();
        assert!(error.contains("  100\n") && !error.contains("  10\n"), "{error}");
    }

    #[test]
    fn both_outputs_are_kept_in_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("tool.log");
        let task = Progress::new().task("tool");
        run(Command::new("sh").args(["-c", "echo out; echo err >&2"]), &log, &task).unwrap();
        assert_eq!(fs::read_to_string(&log).unwrap(), "+ sh -c echo out; echo err >&2\nout\nerr\n");
        task.done();
    }
}
