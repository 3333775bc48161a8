//! A module: where its variables stand, and its kernels one by one.

use std::collections::HashSet;

use super::*;
use crate::parse::raw::{RawAlias, RawFormal};

/// The place of a variable behind `at`, in a space of so many bytes.
pub(super) fn place(at: &mut u64, var: &RawVar<'_>, limit: u64) -> Result<u64> {
    let bytes = var.bytes.unwrap_or(0);
    let start = at.checked_next_multiple_of(var.align);
    let end = start.and_then(|s| s.checked_add(bytes)).filter(|e| *e <= limit);
    match (start, end) {
        (Some(start), Some(end)) => {
            *at = end;
            Ok(start)
        }
        _ => Err(var.pos.error(format!("`{}` does not fit: the limit of its space is {limit} bytes", var.name))),
    }
}

/// The number of a target: 90 of `sm_90a`.
pub(super) fn target_number(target: &str) -> u32 {
    let digits = target.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse().unwrap_or(u32::MAX)
}

/// The variables declared in a body.
pub(super) fn variables<'b, 'a>(body: &'b [RawStmt<'a>]) -> impl Iterator<Item = &'b RawVar<'a>> {
    body.iter().filter_map(|s| match s {
        RawStmt::Var(var) => Some(var),
        _ => None,
    })
}

/// The variables of a module in global and constant memory, with their initial values.
struct Globals<'m, 'a> {
    raw: &'m RawModule<'a>,
    vars: Vec<ModuleVar>,
    total: u64,
    constants: u64,
}

impl Globals<'_, '_> {
    /// Gives a variable its address; `find`: the variables that its initial values may name.
    fn place(&mut self, var: &RawVar<'_>, find: impl Fn(&str) -> Option<Var>) -> Result<u64> {
        let (bytes, constant) = (var.bytes.unwrap_or(0), var.space == Space::Const);
        self.total = self.total.saturating_add(bytes);
        self.constants = self.constants.saturating_add(if constant { bytes } else { 0 });
        if self.total > MAX_GLOBAL {
            return Err(var.pos.limit("the variables of the module are too large"));
        }
        if self.constants > MAX_CONST {
            return Err(var.pos.error(format!("the constants of the module have more than {MAX_CONST} bytes")));
        }
        let address = crate::memory::module_address(self.vars.len());
        let mut init = Vec::with_capacity(var.init.len());
        for part in &var.init {
            let value = match &part.value {
                RawValue::Bytes(bytes) => bytes.clone(),
                RawValue::Address(of) => of.encode(self.address(of, find(of.name))?),
            };
            init.push((part.at, value));
        }
        self.vars.push(ModuleVar { name: var.name.to_owned(), address, bytes, init, constant });
        Ok(address)
    }

    /// The address of the variable that an initial value names.
    fn address(&self, of: &RawAddress<'_>, found: Option<Var>) -> Result<u64> {
        let name = of.name;
        match found {
            Some(Var { at, space: Space::Global | Space::Const, .. }) => Ok(at),
            Some(Var { space, .. }) => {
                let message = format!("`{name}` is in {space:?} memory, where it has no address before the launch");
                Err(of.pos.error(message))
            }
            None if self.raw.funcs.iter().any(|f| f.name == name)
                || self.raw.entries.iter().any(|e| e.name == name) =>
            {
                Err(of.pos.limit(format!("`{name}` is code: calls through a pointer are not supported")))
            }
            None => Err(of.pos.error(format!("`{name}` is no variable that is declared further up"))),
        }
    }
}

/// Decodes a module.
pub(crate) fn decode(raw: &RawModule<'_>) -> Result<Program> {
    let mut program = Program {
        version: raw.version,
        target: raw.target.to_owned(),
        files: raw.files.iter().map(|(n, s)| (*n, (*s).to_owned())).collect(),
        vars: Vec::new(),
        entries: Vec::new(),
    };
    let mut symbols: HashMap<&str, Var> = HashMap::new();
    let mut shared = SharedLayout::new(raw);
    let mut globals = Globals { raw, vars: Vec::new(), total: 0, constants: 0 };
    for var in &raw.vars {
        let at = match var.space {
            Space::Shared if var.bytes.is_none() => continue,
            Space::Shared => shared.place(var)?,
            _ => globals.place(var, |name| symbols.get(name).copied())?,
        };
        if symbols.insert(var.name, Var { at, space: var.space, stack: None }).is_some() {
            return Err(var.pos.error(format!("`{}` is defined twice", var.name)));
        }
    }
    let mut statics = HashMap::new();
    let bodies = raw.entries.iter().map(|e| &e.body).chain(raw.funcs.iter().filter_map(|f| f.body.as_ref()));
    for body in bodies {
        let mut scopes: Vec<HashMap<&str, Var>> = vec![HashMap::new()];
        for stmt in body {
            let var = match stmt {
                RawStmt::Open => {
                    scopes.push(HashMap::new());
                    continue;
                }
                RawStmt::Close => {
                    scopes.pop();
                    continue;
                }
                RawStmt::Var(var) => var,
                _ => continue,
            };
            let mut at = 0;
            if matches!(var.space, Space::Global | Space::Const) {
                let find = |name: &str| scopes.iter().rev().find_map(|s| s.get(name)).or_else(|| symbols.get(name));
                at = globals.place(var, |name| find(name).copied())?;
                statics.insert(var.pos, at);
            }
            if let Some(scope) = scopes.last_mut() {
                scope.insert(var.name, Var { at, space: var.space, stack: None });
            }
        }
    }
    program.vars = globals.vars;
    let mut funcs: HashMap<&str, &RawFunc<'_>> = HashMap::new();
    for func in &raw.funcs {
        match funcs.get(func.name) {
            Some(known) if known.body.is_some() && func.body.is_some() => {
                return Err(func.pos.error(format!("`{}` is defined twice", func.name)));
            }
            Some(known) if known.body.is_some() => {}
            _ => {
                funcs.insert(func.name, func);
            }
        }
    }
    for alias in &raw.aliases {
        let of = aliased(alias, &funcs, raw.version)?;
        funcs.insert(alias.name, of);
    }
    for (i, entry) in raw.entries.iter().enumerate() {
        let known = raw.entries[..i].iter().any(|e| e.name == entry.name);
        if known || symbols.contains_key(entry.name) || funcs.contains_key(entry.name) {
            return Err(entry.pos.error(format!("`{}` is defined twice", entry.name)));
        }
        let decoded = decode_entry(raw, entry, &symbols, &funcs, shared.clone(), &statics)?;
        program.entries.push(decoded);
    }
    Ok(program)
}

/// The function that another name is given to: it has a body, the name none, and both are declared alike.
fn aliased<'m, 'a>(
    alias: &RawAlias<'a>,
    funcs: &HashMap<&'a str, &'m RawFunc<'a>>,
    version: (u32, u32),
) -> Result<&'m RawFunc<'a>> {
    if version < (6, 3) {
        return Err(alias.pos.error(format!("`.alias` needs PTX 6.3 (this is {}.{})", version.0, version.1)));
    }
    let Some(name) = funcs.get(alias.name) else {
        return Err(alias.pos.error(format!("`{}` is not declared as a function", alias.name)));
    };
    let Some(of) = funcs.get(alias.of) else {
        return Err(alias.of_pos.error(format!("unknown function `{}`", alias.of)));
    };
    if name.body.is_some() {
        return Err(alias.pos.error(format!("`{}` has a body of its own", alias.name)));
    }
    if of.body.is_none() {
        return Err(alias.of_pos.error(format!("`{}` has no body, so it gets no other name", alias.of)));
    }
    if !alike(&name.results, &of.results) || !alike(&name.params, &of.params) {
        let message = format!("`{}` and `{}` differ in their parameters or results", alias.name, alias.of);
        return Err(alias.pos.error(message));
    }
    Ok(of)
}

fn alike(a: &[RawFormal<'_>], b: &[RawFormal<'_>]) -> bool {
    let same = |pair: (&RawFormal<'_>, &RawFormal<'_>)| match pair {
        (RawFormal::Var(a), RawFormal::Var(b)) => (a.bytes, a.align) == (b.bytes, b.align),
        (RawFormal::Reg(a), RawFormal::Reg(b)) => a.ty == b.ty,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

fn decode_entry<'a>(
    raw: &RawModule<'a>,
    from: &RawEntry<'a>,
    module: &HashMap<&'a str, Var>,
    funcs: &HashMap<&'a str, &RawFunc<'a>>,
    mut shared: SharedLayout,
    statics: &HashMap<Pos, u64>,
) -> Result<Entry> {
    let entry = Entry {
        name: from.name.to_owned(),
        params: Vec::new(),
        param_bytes: 0,
        max_threads: from.max_threads,
        required_threads: from.required_threads,
        min_blocks: from.min_blocks,
        max_registers: from.max_registers,
        cluster: from.cluster,
        explicit_cluster: from.explicit_cluster,
        max_cluster_rank: from.max_cluster_rank,
        shared_bytes: 0,
        static_bytes: 0,
        gaps: Vec::new(),
        shared_vars: Vec::new(),
        local_bytes: 0,
        code: Vec::new(),
        columns: Vec::new(),
        names: Vec::new(),
        n32: 1,
        n64: 1,
        npred: 2,
        const32: Vec::new(),
        const64: Vec::new(),
        specials: Vec::new(),
        clustered: None,
        shared64: Vec::new(),
        waits: false,
        ordered: false,
        beside: false,
        copies: false,
        touches: Vec::new(),
        mentions: Vec::new(),
        registers: HashMap::new(),
    };
    let mut cx = Cx {
        module,
        funcs,
        kernels: &raw.entries,
        statics: statics.clone(),
        dynamic: HashMap::new(),
        scopes: vec![Scope::default()],
        next_scope: 0,
        labels: HashMap::new(),
        label_at: Vec::new(),
        targets: HashMap::new(),
        slots: HashMap::new(),
        decls: 0,
        declared: Vec::new(),
        c32: HashMap::new(),
        c64: HashMap::new(),
        entry,
        names: HashMap::new(),
        carry: None,
        wide_shared: HashMap::new(),
        mentioned: Vec::new(),
        written: false,
        wgmma_registers: Vec::new(),
        opcode: "",
        stack_param: false,
        returns: Vec::new(),
        has: Need { version: raw.version, target: target_number(raw.target), specific: raw.target.ends_with('a') },
        need: needs::BASE,
    };
    let mut at = 0;
    let most = if raw.version < (8, 1) { MAX_PARAM_BEFORE } else { MAX_PARAM };
    for param in &from.params {
        let offset = place(&mut at, param, most)?;
        cx.entry.params.push(Placed { offset, bytes: param.bytes.unwrap_or(0) });
        cx.define(param, Var { at: offset, space: Space::Param, stack: None })?;
    }
    cx.entry.param_bytes = at;
    let called = call::reachable(&from.body, funcs)?;
    // Of several kernels each has what it uses of the module's variables, which is not looked into.
    let others = if raw.entries.len() == 1 { 0 } else { shared.packed };
    for body in std::iter::once(&from.body).chain(called.iter().filter_map(|f| f.body.as_ref())) {
        for var in variables(body).filter(|v| v.space == Space::Shared) {
            let offset = shared.place(var)?;
            cx.statics.insert(var.pos, offset);
            let placed = Placed { offset, bytes: var.bytes.unwrap_or(0) };
            cx.entry.shared_vars.push((var.name.to_owned(), placed));
        }
    }
    let own = shared.packed - others;
    if own > MAX_STATIC_SHARED {
        let message =
            format!("the shared variables of `{}` have {own} bytes, more than {MAX_STATIC_SHARED}", from.name);
        return Err(from.pos.error(message));
    }
    // Dynamic shared memory follows the static part, at the largest alignment any of its names asks for (PTX 5.4.3).
    let dynamic = || raw.vars.iter().filter(|v| v.space == Space::Shared && v.bytes.is_none());
    let mut at = shared.end;
    if let Some(align) = dynamic().map(|var| var.align).max() {
        at = shared.packed.next_multiple_of(align) + shared.shift;
        shared.skip_to(at);
        shared.packed = shared.packed.next_multiple_of(align);
    }
    (cx.entry.shared_bytes, cx.entry.static_bytes, cx.entry.gaps) = (at, shared.packed, shared.gaps);
    cx.entry.shared_vars.extend(raw.vars.iter().filter(|v| v.space == Space::Shared).filter_map(|v| {
        let offset = v.bytes.map_or(Some(at), |_| module.get(v.name).map(|s| s.at))?;
        Some((v.name.to_owned(), Placed { offset, bytes: v.bytes.unwrap_or(0) }))
    }));
    cx.dynamic = dynamic().map(|var| (var.name, at)).collect();
    cx.body(&from.body)?;
    // Falling off the end of a kernel is a return.
    let (line, loc) = cx.entry.code.last().map_or((0, (0, 0)), |i| (i.line, i.loc));
    let columns = cx.entry.columns.last().copied().unwrap_or([1, u32::MAX]);
    cx.emit(Op::Exit, (TRUE, 0), "ret".to_owned(), Spot { line, columns, loc })?;
    for inst in &mut cx.entry.code {
        match &mut inst.op {
            Op::Bra { target, .. } => *target = cx.label_at[*target as usize],
            Op::BraIndexed { targets, .. } => {
                targets.iter_mut().for_each(|t| *t = cx.label_at[*t as usize]);
            }
            _ => {}
        }
    }
    let watched: HashSet<R> = cx.wgmma_registers.iter().copied().collect();
    if !watched.is_empty() {
        let is_watched = |m: &&Mention| m.bank == Bank::Words && watched.contains(&m.slot);
        let touches = cx.entry.mentions.iter().map(|named| named.iter().filter(is_watched).map(|m| m.slot).collect());
        cx.entry.touches = touches.collect();
    }
    cx.entry.copies = cx.entry.code.iter().any(|inst| matches!(inst.op, Op::Bulk(_) | Op::Remote(_) | Op::CpAsync(_)));
    cx.entry.beside = cx.entry.code.iter().any(|inst| matches!(inst.op, Op::Bulk(_) | Op::Remote(_) | Op::Wgmma(_)));
    copies::mark_partial(&mut cx.entry);
    let retried = guesses::mark(&mut cx.entry);
    polls::mark(&mut cx.entry, &retried);
    Ok(cx.entry)
}
