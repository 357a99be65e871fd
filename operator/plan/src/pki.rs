//! What a PKI consists of, as a table: its authorities and keys, and what of them machines get. Each kind of object
//! that has one has a table of its own, and no other code.

use crate::rotation::Subject;

/// What machines get of an authority or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// Nothing.
    None,
    /// What verifies: the certificates or public keys that are trusted. Nothing of a key that encrypts.
    Public,
    /// That, and the private key; of a key that encrypts, all that decrypt.
    Both,
}

/// One authority or key of a PKI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PkiRow {
    /// What it is. The names of its entries and files follow from it.
    pub subject: Subject,
    /// Common name in the first certificate of an authority; those that follow it have a number behind it. None: it is
    /// a key, and has no certificate.
    pub common_name: Option<&'static str>,
    /// What machines get on which API servers run.
    pub control_planes: Halves,
    /// What machines of etcd get beside their own certificates.
    pub etcd: Halves,
}

/// The row of a subject; none: the PKI has no such authority or key.
pub fn row(table: &[PkiRow], subject: Subject) -> Option<&PkiRow> {
    table.iter().find(|row| row.subject == subject)
}

/// The names of the entries of the Secret that keeps it, in the order of the table.
pub fn entries(table: &[PkiRow]) -> Vec<String> {
    table.iter().flat_map(|row| row.subject.entries()).collect()
}

/// Its authorities, in the order of subjects.
pub fn authorities(table: &[PkiRow]) -> Vec<Subject> {
    let subjects = Subject::ALL.into_iter().filter(|subject| subject.is_authority());
    subjects.filter(|subject| row(table, *subject).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Halves, PkiRow, authorities, entries, row};
    use crate::rotation::Subject;

    const TWO: &[PkiRow] = &[
        PkiRow {
            subject: Subject::EtcdCa,
            common_name: Some("plane-etcd"),
            control_planes: Halves::Public,
            etcd: Halves::Public,
        },
        PkiRow { subject: Subject::Ca, common_name: Some("plane"), control_planes: Halves::Public, etcd: Halves::None },
    ];

    #[test]
    fn entries_are_in_the_order_of_the_table_and_authorities_in_that_of_subjects() {
        assert_eq!(entries(TWO), ["etcd-ca.crt", "etcd-ca.key", "ca.crt", "ca.key"]);
        assert_eq!(authorities(TWO), [Subject::Ca, Subject::EtcdCa]);
        assert_eq!(row(TWO, Subject::FrontProxyCa), None);
    }
}
