//! Sources of the operands of wgmma: shared memory, or registers that threads load.
//!
//! The instruction reads both operands from shared memory, or A from registers. Types other than 16 bits must be
//! contiguous along the reduction in shared memory. So an operand is loaded from its buffer to registers in front of
//! the product in two cases:
//!
//! * It has 32 bits and another order: threads can read single elements from any buffer (with less than 32 bits, the
//!   elements of a register would come from different rows).
//! * It is converted, or looked up in a table, on its way to the buffer. TMA does not convert, so it loads the stored
//!   elements, and threads convert on the way from the buffer. Otherwise the consumer threads would fill the buffer
//!   themselves, and wait for global memory.
//!
//! If that is the second operand, the product is computed transposed:
//!
//! ```text
//! copy b -> b_frag; acc = mma<m64k8_tf32 swap>(a, b_frag, acc)
//! ```
//!
//! Products of one block that read the same tile share the loaded registers.

pub(super) mod windows;

use crate::Options;
use crate::analysis::access_width::known_elem;
use crate::analysis::facts::{Facts, contiguous_dim};
use crate::analysis::uses::{all_stmts, mentions, path_to, place_of, stmt_exprs};
use crate::analysis::views::plain_var;
use crate::graph::accesses::Accesses;
use crate::producer_fills;
use crate::refusal::Refused;
use crate::select_mma::k_slices::insert_at;
use crate::select_mma::operands::{described, operand_name};
use crate::select_mma::warpgroup::{self, reads_both_orders, reads_registers};
use crate::tensor_copies;
use tilec_ir::atoms::Inputs;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::types::{Elem, ElemRef, TileTy};
use tilec_ir::typing::{ResolvedView, operand_shape, resolve_view};

/// A product of a kernel.
#[derive(Copy, Clone, Debug)]
pub(super) struct Product {
    pub(super) s: Stmt,
    pub(super) src: Expr,
    pub(super) acc: Value,
    pub(super) mma: Mma,
}

/// The product of a statement.
pub(super) fn product_of(k: &Kernel, s: Stmt) -> Option<Product> {
    let StmtData::Assign { dst: acc, src } = k.stmts[s] else { return None };
    match k.exprs[src] {
        ExprData::Mma(mma) => Some(Product { s, src, acc, mma }),
        _ => None,
    }
}

/// Where an operand is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Place {
    /// A buffer or a window of one, as it is stored or transposed, and whether it is contiguous along the reduction.
    Buffer(Value, bool),
    /// A register tile.
    Registers,
}

/// An operand that is loaded from its buffer: the first or the second.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Load {
    pub(super) buffer: Value,
    pub(super) second: bool,
    /// Whether it is converted there.
    pub(super) converted: bool,
}

/// The buffers to load to registers.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    /// For each product.
    pub(super) of: Vec<Option<Load>>,
    /// The buffers that are loaded.
    pub(super) buffers: Vec<Value>,
    /// Buffers that hold the unconverted elements of tensors then.
    pub(super) converted: Vec<Value>,
    /// Why an operand that is converted to a buffer is not converted in registers.
    pub(super) refused: Option<Refused>,
}

/// The whole buffer that is an operand, as it is stored or transposed; `None`: another operand.
pub(super) fn whole_buffer(k: &Kernel, e: Expr) -> Option<Value> {
    match k.exprs[e] {
        ExprData::Transpose(whole) => whole_buffer(k, whole),
        ExprData::Ref(v) => matches!(k.values[v].def, ValueDef::Smem(_)).then_some(v),
        _ => None,
    }
}

/// The buffer that is an operand, or of which the operand is a window, as it is stored or transposed.
fn buffer_of(k: &Kernel, e: Expr) -> Option<Value> {
    let view = resolve_view(k, e).filter(|view| !view.is_gathered())?;
    matches!(k.values[view.base].def, ValueDef::Smem(_)).then_some(view.base)
}

/// The operands that products load to registers, or why an operand is impossible for wgmma. `converting`: conversions
/// on the way to a buffer move to the way from it, if possible.
pub(super) fn plan(k: &Kernel, options: &Options, products: &[Product], converting: bool) -> Result<Loads, Refused> {
    let (mut converted, mut refused) = (Vec::new(), None);
    for buffer in buffers(k, products).into_iter().filter(|&v| converting && converts(k, v)) {
        match convertible(k, options, products, buffer) {
            Ok(()) => converted.push(buffer),
            Err(why) => _ = refused.get_or_insert(why),
        }
    }
    let of: Vec<Option<Load>> = products.iter().map(|p| loaded(k, options, p, &converted)).collect::<Result<_, _>>()?;
    let buffers = of.iter().flatten().map(|load| load.buffer).fold(Vec::new(), with);
    Ok(Loads { of, buffers, converted, refused })
}

/// The buffers that products read.
pub(super) fn buffers(k: &Kernel, products: &[Product]) -> Vec<Value> {
    products.iter().flat_map(|p| [p.mma.a, p.mma.b]).filter_map(|e| buffer_of(k, e)).fold(Vec::new(), with)
}

/// A set with a buffer more.
pub(super) fn with(mut set: Vec<Value>, buffer: Value) -> Vec<Value> {
    if !set.contains(&buffer) {
        set.push(buffer);
    }
    set
}

fn place(k: &Kernel, e: Expr, k_dim: usize) -> Result<Place, Refused> {
    if plain_var(k, e).is_some() {
        return Ok(Place::Registers);
    }
    let Some(v) = buffer_of(k, e) else {
        let why = "this operand is neither a buffer in shared memory, or a window of one, nor a register tile";
        return Err(Refused::at(k.expr_spans[e], why).help("copy the operand into a separate buffer"));
    };
    if k.tile_ty(v).is_some_and(|tile| tile.smem_layout.is_some()) {
        return Err(Refused::by_request(format!("the layout of `{}` is written", k.values[v].name)));
    }
    Ok(Place::Buffer(v, described(k, e, k_dim).is_some_and(|o| o.k_contiguous)))
}

/// Refuses types that no wgmma instruction takes, wherever the operands are.
fn instruction_for(k: &Kernel, options: &Options, p: &Product) -> Result<(), Refused> {
    let elem = |e, dim| described(k, e, dim).map(|o| o.elem);
    let (Some(a), Some(b), Some(acc)) = (elem(p.mma.a, 1), elem(p.mma.b, 0), warpgroup::acc_elem(k, p.acc)) else {
        return Ok(());
    };
    warpgroup::instruction(options, &p.mma, (Inputs { a, b }, acc)).map(|_| ())
}

/// The operand of a product that is loaded to registers, if any.
fn loaded(k: &Kernel, options: &Options, p: &Product, converted: &[Value]) -> Result<Option<Load>, Refused> {
    let places = [place(k, p.mma.a, 1)?, place(k, p.mma.b, 0)?];
    if places == [Place::Registers; 2] {
        let why = "both operands are in registers; wgmma reads the second from shared memory";
        return Err(Refused::at(k.expr_spans[p.src], why).help("copy the second operand into a buffer (`smem`)"));
    }
    let mut found = None;
    let mut others = places.contains(&Place::Registers);
    for (place, second) in places.into_iter().zip([false, true]) {
        let Place::Buffer(v, along) = place else { continue };
        let (elem, converted) = (known_elem(k, v), converted.contains(&v));
        if !converted && (along || reads_both_orders(elem)) {
            continue;
        }
        if others || !converted && !reads_registers(elem) {
            instruction_for(k, options, p)?;
            let which = if reads_registers(elem) { "one of two operands" } else { "operands" };
            return Err(format!("{which} of other than 16 bits must be contiguous along the reduction").into());
        }
        if p.mma.swap && !second {
            let why = "`swap` is written, and the first operand is not contiguous along the reduction";
            return Err(Refused::by_request(why));
        }
        others = true;
        found = Some(Load { buffer: v, second, converted });
    }
    for (e, second) in [(p.mma.a, false), (p.mma.b, true)] {
        if buffer_of(k, e).is_some() && whole_buffer(k, e).is_none() && found.is_none_or(|load| load.second != second) {
            windows::readable(k, &p.mma, second).map_err(|refused| refused.or_at(k.expr_spans[e]))?;
        }
    }
    Ok(found)
}

/// The copies that fill a buffer.
pub(super) fn fills(k: &Kernel, buffer: Value) -> Vec<Stmt> {
    let into = |&s: &Stmt| matches!(k.stmts[s], StmtData::Copy { dst, .. } if resolve_view(k, dst).is_some_and(|to| to.base == buffer));
    all_stmts(k, k.body).into_iter().filter(into).collect()
}

/// The operand of a conversion to another type, or of a table lookup.
pub(super) fn unconverted(k: &Kernel, e: Expr) -> Option<Expr> {
    match k.exprs[e] {
        ExprData::Cast { arg, .. } | ExprData::Lookup { index: arg, .. } => Some(arg),
        _ => None,
    }
}

/// Whether windows of tensors are converted on their way to a buffer.
fn converts(k: &Kernel, buffer: Value) -> bool {
    fills(k, buffer).into_iter().any(|fill| match k.stmts[fill] {
        StmtData::Copy { src, .. } => {
            let from = unconverted(k, src).and_then(|arg| resolve_view(k, arg));
            from.is_some_and(|view| k.tensor_ty(view.base).is_some())
        }
        _ => false,
    })
}

/// The conversion of a copy.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Conversion {
    Cast(Elem),
    Table(Value),
}

fn conversion(k: &Kernel, e: Expr) -> Option<Conversion> {
    match k.exprs[e] {
        ExprData::Cast { elem: ElemRef::Known(elem), .. } => Some(Conversion::Cast(elem)),
        ExprData::Lookup { table, .. } => Some(Conversion::Table(table)),
        _ => None,
    }
}

/// Checks that a conversion on the way to a buffer can move to the way from it: all copies to it convert in the same
/// way, and only products read it, each as the instruction's A.
pub(super) fn convertible(k: &Kernel, options: &Options, products: &[Product], buffer: Value) -> Result<(), Refused> {
    let (name, elem) = (&k.values[buffer].name, known_elem(k, buffer));
    let facts = Facts::new(k);
    let fills = fills(k, buffer);
    let mut how: Option<(Conversion, Elem)> = None;
    let mut along = Vec::new();
    for &fill in &fills {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[fill] else { unreachable!("a fill is a copy") };
        let at = k.stmt_spans[fill];
        let no = |why: String| Err(Refused::at(at, why));
        let Some((arg, own)) = unconverted(k, *src).zip(conversion(k, *src)) else {
            return no(format!("this copy into `{name}` does not convert"));
        };
        let Some(from) = resolve_view(k, arg).filter(|v| k.tensor_ty(v.base).is_some()) else {
            return no(format!("the operand converted into `{name}` is not a window of a tensor"));
        };
        if !matches!(k.exprs[*dst], ExprData::Ref(_)) || *attrs != CopyAttrs::default() {
            return no(format!("part of `{name}` is written, or how it is copied"));
        }
        tensor_copies::fits_unconverted(k, &facts, options.target, &from, buffer, attrs)
            .map_err(|refused| refused.or_at(at))?;
        let stored = known_elem(k, from.base);
        if stored.bits() > elem.bits() || own != Conversion::Cast(elem) && matches!(own, Conversion::Cast(_)) {
            return no(format!("`{name}` is converted from a wider type, or through another one"));
        }
        if how.replace((own, stored)).is_some_and(|other| other != (own, stored)) {
            return no(format!("the copies into `{name}` convert in different ways"));
        }
        along.push(contiguous_dim(k, from.base).and_then(|d| from.base_dims().iter().position(|&kept| kept == d)));
    }
    if how.is_none() {
        return Err(format!("nothing is copied into `{name}`").into());
    }
    read_as_first(k, products, buffer, &fills)?;
    for (e, k_dim) in products.iter().flat_map(|p| [(p.mma.a, 1), (p.mma.b, 0)]) {
        if whole_buffer(k, e) != Some(buffer) {
            continue;
        }
        let reduced = if resolve_view(k, e).is_some_and(|v| v.transposed) { 1 - k_dim } else { k_dim };
        if along.iter().any(|&d| d != Some(reduced)) {
            return Err(format!("`{name}` is converted, and not contiguous along the reduction").into());
        }
    }
    Ok(())
}

/// Checks that only products read a buffer, and each of them can take it from registers: the buffer's elements become
/// those of the tensor, so other readers would have to convert them.
fn read_as_first(k: &Kernel, products: &[Product], buffer: Value, fills: &[Stmt]) -> Result<(), Refused> {
    let name = &k.values[buffer].name;
    for s in all_stmts(k, k.body).into_iter().filter(|s| !fills.contains(s)) {
        if !stmt_exprs(k, s).iter().any(|&e| mentions(k, e, buffer)) {
            continue;
        }
        let Some(p) = products.iter().find(|p| p.s == s) else {
            let why = format!("`{name}` is converted for a product, and used by more than that");
            return Err(Refused::at(k.stmt_spans[s], why));
        };
        let sides = [p.mma.a, p.mma.b].map(|e| whole_buffer(k, e));
        let second = sides[1] == Some(buffer);
        let other = sides[usize::from(!second)];
        if other.is_some_and(|v| v == buffer || converts(k, v)) {
            return Err(Refused::at(k.stmt_spans[s], "both operands of a product are converted"));
        }
        if other.is_none_or(|v| producer_fills::by_threads(k, v)) || p.mma.swap && !second {
            let why = format!("`{name}` is converted, and would be the instruction's second operand");
            return Err(Refused::at(k.stmt_spans[s], why));
        }
    }
    Ok(())
}

/// A register tile that is loaded from a buffer.
struct Loaded {
    view: ResolvedView,
    copy: Stmt,
    tile: Value,
}

/// Inserts the planned loads in front of the products. Converted buffers hold the tensor's elements afterwards.
pub(super) fn load(k: &mut Kernel, products: &mut [Product], loads: &Loads) {
    let converted: Vec<(Value, Elem, Expr)> =
        loads.converted.iter().map(|&v| (v, known_elem(k, v), unconvert(k, v))).collect();
    let mut loaded: Vec<Loaded> = Vec::new();
    for (p, load) in products.iter_mut().zip(&loads.of) {
        let Some(load) = load else { continue };
        let mma = p.mma;
        let fragment = fragment(k, (p.s, &mma, load.second), &converted, &mut loaded);
        *(if load.second { &mut p.mma.b } else { &mut p.mma.a }) = fragment;
        k.exprs[p.src] = ExprData::Mma(p.mma);
    }
}

/// Makes all copies fill a buffer with the tensor's elements, whose type the buffer gets. Returns the conversion.
fn unconvert(k: &mut Kernel, buffer: Value) -> Expr {
    let mut conversion = None;
    for fill in fills(k, buffer) {
        let StmtData::Copy { src, .. } = &mut k.stmts[fill] else { unreachable!("a fill is a copy") };
        let converts = *src;
        let arg = unconverted(k, converts).expect("bug: a copy that is to be unconverted does not convert");
        let from = resolve_view(k, arg).expect("a window of a tensor is converted").base;
        let stored = known_elem(k, from);
        if let StmtData::Copy { src, .. } = &mut k.stmts[fill] {
            *src = arg;
        }
        k.tile_ty_mut(buffer).expect("a buffer is a tile").elem = ElemRef::Known(stored);
        conversion = Some(converts);
    }
    conversion.expect("bug: nothing fills a buffer that is to be unconverted")
}

/// Where the product `s` loads from a buffer: in front of it, or of the loops around it whose iterations all read the
/// same contents.
fn load_place(k: &Kernel, s: Stmt, buffer: Value) -> (Block, usize) {
    let writes = |s: Stmt| Accesses::of(k, s).get(buffer).is_some_and(|t| t.writes);
    let mut looped = false;
    for (block, index) in path_to(k, s).into_iter().rev() {
        let around = k.blocks[block][index];
        if writes(around) {
            break;
        }
        looped |= matches!(k.stmts[around], StmtData::For { .. });
        if looped && k.blocks[block][..index].iter().any(|&t| writes(t)) {
            return (block, index);
        }
    }
    place_of(k, s)
}

/// A register tile with the contents of buffer `e`, loaded in front of the product `s`; an earlier product of the block
/// that reads the same shares it.
fn fragment(
    k: &mut Kernel,
    (s, mma, second): (Stmt, &Mma, bool),
    converted: &[(Value, Elem, Expr)],
    loaded: &mut Vec<Loaded>,
) -> Expr {
    let e = if second { mma.b } else { mma.a };
    let span = k.expr_spans[e];
    let view = resolve_view(k, e).expect("an operand is a buffer");
    let buffer = view.base;
    let (block, index) = load_place(k, s, buffer);
    let fills = |&s: &Stmt| Accesses::of(k, s).get(buffer).is_some_and(|t| t.writes);
    let before = || k.blocks[block][..index].iter().rev().take_while(|s| !fills(s));
    let same = |l: &&Loaded| l.view.is_same(k, &view) && before().any(|&t| t == l.copy);
    if let Some(tile) = loaded.iter().find(same).map(|l| l.tile) {
        return k.value_ref(tile, span);
    }
    let conversion = converted.iter().find(|c| c.0 == buffer);
    let elem = conversion.map_or_else(|| known_elem(k, buffer), |c| c.1);
    let shape = operand_shape(k, mma, second).expect("an operand has extents");
    let name = format!("{}_frag", operand_name(k, e));
    let extents = shape.iter().map(|&n| k.int(n as i64, span)).collect();
    let tile = k.value(&name, span, ValueDef::Var(TileTy::registers(ElemRef::Known(elem), extents, None)));
    let declared = k.stmt(StmtData::Var { value: tile, init: None }, span);
    let src = match conversion.map(|&(_, _, how)| k.exprs[how].clone()) {
        Some(ExprData::Lookup { table, .. }) => k.expr(ExprData::Lookup { table, index: e }, span),
        Some(_) => k.expr(ExprData::Cast { elem: ElemRef::Known(elem), arg: e }, span),
        None => e,
    };
    let dst = k.value_ref(tile, span);
    let copy = k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span);
    insert_at(k, (block, index), vec![declared, copy]);
    loaded.push(Loaded { view, copy, tile });
    k.value_ref(tile, span)
}
