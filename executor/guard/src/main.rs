//! The guard on a machine. Called by the name of a step's link it is a shell; by its own name it begins and ends runs,
//! keeps the Pod network, and connects to a port of the machine.

mod arguments;
mod begin;
mod clock;
mod command_lock;
mod connect;
mod drain;
mod end;
mod failure;
mod journal;
mod processes;
mod scope;
mod shell;
mod state;
mod watch;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use guard::process_owner::Called;

use crate::arguments::Verb;
use crate::failure::Failure;
use crate::state::Directory;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    match work(Path::new(&name), arguments.collect()) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            // Nobody may be there to read it any more.
            let _ = writeln!(std::io::stderr(), "{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn work(name: &Path, arguments: Vec<OsString>) -> Result<u8, Failure> {
    let directory = Directory::of_this_program()?;
    if let Called::Shell { fence, step } = Called::by(name) {
        return shell::run(&directory, fence, step, &arguments);
    }
    let answer = match arguments::parse(arguments)? {
        Verb::Begin(asked) => begin::begin(&directory, &asked)?,
        Verb::End(asked) => end::end(&directory, &asked)?,
        Verb::Read => directory
            .highest()?
            .map_or_else(|| Ok("{}".to_owned()), |highest| serde_json::to_string(&highest).map_err(Failure::json))?,
        Verb::Watch(asked) => return watch::watch(&directory, &asked),
        Verb::Connect(address) => return connect::connect(address),
    };
    // The work is done, whether or not anybody waits for the answer.
    let _ = writeln!(std::io::stdout(), "{answer}");
    Ok(0)
}
