//! Plausible alterations of the repository's programs, by statements, with their targets, definitions and runs.
//!
//! [`mutate`](super::mutate) changes words, and most results are no programs. Here statements are moved, repeated,
//! nested and taken out of blocks, attributes and schedule items are added and removed, and a number, a type or an
//! order is replaced everywhere.

use super::alterations::{AROUND, ATTRIBUTES, ITEMS, NUMBERS, PARAMETERS, ROLE_ITEMS, STATEMENTS, TYPES};
use super::input::Input;
use super::words::{is_number, is_word, split};
use crate::options;
use crate::problem::{Random, Run};
use crate::programs::{head_runs, snippets};
use crate::test_file::{self, TestFile};
use tilec::{CompileOptions, Target};

/// Approximate limit of multiply-adds for a run to be kept.
const WORK: f64 = 200_000.0;

/// A program to start from.
struct Sample {
    lines: Vec<String>,
    options: CompileOptions,
    runs: Vec<Run>,
}

/// All of them.
pub(super) struct Alterer {
    samples: Vec<Sample>,
}

impl Alterer {
    /// Reads the programs of the repository.
    pub(super) fn new() -> Result<Alterer, String> {
        let root = crate::root();
        let mut samples = Vec::new();
        for (path, name) in test_file::walk(&root.join("tests/files"))? {
            let Ok(file) = TestFile::read(&path, &name) else { continue };
            let (Ok((_, text)), Ok((base, _))) = (file.program(), options::of(&file)) else { continue };
            let runs: Vec<Run> = file.values("run").filter_map(|line| Run::parse(line).ok()).collect();
            // One combination of a matrix represents all.
            let base = CompileOptions {
                deny: std::collections::BTreeSet::new(),
                ..options::matrix(&file, &base)?.swap_remove(0).1
            };
            samples.extend(Sample::of(&text, base, runs));
        }
        for (path, _) in test_file::walk(&root.join("examples"))? {
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let runs = head_runs(&text).iter().filter_map(|line| Run::parse(line).ok()).collect();
            let options = CompileOptions { verify_each: true, ..CompileOptions::default() };
            samples.extend(Sample::of(&text, options, runs));
        }
        let language = std::fs::read_to_string(root.join("docs/language.md")).map_err(|e| e.to_string())?;
        for (_, snippet) in snippets(&language) {
            let options = CompileOptions { verify_each: true, target: Target::Sm90a, ..CompileOptions::default() };
            samples.extend(Sample::of(&snippet, options, Vec::new()));
        }
        Ok(Alterer { samples })
    }

    /// A program.
    pub(super) fn input(&self, random: &mut Random) -> Input {
        let sample = &self.samples[random.below(self.samples.len() as u64) as usize];
        let mut program = Program { lines: sample.lines.clone() };
        let mut changes = 1;
        while changes < 6 && random.below(2) == 0 {
            changes += 1;
        }
        for _ in 0..changes {
            program.change(random);
        }
        let mut options = sample.options.clone();
        if random.below(3) == 0 {
            options.target = random.of(Target::ALL);
        }
        if random.below(4) == 0
            && let Some(define) = program.define(random)
        {
            options.defines.push(define);
        }
        if random.below(10) == 0 {
            let passes: Vec<&str> = options::optional_passes().collect();
            options.disabled.insert(random.of(&passes).to_owned());
        }
        let run = match sample.runs.len() {
            0 => some_sizes(random),
            n => sample.runs[random.below(n as u64) as usize].clone(),
        };
        Input { text: program.lines.join("\n") + "\n", options, run, meant: false, tried: true }
    }
}

impl Sample {
    /// `None`: a program that is made to be refused, or a large one.
    fn of(text: &str, options: CompileOptions, mut runs: Vec<Run>) -> Option<Sample> {
        let lines: Vec<String> =
            split(text).concat().lines().filter(|l| !l.trim().is_empty()).map(str::to_owned).collect();
        let sizes = ["M", "N", "K", "L", "Z", "H"];
        runs.retain(|run| sizes.iter().filter_map(|n| run.value(n)).product::<f64>() <= WORK);
        let kernel = lines.iter().any(|l| l.trim_start().starts_with("kernel "));
        (text.len() < 8000 && kernel).then_some(Sample { lines, options, runs })
    }
}

/// Sizes for programs that come without.
fn some_sizes(random: &mut Random) -> Run {
    let mut line = format!("seed={} range=3", random.below(100));
    for name in ["M", "N", "K", "L", "Z", "H", "B", "S"] {
        let (low, unit) = if "MNKL".contains(name) { (9, 8) } else { (3, 1) };
        line += &format!(" {name}={}", unit * random.between(1, low));
    }
    Run::parse(&line).expect("names and numbers")
}

/// A program as lines: a statement is one line, or all lines of a block.
struct Program {
    lines: Vec<String>,
}

impl Program {
    /// The lines of the statement that begins at a line; of a line that only closes a block, itself.
    fn statement(&self, at: usize) -> std::ops::Range<usize> {
        let mut depth = 0i64;
        for (i, line) in self.lines.iter().enumerate().skip(at) {
            depth += line.matches('{').count() as i64 - line.matches('}').count() as i64;
            if depth <= 0 {
                return at..i + 1;
            }
        }
        at..at + 1
    }

    /// A line that is a statement of a body.
    fn some(&self, random: &mut Random, wanted: &dyn Fn(&str) -> bool) -> Option<usize> {
        let open = self.lines.iter().position(|l| l.trim() == "{").map_or(0, |i| i + 1);
        let places: Vec<usize> = (open..self.lines.len())
            .filter(|&i| !self.lines[i].trim().starts_with('}') && wanted(&self.lines[i]))
            .collect();
        (!places.is_empty()).then(|| random.of(&places))
    }

    fn change(&mut self, random: &mut Random) {
        let any = |_: &str| true;
        match random.below(20) {
            0 => {
                // Moved, and with it what is in it.
                let Some(range) = self.some(random, &any).map(|at| self.statement(at)) else { return };
                let moved: Vec<String> = self.lines.drain(range).collect();
                let to = self.some(random, &any).unwrap_or(self.lines.len());
                self.lines.splice(to..to, moved);
            }
            1 => {
                let Some(range) = self.some(random, &any).map(|at| self.statement(at)) else { return };
                let again = self.lines[range.clone()].to_vec();
                let to = if random.below(2) == 0 { range.end } else { self.some(random, &any).unwrap_or(range.end) };
                self.lines.splice(to..to, again);
            }
            2 => {
                let Some(range) = self.some(random, &any).map(|at| self.statement(at)) else { return };
                self.lines.drain(range);
            }
            3 => self.nest(random),
            4 => {
                // Out of its block.
                let Some(range) = self.some(random, &|l| l.ends_with('{')).map(|at| self.statement(at)) else { return };
                if range.len() > 1 {
                    self.lines.remove(range.end - 1);
                    self.lines.remove(range.start);
                }
            }
            5 => {
                let Some(at) = self.some(random, &any) else { return };
                self.lines.insert(at, random.of(STATEMENTS).to_owned());
            }
            6..=8 => {
                let Some(at) = self.some(random, &|l| l.trim().starts_with("copy ")) else { return };
                let attribute = random.of(ATTRIBUTES);
                self.lines[at] += attribute;
            }
            9 => {
                // A copy without what is written after its destination.
                let Some(at) = self.some(random, &|l| l.contains(" -> ")) else { return };
                let words = split(&self.lines[at]);
                let arrow = words.iter().position(|w| w == "->").unwrap_or(0);
                let known = |w: &String| ATTRIBUTES.iter().any(|a| a.split_whitespace().next() == Some(w));
                if let Some(end) = (arrow..words.len()).find(|&i| known(&words[i])) {
                    self.lines[at] = words[..end].concat();
                }
            }
            10..=11 => self.schedule(random),
            12..=13 => self.everywhere(random, &|w| is_number(w), NUMBERS),
            14 => self.everywhere(random, &|w| TYPES.contains(&w), TYPES),
            15 => self.one(random, &|w| is_number(w), NUMBERS),
            16 => self.one(random, &|w| TYPES.contains(&w), TYPES),
            17 => {
                let Some(at) = self.some(random, &|l| l.trim().starts_with("role ")) else { return };
                let item = random.of(ROLE_ITEMS);
                self.lines[at] = self.lines[at].replacen(" {", &format!(" {item} {{"), 1);
            }
            18 => self.header(random),
            _ => {
                // A name, or a part of an expression, by another of the program.
                let from: Vec<String> = self.lines.iter().flat_map(|l| split(l)).filter(|w| is_word(w)).collect();
                let names: Vec<&str> = from.iter().map(String::as_str).collect();
                if !names.is_empty() {
                    self.one(random, &|w| is_word(w), &names);
                }
            }
        }
    }

    /// Puts a statement, or several consecutive ones, into a block.
    fn nest(&mut self, random: &mut Random) {
        let Some(range) = self.some(random, &|_| true).map(|at| self.statement(at)) else { return };
        let mut end = range.end;
        for _ in 0..random.below(4) {
            if self.lines.get(end).is_some_and(|l| !l.trim().starts_with('}')) {
                end = self.statement(end).end;
            }
        }
        self.lines.insert(end, "}".to_owned());
        self.lines.insert(range.start, random.of(AROUND).to_owned());
    }

    /// An item more, or in place of the one of its name.
    fn schedule(&mut self, random: &mut Random) {
        let item = random.of(ITEMS);
        let name = item.split_whitespace().next().unwrap_or("");
        match self.lines.iter().position(|l| l.trim().starts_with("schedule")) {
            Some(at) => {
                let line = &mut self.lines[at];
                if let Some(from) = line.find(&format!("{name} ")) {
                    let rest = &line[from + name.len()..];
                    let value = rest.trim_start();
                    let skipped = rest.len() - value.len();
                    let long = if value.starts_with('(') { value.find(')').map(|i| i + 1) } else { value.find(' ') };
                    let end = from + name.len() + skipped + long.unwrap_or(value.len());
                    line.replace_range(from..end, item);
                } else {
                    *line = line.replacen('{', &format!("{{ {item}"), 1);
                }
            }
            None => {
                let open = self.lines.iter().position(|l| l.trim() == "{").unwrap_or(0);
                self.lines.insert(open, format!("schedule {{ {item} }}"));
            }
        }
    }

    /// A parameter with another order, alignment or strides.
    fn header(&mut self, random: &mut Random) {
        let open = self.lines.iter().position(|l| l.trim() == "{").unwrap_or(self.lines.len());
        let places: Vec<usize> = (0..open).filter(|&i| self.lines[i].contains("gmem")).collect();
        if places.is_empty() {
            return;
        }
        let at = random.of(&places);
        let closes: Vec<usize> = self.lines[at].match_indices(']').map(|(i, _)| i + 1).collect();
        if !closes.is_empty() {
            let to = random.of(&closes);
            let item = random.of(PARAMETERS);
            self.lines[at].insert_str(to, item);
        }
    }

    /// One word by another.
    fn one(&mut self, random: &mut Random, wanted: &dyn Fn(&str) -> bool, by: &[&str]) {
        let mut words: Vec<Vec<String>> = self.lines.iter().map(|l| split(l)).collect();
        let places: Vec<(usize, usize)> = (0..words.len())
            .flat_map(|i| (0..words[i].len()).map(move |j| (i, j)))
            .filter(|&(i, j)| wanted(&words[i][j]))
            .collect();
        if !places.is_empty() {
            let (i, j) = random.of(&places);
            words[i][j] = random.of(by).to_owned();
            self.lines[i] = words[i].concat();
        }
    }

    /// Replaces a word everywhere.
    fn everywhere(&mut self, random: &mut Random, wanted: &dyn Fn(&str) -> bool, by: &[&str]) {
        let words: Vec<String> = self.lines.iter().flat_map(|l| split(l)).filter(|w| wanted(w)).collect();
        if words.is_empty() {
            return;
        }
        let old = &words[random.below(words.len() as u64) as usize];
        let new = random.of(by);
        for line in &mut self.lines {
            let replaced = split(line).into_iter().map(|w| if w == *old { new.to_owned() } else { w });
            *line = replaced.collect::<Vec<_>>().concat();
        }
    }

    /// A value for one of the compile-time parameters.
    fn define(&self, random: &mut Random) -> Option<(String, String)> {
        let head = self.lines.join(" ");
        let inside = head.get(head.find('<')? + 1..head.find(">(")?)?;
        let names: Vec<&str> = inside
            .split(',')
            .filter_map(|p| p.split([':', '=']).next().map(str::trim))
            .filter(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
            .collect();
        let name = (!names.is_empty()).then(|| random.of(&names))?;
        let value = match random.below(4) {
            0 => random.of(TYPES),
            1 => random.of(&["row", "col"]),
            _ => random.of(NUMBERS),
        };
        Some((name.to_owned(), value.to_owned()))
    }
}
