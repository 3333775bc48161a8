//! Elements of tensors that are given: raw bytes, or numbers, in row-major order of the index, without gaps.

use crate::contract::encode::{encode_number, set_word};
use crate::contract::number::Number;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use tilec_ir::types::Elem;

/// The source of a tensor's elements.
#[derive(Clone, Debug)]
pub enum Elements {
    /// These bytes.
    Bytes(Vec<u8>),
    /// These numbers.
    Numbers(Vec<Number>),
    /// A file, which is read once the tensor is known, if it has the tensor's size.
    File(PathBuf),
}

/// Why there are no elements.
#[derive(Debug)]
pub(super) enum NoElements {
    /// The number of bytes (in words), which differs from the tensor's.
    Size(String),
    /// The number of values, which differs from the tensor's.
    Count(usize),
    /// The file cannot be read.
    Unreadable(PathBuf, io::Error),
}

impl Elements {
    /// Reads `count` elements of a tensor. A file of another size is not read; from a pipe, whose size is not known,
    /// one byte more is read.
    pub(super) fn read(&self, elem: Elem, count: u64) -> Result<Cow<'_, [u8]>, NoElements> {
        let expected = elem.bytes_of(count);
        let path = match self {
            Elements::Bytes(bytes) if u64::try_from(bytes.len()) == Ok(expected) => return Ok(Cow::Borrowed(bytes)),
            Elements::Bytes(bytes) => return Err(NoElements::Size(bytes.len().to_string())),
            Elements::Numbers(numbers) if u64::try_from(numbers.len()) == Ok(count) => {
                let mut bytes = vec![0; usize::try_from(expected).expect("as many numbers are in memory")];
                for (at, &number) in numbers.iter().enumerate() {
                    set_word(elem, &mut bytes, at, encode_number(elem, number));
                }
                return Ok(Cow::Owned(bytes));
            }
            Elements::Numbers(numbers) => return Err(NoElements::Count(numbers.len())),
            Elements::File(path) => path,
        };
        let unreadable = |e| NoElements::Unreadable(path.clone(), e);
        let file = File::open(path).map_err(unreadable)?;
        let known = file.metadata().map_err(unreadable)?;
        if known.is_file() && known.len() != expected {
            return Err(NoElements::Size(known.len().to_string()));
        }
        let mut bytes = Vec::new();
        file.take(expected.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
        match u64::try_from(bytes.len()) {
            Ok(n) if n == expected => Ok(Cow::Owned(bytes)),
            Ok(n) if n > expected => Err(NoElements::Size(format!("more than {expected}"))),
            _ => Err(NoElements::Size(bytes.len().to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_size_is_not_read() {
        let path = std::env::temp_dir().join(format!("tilec-elements-{}", std::process::id()));
        let file = File::create(&path).expect("made");
        // As many bytes as no machine reads here; none of them takes room.
        file.set_len(1 << 40).expect("sparse");
        let started = std::time::Instant::now();
        let why = Elements::File(path.clone()).read(Elem::I32, 4).expect_err("too large");
        assert!(matches!(&why, NoElements::Size(n) if *n == (1u64 << 40).to_string()), "{why:?}");
        assert!(started.elapsed().as_secs() < 5);
        file.set_len(16).expect("cut");
        assert_eq!(Elements::File(path.clone()).read(Elem::I32, 4).expect("fits").len(), 16);
        std::fs::remove_file(&path).expect("removed");
        assert!(matches!(Elements::File(path).read(Elem::I32, 4), Err(NoElements::Unreadable(..))));
        let numbers = Elements::Numbers(vec![Number::Int(-3), Number::Int(300), Number::Float(2.0)]);
        assert_eq!(numbers.read(Elem::I16, 3).expect("three").as_ref(), [253, 255, 44, 1, 2, 0]);
        assert!(matches!(numbers.read(Elem::I16, 4), Err(NoElements::Count(3))));
        assert!(matches!(Elements::Bytes(vec![0; 3]).read(Elem::I16, 1), Err(NoElements::Size(n)) if n == "3"));
    }
}
