//! `wright bundle` as an administrator runs it, against a server on this machine that has the paths of upstream's.

#[cfg(test)]
mod addons;
#[cfg(test)]
mod carried;
#[cfg(test)]
mod downloads;
#[cfg(test)]
mod locking;
#[cfg(test)]
mod packages;
#[cfg(test)]
mod planes;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod registry;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod upstream;
#[cfg(test)]
mod whole;
#[cfg(test)]
mod wright;
