//! Conditions that follow from others.

/// What a condition says to be a multiple, and of what.
pub(crate) fn multiple(text: &str) -> Option<(&str, u64)> {
    let (of, n) = text.strip_suffix(" == 0")?.rsplit_once(" % ")?;
    Some((of, n.parse().ok().filter(|&n| n > 0)?))
}

/// Whether a condition follows from another: the same, or a multiple of a multiple.
pub(crate) fn implies(given: &str, condition: &str) -> bool {
    given == condition
        || matches!((multiple(given), multiple(condition)), (Some((x, a)), Some((y, b))) if x == y && a.is_multiple_of(b))
}

/// Leaves out conditions that follow from others of the list, and repeated ones.
pub(crate) fn without_implied<T: AsRef<str> + Clone>(list: &mut Vec<T>) {
    let all = list.clone();
    let mut at = 0;
    list.retain(|one| {
        let own = at;
        at += 1;
        let one = one.as_ref();
        !all.iter().enumerate().any(|(i, other)| {
            let other = other.as_ref();
            i != own && implies(other, one) && (i < own || !implies(one, other))
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_follow_from_multiples() {
        assert!(implies("K % 8 == 0", "K % 4 == 0") && implies("K % 8 == 0", "K % 8 == 0"));
        assert!(!implies("K % 4 == 0", "K % 8 == 0") && !implies("K % 8 == 0", "N % 4 == 0"));
        assert!(!implies("K % 8 == 1", "K % 4 == 0") && implies("C_ld >= N", "C_ld >= N"));
    }

    #[test]
    fn the_strongest_of_a_list_are_left() {
        let mut all = vec!["N % 4 == 0", "K % 8 == 0", "N % 8 == 0", "K % 8 == 0", "M % 2 == 0"];
        without_implied(&mut all);
        assert_eq!(all, ["K % 8 == 0", "N % 8 == 0", "M % 2 == 0"]);
    }
}
