//! Short lists of entities, kept where they are returned: no allocation for what an expression or a statement owns.

use cranelift_entity::packed_option::ReservedValue;
use std::ops::Deref;

/// Number of entities stored inline; a longer list is on the heap.
const PLACES: usize = 4;

/// A list of entities, as a rule a short one.
#[derive(Clone, Debug)]
pub enum Few<T> {
    /// So many of these.
    Here([T; PLACES], usize),
    /// More.
    Heap(Vec<T>),
}

impl<T: Copy + ReservedValue> Few<T> {
    /// No entity.
    pub fn new() -> Few<T> {
        Few::Here([T::reserved_value(); PLACES], 0)
    }

    /// Appends an entity.
    pub fn push(&mut self, item: T) {
        match self {
            Few::Here(items, len) if *len < PLACES => {
                items[*len] = item;
                *len += 1;
            }
            Few::Here(items, _) => {
                let mut more = items.to_vec();
                more.push(item);
                *self = Few::Heap(more);
            }
            Few::Heap(items) => items.push(item),
        }
    }

    /// Takes the last entity away.
    pub fn pop(&mut self) -> Option<T> {
        match self {
            Few::Here(_, 0) => None,
            Few::Here(items, len) => {
                *len -= 1;
                Some(items[*len])
            }
            Few::Heap(items) => items.pop(),
        }
    }
}

impl<T: Copy + ReservedValue> From<&[T]> for Few<T> {
    fn from(items: &[T]) -> Few<T> {
        let mut places = [T::reserved_value(); PLACES];
        match places.get_mut(..items.len()) {
            Some(first) => {
                first.copy_from_slice(items);
                Few::Here(places, items.len())
            }
            None => Few::Heap(items.to_vec()),
        }
    }
}

impl<T: Copy + ReservedValue> Default for Few<T> {
    fn default() -> Few<T> {
        Few::new()
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Few::Here(items, len) => &items[..*len],
            Few::Heap(items) => items,
        }
    }
}

impl<T: Copy + ReservedValue> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T: Copy + ReservedValue> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Few<T> {
        let mut few = Few::new();
        few.extend(items);
        few
    }
}

impl<T: Copy + ReservedValue> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        let end = self.len();
        IntoIter { few: self, start: 0, end }
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> std::slice::Iter<'a, T> {
        self.iter()
    }
}

/// The entities of a list, from either end.
#[derive(Clone, Debug)]
pub struct IntoIter<T> {
    few: Few<T>,
    start: usize,
    end: usize,
}

impl<T: Copy> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        (self.start < self.end).then(|| {
            self.start += 1;
            self.few[self.start - 1]
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.start, Some(self.end - self.start))
    }
}

impl<T: Copy> DoubleEndedIterator for IntoIter<T> {
    fn next_back(&mut self) -> Option<T> {
        (self.start < self.end).then(|| {
            self.end -= 1;
            self.few[self.end]
        })
    }
}

impl<T: Copy> ExactSizeIterator for IntoIter<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::Expr;

    #[test]
    fn lists_of_any_length_keep_their_order() {
        for n in 0..10 {
            let list: Vec<Expr> = (0..n).map(Expr::from_u32).collect();
            let few: Few<Expr> = list.iter().copied().collect();
            assert_eq!(few.to_vec(), list);
            assert_eq!(
                few.clone().into_iter().rev().collect::<Vec<_>>(),
                list.iter().rev().copied().collect::<Vec<_>>()
            );
            assert_eq!(Few::from(&list[..]).to_vec(), list);
            assert_eq!(few.into_iter().len(), list.len());
        }
    }
}
