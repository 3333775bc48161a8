//! Reader of `ncu --csv`: `--page raw` has a line for each launch and a column for each counter, the other pages a line
//! for each counter of each launch.

use std::collections::BTreeMap;

/// The counters of one launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Name of the kernel, without its parameters.
    pub kernel: String,
    /// Counters that have a value.
    pub values: BTreeMap<String, f64>,
}

/// The launches in their order. Lines outside the table (`==PROF== ...`, output of the program) are skipped.
///
/// # Errors
/// If there is no table, or a line of it is too short.
pub fn read(text: &str) -> Result<Vec<Measured>, String> {
    let mut lines = text.lines();
    let Some(header) = lines.by_ref().find(|l| l.starts_with("\"ID\"")) else {
        let said: Vec<&str> = text.lines().filter(|l| l.contains("==ERROR==") || l.contains("ERR_")).collect();
        return Err(format!("no table of the profiler; it said: {}", said.join(" / ")));
    };
    let header = fields(header);
    let column = |name: &str| header.iter().position(|h| h == name);
    let kernel = column("Kernel Name").ok_or("no column `Kernel Name`")?;
    let long = column("Metric Name").zip(column("Metric Value"));
    let mut all: Vec<(u64, Measured)> = Vec::new();
    for line in lines.filter(|l| l.starts_with('"')) {
        let row = fields(line);
        // The line of units has no number.
        let Some(id) = row.first().and_then(|f| f.parse::<u64>().ok()) else { continue };
        if row.len() != header.len() {
            return Err(format!("{} fields, expected {}: {line}", row.len(), header.len()));
        }
        if all.last().is_none_or(|(last, _)| *last != id) {
            let name = row[kernel].split('(').next().unwrap_or_default().to_owned();
            all.push((id, Measured { kernel: name, values: BTreeMap::new() }));
        }
        let Some((_, measured)) = all.last_mut() else { continue };
        let mut put = |name: &str, value: &str| {
            if let Ok(number) = value.replace(',', "").parse::<f64>() {
                measured.values.insert(name.to_owned(), number);
            }
        };
        match long {
            Some((name, value)) => put(&row[name], &row[value]),
            None => header.iter().zip(&row).filter(|(h, _)| h.contains("__")).for_each(|(h, value)| put(h, value)),
        }
    }
    Ok(all.into_iter().map(|(_, measured)| measured).collect())
}

/// The fields of a line: between quotes, doubled quotes inside.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.trim_end().chars().peekable();
    while let Some(c) = chars.next() {
        let last = out.len() - 1;
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                out[last].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => out[last].push(c),
        }
    }
    out
}
