//! A module as PTX text.
//!
//! One pass over each body. Registers are numbered densely per class in order of first appearance, so names
//! depend on the instructions alone; the declarations, which the numbering determines, are put before the body
//! once it is written. Nothing is chosen here except spelling: the text is ASCII with one statement per line,
//! because ptxas refuses other characters even in comments and knows no escapes in strings.
//!
//! Needs: a module that passed [`crate::check::check`].

use crate::check::required_version;
use crate::inst::{AddrBase, Class, Inst, Operand, Reg};
use crate::module::{ConstDecl, Function, Item, Module, Param, ParamTy};
use cranelift_entity::EntityRef;
use std::collections::BTreeSet;
use std::io::Write;
use tilec_ir::entities::Stmt;

/// The text of the module.
pub fn print(module: &Module) -> String {
    print_bodies(module).0
}

/// A module as text, with the lines of its instructions.
#[derive(Clone, Debug, Default)]
pub struct Printed {
    /// The text, as [`print()`] gives it.
    pub text: String,
    /// The lines of instructions, in order.
    pub instructions: Vec<InstLine>,
}

/// The line of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstLine {
    /// Its number, from 1.
    pub line: u32,
    /// The function, by its index in the module.
    pub function: u32,
    /// The statement of the function's kernel that the instruction implements.
    pub origin: Option<Stmt>,
}

/// The text of the module, with the lines of its instructions.
pub fn print_lines(module: &Module) -> Printed {
    let (text, bodies) = print_bodies(module);
    let feeds = |text: &str| u32::try_from(text.matches('\n').count()).expect("bug: PTX of 2^32 lines");
    let mut instructions = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for (function, (func, body)) in (0..).zip(module.functions.iter().zip(bodies)) {
        line += feeds(&text[counted..body]);
        counted = body;
        let mut at = line;
        for item in &func.body {
            match item {
                Item::Inst(inst) => {
                    instructions.push(InstLine { line: at, function, origin: inst.origin.expand() });
                    at += 1;
                }
                Item::Comment(text) => at += feeds(text) + 1,
                Item::Label(_) | Item::Loc { .. } | Item::Pragma(_) => at += 1,
            }
        }
    }
    Printed { text, instructions }
}

/// The text of the module, and the byte offset of each function's first statement.
fn print_bodies(module: &Module) -> (String, Vec<usize>) {
    let mut out = Vec::new();
    for line in &module.header {
        comment(&mut out, "", line);
    }
    let version = module.version.unwrap_or_else(|| required_version(module).0);
    put(&mut out, format_args!(".version {}.{}\n", version.0, version.1));
    put(&mut out, format_args!(".target {}\n", module.target));
    say(&mut out, ".address_size 64\n");
    for (index, file) in module.files.iter().enumerate() {
        put(&mut out, format_args!(".file {} \"{}\"\n", index + 1, percent_encoded(file)));
    }
    let mut declared = BTreeSet::new();
    for decl in module.functions.iter().flat_map(|f| &f.shared).filter(|d| d.dynamic) {
        if declared.insert(&decl.name) {
            let (align, name) = (decl.align, &decl.name);
            put(&mut out, format_args!(".extern .shared .align {align} .b8 {name}[];\n"));
        }
    }
    for table in module.functions.iter().flat_map(|f| &f.tables) {
        print_table(&mut out, table);
    }
    let mut bodies = Vec::new();
    for func in &module.functions {
        out.push(b'\n');
        bodies.push(print_function(&mut out, func));
    }
    (String::from_utf8(out).expect("bug: PTX is ASCII"), bodies)
}

/// Elements of a table on a line.
const LINE_ELEMENTS: usize = 8;

fn print_table(out: &mut Vec<u8>, table: &ConstDecl) {
    let ConstDecl { name, bits, words } = table;
    put(out, format_args!(".const .align {} .b{bits} {name}[{}] = {{", bits / 8, words.len()));
    for (i, word) in words.iter().enumerate() {
        say(out, if i > 0 { "," } else { "" });
        say(out, if i.is_multiple_of(LINE_ELEMENTS) { "\n\t" } else { " " });
        put(out, format_args!("{word:#x}"));
    }
    say(out, "\n};\n");
}

/// Typical length of a line in characters.
const LINE: usize = 40;

/// Appends formatted text; writing to memory cannot fail.
fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory");
}

/// Appends text.
fn say(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends a comment, one `//` line per line of the text.
fn comment(out: &mut Vec<u8>, indent: &str, text: &str) {
    for line in text.split('\n') {
        say(out, indent);
        say(out, "//");
        let line = line.trim_end();
        if !line.is_empty() {
            out.push(b' ');
        }
        for c in line.chars() {
            if c == ' ' || c.is_ascii_graphic() {
                out.push(c as u8);
            } else {
                put(out, format_args!("{}", c.escape_default()));
            }
        }
        out.push(b'\n');
    }
}

/// A file name in the characters that a PTX string can hold; the others as in URLs.
fn percent_encoded(name: &str) -> String {
    let kept = |byte: u8| (byte == b' ' || byte.is_ascii_graphic()) && byte != b'"' && byte != b'\\';
    name.bytes().map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Prints a function and returns the byte offset of its first statement.
fn print_function(out: &mut Vec<u8>, func: &Function) -> usize {
    put(out, format_args!(".visible .entry {}(", func.name));
    for (index, param) in func.params.iter().enumerate() {
        say(out, if index == 0 { "\n" } else { ",\n" });
        print_param(out, param);
    }
    let [x, y, z] = func.maxntid;
    say(out, if func.params.is_empty() { ")\n" } else { "\n)\n" });
    put(out, format_args!(".maxntid {x}, {y}, {z}\n"));
    if func.cluster != [1, 1, 1] {
        let [x, y, z] = func.cluster;
        put(out, format_args!(".reqnctapercluster {x}, {y}, {z}\n"));
    }
    put(out, format_args!(".minnctapersm {}\n{{\n", func.minnctapersm));

    out.reserve(func.body.len() * LINE);
    let begin = out.len();
    let mut body = Body { func, text: out, names: Names::new(func) };
    for item in &func.body {
        body.item(item);
    }
    let Body { names, .. } = body;
    let mut declarations = Vec::new();
    for (class, count) in Class::ALL.into_iter().zip(names.counts) {
        if count > 0 {
            put(&mut declarations, format_args!("\t.reg {}\t{}<{count}>;\n", class.decl(), class.prefix()));
        }
    }
    for decl in func.shared.iter().filter(|d| !d.dynamic) {
        put(&mut declarations, format_args!("\t.shared .align {} .b8 {}[{}];\n", decl.align, decl.name, decl.bytes));
    }
    let first = begin + declarations.len();
    out.splice(begin..begin, declarations);
    say(out, "}\n");
    first
}

fn print_param(out: &mut Vec<u8>, param: &Param) {
    let scalar = match param.ty {
        ParamTy::GlobalPtr => {
            say(out, "\t.param .u64 .ptr .global");
            if let Some(align) = param.align {
                put(out, format_args!(" .align {align}"));
            }
            put(out, format_args!(" {}", param.name));
            return;
        }
        ParamTy::B8 | ParamTy::Bytes(_) => ".b8",
        ParamTy::B16 => ".b16",
        ParamTy::U32 => ".u32",
        ParamTy::S32 => ".s32",
        ParamTy::U64 => ".u64",
        ParamTy::S64 => ".s64",
        ParamTy::F32 => ".f32",
        ParamTy::F64 => ".f64",
    };
    say(out, "\t.param");
    if let Some(align) = param.align {
        put(out, format_args!(" .align {align}"));
    }
    put(out, format_args!(" {scalar} {}", param.name));
    if let ParamTy::Bytes(n) = param.ty {
        put(out, format_args!("[{n}]"));
    }
}

/// Register names, numbered in order of first use.
struct Names {
    names: Vec<Name>,
    /// The number of named registers of each class, in the order of [`Class::ALL`].
    counts: [u32; Class::ALL.len()],
}

/// Bytes of a name's buffer: the longest name, `%rd4294967295`, has 13 characters. The whole buffer is copied, and the
/// excess truncated.
const LONGEST_NAME: usize = 16;

/// A name and its length; 0: the register has no name yet.
#[derive(Clone, Copy, Default)]
struct Name {
    bytes: [u8; LONGEST_NAME],
    len: u8,
}

impl Names {
    fn new(func: &Function) -> Names {
        Names { names: vec![Name::default(); func.regs.len()], counts: [0; Class::ALL.len()] }
    }

    fn write(&mut self, out: &mut Vec<u8>, reg: Reg, class: Class) {
        let name = &mut self.names[reg.index()];
        if name.len > 0 {
            let end = out.len() + usize::from(name.len);
            out.extend_from_slice(&name.bytes);
            out.truncate(end);
            return;
        }
        let count = &mut self.counts[class as usize];
        let start = out.len();
        say(out, class.prefix());
        decimal(out, u64::from(*count));
        *count += 1;
        let len = out.len() - start;
        name.bytes[..len].copy_from_slice(&out[start..]);
        name.len = len as u8;
    }
}

/// Appends a number without the formatting machinery, because most of a file is numbers.
fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// A function's statements during printing.
struct Body<'a> {
    func: &'a Function,
    text: &'a mut Vec<u8>,
    names: Names,
}

impl Body<'_> {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Inst(inst) => self.inst(inst),
            Item::Label(label) => put(self.text, format_args!("$L_{}:\n", self.func.labels[*label])),
            Item::Comment(text) => comment(self.text, "\t", text),
            Item::Loc { file, line, col } => {
                say(self.text, "\t.loc");
                for (before, number) in
                    [(b'\t', u64::from(*file) + 1), (b' ', u64::from(*line)), (b' ', u64::from(*col))]
                {
                    self.text.push(before);
                    decimal(self.text, number);
                }
                self.text.push(b'\n');
            }
            Item::Pragma(text) => put(self.text, format_args!("\t.pragma \"{text}\";\n")),
        }
    }

    fn inst(&mut self, inst: &Inst) {
        self.text.push(b'\t');
        if let Some(guard) = inst.guard {
            say(self.text, if guard.negated { "@!" } else { "@" });
            self.reg(guard.reg);
            self.text.push(b' ');
        }
        let mnemonic = inst.op.mnemonic();
        match inst.columns().and_then(|columns| Some((columns, mnemonic.split_once("nN")?))) {
            Some((columns, (head, tail))) => put(self.text, format_args!("{head}n{columns}{tail}")),
            None => say(self.text, mnemonic),
        }
        let mut separator = "\t";
        for operand in inst.operands.iter().filter(|operand| !matches!(operand, Operand::Columns(_))) {
            say(self.text, separator);
            self.operand(operand);
            separator = ", ";
        }
        say(self.text, ";\n");
    }

    fn reg(&mut self, reg: Reg) {
        self.names.write(self.text, reg, self.func.regs[reg]);
    }

    fn integer(&mut self, value: i64) {
        if value < 0 {
            self.text.push(b'-');
        }
        decimal(self.text, value.unsigned_abs());
    }

    fn braces(&mut self, regs: &[Reg]) {
        self.text.push(b'{');
        for (index, reg) in regs.iter().enumerate() {
            if index > 0 {
                say(self.text, ", ");
            }
            self.reg(*reg);
        }
        self.text.push(b'}');
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Reg(reg) => self.reg(*reg),
            Operand::NotPred(reg) => {
                self.text.push(b'!');
                self.reg(*reg);
            }
            // The opcode contains it.
            Operand::Columns(_) => {}
            Operand::Imm(value) => self.integer(*value),
            Operand::F32(value) => put(self.text, format_args!("0f{:08X}", value.to_bits())),
            Operand::F64(value) => put(self.text, format_args!("0d{:016X}", value.to_bits())),
            Operand::Vec(regs) => self.braces(regs),
            Operand::Addr { base, offset } => {
                self.text.push(b'[');
                match base {
                    AddrBase::Reg(reg) => self.reg(*reg),
                    AddrBase::Param(index) => say(self.text, &self.func.params[*index as usize].name),
                    AddrBase::Shared(index) => say(self.text, &self.func.shared[*index as usize].name),
                }
                if *offset != 0 {
                    self.text.push(b'+');
                    self.integer(*offset);
                }
                self.text.push(b']');
            }
            Operand::Special(special) => say(self.text, special.text()),
            Operand::Label(label) => put(self.text, format_args!("$L_{}", self.func.labels[*label])),
            Operand::SharedSym(index) => say(self.text, &self.func.shared[*index as usize].name),
            Operand::ParamSym(index) => say(self.text, &self.func.params[*index as usize].name),
            Operand::ConstSym(index) => say(self.text, &self.func.tables[*index as usize].name),
            Operand::Sink => self.text.push(b'_'),
            Operand::Elected(reg) => {
                say(self.text, "_|");
                self.reg(*reg);
            }
            Operand::Tensor { map, at } => {
                self.text.push(b'[');
                self.reg(*map);
                if !at.is_empty() {
                    say(self.text, ", ");
                    self.braces(at);
                }
                self.text.push(b']');
            }
        }
    }
}

#[cfg(test)]
mod tests;
