//! An object as it was stored. Copies of a server share it, and whoever looks at it decodes it once: tests look at all
//! objects many thousand times, and few have changed since.

use std::any::Any;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::decoding::Decoded;

#[derive(Clone)]
pub(super) struct Kept(Arc<(Value, OnceLock<Arc<dyn Any + Send + Sync>>)>);

impl Kept {
    /// As the cache would get it.
    pub fn decoded<K>(&self) -> Arc<Decoded<K>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        let decode = || Arc::new(serde_json::from_value::<Decoded<K>>(self.to_value()).unwrap());
        let first = self.0.1.get_or_init(|| decode());
        first.clone().downcast().unwrap_or_else(|_| decode())
    }

    pub fn to_value(&self) -> Value {
        self.0.0.clone()
    }
}

impl From<Value> for Kept {
    fn from(object: Value) -> Self {
        Self(Arc::new((object, OnceLock::new())))
    }
}

impl Deref for Kept {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.0
    }
}
