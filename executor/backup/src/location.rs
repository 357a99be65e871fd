//! Where a backup is in its storage.

use std::fmt;

use object_store::path::Path;

/// The directory of one backup, below the storage's prefix: `paris/7f1c.../20260301T120000Z-k3x9`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location(Path);

impl Location {
    /// Reads a location: segments between slashes, none of them empty, `.` or `..`. Else the error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('/') || text.ends_with('/') {
            return Err(format!("{text:?} begins or ends with a slash"));
        }
        match Path::parse(text) {
            Ok(path) if path.as_ref().is_empty() => Err("it is empty".to_owned()),
            Ok(path) => Ok(Self(path)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The directory that an object is in; none for an object at the top.
    pub fn containing(object: &Path) -> Option<Self> {
        let (directory, _) = object.as_ref().rsplit_once('/')?;
        Self::parse(directory).ok()
    }

    /// The path of an object of the backup.
    pub fn object(&self, name: &str) -> Path {
        self.0.clone().join(name)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_stays_below_the_prefix() {
        let location = Location::parse("paris/uid/20260301T120000Z-k3x9").unwrap();
        assert_eq!(location.object("manifest.json").as_ref(), "paris/uid/20260301T120000Z-k3x9/manifest.json");
        assert_eq!(Location::containing(&location.object("manifest.json")), Some(location));
        assert_eq!(Location::containing(&Path::from("manifest.json")), None);
        for wrong in ["", "/", "a//b", "../a", "a/./b", "/a", "a/"] {
            assert!(Location::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
