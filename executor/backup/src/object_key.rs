//! The key of one object of a backup, which age encrypts for each recipient in its header. Whoever has it reads that
//! object and nothing else: it goes where an identity, which reads all backups, must not.

use age::DecryptError;
use age::secrecy::ExposeSecret;
use age_core::format::{FileKey, Stanza};

/// The key: 16 bytes.
pub type ObjectKey = [u8; 16];

/// It in the place of an identity. There is no `Debug` of it.
#[derive(Clone)]
pub(crate) struct KnownKey(pub ObjectKey);

impl age::Identity for KnownKey {
    /// The header's authentication, which age checks next, says whether it is this object's.
    fn unwrap_stanza(&self, _: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        Some(Ok(FileKey::new(Box::new(self.0))))
    }
}

/// An identity that remembers what it has unwrapped.
pub(crate) struct Recorder<'a> {
    pub identity: &'a dyn age::Identity,
    pub found: &'a std::cell::Cell<Option<ObjectKey>>,
}

impl age::Identity for Recorder<'_> {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        let unwrapped = self.identity.unwrap_stanza(stanza)?;
        if let Ok(key) = &unwrapped {
            self.found.set(Some(*key.expose_secret()));
        }
        Some(unwrapped)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{KnownKey, Recorder};

    #[test]
    fn the_key_of_an_object_reads_it_and_no_other() {
        let identity = age::x25519::Identity::generate();
        let sealed = |text: &[u8]| age::encrypt(&identity.to_public(), text).unwrap();
        let (one, other) = (sealed(b"one"), sealed(b"other"));
        let found = Cell::new(None);
        let recorder = Recorder { identity: &identity, found: &found };
        assert_eq!(age::decrypt(&recorder, &one).unwrap(), b"one");
        let key = KnownKey(found.get().unwrap());
        assert_eq!(age::decrypt(&key, &one).unwrap(), b"one");
        assert!(age::decrypt(&key, &other).is_err());
        assert!(age::decrypt(&KnownKey([0; 16]), &one).is_err());
        let stranger = age::x25519::Identity::generate();
        found.set(None);
        assert!(age::decrypt(&Recorder { identity: &stranger, found: &found }, &one).is_err() && found.get().is_none());
    }
}
