//! Which lines of a text are new.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// What became of the lines of a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Changes {
    /// Lines of the new text that the old one does not have, from 0.
    pub(super) added: Vec<usize>,
    /// Lines of the old text that the new one does not have, from 0, and the line of the new one in front of which they stood.
    pub(super) removed: Vec<(usize, usize)>,
}

/// The lines by which two texts differ.
pub(super) fn changes(old: &[String], new: &[String]) -> Changes {
    let mut out = Changes::default();
    for op in capture_diff_slices(Algorithm::Myers, old, new) {
        if !matches!(op, DiffOp::Equal { .. }) {
            let at = op.new_range().start;
            out.removed.extend(op.old_range().map(|i| (i, at)));
            out.added.extend(op.new_range());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_and_removed_where_they_stand() {
        let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let of = |old, new| changes(&lines(old), &lines(new));
        assert_eq!(of("a b c", "a b c"), Changes::default());
        assert_eq!(of("a b c", "a x c"), Changes { added: vec![1], removed: vec![(1, 1)] });
        assert_eq!(of("a c", "a b c d"), Changes { added: vec![1, 3], removed: vec![] });
        assert_eq!(of("a b c d", "d"), Changes { added: vec![], removed: vec![(0, 0), (1, 0), (2, 0)] });
        assert_eq!(changes(&[], &lines("a")), Changes { added: vec![0], removed: vec![] });
    }
}
