//! Suggestions for misspelt words.

/// Longer words get no suggestion, because the comparison would take too long.
const MAX_LENGTH: usize = 64;

/// The candidate that `word` is a misspelling of, if there is one: the one that differs in nothing but case, else the nearest that differs in
/// at most a third of its letters. Of words of two and three letters, exchanged neighbours alone are a misspelling, and a letter that is doubled, or should be.
/// A word that is a candidate itself is none.
pub fn nearest<T>(word: &str, candidates: impl IntoIterator<Item = T>, text: impl Fn(&T) -> &str) -> Option<T> {
    let word: Vec<char> = word.chars().take(MAX_LENGTH + 1).collect();
    if word.is_empty() || word.len() > MAX_LENGTH {
        return None;
    }
    let near = |candidate: T| {
        let other: Vec<char> = text(&candidate).chars().take(MAX_LENGTH + 1).collect();
        let longer = word.len().max(other.len());
        let limit = match longer {
            0..=1 => 0,
            2..=3 => SWAP,
            n => n / 3 * EDIT,
        };
        if word == other {
            return Some((0, None));
        }
        if word.len().eq(&other.len()) && word.iter().zip(&other).all(|(a, b)| a.eq_ignore_ascii_case(b)) {
            return Some((1, Some(candidate)));
        }
        if longer <= 3
            && let Some(cased) = doubled(&word, &other).or_else(|| doubled(&other, &word))
        {
            return Some((2 + EDIT + cased * SWAP, Some(candidate)));
        }
        // A letter more or less makes another word of a short one.
        let short = word.len().min(other.len()) <= 2 && word.len() != other.len();
        if longer > MAX_LENGTH || short || word.len().abs_diff(other.len()) * EDIT > limit {
            return None;
        }
        let cost = distance(&word, &other);
        // What is equal but for case comes first.
        (cost <= limit).then_some((2 + cost, Some(candidate)))
    };
    candidates.into_iter().filter_map(near).min_by_key(|(cost, _)| *cost).and_then(|(_, candidate)| candidate)
}

/// The candidate that begins as `word` does, with at least two equal letters, and differs in at most half of its letters: `max` for `maks`.
/// For words that stand where only a candidate can, after [`nearest`] found none.
pub fn nearest_of_start<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(MAX_LENGTH + 1).collect();
    if word.len() > MAX_LENGTH {
        return None;
    }
    let near = |candidate: &'a str| {
        let other: Vec<char> = candidate.chars().take(MAX_LENGTH + 1).collect();
        let longer = word.len().max(other.len());
        let begins = word.iter().zip(&other).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count() >= 2;
        let limit = longer / 2 * EDIT;
        if !begins || longer <= 3 || longer > MAX_LENGTH || word.len().abs_diff(other.len()) * EDIT > limit {
            return None;
        }
        let cost = distance(&word, &other);
        (cost > 0 && cost <= limit).then_some((cost, candidate))
    };
    candidates.into_iter().filter_map(near).min_by_key(|(cost, _)| *cost).map(|(_, candidate)| candidate)
}

/// If a word equals another one with one letter doubled, ignoring case (`Mm` for `M`, `acc` for `ac`): the number of
/// letters that differ in case.
fn doubled(word: &[char], of: &[char]) -> Option<usize> {
    if word.len() != of.len() + 1 {
        return None;
    }
    let without = |i: usize| {
        let rest = word[..i].iter().chain(&word[i + 1..]);
        let twice = word[i].eq_ignore_ascii_case(&word[i - 1]);
        let same = twice && rest.clone().zip(of).all(|(a, b)| a.eq_ignore_ascii_case(b));
        same.then(|| rest.zip(of).filter(|(a, b)| a != b).count() + usize::from(word[i] != word[i - 1]))
    };
    (1..word.len()).filter_map(without).min()
}

/// Whether two words differ by one inserted, missing, replaced or swapped letter. For places where few words are
/// possible: unlike [`nearest`], it also accepts short words.
pub fn one_edit_apart(word: &str, other: &str) -> bool {
    let [a, b] = [word, other].map(|w| w.chars().take(MAX_LENGTH + 1).collect::<Vec<char>>());
    a != b && a.len().max(b.len()) <= MAX_LENGTH && distance(&a, &b) <= EDIT
}

/// The cost of a letter that is there too much, missing, or another.
const EDIT: usize = 2;
/// The cost of two neighbours that are exchanged, and of a letter in the other case.
const SWAP: usize = 1;

/// The least cost of edits that make one word of the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let replaced = |x: char, y: char| match (x == y, x.eq_ignore_ascii_case(&y)) {
        (true, _) => 0,
        (false, true) => SWAP,
        (false, false) => EDIT,
    };
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).map(|j| EDIT * j).collect();
    for i in 0..a.len() {
        let mut next = vec![EDIT * (i + 1)];
        for j in 0..b.len() {
            let mut least = (row[j] + replaced(a[i], b[j])).min(row[j + 1] + EDIT).min(next[j] + EDIT);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + SWAP);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
        nearest(word, candidates.iter().copied(), |c| c)
    }

    #[test]
    fn misspellings_are_found() {
        for (word, candidates, meant) in [
            ("cpy", &["copy", "if", "for"][..], "copy"),
            ("mutliple", &["multiple"], "multiple"),
            ("gird", &["grid", "where"], "grid"),
            ("rnu", &["run", "bench"], "run"),
            ("vectorise", &["vectorize", "swizzle"], "vectorize"),
            ("Bm", &["B", "A", "BM"], "BM"),
            ("a", &["B", "A"], "A"),
            ("ACC", &["Ac", "accu", "acc"], "acc"),
            ("acess", &["access", "align"], "access"),
            ("Mm", &["N", "M"], "M"),
            ("ac", &["a", "b", "acc"], "acc"),
            ("kk", &["k", "kkt"], "k"),
            ("kk", &["K", "k"], "k"),
            ("KK", &["k", "K"], "K"),
            ("kK", &["m", "k"], "k"),
            ("fi", &["in", "if"], "if"),
        ] {
            assert_eq!(of(word, candidates), Some(meant), "{word}");
        }
    }

    #[test]
    fn other_words_are_not_misspellings() {
        for word in ["D", "i", "j", "Q", "BN", "foo", "ab", "x1", "", "nothing_alike"] {
            assert_eq!(of(word, &["A", "B", "BM", "for", "x2", "abc"]), None, "{word}");
        }
        for word in ["BM", "for", "x2"] {
            assert_eq!(of(word, &["A", "bm", "BM", "for", "fro", "x2"]), None, "{word} is a candidate");
        }
        for word in ["aab", "cab", "ac", "Ba"] {
            assert_eq!(of(word, &["A", "abc", "b"]), None, "{word}");
        }
        let long = "x".repeat(1 << 16);
        assert_eq!(of(&long, &[&long]), None);
    }

    #[test]
    fn a_start_is_enough_where_few_words_are_possible() {
        let functions = ["max", "maximum", "min", "sin", "sum", "exp"];
        for (word, meant) in
            [("maks", Some("max")), ("maxx", Some("max")), ("minn", Some("min")), ("maximize", Some("maximum"))]
        {
            assert_eq!(nearest_of_start(word, functions), meant, "{word}");
        }
        for word in ["", "m", "foo", "matrix_product", "max_pool", "su"] {
            assert_eq!(nearest_of_start(word, functions), None, "{word}");
        }
        assert_eq!(nearest_of_start(&"max".repeat(1 << 12), functions), None);
    }

    #[test]
    fn one_slip_is_one_letter() {
        for word in ["lt", "le", "lte", "elt", "lit", "Let", "lett"] {
            assert!(one_edit_apart(word, "let"), "{word}");
        }
        for word in ["let", "int", "l", "set_", ""] {
            assert!(!one_edit_apart(word, "let"), "{word}");
        }
    }

    #[test]
    fn distance_is_symmetric_and_counts_edits() {
        for (a, b, d) in
            [("", "abc", 6), ("kitten", "sitting", 6), ("same", "same", 0), ("rnu", "run", 1), ("aB", "ab", 1)]
        {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            assert_eq!((distance(&a, &b), distance(&b, &a)), (d, d));
        }
    }
}
