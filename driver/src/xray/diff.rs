//! Which lines of a text are new.

/// Comparisons that are made at most; what differs beyond is taken to be new as a whole.
const MOST: usize = 1 << 24;

/// What became of the lines of a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Changes {
    /// Lines of the new text that the old one does not have, from 0.
    pub(super) added: Vec<usize>,
    /// Lines of the old text that the new one does not have, from 0, and the line of the new one in front of which they stood.
    pub(super) removed: Vec<(usize, usize)>,
}

/// The fewest lines by which two texts differ.
pub(super) fn changes(old: &[&str], new: &[&str]) -> Changes {
    let first = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[first..], &new[first..]);
    let last = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old_rest[..old_rest.len() - last], &new_rest[..new_rest.len() - last]);
    let (rows, columns) = (old_rest.len(), new_rest.len());
    let mut out = Changes::default();
    let (mut i, mut j) = (0, 0);
    if rows.saturating_mul(columns) <= MOST {
        // The longest common rest from each pair of places on.
        let at = |i: usize, j: usize| i * (columns + 1) + j;
        let mut common = vec![0u32; (rows + 1) * (columns + 1)];
        for i in (0..rows).rev() {
            for j in (0..columns).rev() {
                common[at(i, j)] = match old_rest[i] == new_rest[j] {
                    true => common[at(i + 1, j + 1)] + 1,
                    false => common[at(i + 1, j)].max(common[at(i, j + 1)]),
                };
            }
        }
        while i < rows && j < columns {
            if old_rest[i] == new_rest[j] {
                (i, j) = (i + 1, j + 1);
            } else if common[at(i + 1, j)] >= common[at(i, j + 1)] {
                out.removed.push((first + i, first + j));
                i += 1;
            } else {
                out.added.push(first + j);
                j += 1;
            }
        }
    }
    out.removed.extend((i..rows).map(|i| (first + i, first + j)));
    out.added.extend((j..columns).map(|j| first + j));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_and_removed_where_they_stand() {
        let lines = |text: &'static str| text.split(' ').collect::<Vec<_>>();
        let of = |old, new| changes(&lines(old), &lines(new));
        assert_eq!(of("a b c", "a b c"), Changes::default());
        assert_eq!(of("a b c", "a x c"), Changes { added: vec![1], removed: vec![(1, 1)] });
        assert_eq!(of("a c", "a b c d"), Changes { added: vec![1, 3], removed: vec![] });
        assert_eq!(of("a b c d", "d"), Changes { added: vec![], removed: vec![(0, 0), (1, 0), (2, 0)] });
        assert_eq!(changes(&[], &["a"]), Changes { added: vec![0], removed: vec![] });
    }
}
