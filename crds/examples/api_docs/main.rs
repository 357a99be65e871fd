//! Writes the pages that follow from the types, the API's reference and the reasons, into a directory:
//! `cargo run -p crds --example api_docs -- docs`.

mod reasons;
mod reference;

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("usage: api_docs DIRECTORY")?);
    std::fs::write(directory.join("api.md"), reference::text()?)?;
    std::fs::write(directory.join("reasons.md"), reasons::text()?)?;
    Ok(())
}
