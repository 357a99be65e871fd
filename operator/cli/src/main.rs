//! `wright`: the command for administrators.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match wright::run(std::env::args_os()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("wright: {error:#}");
            ExitCode::from(2)
        }
    }
}
