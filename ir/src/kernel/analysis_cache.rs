//! Cached analysis results of a kernel, valid until one of its tables is modified.
//!
//! The types of names are cached here ([`crate::typing`]); this file does not depend on their representation.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Something that was found of a kernel.
#[derive(Default)]
pub(crate) struct Known(Mutex<(u64, Option<Box<dyn Any + Send>>)>);

impl Known {
    /// Takes out what was found when the tables had been changed so often.
    pub(crate) fn take<T: Default + 'static>(&self, changes: u64) -> T {
        let (at, found) = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let found = found.filter(|_| at == changes).and_then(|found| found.downcast::<T>().ok());
        found.map_or_else(T::default, |found| *found)
    }

    /// Keeps it.
    pub(crate) fn keep<T: Send + 'static>(&self, changes: u64, found: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (changes, Some(Box::new(found)));
    }
}

impl Clone for Known {
    /// A copy of a kernel begins without.
    fn clone(&self) -> Known {
        Known::default()
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known")
    }
}
