//! Histories that keep the promise, and histories that break it in one place.
