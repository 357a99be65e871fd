//! Encryption with age: bytes in, encrypted bytes out. It keeps no more than a chunk of 64 KiB.

use std::io::{self, Write};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use age::stream::StreamWriter;
use age::{EncryptError, Encryptor, Recipient, x25519};

use crate::error::BackupError;

/// Whom backups are encrypted for: any of them can decrypt.
#[derive(Clone)]
pub struct Recipients(Vec<x25519::Recipient>);

/// One object on its way through encryption.
pub struct Encryption {
    writer: StreamWriter<Output>,
    output: Output,
}

/// Where the writer leaves what it encrypted, until it is fetched.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Recipients {
    /// Reads recipients, `age1...`: at least one, all of them X25519.
    pub fn parse(recipients: &[String]) -> Result<Self, BackupError> {
        if recipients.is_empty() {
            return Err(invalid("", "there is none"));
        }
        let parsed =
            recipients.iter().map(|text| x25519::Recipient::from_str(text).map_err(|error| invalid(text, error)));
        parsed.collect::<Result<_, _>>().map(Self)
    }

    /// Begins an object.
    pub fn encrypt(&self) -> Result<Encryption, BackupError> {
        let output = Output::default();
        let begin = || -> Result<_, EncryptError> {
            let encryptor = Encryptor::with_recipients(self.0.iter().map(|recipient| recipient as &dyn Recipient))?;
            Ok(encryptor.wrap_output(output.clone())?)
        };
        match begin() {
            Ok(writer) => Ok(Encryption { writer, output }),
            Err(error) => Err(invalid(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), error)),
        }
    }
}

impl Encryption {
    /// Encrypts some bytes.
    pub fn write(&mut self, plain: &[u8]) -> io::Result<()> {
        self.writer.write_all(plain)
    }

    /// What has been encrypted since it was asked for before.
    pub fn ready(&mut self) -> Vec<u8> {
        self.output.take()
    }

    /// Ends the object, and returns the rest of it.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        self.writer.finish()?;
        Ok(self.output.take())
    }
}

impl Output {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn invalid(recipient: &str, problem: impl ToString) -> BackupError {
    BackupError::Recipient { recipient: recipient.to_owned(), problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn any_recipients_identity_decrypts_what_was_encrypted_piece_by_piece() {
        let identities = [x25519::Identity::generate(), x25519::Identity::generate()];
        let recipients = identities.each_ref().map(|identity| identity.to_public().to_string());
        let recipients = Recipients::parse(&recipients).unwrap();
        let plain: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut encryption = recipients.encrypt().unwrap();
        let mut cipher = Vec::new();
        for piece in plain.chunks(32_768) {
            encryption.write(piece).unwrap();
            cipher.extend(encryption.ready());
        }
        cipher.extend(encryption.finish().unwrap());
        for identity in &identities {
            let decryptor = age::Decryptor::new(&cipher[..]).unwrap();
            let mut read = Vec::new();
            let identities = std::iter::once(identity as &dyn age::Identity);
            decryptor.decrypt(identities).unwrap().read_to_end(&mut read).unwrap();
            assert!(read == plain);
        }
    }

    #[test]
    fn what_is_no_recipient_is_refused_by_its_text() {
        let identity = age::x25519::Identity::generate();
        let mistyped = identity.to_public().to_string().replace("age1", "age1q");
        for wrong in [vec![], vec![mistyped], vec!["ssh-ed25519 AAAA".to_owned()]] {
            let refused = Recipients::parse(&wrong).err().unwrap();
            assert_eq!((refused.reason(), refused.retriable()), ("RecipientInvalid", false));
            assert!(refused.to_string().contains(wrong.first().map_or("there is none", |text| text)), "{refused}");
        }
    }
}
