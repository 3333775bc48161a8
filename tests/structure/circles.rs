//! Which file takes what from which, and the circles among files.

use crate::modules::{Crate, Impl, Use};
use std::collections::{BTreeMap, BTreeSet};

/// For every file the files from which it takes names, and those names.
pub(crate) type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What a path leads to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Meaning {
    Module(usize),
    Item { file: String, name: String },
}

/// Imports between the files of a crate. A name leads to the file that defines it, even if others re-export it. A
/// method, in crates where these count, leads to the file with its `impl`.
pub(crate) fn arrows(read: &Crate, methods: bool) -> Arrows {
    let mut arrows = Arrows::new();
    for (number, module) in read.modules.iter().enumerate() {
        let mut taken = BTreeSet::new();
        for used in &module.uses {
            taken.extend(resolve(read, number, &used.path, 0));
        }
        for path in &module.named {
            // A plain name is in this file, or comes by a `use` line, which has been looked at, or by one with `*`.
            let found = if path.len() > 1 { resolve(read, number, path, 0) } else { globs(read, number, &path[0], 0) };
            taken.extend(found);
        }
        for meaning in taken {
            if let Meaning::Item { file, name } = meaning
                && file != module.file
            {
                arrows.entry(module.file.clone()).or_default().entry(file).or_default().insert(name);
            }
        }
    }
    for (from, to, name) in if methods { called(read) } else { Vec::new() } {
        arrows.entry(from).or_default().entry(to).or_default().insert(name);
    }
    arrows
}

/// Calls of `self.name(..)` where another file defines the method of the type: from which file, of which, and its name.
fn called(read: &Crate) -> Vec<(String, String, String)> {
    let mut impls: Vec<(Meaning, &str, &Impl)> = Vec::new();
    for (number, module) in read.modules.iter().enumerate() {
        for block in &module.impls {
            impls.extend(resolve(read, number, &block.of, 0).into_iter().map(|of| (of, module.file.as_str(), block)));
        }
    }
    let mut found = Vec::new();
    for (of, from, block) in &impls {
        for (_, to, other) in impls.iter().filter(|(other, to, _)| other == of && to != from) {
            let names = block.calls.iter().filter(|&name| other.functions.contains(name));
            found.extend(names.map(|name| ((*from).to_owned(), (*to).to_owned(), format!("`self.{name}(..)`"))));
        }
    }
    found
}

/// Longer chains of `use` lines are none: they go round.
const DEPTH: usize = 24;

fn resolve(read: &Crate, scope: usize, path: &[String], depth: usize) -> BTreeSet<Meaning> {
    let Some((first, rest)) = path.split_first().filter(|_| depth < DEPTH) else { return BTreeSet::new() };
    let start = match first.as_str() {
        "crate" => BTreeSet::from([Meaning::Module(0)]),
        "self" => BTreeSet::from([Meaning::Module(scope)]),
        "super" => read.modules[scope].parent.map(Meaning::Module).into_iter().collect(),
        name => member(read, scope, name, depth + 1),
    };
    start.into_iter().flat_map(|meaning| follow(read, meaning, rest, depth)).collect()
}

fn follow(read: &Crate, meaning: Meaning, path: &[String], depth: usize) -> BTreeSet<Meaning> {
    match (meaning, path.split_first()) {
        (Meaning::Module(module), Some((name, rest))) if name == "super" => {
            let parent = read.modules[module].parent.map(Meaning::Module);
            parent.into_iter().flat_map(|parent| follow(read, parent, rest, depth)).collect()
        }
        (Meaning::Module(module), Some((name, rest))) => {
            let found = member(read, module, name, depth + 1);
            // A module and a function may have one name: what has more after it is the module, or a type.
            let (modules, items): (Vec<_>, Vec<_>) = found.into_iter().partition(|m| matches!(m, Meaning::Module(_)));
            let meant = if rest.is_empty() || modules.is_empty() { [modules, items].concat() } else { modules };
            meant.into_iter().flat_map(|meaning| follow(read, meaning, rest, depth)).collect()
        }
        // What is after a type is its own.
        (meaning, _) => BTreeSet::from([meaning]),
    }
}

/// What a name means in a module.
fn member(read: &Crate, module: usize, name: &str, depth: usize) -> BTreeSet<Meaning> {
    let found = &read.modules[module];
    let mut meanings: BTreeSet<_> = found.children.get(name).map(|child| Meaning::Module(*child)).into_iter().collect();
    if found.items.iter().any(|item| item == name) {
        meanings.insert(Meaning::Item { file: found.file.clone(), name: name.to_owned() });
    }
    for used in found.uses.iter().filter(|used| used.name.as_deref() == Some(name)) {
        meanings.extend(resolve(read, module, &used.path, depth + 1));
    }
    if meanings.is_empty() { globs(read, module, name, depth + 1) } else { meanings }
}

/// What a name means by the `use path::*` of a module.
fn globs(read: &Crate, module: usize, name: &str, depth: usize) -> BTreeSet<Meaning> {
    let globs = read.modules[module].uses.iter().filter(|used| used.name.is_none());
    let whole = |used: &Use| resolve(read, module, &used.path, depth + 1);
    let modules = globs.flat_map(whole).filter(|meaning| matches!(meaning, Meaning::Module(_)));
    modules.flat_map(|meaning| follow(read, meaning, &[name.to_owned()], depth + 1)).collect()
}

/// The files that `from` reaches.
fn reached<'a>(arrows: &'a Arrows, from: &'a String) -> BTreeSet<&'a String> {
    let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(file) = todo.pop() {
        todo.extend(arrows.get(file).into_iter().flat_map(BTreeMap::keys).filter(|to| seen.insert(*to)));
    }
    seen
}

/// The sets of files that reach one another.
pub(crate) fn sets(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = arrows.keys().map(|file| (file, reached(arrows, file))).collect();
    let mut sets: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (file, reached) in &reach {
        let back = |to: &String| reach.get(to).is_some_and(|back| back.contains(file));
        sets.insert(reached.iter().filter(|to| back(to)).map(|to| (*to).clone()).collect());
    }
    sets.into_iter().filter(|set| !set.is_empty()).collect()
}

/// A shortest circle of a set of files that reach one another, of several the first.
pub(crate) fn shortest(arrows: &Arrows, set: &BTreeSet<String>) -> Vec<String> {
    set.iter().filter_map(|file| circle(arrows, file)).min_by_key(Vec::len).unwrap_or_default()
}

/// A shortest way from a file back to it.
fn circle(arrows: &Arrows, file: &String) -> Option<Vec<String>> {
    let mut came: BTreeMap<&String, &String> = BTreeMap::new();
    let mut next = vec![file];
    while !next.is_empty() {
        let mut found = Vec::new();
        for from in next {
            for to in arrows.get(from).into_iter().flat_map(BTreeMap::keys) {
                if came.contains_key(to) {
                    continue;
                }
                came.insert(to, from);
                if to == file {
                    let mut way = vec![file.clone()];
                    let mut at = came[file];
                    while at != file {
                        way.push(at.clone());
                        at = came[at];
                    }
                    way[1..].reverse();
                    return Some(way);
                }
                found.push(to);
            }
        }
        next = found;
    }
    None
}
