//! What is known of the volume of a member of an etcd in Pods, and how that is written down.

use std::collections::BTreeMap;

/// What is known of the volume of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdVolume {
    /// It works with that of the claim with this UID.
    Of(String),
    /// The claim is another one, so the volume is new, and the member with this ID has lost what it had; empty: it was
    /// none by then.
    Lost(String),
}

/// What a lost volume is written as, before the ID.
const LOST: &str = "lost:";

impl EtcdVolume {
    /// Whether it is lost.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}

/// Reads the annotation, `0=<uid>,1=lost:<id>`: by ordinal.
pub(super) fn read(text: &str) -> BTreeMap<i32, EtcdVolume> {
    let one = |part: &str| {
        let (ordinal, volume) = part.split_once('=')?;
        let volume = match volume.strip_prefix(LOST) {
            Some(id) => EtcdVolume::Lost(id.to_owned()),
            None => EtcdVolume::Of(volume.to_owned()),
        };
        Some((ordinal.parse::<i32>().ok()?, volume))
    };
    text.split(',').filter_map(one).collect()
}

/// What the annotation says of these.
pub(super) fn written(volumes: &BTreeMap<i32, EtcdVolume>) -> String {
    let one = |(ordinal, volume): (&i32, &EtcdVolume)| match volume {
        EtcdVolume::Of(uid) => format!("{ordinal}={uid}"),
        EtcdVolume::Lost(id) => format!("{ordinal}={LOST}{id}"),
    };
    volumes.iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_not_understood_is_left_out() {
        let volumes: BTreeMap<i32, EtcdVolume> = [
            (0, EtcdVolume::Of("a-b".into())),
            (2, EtcdVolume::Lost("17".into())),
            (3, EtcdVolume::Lost(String::new())),
        ]
        .into();
        assert_eq!(written(&volumes), "0=a-b,2=lost:17,3=lost:");
        assert_eq!(read(&written(&volumes)), volumes);
        assert_eq!(read(""), BTreeMap::new());
        assert_eq!(read("x=1,0"), BTreeMap::new());
    }
}
