//! Which problems to measure: lists and ranges of values on the command line.
//!
//! ```text
//! M=512,1024,4096          a list
//! K=1024:8192:*2           from, to (included), factor
//! K=64:256:+64             from, to (included), step
//! N=M                      as large as another size
//! M=N=K=4096,8192          several sizes that are always the same
//! M,N,K=16x4096x4096,512x512x512      several sizes, value by value
//! alpha=0.5                scalars take any number
//! ```
//!
//! Arguments that share no name are combined: every value of the one with every value of the other, the first argument
//! changing slowest.

use crate::contract::number::{Args, Number};
use std::collections::BTreeSet;

/// Maximum number of problems of one command.
const MAX_PROBLEMS: usize = 4096;

/// One argument: names and the values they take together.
#[derive(Clone, PartialEq, Debug)]
struct Axis {
    names: Vec<String>,
    rows: Vec<Vec<Number>>,
}

/// Every problem that the arguments request, in order.
///
/// # Errors
/// What cannot be read, in words for the command line.
pub fn problems(arguments: &[String]) -> Result<Vec<Args>, String> {
    let mut axes: Vec<Axis> = Vec::new();
    let mut aliases: Vec<(Vec<String>, String)> = Vec::new();
    let mut seen = BTreeSet::new();
    for argument in arguments {
        let (names, values) = split(argument)?;
        for name in &names {
            if !seen.insert(name.clone()) {
                return Err(format!("`{name}` has two values"));
            }
        }
        if is_name(values) {
            aliases.push((names, values.to_owned()));
        } else {
            let rows = rows(argument, names.len(), argument_is_tuple(argument), values)?;
            axes.push(Axis { names, rows });
        }
    }
    let count = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.rows.len()));
    if count.is_none_or(|n| n > MAX_PROBLEMS) {
        return Err(format!("more than {MAX_PROBLEMS} problems; give shorter lists"));
    }
    let mut all = vec![Args::new()];
    for axis in &axes {
        all = all
            .iter()
            .flat_map(|args| {
                axis.rows.iter().map(|row| {
                    let mut args = args.clone();
                    args.extend(axis.names.iter().cloned().zip(row.iter().copied()));
                    args
                })
            })
            .collect();
    }
    for args in &mut all {
        resolve(args, &aliases)?;
    }
    Ok(all)
}

/// Gives names that alias others the values of these.
fn resolve(args: &mut Args, aliases: &[(Vec<String>, String)]) -> Result<(), String> {
    // Each pass resolves at least one alias; otherwise the rest refer to each other or to unknown names.
    let mut open: Vec<&(Vec<String>, String)> = aliases.iter().collect();
    while !open.is_empty() {
        let before = open.len();
        open.retain(|(names, of)| match args.get(of).copied() {
            Some(value) => {
                args.extend(names.iter().map(|name| (name.clone(), value)));
                false
            }
            None => true,
        });
        if open.len() == before {
            let (names, of) = open[0];
            return Err(format!("`{}={of}`: `{of}` has no value", names.join("=")));
        }
    }
    Ok(())
}

/// The names and the text of the values: at the last `=`.
fn split(argument: &str) -> Result<(Vec<String>, &str), String> {
    let Some((names, values)) = argument.rsplit_once('=') else {
        return Err(format!("`{argument}`: expected NAME=VALUES"));
    };
    let separator = if argument_is_tuple(argument) { ',' } else { '=' };
    let names: Vec<String> = names.split(separator).map(|name| name.trim().to_owned()).collect();
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(format!("`{argument}`: `{name}` is not a name")),
        None => Ok((names, values.trim())),
    }
}

/// Whether the names are in a list: `M,N,K=..`.
fn argument_is_tuple(argument: &str) -> bool {
    argument.rsplit_once('=').is_some_and(|(names, _)| names.contains(','))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The values of `names` names, a row per problem.
fn rows(argument: &str, names: usize, tuple: bool, values: &str) -> Result<Vec<Vec<Number>>, String> {
    let mut rows = Vec::new();
    for item in values.split(',') {
        if tuple {
            let row: Vec<Number> = item.split('x').map(|v| number(argument, v)).collect::<Result<_, _>>()?;
            if row.len() != names {
                return Err(format!("`{argument}`: `{item}` has {} values, expected {names}", row.len()));
            }
            rows.push(row);
        } else if item.contains(':') {
            rows.extend(range(argument, item)?.into_iter().map(|v| vec![v; names]));
        } else {
            rows.push(vec![number(argument, item)?; names]);
        }
        if rows.len() > MAX_PROBLEMS {
            return Err(format!("`{argument}`: more than {MAX_PROBLEMS} values"));
        }
    }
    Ok(rows)
}

fn number(argument: &str, text: &str) -> Result<Number, String> {
    text.trim().parse().map_err(|()| format!("`{argument}`: `{text}` is not a number"))
}

/// `FROM:TO:+STEP` or `FROM:TO:*FACTOR`.
fn range(argument: &str, item: &str) -> Result<Vec<Number>, String> {
    let shape = || format!("`{argument}`: expected FROM:TO:+STEP or FROM:TO:*FACTOR, found `{item}`");
    let parts: Vec<&str> = item.split(':').map(str::trim).collect();
    let [from, to, step] = parts[..] else { return Err(shape()) };
    let whole = |text: &str| text.parse::<i64>().map_err(|_| shape());
    let (from, to) = (whole(from)?, whole(to)?);
    let (multiply, by) = match step.split_at_checked(1) {
        Some(("+", by)) => (false, whole(by)?),
        Some(("*", by)) => (true, whole(by)?),
        _ => return Err(shape()),
    };
    if from > to || from < 1 || by < if multiply { 2 } else { 1 } {
        return Err(format!("`{argument}`: `{item}` does not go upwards from at least 1"));
    }
    let next = |x: &i64| if multiply { x.checked_mul(by) } else { x.checked_add(by) };
    let values: Vec<Number> = std::iter::successors(Some(from), next)
        .take_while(|x| *x <= to)
        .take(MAX_PROBLEMS + 1)
        .map(Number::Int)
        .collect();
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn all(arguments: &[&str]) -> Result<Vec<String>, String> {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let text = |args: &Args| args.iter().map(|(n, v)| format!("{n}{v}")).collect::<Vec<_>>().join(" ");
        problems(&arguments).map(|all| all.iter().map(text).collect())
    }

    #[test]
    fn lists_and_ranges_are_combined_in_order() {
        assert_eq!(all(&[]), Ok(vec![String::new()]));
        assert_eq!(all(&["M=1,2", "N=3,4"]).expect("fits"), ["M1 N3", "M1 N4", "M2 N3", "M2 N4"]);
        assert_eq!(all(&["K=1024:8192:*2"]).expect("fits"), ["K1024", "K2048", "K4096", "K8192"]);
        assert_eq!(all(&["K=64:200:+64,7"]).expect("fits"), ["K64", "K128", "K192", "K7"]);
        assert_eq!(all(&["K=5:5:+1"]).expect("fits"), ["K5"]);
        assert_eq!(all(&["a=-0.5"]).expect("fits"), ["a-0.5"]);
    }

    #[test]
    fn names_share_values() {
        assert_eq!(all(&["M=1,2", "N=M", "K=N"]).expect("fits"), ["K1 M1 N1", "K2 M2 N2"]);
        assert_eq!(all(&["N=M", "M=3"]).expect("fits"), ["M3 N3"]);
        assert_eq!(all(&["M=N=K=8,9"]).expect("fits"), ["K8 M8 N8", "K9 M9 N9"]);
        assert_eq!(all(&["M=N=K"]).expect_err("nothing").as_str(), "`M=N=K`: `K` has no value");
        assert_eq!(all(&["M=N=P", "P=2:4:*2"]).expect("fits"), ["M2 N2 P2", "M4 N4 P4"]);
        assert_eq!(all(&["M,N,K=1x2x3,4x5x6", "beta=1"]).expect("fits"), ["K3 M1 N2 beta1", "K6 M4 N5 beta1"]);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (arguments, said) in [
            (&["M"][..], "`M`: expected NAME=VALUES"),
            (&["M="], "`M=`: `` is not a number"),
            (&["=4"], "`=4`: `` is not a name"),
            (&["4=4"], "`4=4`: `4` is not a name"),
            (&["M=1", "M=2"], "`M` has two values"),
            (&["M=M=1"], "`M` has two values"),
            (&["M=1,,2"], "`M=1,,2`: `` is not a number"),
            (&["M=N", "N=M"], "`M=N`: `N` has no value"),
            (&["M=4:1:+1"], "`M=4:1:+1`: `4:1:+1` does not go upwards from at least 1"),
            (&["M=1:4:*1"], "`M=1:4:*1`: `1:4:*1` does not go upwards from at least 1"),
            (&["M=1:4"], "`M=1:4`: expected FROM:TO:+STEP or FROM:TO:*FACTOR, found `1:4`"),
            (&["M=1:4:2"], "`M=1:4:2`: expected FROM:TO:+STEP or FROM:TO:*FACTOR, found `1:4:2`"),
            (&["M=1:4:"], "`M=1:4:`: expected FROM:TO:+STEP or FROM:TO:*FACTOR, found `1:4:`"),
            (&["M,N=1x2x3"], "`M,N=1x2x3`: `1x2x3` has 3 values, expected 2"),
            (&["M=1:999999999:+1"], "`M=1:999999999:+1`: more than 4096 values"),
            (&["M=1:100:+1", "N=1:100:+1"], "more than 4096 problems; give shorter lists"),
            (&["M=9223372036854775807:9223372036854775807:*2", "M=1"], "`M` has two values"),
        ] {
            assert_eq!(all(arguments).expect_err("unreadable"), said);
        }
    }
}
