//! What is said of a storage that refuses, fails, or is away. The servers here only refuse: they are no S3.

#[cfg(test)]
#[path = "answers/storages.rs"]
mod storages;
