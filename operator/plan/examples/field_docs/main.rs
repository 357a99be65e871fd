//! Writes the page of what an edit of each field does into a directory:
//! `cargo run -p plan --example field_docs -- docs`.

mod clusters;
mod declared;
mod effect;
mod known;
mod leaves;
mod page;
mod rows;
mod sets;

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("usage: field_docs DIRECTORY")?);
    std::fs::write(directory.join("fields.md"), page::text()?)?;
    Ok(())
}
