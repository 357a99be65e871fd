//! Writes the reference of the API from the types: `cargo run -p crds --example api_docs -- docs/api.md`.

mod reference;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: api_docs FILE")?;
    std::fs::write(path, reference::text()?)?;
    Ok(())
}
