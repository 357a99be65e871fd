//! Writes the CustomResourceDefinitions into a directory, a file each, and the kustomization that names them:
//! `cargo run -p crds --example manifests -- DIR`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: manifests DIR")?;
    for definition in crds::manifests::all() {
        let path = format!("{directory}/{}.yaml", definition.spec.names.plural);
        std::fs::write(path, serde_yaml::to_string(&definition)?)?;
    }
    std::fs::write(format!("{directory}/kustomization.yaml"), crds::manifests::kustomization())?;
    Ok(())
}
