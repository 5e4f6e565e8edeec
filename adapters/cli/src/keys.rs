//! The keys of a log, each kept once and numbered.

use std::borrow::Cow;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::error::Error;

/// Numbers keys from 0 in the order of their first appearance.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    hasher: DefaultHashBuilder,
    numbers: HashTable<u32>,
    /// All keys, one behind another; `ends` says where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// The number of `key`.
    pub(crate) fn number(&mut self, key: &[u8]) -> Result<u32, Error> {
        let Self { hasher, numbers, bytes, ends } = self;
        let hash = hasher.hash_one(key);
        if let Some(number) = numbers.find(hash, |number| slice(bytes, ends, *number) == key) {
            return Ok(*number);
        }
        let number = u32::try_from(ends.len()).map_err(|_| Error::TooManyKeys)?;
        bytes.extend_from_slice(key);
        ends.push(bytes.len());
        numbers.insert_unique(hash, number, |number| hasher.hash_one(slice(bytes, ends, *number)));
        Ok(number)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn bytes_of(&self, number: u32) -> &[u8] {
        slice(&self.bytes, &self.ends, number)
    }

    /// The key as text, with replacement characters where it is not UTF-8.
    pub(crate) fn text_of(&self, number: u32) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes_of(number))
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let index = number as usize;
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &bytes[start..ends[index]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_have_one_number() {
        let mut keys = Keys::default();
        for round in 0..2 {
            for number in 0..10_000_u32 {
                let key = format!("key {number}");
                assert_eq!(keys.number(key.as_bytes()).unwrap(), number, "round {round}");
            }
        }
        assert_eq!(keys.number(b"").unwrap(), 10_000);
        assert_eq!((keys.len(), keys.text_of(77)), (10_001, Cow::Borrowed("key 77")));
    }
}
