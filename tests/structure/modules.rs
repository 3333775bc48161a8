//! The modules of a crate: what each defines, what its `use` lines name, and what its code names by a path.

use crate::lex::{Kind, Token, tokens};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A path as it is written: `crate::a::b`, with what the name is called here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) path: Vec<String>,
    /// The name here; `None` of `path::*`.
    pub(crate) name: Option<String>,
    pub(crate) public: bool,
}

/// A module. Inline modules are modules of their own in the file of the module around them.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// Its file, relative to the folder given to `Crate::read`.
    pub(crate) file: String,
    pub(crate) parent: Option<usize>,
    pub(crate) children: BTreeMap<String, usize>,
    /// Functions, types, constants and macros.
    pub(crate) items: Vec<String>,
    pub(crate) uses: Vec<Use>,
    /// Paths of two names and more in the code, and of one name where it is a type's, a macro's or that of something called.
    pub(crate) named: Vec<Vec<String>>,
    pub(crate) impls: Vec<Impl>,
}

/// An `impl` block.
#[derive(Clone, Debug)]
pub(crate) struct Impl {
    /// The type's path, as it is written.
    pub(crate) of: Vec<String>,
    /// Functions of the type itself: none of a trait's.
    pub(crate) functions: Vec<String>,
    /// What is called as `self.name(..)`.
    pub(crate) calls: Vec<String>,
}

/// The modules of a crate by number, the root first. Tests (`#[cfg(test)]`) are left out.
pub(crate) struct Crate {
    pub(crate) modules: Vec<Module>,
    base: PathBuf,
}

impl Crate {
    /// Reads the crate with the root file `root` below `base`.
    pub(crate) fn read(base: &Path, root: &str) -> Result<Crate, String> {
        let mut read = Crate { modules: Vec::new(), base: base.to_owned() };
        let root = base.join(root);
        let folder = root.parent().unwrap_or(&root).to_owned();
        read.file(&root, &folder, None)?;
        Ok(read)
    }

    /// Reads a file; modules of files in it are below `folder`.
    fn file(&mut self, file: &Path, folder: &Path, parent: Option<usize>) -> Result<usize, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let tokens = tokens(&text);
        let module = self.add(file, parent);
        Reader { tokens: &tokens, at: 0, folder: folder.to_owned(), file }.module(self, module)?;
        Ok(module)
    }

    fn add(&mut self, file: &Path, parent: Option<usize>) -> usize {
        let (children, items, uses, named, impls) = Default::default();
        let file = file.strip_prefix(&self.base).unwrap_or(file).display().to_string();
        self.modules.push(Module { file, parent, children, items, uses, named, impls });
        self.modules.len() - 1
    }
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    folder: PathBuf,
    file: &'a Path,
}

/// The effect of an attribute on the item after it.
#[derive(Default)]
struct Attributes<'a> {
    test: bool,
    path: Option<&'a str>,
}

const ITEMS: [&str; 9] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> Kind<'a> {
        self.tokens.get(self.at + ahead).map_or(Kind::Other, |token| token.kind)
    }

    /// Reads up to the brace that ends the module, or the end of the file.
    fn module(&mut self, read: &mut Crate, module: usize) -> Result<(), String> {
        let (mut depth, mut attributes) = (0, Attributes::default());
        while self.at < self.tokens.len() {
            match (self.peek(0), self.peek(1), self.peek(2)) {
                (Kind::Mark('#'), Kind::Mark('['), _) => {
                    self.attribute(&mut attributes);
                    continue;
                }
                (Kind::Mark('{'), ..) => depth += 1,
                (Kind::Mark('}'), ..) if depth == 0 => return Ok(()),
                (Kind::Mark('}'), ..) => depth -= 1,
                _ if attributes.test => {
                    self.skip_item();
                    attributes = Attributes::default();
                    continue;
                }
                (Kind::Name("mod"), Kind::Name(name), Kind::Mark(mark @ (';' | '{'))) => {
                    self.at += 3;
                    let child = if mark == ';' {
                        let (file, folder) = self.file_of(name, attributes.path);
                        read.file(&file, &folder, Some(module))?
                    } else {
                        self.inline(read, module, name)?
                    };
                    read.modules[module].children.insert(name.to_owned(), child);
                    attributes = Attributes::default();
                    continue;
                }
                (Kind::Name("use"), ..) => {
                    let public = self.is_public();
                    self.at += 1;
                    self.tree(&mut read.modules[module].uses, &[], public);
                    attributes = Attributes::default();
                    continue;
                }
                (Kind::Name(kind), Kind::Name(name), _)
                    if depth == 0 && ITEMS.contains(&kind) && !["fn", "unsafe", "mut"].contains(&name) =>
                {
                    read.modules[module].items.push(name.to_owned());
                    attributes = Attributes::default();
                }
                (Kind::Name("macro_rules"), _, Kind::Name(name)) => read.modules[module].items.push(name.to_owned()),
                (Kind::Name("impl"), ..) if depth == 0 => {
                    read.modules[module].impls.push(self.implementation());
                    attributes = Attributes::default();
                }
                (Kind::Name(_), ..) if self.at == 0 || !self.tokens[self.at - 1].is('.') => {
                    if let Some(path) = self.path() {
                        read.modules[module].named.push(path);
                    }
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// The `impl` block that begins here; the reader stays where it is.
    fn implementation(&self) -> Impl {
        let mut found = Impl { of: Vec::new(), functions: Vec::new(), calls: Vec::new() };
        let (mut angles, mut of_trait, mut bounds, mut at) = (0, false, false, self.at + 1);
        while let Some(token) = self.tokens.get(at).filter(|token| !token.is('{')) {
            match token.kind {
                Kind::Mark('<') => angles += 1,
                Kind::Mark('>') if !self.tokens[at - 1].is('-') => angles -= 1,
                Kind::Name("where") => bounds = true,
                Kind::Name("for") if angles == 0 => {
                    of_trait = true;
                    found.of.clear();
                }
                Kind::Name(name) if angles == 0 && !bounds => {
                    if self.tokens[at - 1].kind != Kind::Path {
                        found.of.clear();
                    }
                    found.of.push(name.to_owned());
                }
                _ => {}
            }
            at += 1;
        }
        let mut depth = 0;
        for (i, token) in self.tokens.iter().enumerate().skip(at) {
            let next = |ahead: usize| self.tokens.get(i + ahead).map_or(Kind::Other, |token| token.kind);
            match (token.kind, next(1), next(2)) {
                (Kind::Mark('{'), ..) => depth += 1,
                (Kind::Mark('}'), ..) if depth == 1 => break,
                (Kind::Mark('}'), ..) => depth -= 1,
                (Kind::Name("fn"), Kind::Name(name), _) if depth == 1 && !of_trait => {
                    found.functions.push(name.to_owned());
                }
                (Kind::Name("self"), Kind::Mark('.'), Kind::Name(name))
                    if matches!(next(3), Kind::Mark('(') | Kind::Path) =>
                {
                    found.calls.push(name.to_owned());
                }
                _ => {}
            }
        }
        found
    }

    /// A path of names; the reader goes after it. One name alone counts where it may be a name from `use path::*`.
    fn path(&mut self) -> Option<Vec<String>> {
        let defined =
            self.at > 0 && ["fn", "let", "mut", "mod"].iter().any(|word| self.tokens[self.at - 1].is_name(word));
        let mut path = Vec::new();
        while let Kind::Name(name) = self.peek(0) {
            path.push(name.to_owned());
            self.at += 1;
            match (self.peek(0), self.peek(1)) {
                (Kind::Path, Kind::Name(_)) => self.at += 1,
                _ => break,
            }
        }
        let is_type = path[0].starts_with(char::is_uppercase);
        let called = matches!(self.peek(0), Kind::Mark('(' | '!'));
        (path.len() > 1 || !defined && (is_type || called)).then_some(path)
    }

    fn is_public(&self) -> bool {
        // `pub use`, `pub(crate) use`
        self.at > 0 && (self.tokens[self.at - 1].is_name("pub") || self.tokens[self.at - 1].is(')'))
    }

    /// `#[..]`, and what of it matters.
    fn attribute(&mut self, attributes: &mut Attributes<'a>) {
        let begin = self.at;
        self.at += 1;
        self.skip_group();
        let inside = &self.tokens[begin + 2..self.at];
        let begins = |names: &[&str]| {
            inside.iter().filter_map(Token::name).zip(names).filter(|(a, b)| a == *b).count() == names.len()
        };
        attributes.test |= begins(&["cfg", "test"]) && inside.len() == 5 || begins(&["test"]);
        if let (true, Some(Token { kind: Kind::Text(path), .. })) = (begins(&["path"]), inside.get(2)) {
            attributes.path = Some(path);
        }
    }

    /// Goes over a group in brackets of any kind.
    fn skip_group(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token.kind {
                Kind::Mark('(' | '[' | '{') => depth += 1,
                Kind::Mark(')' | ']' | '}') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Goes over an item: up to `;` or after its braces.
    fn skip_item(&mut self) {
        while self.at < self.tokens.len() {
            match self.peek(0) {
                Kind::Mark(';') => {
                    self.at += 1;
                    return;
                }
                Kind::Mark('{') => return self.skip_group(),
                Kind::Mark('(' | '[') => self.skip_group(),
                _ => self.at += 1,
            }
        }
    }

    /// The file of a module, and the folder of its children.
    fn file_of(&self, name: &str, path: Option<&str>) -> (PathBuf, PathBuf) {
        if let Some(path) = path {
            let file = self.file.parent().unwrap_or(self.file).join(path);
            let folder = file.parent().unwrap_or(&file).to_owned();
            return (file, folder);
        }
        let folder = self.folder.join(name);
        let inside = folder.join("mod.rs");
        (if inside.exists() { inside } else { self.folder.join(format!("{name}.rs")) }, folder)
    }

    fn inline(&mut self, read: &mut Crate, parent: usize, name: &str) -> Result<usize, String> {
        let module = read.add(self.file, Some(parent));
        let mut reader = Reader { tokens: self.tokens, at: self.at, folder: self.folder.join(name), file: self.file };
        reader.module(read, module)?;
        self.at = reader.at + 1;
        Ok(module)
    }

    /// A tree of `use`: what is in front of it, and the rest up to `;`, `,` or `}`.
    fn tree(&mut self, uses: &mut Vec<Use>, before: &[String], public: bool) {
        let mut path = before.to_vec();
        loop {
            match self.peek(0) {
                Kind::Name("as") => {
                    if let Kind::Name(name) = self.peek(1) {
                        uses.push(Use { path, name: Some(name.to_owned()), public });
                    }
                    self.at += 2;
                    return;
                }
                Kind::Name(name) => path.push(name.to_owned()),
                Kind::Mark('*') => {
                    uses.push(Use { path, name: None, public });
                    self.at += 1;
                    return;
                }
                Kind::Mark('{') => {
                    self.at += 1;
                    while self.at < self.tokens.len() && self.peek(0) != Kind::Mark('}') {
                        self.tree(uses, &path, public);
                        if self.peek(0) == Kind::Mark(',') {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                Kind::Path => {}
                _ => {
                    // `use a::{self}` names `a`.
                    if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
                        path.pop();
                    }
                    let name = path.last().cloned();
                    uses.push(Use { path, name, public });
                    return;
                }
            }
            self.at += 1;
        }
    }
}
