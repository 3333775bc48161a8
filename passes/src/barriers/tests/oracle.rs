//! The proof against brute force. Random programs are run one execution at a time, with every choice of trip counts and
//! branches within bounds, counting barriers and slots with plain numbers. Some execution must fail exactly if the
//! proof reports something. And no program has a race after barriers are placed.

use super::{body, placed};
use crate::barriers::prove;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tilec_ir::diag::Severity;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, Slot, StmtData, ValueDef};
use tilec_ir::memory_reuse::Overlays;

/// Most iterations of run-time loops.
const TRIPS: u64 = 5;
/// Executions tried per program; programs with more are not compared.
const RUNS: u64 = 4_000;

/// A small deterministic generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A program over a buffer `a` and a channel `c`, which every third program fills asynchronously. Complete uses of the
/// channel are likelier than single operations, or hardly any program would be correct. In every third program, a loop
/// declares both again in each iteration, and something else reuses their memory at the end.
fn program(r: &mut Random) -> String {
    let slots = 1 + r.below(3);
    let flying = r.below(3) == 0;
    let over = r.below(3) == 0;
    let mut text = String::new();
    if over {
        text.push_str("for turn in 0..M {\n");
    }
    let _ = write!(text, "let a = smem f16[32, 32]\n let c = channel f16[32, 32] slots {slots}\n");
    let mut names = 0;
    statements(r, 2, &mut names, &mut text);
    if over {
        let mut last = 0;
        for name in ["x", "y"] {
            // The same buffers both times, or separate ones.
            last = if last == 2 { 2 } else { r.below(3) + u64::from(last == 0 && name == "y") };
            let _ = writeln!(text, "let {name} = smem f16[32, 32] over {}", ["a", "c", "a, c"][(last % 3) as usize]);
            for line in [format!("copy A -> {name}"), "barrier".to_owned(), format!("copy {name} -> O")] {
                if r.below(4) > 0 {
                    let _ = writeln!(text, "{line}");
                }
            }
            if r.below(2) == 0 {
                break;
            }
        }
        if r.below(6) == 0 {
            text.push_str(["copy A -> a\n", "wait c\n", "copy c.get -> O\n"][r.below(3) as usize]);
        }
        text.push_str("}\n");
    }
    if !flying {
        return text;
    }
    let mut out = String::new();
    for line in text.lines() {
        match line.trim() {
            "copy A -> c.put" => out.push_str("copy A -> c.put async\n"),
            "wait c" => {
                let pending = r.below(3);
                let _ = writeln!(out, "wait c pending {pending}");
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

fn statements(r: &mut Random, depth: u32, names: &mut u32, out: &mut String) {
    for _ in 0..1 + r.below(4) {
        *names += 1;
        let n = *names;
        let line = match r.below(if depth > 0 { 18 } else { 15 }) {
            0 | 1 => "copy A -> a\n",
            2 => "copy a -> O\n",
            3 | 4 => "barrier\n",
            5..=7 => "acquire c\n copy A -> c.put\n publish c\n",
            8..=10 => "wait c\n barrier\n copy c.get -> O\n release c\n",
            11 => "wait c\n copy c.get -> O\n release c\n",
            12 => "release c\n",
            13 => "wait c\n",
            14 => ["acquire c\n", "publish c\n", "copy A -> c.put\n", "copy c.get -> O\n"][r.below(4) as usize],
            kind => {
                let head = match kind {
                    15 => format!("for x{n} in 1..M {{\n"),
                    16 => format!("for x{n} in 0..{} {{\n", 1 + r.below(3)),
                    _ => format!("if {n} < g {{\n"),
                };
                out.push_str(&head);
                statements(r, depth - 1, names, out);
                "}\n"
            }
        };
        let _ = write!(out, "{line}");
    }
}

/// One execution: the choices made so far, in order, and the number of alternatives of each.
struct Execution<'k> {
    k: &'k Kernel,
    script: Vec<(u64, u64)>,
    next: usize,
    epoch: u64,
    /// By buffer, or slot of a channel: epochs of the last write and read.
    cells: BTreeMap<(Value, u64), (Option<u64>, Option<u64>)>,
    /// By channel: numbers of slots acquired, published, waited for and released.
    counts: BTreeMap<Value, [u64; 4]>,
    /// Cells that asynchronous copies fill, in groups; the last is not closed yet.
    groups: Vec<Vec<(Value, u64)>>,
    /// How many groups have landed.
    landed: usize,
    /// Cells that hold the contents of their last declaration.
    held: BTreeSet<(Value, u64)>,
    /// What is where.
    overlays: Overlays,
    /// Buffers and channels whose memory another one reuses.
    gone: BTreeSet<Value>,
    /// By tensor: the epoch of the last store, and the statements that stored in it.
    stored: BTreeMap<Value, (u64, BTreeSet<Stmt>)>,
}

/// Something went wrong.
struct Wrong;

impl Execution<'_> {
    fn choose(&mut self, from: u64) -> u64 {
        if self.next == self.script.len() {
            self.script.push((0, from));
        }
        self.next += 1;
        self.script[self.next - 1].0
    }

    fn block(&mut self, b: Block) -> Result<(), Wrong> {
        let k = self.k;
        for &s in &k.blocks[b] {
            match &k.stmts[s] {
                StmtData::Barrier => self.epoch += 1,
                StmtData::Alloc { value, .. } => self.alloc(*value)?,
                StmtData::For { end, body, .. } => {
                    let trips = match k.as_int(*end) {
                        Some(n) => n.unsigned_abs(),
                        None => self.choose(TRIPS + 1),
                    };
                    for _ in 0..trips {
                        self.block(*body)?;
                    }
                }
                StmtData::If { then, .. } => {
                    let taken = self.choose(2) == 1;
                    if taken {
                        self.block(*then)?;
                    }
                }
                StmtData::Channel { op, channels, pending } => {
                    self.channel(*op, channels[0])?;
                    if k.fills_asynchronously(channels[0]) {
                        match op {
                            ChannelOp::Publish => self.groups.push(Vec::new()),
                            ChannelOp::Wait => self.land(pending.unwrap_or(0) as usize),
                            ChannelOp::Acquire | ChannelOp::Release => {}
                        }
                    }
                }
                StmtData::Copy { src, dst, attrs } => {
                    self.touch(*src, false)?;
                    let written = self.touch(*dst, true)?;
                    self.store(s, *dst)?;
                    if let Some(cell) = written.filter(|_| attrs.is_asynchronous()) {
                        self.groups.last_mut().expect("one is open").push(cell);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The old contents are gone. Accesses to this memory in this epoch still count, under any declaration.
    fn alloc(&mut self, v: Value) -> Result<(), Wrong> {
        let now = self.epoch;
        let others = self.overlays.sharing(v);
        if self.groups[self.landed..].iter().flatten().any(|(w, _)| others.contains(w) && !self.gone.contains(w)) {
            return Err(Wrong);
        }
        let (mut read, mut written) = (false, false);
        for w in others {
            for (_, cell) in self.cells.iter().filter(|((of, _), _)| *of == w) {
                written |= cell.0 == Some(now);
                read |= cell.1 == Some(now);
            }
            self.cells.retain(|(of, _), _| *of != w);
            self.counts.remove(&w);
            self.gone.insert(w);
        }
        self.gone.remove(&v);
        self.counts.remove(&v);
        let slots = if matches!(self.k.values[v].def, ValueDef::Channel { .. }) { self.slots(v) } else { 1 };
        for slot in 0..slots {
            self.held.remove(&(v, slot));
            let cell = self.cells.entry((v, slot)).or_default();
            cell.0 = (written || cell.0 == Some(now)).then_some(now);
            if read {
                cell.1 = Some(now);
            }
        }
        Ok(())
    }

    fn land(&mut self, pending: usize) {
        while self.groups.len() - 1 > self.landed + pending {
            for cell in &self.groups[self.landed] {
                self.cells.entry(*cell).or_default().0 = Some(self.epoch);
            }
            self.landed += 1;
        }
    }

    fn slots(&self, c: Value) -> u64 {
        let ValueDef::Channel { slots, .. } = self.k.values[c].def else { panic!("a channel") };
        self.k.as_int(slots).expect("a literal").unsigned_abs()
    }

    fn channel(&mut self, op: ChannelOp, c: Value) -> Result<(), Wrong> {
        if self.gone.contains(&c) {
            return Err(Wrong);
        }
        let slots = self.slots(c);
        let n = self.counts.entry(c).or_default();
        let (which, allowed) = match op {
            ChannelOp::Acquire => (0, n[0] == n[1] && n[0] - n[3] < slots),
            ChannelOp::Publish => (1, n[0] > n[1]),
            ChannelOp::Wait => (2, n[1] > n[2]),
            ChannelOp::Release => (3, n[2] > n[3]),
        };
        n[which] += 1;
        if op == ChannelOp::Acquire {
            // The slot's contents are gone, but accesses of this epoch still count.
            let slot = (n[0] - 1) % slots;
            self.held.remove(&(c, slot));
            if let Some(cell) = self.cells.get_mut(&(c, slot))
                && cell.0.is_some_and(|e| e < self.epoch)
            {
                cell.0 = None;
            }
        }
        if allowed { Ok(()) } else { Err(Wrong) }
    }

    /// All programs store to the same window of a tensor; in one statement, a thread stores the same elements each
    /// time.
    fn store(&mut self, s: Stmt, dst: Expr) -> Result<(), Wrong> {
        let ExprData::Ref(v) = self.k.exprs[dst] else { return Ok(()) };
        if !matches!(self.k.values[v].def, ValueDef::Tensor(_)) {
            return Ok(());
        }
        let (epoch, stmts) = self.stored.entry(v).or_default();
        if *epoch < self.epoch {
            (*epoch, *stmts) = (self.epoch, BTreeSet::new());
        }
        stmts.insert(s);
        if stmts.len() > 1 { Err(Wrong) } else { Ok(()) }
    }

    /// The buffer or slot that is accessed.
    fn touch(&mut self, e: Expr, write: bool) -> Result<Option<(Value, u64)>, Wrong> {
        let (value, slot) = match &self.k.exprs[e] {
            ExprData::Ref(v) => (*v, None),
            ExprData::View(view) => (view.base, view.slot),
            _ => return Ok(None),
        };
        let index = match (&self.k.values[value].def, slot) {
            (ValueDef::Smem(_), _) => 0,
            (ValueDef::Channel { .. }, Some(slot)) => {
                let n = self.counts.get(&value).copied().unwrap_or_default();
                let (taken, at) = match slot {
                    Slot::Put => (n[0] > n[1], n[1]),
                    Slot::Get => (n[2] > n[3], n[2].saturating_sub(1)),
                };
                if !taken {
                    return Err(Wrong);
                }
                at % self.slots(value)
            }
            _ => return Ok(None),
        };
        if self.gone.contains(&value) {
            return Err(Wrong);
        }
        if self.groups[self.landed..].iter().flatten().any(|cell| *cell == (value, index)) {
            return Err(Wrong);
        }
        let now = self.epoch;
        let cell = self.cells.entry((value, index)).or_default();
        if write {
            if cell.0 == Some(now) || cell.1 == Some(now) {
                return Err(Wrong);
            }
            cell.0 = Some(now);
            self.held.insert((value, index));
        } else {
            if cell.0 == Some(now) || !self.held.contains(&(value, index)) {
                return Err(Wrong);
            }
            cell.1 = Some(now);
        }
        Ok(Some((value, index)))
    }
}

/// Whether some execution fails; `None`: there are too many.
fn some_execution_fails(k: &Kernel) -> Option<bool> {
    let mut script = Vec::new();
    for _ in 0..RUNS {
        let mut run = Execution {
            k,
            script,
            next: 0,
            epoch: 0,
            cells: BTreeMap::new(),
            counts: BTreeMap::new(),
            groups: vec![Vec::new()],
            landed: 0,
            held: BTreeSet::new(),
            overlays: Overlays::of(k),
            gone: BTreeSet::new(),
            stored: BTreeMap::new(),
        };
        let finished = run.block(k.body).is_ok();
        if !finished || run.counts.values().any(|n| n[0] > n[1]) {
            return Some(true);
        }
        script = run.script;
        // The next choices in order.
        while script.last().is_some_and(|&(chosen, from)| chosen + 1 == from) {
            script.pop();
        }
        match script.last_mut() {
            Some(last) => last.0 += 1,
            None => return Some(false),
        }
    }
    None
}

#[test]
fn the_proof_agrees_with_brute_force() {
    let mut random = Random(1);
    let (mut wrong, mut right) = (0, 0);
    for _ in 0..4000 {
        let text = program(&mut random);
        // As written, and with barriers placed: few programs are correct without.
        let (with, _) = placed(body(&text));
        for k in [body(&text), with] {
            let found = prove(&k);
            let Some(fails) = some_execution_fails(&k) else { continue };
            assert_eq!(fails, !found.is_empty(), "{}\n{found:#?}", tilec_ir::print::print(&k));
            *(if fails { &mut wrong } else { &mut right }) += 1;
        }
    }
    assert!(wrong > 500 && right > 500, "{wrong} programs wrong, {right} right: the test has lost its force");
}

#[test]
fn no_race_is_left_by_the_placement() {
    let mut random = Random(2);
    for _ in 0..4000 {
        let text = program(&mut random);
        let (k, said) = placed(body(&text));
        let race = said.iter().find(|d| d.severity == Severity::Error && d.message.contains("other threads"));
        assert!(race.is_none(), "{race:#?}\n{}", tilec_ir::print::print(&k));
    }
}
