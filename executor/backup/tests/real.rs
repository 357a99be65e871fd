//! Backups of real members of etcd into a directory, and into the bucket of a real S3 server. Their programs are found
//! in `CLUSTERWRIGHT_CACHE`, as `lab build programs` puts them there.

#[cfg(test)]
#[path = "real/bucket.rs"]
mod bucket;
#[cfg(test)]
#[path = "real/endpoints.rs"]
mod endpoints;
#[cfg(test)]
#[path = "real/fetching.rs"]
mod fetching;
#[cfg(test)]
#[path = "real/fixture.rs"]
mod fixture;
#[cfg(test)]
#[path = "real/object_storage.rs"]
mod object_storage;
#[cfg(test)]
#[path = "real/process.rs"]
mod process;
#[cfg(test)]
#[path = "real/proxy.rs"]
mod proxy;
#[cfg(test)]
#[path = "real/refusing.rs"]
mod refusing;
#[cfg(test)]
#[path = "real/storage_refusals.rs"]
mod storage_refusals;
#[cfg(test)]
#[path = "real/taking.rs"]
mod taking;
#[cfg(test)]
#[path = "real/verifying.rs"]
mod verifying;
#[cfg(test)]
#[path = "real/volume.rs"]
mod volume;
