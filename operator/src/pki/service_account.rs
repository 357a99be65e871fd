//! The key that signs service accounts' tokens.

use jiff::Timestamp;
use rcgen::KeyPair;

use super::authority::generate_key;
use super::error::PkiError;
use super::ring::Signer;

/// A private key and its public half, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceAccountKey {
    key: String,
    public: String,
}

impl std::fmt::Debug for ServiceAccountKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServiceAccountKey(..)")
    }
}

impl Signer for ServiceAccountKey {
    const PUBLIC: &'static str = "pub";

    fn make(_: &str, _: Timestamp) -> Result<Self, PkiError> {
        let pair = generate_key("service accounts")?;
        Ok(Self { key: pair.serialize_pem(), public: pair.public_key_pem() })
    }

    fn read(what: &str, public: &str, key: &str) -> Result<Self, PkiError> {
        let unusable = |problem: String| PkiError::Read { what: what.into(), problem };
        let pair = KeyPair::from_pem(key).map_err(|error| unusable(error.to_string()))?;
        if lines(&pair.public_key_pem()) != lines(public) {
            return Err(unusable("it is not the public half of the private key beside it".into()));
        }
        Ok(Self { key: key.into(), public: public.into() })
    }

    fn public(&self) -> &str {
        &self.public
    }

    fn private(&self) -> &str {
        &self.key
    }
}

/// Whatever ends them.
fn lines(pem: &str) -> Vec<&str> {
    pem.trim().lines().map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::{ServiceAccountKey, Signer};

    #[test]
    fn a_key_is_read_with_its_own_public_half_and_no_other() {
        let now = "2026-11-21T00:00:00Z".parse().unwrap();
        let (one, other) = (ServiceAccountKey::make("", now).unwrap(), ServiceAccountKey::make("", now).unwrap());
        let windows = one.public().replace('\n', "\r\n");
        assert_eq!(ServiceAccountKey::read("sa.pub", &windows, one.private()).unwrap().private(), one.private());
        let refused = ServiceAccountKey::read("sa.pub of Secret a", other.public(), one.private()).unwrap_err();
        assert!(refused.to_string().contains("sa.pub of Secret a"), "{refused}");
        assert_eq!(format!("{one:?}"), "ServiceAccountKey(..)");
    }
}
