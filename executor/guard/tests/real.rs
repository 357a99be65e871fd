//! The guard's program on this machine, as root, in directories of its own. Needs root: for anybody else these tests
//! say so and promise nothing.

#[cfg(test)]
#[path = "real/becoming.rs"]
mod becoming;
#[cfg(test)]
#[path = "real/beside.rs"]
mod beside;
#[cfg(test)]
#[path = "real/connecting.rs"]
mod connecting;
#[cfg(test)]
#[path = "real/ending.rs"]
mod ending;
#[cfg(test)]
#[path = "real/fences.rs"]
mod fences;
#[cfg(test)]
#[path = "real/passing.rs"]
mod passing;
#[cfg(test)]
#[path = "real/place.rs"]
mod place;
#[cfg(test)]
#[path = "real/races.rs"]
mod races;
#[cfg(test)]
#[path = "real/state.rs"]
mod state;
#[cfg(test)]
#[path = "real/watching.rs"]
mod watching;
