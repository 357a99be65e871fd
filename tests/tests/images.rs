//! A layout as `make images` writes it is pushed to a registry that wants a login: the index under its tag, an
//! image for each architecture, and what is said of them.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::registry::{PASSWORD, Registry, USER};
use lab::images::archive::{Layer, Settings};
use lab::images::layout::{self, Image, Labels};
use lab::images::provenance::statement;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn write(directory: &Path) -> Result<String> {
    let labels = Labels {
        name: "operator".into(),
        version: "1.2.3".into(),
        revision: "0123abc".into(),
        created: "2026-11-01T00:00:00Z".into(),
    };
    let image = |architecture: &'static str| -> Result<Image> {
        let file = directory.join(format!("{architecture}.tar"));
        let layer = Layer::keep(&file, |path| Ok(std::fs::write(path, format!("a layer for {architecture}"))?))?;
        let settings = Settings { entrypoint: vec!["/usr/local/bin/operator".into()], ..Settings::default() };
        let materials = json!({"bomFormat": "CycloneDX", "of": architecture});
        Ok(Image { architecture, settings, layers: vec![layer], materials })
    };
    let images = [image("amd64")?, image("arm64")?];
    let provenance = |digest: &str| statement(&labels, digest, &["amd64", "arm64"]);
    layout::write(&directory.join("operator"), &labels, &images, provenance)
}

async fn push(registry: &Registry, layout: &Path, logins: &Path) -> Result<ExitCode> {
    let target = format!("{}/clusterwright/operator", registry.host());
    let arguments = ["wright", "layout", "push", &layout.display().to_string(), &target, "--insecure-registry"];
    let more = [registry.host(), "--logins".to_owned(), logins.display().to_string()];
    wright::run(arguments.into_iter().map(str::to_owned).chain(more).map(Into::into)).await
}

/// What the registry has at a path of the repository, for who is logged in.
async fn get(registry: &Registry, path: &str) -> Result<Value> {
    let mut stream = tokio::net::TcpStream::connect(registry.host()).await?;
    let login = STANDARD.encode(format!("{USER}:{PASSWORD}"));
    let request = format!(
        "GET /v2/clusterwright/operator/{path} HTTP/1.0\r\nHost: {}\r\nAuthorization: Basic {login}\r\n\
         Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json\r\n\r\n",
        registry.host()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.contains(" 200 "), "{path}: {head}\n{body}");
    Ok(serde_json::from_str(body)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_pushed_with_what_its_images_are_made_of_and_how() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let digest = write(directory.path())?;
    let layout = directory.path().join("operator");
    let registry = Registry::start().await?;

    let nobody = directory.path().join("nobody");
    std::fs::create_dir(&nobody)?;
    let refused = push(&registry, &layout, &nobody).await.err().context("anybody may push")?;
    ensure!(format!("{refused:#}").contains("failed to push"), "{refused:#}");

    let login = registry.login()?;
    push(&registry, &layout, &login).await?;
    // Again, what is there stays.
    push(&registry, &layout, &login).await?;
    let index = get(&registry, "manifests/1.2.3").await?;
    ensure!(index == get(&registry, &format!("manifests/{digest}")).await?, "the tag is of another index");
    let platforms: Vec<&Value> =
        index["manifests"].as_array().into_iter().flatten().map(|it| &it["platform"]["architecture"]).collect();
    ensure!(platforms == ["amd64", "arm64"], "{index}");

    let said = async |subject: &str, kind: &str| -> Result<Value> {
        let list = get(&registry, &format!("manifests/{}", subject.replace(':', "-"))).await?;
        let referring = &list["manifests"][0];
        ensure!(referring["artifactType"] == kind, "{list}");
        let manifest = get(&registry, &format!("manifests/{}", text(&referring["digest"]))).await?;
        ensure!(manifest["subject"]["digest"] == subject, "{manifest}");
        get(&registry, &format!("blobs/{}", text(&manifest["layers"][0]["digest"]))).await
    };
    let provenance = said(&digest, "application/vnd.in-toto+json").await?;
    ensure!(provenance["subject"][0]["digest"]["sha256"] == digest["sha256:".len()..], "{provenance}");
    for image in index["manifests"].as_array().into_iter().flatten() {
        let bill = said(text(&image["digest"]), "application/vnd.cyclonedx+json").await?;
        ensure!(bill["of"] == image["platform"]["architecture"], "{bill}");
        let manifest = get(&registry, &format!("manifests/{}", text(&image["digest"]))).await?;
        let config = get(&registry, &format!("blobs/{}", text(&manifest["config"]["digest"]))).await?;
        ensure!(config["architecture"] == image["platform"]["architecture"], "{config}");
        ensure!(config["config"]["Entrypoint"] == json!(["/usr/local/bin/operator"]), "{config}");
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
