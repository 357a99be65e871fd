//! The secrets of a backup, by the names of their files in the run's Secret.

use backup::{BundleFile, Credentials, EtcdTls};
use crds::backup::{BUNDLE_PREFIX, ETCD_SECRETS, STORAGE_PREFIX};

use crate::secrets::Secrets;

/// What the storage is opened with.
pub(super) fn credentials(secrets: &Secrets) -> Credentials {
    Credentials::from_files(below(secrets, STORAGE_PREFIX))
}

/// What etcd is read with.
pub(super) fn tls(secrets: &Secrets) -> EtcdTls {
    let [ca, certificate, key] = ETCD_SECRETS.map(|name| secrets.get(name).unwrap_or_default().to_vec());
    EtcdTls { ca, certificate, key }
}

/// What the backup takes along.
pub(super) fn bundle(secrets: &Secrets) -> Vec<BundleFile> {
    below(secrets, BUNDLE_PREFIX).map(|(name, content)| (name.to_owned(), content.to_vec())).collect()
}

/// The files that begin with this, without it.
fn below<'a>(secrets: &'a Secrets, prefix: &'static str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    secrets.iter().filter_map(move |(name, content)| Some((name.strip_prefix(prefix)?, content)))
}

#[cfg(test)]
mod tests {
    use super::{bundle, credentials, tls};
    use crate::secrets::Secrets;

    #[test]
    fn each_file_is_used_for_what_its_name_says() {
        let names = [
            "bundle.cluster.yaml",
            "bundle.pki.json",
            "etcd.backup-client.crt",
            "etcd.backup-client.key",
            "pki.etcd-ca.crt",
            "ssh-privatekey.fleet",
            "storage.accessKeyID",
            "storage.secretAccessKey",
        ];
        let secrets: Secrets = names.map(|name| (name.to_owned(), name.as_bytes().to_vec())).into_iter().collect();
        let taken: Vec<_> = bundle(&secrets).into_iter().map(|(name, _)| name).collect();
        assert_eq!(taken, ["cluster.yaml", "pki.json"]);
        let credentials = credentials(&secrets);
        assert_eq!(credentials.access_key_id.as_deref(), Some("storage.accessKeyID"));
        assert_eq!((credentials.secret_access_key.is_some(), credentials.session_token), (true, None));
        let tls = tls(&secrets);
        assert_eq!((tls.ca.as_slice(), tls.key.as_slice()), (&b"pki.etcd-ca.crt"[..], &b"etcd.backup-client.key"[..]));
    }
}
