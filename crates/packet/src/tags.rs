//! The tags that functions have set on a packet.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Values by the names of tags.
type Values = BTreeMap<Arc<str>, u128>;

/// The values of tags that have no values.
static NONE: Values = BTreeMap::new();

/// The tags of a packet, by name. Nearly all packets have none, which takes no memory.
#[derive(Clone, Default)]
pub struct Tags(Option<Box<Values>>);

impl Tags {
    /// No tags.
    #[must_use]
    pub const fn new() -> Self {
        Tags(None)
    }

    /// Whether no function has set a tag.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|values| values.is_empty())
    }

    /// The value of a tag. A tag that no function has set is 0.
    #[must_use]
    pub fn value(&self, name: &str) -> u128 {
        self.get(name).copied().unwrap_or(0)
    }

    /// Sets a tag. A tag that stays 0 takes no memory.
    pub fn set(&mut self, name: &str, value: u128) {
        if value != 0 || self.contains_key(name) {
            self.insert(name.into(), value);
        }
    }

    /// Removes a tag and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<u128> {
        self.0.as_mut()?.remove(name)
    }

    /// Removes all tags.
    #[inline]
    pub fn clear(&mut self) {
        if self.0.is_some() {
            self.0 = None;
        }
    }
}

impl From<Values> for Tags {
    fn from(values: Values) -> Self {
        Tags((!values.is_empty()).then(|| Box::new(values)))
    }
}

impl Deref for Tags {
    type Target = Values;

    fn deref(&self) -> &Values {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Tags {
    fn deref_mut(&mut self) -> &mut Values {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for Tags {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Tags {}

impl std::fmt::Debug for Tags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_were_removed_equal_none() {
        let mut tags = Tags::new();
        assert_eq!(tags.remove("mark"), None);
        tags.insert("mark".into(), 7);
        assert_eq!((tags.get("mark"), tags.len()), (Some(&7), 1));
        assert_ne!(tags, Tags::new());
        assert_eq!(tags.remove("mark"), Some(7));
        assert_eq!(tags, Tags::new());
        tags.insert("mark".into(), 8);
        tags.clear();
        assert!(tags.is_empty());
    }
}
