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
use std::fmt::Write;

/// The text of the module.
pub fn print(module: &Module) -> String {
    let mut out = String::new();
    for line in &module.header {
        comment(&mut out, "", line);
    }
    let version = module.version.unwrap_or_else(|| required_version(module).0);
    put(&mut out, format_args!(".version {}.{}\n", version.0, version.1));
    put(&mut out, format_args!(".target {}\n", module.target));
    out.push_str(".address_size 64\n");
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
    for func in &module.functions {
        out.push('\n');
        print_function(&mut out, func);
    }
    out
}

/// Elements of a table on a line.
const LINE_ELEMENTS: usize = 8;

fn print_table(out: &mut String, table: &ConstDecl) {
    let ConstDecl { name, bits, words } = table;
    put(out, format_args!(".const .align {} .b{bits} {name}[{}] = {{", bits / 8, words.len()));
    for (i, word) in words.iter().enumerate() {
        out.push_str(if i > 0 { "," } else { "" });
        out.push_str(if i.is_multiple_of(LINE_ELEMENTS) { "\n\t" } else { " " });
        put(out, format_args!("{word:#x}"));
    }
    out.push_str("\n};\n");
}

/// Characters of a line, as a rule.
const LINE: usize = 40;

/// Appends formatted text; writing to a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string");
}

/// Appends a comment, one `//` line per line of the text.
fn comment(out: &mut String, indent: &str, text: &str) {
    for line in text.split('\n') {
        out.push_str(indent);
        out.push_str("//");
        let line = line.trim_end();
        if !line.is_empty() {
            out.push(' ');
        }
        for c in line.chars() {
            if c == ' ' || c.is_ascii_graphic() {
                out.push(c);
            } else {
                put(out, format_args!("{}", c.escape_default()));
            }
        }
        out.push('\n');
    }
}

/// A file name in the characters that a PTX string can hold; the others as in URLs.
fn percent_encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if (byte == b' ' || byte.is_ascii_graphic()) && byte != b'"' && byte != b'\\' {
            out.push(char::from(byte));
        } else {
            put(&mut out, format_args!("%{byte:02X}"));
        }
    }
    out
}

fn print_function(out: &mut String, func: &Function) {
    put(out, format_args!(".visible .entry {}(", func.name));
    for (index, param) in func.params.iter().enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        print_param(out, param);
    }
    let [x, y, z] = func.maxntid;
    out.push_str(if func.params.is_empty() { ")\n" } else { "\n)\n" });
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
    let mut declarations = String::new();
    for (class, count) in Class::ALL.into_iter().zip(names.counts) {
        if count > 0 {
            put(&mut declarations, format_args!("\t.reg {}\t{}<{count}>;\n", class.decl(), class.prefix()));
        }
    }
    for decl in func.shared.iter().filter(|d| !d.dynamic) {
        put(&mut declarations, format_args!("\t.shared .align {} .b8 {}[{}];\n", decl.align, decl.name, decl.bytes));
    }
    out.insert_str(begin, &declarations);
    out.push_str("}\n");
}

fn print_param(out: &mut String, param: &Param) {
    let scalar = match param.ty {
        ParamTy::GlobalPtr => {
            out.push_str("\t.param .u64 .ptr .global");
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
    out.push_str("\t.param");
    if let Some(align) = param.align {
        put(out, format_args!(" .align {align}"));
    }
    put(out, format_args!(" {scalar} {}", param.name));
    if let ParamTy::Bytes(n) = param.ty {
        put(out, format_args!("[{n}]"));
    }
}

/// Register names, given out on first sight.
struct Names {
    /// Where the name of a register lies in `text`.
    places: Vec<(u32, u32)>,
    text: String,
    /// How many registers of each class have one, in the order of [`Class::ALL`].
    counts: [u32; Class::ALL.len()],
}

/// Characters of a name, as a rule.
const NAME: usize = 6;

impl Names {
    fn new(func: &Function) -> Names {
        let registers = func.regs.len();
        let text = String::with_capacity(registers * NAME);
        Names { places: vec![(0, 0); registers], text, counts: [0; Class::ALL.len()] }
    }

    fn of(&mut self, reg: Reg, class: Class) -> &str {
        let (mut start, mut end) = self.places[reg.index()];
        if end == 0 {
            let count = &mut self.counts[class as usize];
            start = self.text.len() as u32;
            self.text.push_str(class.prefix());
            decimal(&mut self.text, u64::from(*count));
            end = self.text.len() as u32;
            *count += 1;
            self.places[reg.index()] = (start, end);
        }
        &self.text[start as usize..end as usize]
    }
}

/// Appends a number. Numbers are most of a file: they are written without the formatting machinery.
fn decimal(out: &mut String, mut number: u64) {
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
    digits[first..].iter().for_each(|&digit| out.push(char::from(digit)));
}

/// A function's statements as they are written.
struct Body<'a> {
    func: &'a Function,
    text: &'a mut String,
    names: Names,
}

impl Body<'_> {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Inst(inst) => self.inst(inst),
            Item::Label(label) => put(self.text, format_args!("$L_{}:\n", self.func.labels[*label])),
            Item::Comment(text) => comment(self.text, "\t", text),
            Item::Loc { file, line, col } => {
                self.text.push_str("\t.loc");
                for (before, number) in [('\t', u64::from(*file) + 1), (' ', u64::from(*line)), (' ', u64::from(*col))]
                {
                    self.text.push(before);
                    decimal(self.text, number);
                }
                self.text.push('\n');
            }
            Item::Pragma(text) => put(self.text, format_args!("\t.pragma \"{text}\";\n")),
        }
    }

    fn inst(&mut self, inst: &Inst) {
        self.text.push('\t');
        if let Some(guard) = inst.guard {
            self.text.push_str(if guard.negated { "@!" } else { "@" });
            self.reg(guard.reg);
            self.text.push(' ');
        }
        let mnemonic = inst.op.mnemonic();
        match inst.columns().and_then(|columns| Some((columns, mnemonic.split_once("nN")?))) {
            Some((columns, (head, tail))) => put(self.text, format_args!("{head}n{columns}{tail}")),
            None => self.text.push_str(mnemonic),
        }
        let mut separator = "\t";
        for operand in inst.operands.iter().filter(|operand| !matches!(operand, Operand::Columns(_))) {
            self.text.push_str(separator);
            self.operand(operand);
            separator = ", ";
        }
        self.text.push_str(";\n");
    }

    fn reg(&mut self, reg: Reg) {
        self.text.push_str(self.names.of(reg, self.func.regs[reg]));
    }

    fn integer(&mut self, value: i64) {
        if value < 0 {
            self.text.push('-');
        }
        decimal(self.text, value.unsigned_abs());
    }

    fn braces(&mut self, regs: &[Reg]) {
        self.text.push('{');
        for (index, reg) in regs.iter().enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            self.reg(*reg);
        }
        self.text.push('}');
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Reg(reg) => self.reg(*reg),
            Operand::NotPred(reg) => {
                self.text.push('!');
                self.reg(*reg);
            }
            // In the opcode.
            Operand::Columns(_) => {}
            Operand::Imm(value) => self.integer(*value),
            Operand::F32(value) => put(self.text, format_args!("0f{:08X}", value.to_bits())),
            Operand::F64(value) => put(self.text, format_args!("0d{:016X}", value.to_bits())),
            Operand::Vec(regs) => self.braces(regs),
            Operand::Addr { base, offset } => {
                self.text.push('[');
                match base {
                    AddrBase::Reg(reg) => self.reg(*reg),
                    AddrBase::Param(index) => self.text.push_str(&self.func.params[*index as usize].name),
                    AddrBase::Shared(index) => self.text.push_str(&self.func.shared[*index as usize].name),
                }
                if *offset != 0 {
                    self.text.push('+');
                    self.integer(*offset);
                }
                self.text.push(']');
            }
            Operand::Special(special) => self.text.push_str(special.text()),
            Operand::Label(label) => put(self.text, format_args!("$L_{}", self.func.labels[*label])),
            Operand::SharedSym(index) => self.text.push_str(&self.func.shared[*index as usize].name),
            Operand::ParamSym(index) => self.text.push_str(&self.func.params[*index as usize].name),
            Operand::ConstSym(index) => self.text.push_str(&self.func.tables[*index as usize].name),
            Operand::Sink => self.text.push('_'),
            Operand::Elected(reg) => {
                self.text.push_str("_|");
                self.reg(*reg);
            }
            Operand::Tensor { map, at } => {
                self.text.push('[');
                self.reg(*map);
                if !at.is_empty() {
                    self.text.push_str(", ");
                    self.braces(at);
                }
                self.text.push(']');
            }
        }
    }
}

#[cfg(test)]
mod tests;
