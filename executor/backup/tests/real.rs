//! Backups of real members of etcd into a directory. etcd's programs are found in `CLUSTERWRIGHT_CACHE`, as
//! `lab build programs` puts them there.

#[cfg(test)]
#[path = "real/fetching.rs"]
mod fetching;
#[cfg(test)]
#[path = "real/fixture.rs"]
mod fixture;
#[cfg(test)]
#[path = "real/process.rs"]
mod process;
#[cfg(test)]
#[path = "real/refusing.rs"]
mod refusing;
#[cfg(test)]
#[path = "real/taking.rs"]
mod taking;
