//! The artifact bundle: everything that machines take, in one directory with an index of sizes and digests. The format
//! is described in `docs/bundle-format.md`. Nothing here uses the network.

pub mod addons;
pub mod catalogue;
pub mod checksums;
pub mod diff;
pub mod digest;
pub mod image;
pub mod import;
pub mod index;
pub mod lock;
pub mod packages;
pub mod place;
pub mod prune;
pub mod publish;
pub mod recipe;
pub mod tree;
pub mod verify;
pub mod version;
