//! Authorities of a cluster's owner, as a company's PKI issues them: intermediates of an authority that no machine has.

use anyhow::{Context, Result, ensure};
use crds::names::pki_secret;
use k8s_openapi::api::core::v1::Secret;
use lab::machines::Machine;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P384_SHA384,
};
use serde_json::{Map, Value, json};

use crate::scenario::Scenario;

/// What stands above them.
pub struct Company {
    issuer: Issuer<'static, KeyPair>,
}

/// Pairs by the names of their entries in a Secret.
pub struct Own(Map<String, Value>);

impl Company {
    /// A new one.
    pub fn make() -> Result<Self> {
        let params = authority("company", BasicConstraints::Unconstrained)?;
        Ok(Self { issuer: Issuer::new(params, KeyPair::generate()?) })
    }

    /// Authorities that it has issued: `ca`, `etcd-ca`, `front-proxy-ca`.
    pub fn issue(&self, stems: &[&str]) -> Result<Own> {
        let mut entries = Map::new();
        for stem in stems {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384)?;
            let params = authority(&format!("{stem} of the company"), BasicConstraints::Constrained(0))?;
            entries.insert(format!("{stem}.crt"), params.signed_by(&key, &self.issuer)?.pem().into());
            entries.insert(format!("{stem}.key"), key.serialize_pem().into());
        }
        Ok(Own(entries))
    }
}

fn authority(name: &str, constraints: BasicConstraints) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name.push(DnType::OrganizationName, "Example");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(constraints);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

impl Own {
    /// Puts them into the Secret, in the place of those that were there.
    pub async fn put(&self, scenario: &Scenario, name: &str) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": scenario.name, "name": name},
            "stringData": self.0,
        });
        scenario.apply(&secret).await.map(drop)
    }

    /// Whether the cluster has this one alone.
    pub async fn is_all_of(&self, scenario: &Scenario, cluster: &str, stem: &str) -> Result<bool> {
        let secret = scenario.api::<Secret>().get(&pki_secret(cluster)).await?;
        let data = secret.data.unwrap_or_default();
        let is_alone = ["next", "former"].iter().all(|other| !data.contains_key(&format!("{stem}-{other}.crt")));
        let has = data.get(&format!("{stem}.crt")).map(|value| String::from_utf8_lossy(&value.0).into_owned());
        Ok(is_alone && has.is_some_and(|has| lines(&has) == lines(&self.certificate(stem))))
    }

    /// Refuses a machine that has another one in this file.
    pub async fn is_on(&self, scenario: &Scenario, machine: &Machine, path: &str, stem: &str) -> Result<()> {
        let has = scenario.ssh(machine, &format!("cat {path}")).await.with_context(|| format!("read {path}"))?;
        ensure!(lines(&has) == lines(&self.certificate(stem)), "{path} of {} has another one: {has}", machine.name());
        Ok(())
    }

    fn certificate(&self, stem: &str) -> String {
        self.0.get(&format!("{stem}.crt")).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// However they end.
fn lines(pem: &str) -> Vec<&str> {
    pem.trim().lines().map(str::trim).collect()
}
