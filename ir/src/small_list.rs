//! Short lists of entities without heap allocation, for the operands of an expression or a statement.

use cranelift_entity::packed_option::ReservedValue;
use std::ops::Deref;

/// Number of entities stored inline; a longer list is on the heap.
const PLACES: usize = 4;

/// A list of entities, as a rule a short one.
#[derive(Clone, Debug)]
pub enum SmallList<T> {
    /// So many of these.
    Here([T; PLACES], usize),
    /// More.
    Heap(Vec<T>),
}

impl<T: Copy + ReservedValue> SmallList<T> {
    /// No entity.
    pub fn new() -> SmallList<T> {
        SmallList::Here([T::reserved_value(); PLACES], 0)
    }

    /// Appends an entity.
    pub fn push(&mut self, item: T) {
        match self {
            SmallList::Here(items, len) if *len < PLACES => {
                items[*len] = item;
                *len += 1;
            }
            SmallList::Here(items, _) => {
                let mut more = items.to_vec();
                more.push(item);
                *self = SmallList::Heap(more);
            }
            SmallList::Heap(items) => items.push(item),
        }
    }

    /// Takes the last entity away.
    pub fn pop(&mut self) -> Option<T> {
        match self {
            SmallList::Here(_, 0) => None,
            SmallList::Here(items, len) => {
                *len -= 1;
                Some(items[*len])
            }
            SmallList::Heap(items) => items.pop(),
        }
    }
}

impl<T: Copy + ReservedValue> From<&[T]> for SmallList<T> {
    fn from(items: &[T]) -> SmallList<T> {
        let mut places = [T::reserved_value(); PLACES];
        match places.get_mut(..items.len()) {
            Some(first) => {
                first.copy_from_slice(items);
                SmallList::Here(places, items.len())
            }
            None => SmallList::Heap(items.to_vec()),
        }
    }
}

impl<T: Copy + ReservedValue> Default for SmallList<T> {
    fn default() -> SmallList<T> {
        SmallList::new()
    }
}

impl<T> Deref for SmallList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            SmallList::Here(items, len) => &items[..*len],
            SmallList::Heap(items) => items,
        }
    }
}

impl<T: Copy + ReservedValue> Extend<T> for SmallList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T: Copy + ReservedValue> FromIterator<T> for SmallList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> SmallList<T> {
        let mut few = SmallList::new();
        few.extend(items);
        few
    }
}

impl<T: Copy + ReservedValue> IntoIterator for SmallList<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        let end = self.len();
        IntoIter { few: self, start: 0, end }
    }
}

impl<'a, T> IntoIterator for &'a SmallList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> std::slice::Iter<'a, T> {
        self.iter()
    }
}

/// The entities of a list, from either end.
#[derive(Clone, Debug)]
pub struct IntoIter<T> {
    few: SmallList<T>,
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
            let few: SmallList<Expr> = list.iter().copied().collect();
            assert_eq!(few.to_vec(), list);
            assert_eq!(
                few.clone().into_iter().rev().collect::<Vec<_>>(),
                list.iter().rev().copied().collect::<Vec<_>>()
            );
            assert_eq!(SmallList::from(&list[..]).to_vec(), list);
            assert_eq!(few.into_iter().len(), list.len());
        }
    }
}
