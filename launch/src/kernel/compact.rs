//! The launch table of a bundle: the launch steps of each name ([`Steps`]), encoded as numbers.
//!
//! Hosts without a reader of JSON and expressions launch by it (`tilec_bundle.h`), in the same way as `Kernel`.
//! `docs/bundle.md` defines the format: numbers of 32 or 64 bits, little-endian, one after the other. A text is its
//! length and its bytes, a list its length and its elements.

use super::plan::{Passed, Plan};
use super::sequence::Steps;
use super::table::{self, AddressSource, From, SlotKind, Table};
use crate::bundle::{Bundle, BundleError, PayloadKind};
use crate::contract::encode::encode_number;
use crate::contract::number::int_format;
use crate::contract::stack_code::Flat;
use crate::contract::{Contract, Dimension, LaunchFile, Scratch, TensorMapParam, TensorParam};
use crate::error::LaunchError;
use tilec_core::elem::Elem;
use tilec_core::hardware::MAX_TENSOR_RANK;

/// The version of the table.
const VERSION: u32 = 1;
/// The most of each that a reader has room for.
const MOST: [(&str, usize); 4] = [("tensors", 32), ("values", 96), ("launches", 32), ("parameters of a kernel", 96)];

impl Bundle {
    /// Adds a target with its launch table, or replaces it.
    ///
    /// # Errors
    /// The target's name is longer than 15 bytes or none of an architecture (`sm_80`, `sm_90a`).
    pub fn add(
        &mut self,
        target: &str,
        file: &LaunchFile,
        ptx: &str,
        cubin: Option<Vec<u8>>,
    ) -> Result<(), BundleError> {
        let code = [
            (PayloadKind::Contract, file.to_json().into_bytes()),
            (PayloadKind::Ptx, ptx.as_bytes().to_vec()),
            (PayloadKind::Table, table(file)),
        ];
        self.put(target, code.into_iter().chain(cubin.map(|bytes| (PayloadKind::Cubin, bytes))))
    }
}

/// The table of a launch file.
fn table(file: &LaunchFile) -> Vec<u8> {
    let mut out = Out::default();
    out.word(VERSION);
    out.list(&file.kernels, |out, contract| {
        out.text(&contract.entry);
        out.word(contract.dynamic_smem_bytes);
        out.word(contract.has_large_clusters().into());
    });
    out.list(&file.names(), |out, name| {
        out.text(name);
        let mut own = Out::default();
        match record(&mut own, file, name) {
            Ok(()) => {}
            Err(error) => {
                // Such a name is there, with the reason why it is not launched by the table.
                own = Out::default();
                own.word(0);
                own.text(&error.to_string());
            }
        }
        out.word(own.0.len() as u32);
        out.0.append(&mut own.0);
    });
    out.0
}

#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn word(&mut self, x: u32) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    fn index(&mut self, x: usize) {
        self.word(x as u32);
    }

    fn long(&mut self, x: u64) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.index(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn list<T>(&mut self, all: &[T], mut one: impl FnMut(&mut Out, &T)) {
        self.index(all.len());
        all.iter().for_each(|x| one(self, x));
    }

    /// An expression, as many instructions as it has: an operation and an operand each.
    fn code(&mut self, flat: &Flat) {
        let code = flat.encoded();
        self.index(flat.depth());
        self.word(flat.is_condition().into());
        self.list(&code, |out, (op, operand)| {
            out.word(*op);
            out.long(operand.cast_unsigned());
        });
    }

    fn taken(&mut self, taken: AddressSource) {
        let (own, at) = match taken {
            AddressSource::Given(i) => (0, i),
            AddressSource::Own(i) => (1, i),
        };
        self.word(own);
        self.index(at);
    }
}

/// The record of a name.
fn record(out: &mut Out, file: &LaunchFile, name: &str) -> Result<(), LaunchError> {
    let (tensors, values) = file.given(name);
    let steps = Steps::new(file, name, &tensors, &values)?;
    let table = &steps.table;
    let all: Vec<&Plan> = steps.steps.iter().flatten().collect();
    let widest = all.iter().map(|plan| plan.params.len()).max().unwrap_or(0);
    let counts = [tensors.len() + table.own().len(), table.slots().len(), steps.steps.len(), widest];
    if let Some(((what, most), found)) = MOST.iter().zip(counts).find(|((_, most), found)| found > most) {
        return Err(LaunchError::Misfit(format!("it has {found} {what}, a launch table has at most {most}")));
    }
    let contracts: Vec<&Contract> = all.iter().map(|plan| &plan.contract).collect();
    let param = |name: &str| {
        let none = || LaunchError::tensor(name, "no kernel has it");
        table::tensor(&contracts, name).ok_or_else(none)
    };
    let writes = |name: &str| {
        let uses = contracts.iter().filter_map(|c| c.param(name)?.kind.tensor());
        uses.into_iter().any(|t| t.access.writes())
    };
    out.word(1);
    out.index(file.shared_launch(name));
    for list in [tensors.iter().map(|t| (*t).to_owned()).collect(), table.own().to_vec()] {
        let list: Vec<String> = list;
        out.index(list.len());
        for name in &list {
            out.text(name);
            out.word(writes(name).into());
            dimensions(out, param(name)?, table)?;
        }
    }
    slots(out, table, &values);
    out.list(&steps.aliases, |out, (over, under)| {
        out.index(*over);
        out.list(under, |out, at| out.index(*at));
    });
    out.list(&steps.temporaries, |out, (own, _, bytes)| {
        out.index(*own);
        out.code(bytes);
    });
    out.index(steps.steps.len());
    for cases in &steps.steps {
        out.index(cases.len());
        for plan in cases {
            case(out, file, plan, &param, table)?;
        }
    }
    Ok(())
}

/// The element type of a tensor, and extents and strides of its modes.
fn dimensions(out: &mut Out, tensor: &TensorParam, table: &Table) -> Result<(), LaunchError> {
    out.text(tensor.elem.name());
    out.word(tensor.elem.bits());
    let parts = |dims: &[Dimension]| dims.iter().flat_map(Dimension::parts).cloned().collect::<Vec<String>>();
    let (shape, strides) = (parts(&tensor.shape), parts(&tensor.strides));
    out.index(shape.len());
    for text in shape.iter().zip(&strides).flat_map(|(extent, stride)| [extent, stride]) {
        out.code(&table::flatten(text, table)?);
    }
    Ok(())
}

/// Sizes, strides and scalars, and where each has its value from.
fn slots(out: &mut Out, table: &Table, values: &[&str]) {
    out.list(table.slots(), |out, slot| {
        out.text(&slot.name);
        let (kind, elem) = match slot.kind {
            SlotKind::Size => (0, Elem::I64),
            SlotKind::Stride => (1, Elem::I64),
            SlotKind::Scalar(elem) => (2, elem),
        };
        out.word(kind);
        out.text(elem.name());
        // The range of an integer; other types have none.
        let format = int_format(elem);
        out.word(elem.is_float().into());
        out.long((format.min() as i64).cast_unsigned());
        out.long(format.max() as u64);
        let nowhere = Vec::new();
        let (places, packed, default) = match &slot.from {
            From::Passed(at, default) => {
                debug_assert_eq!(values.get(*at).copied(), Some(slot.name.as_str()), "values are passed by name");
                (&nowhere, None, *default)
            }
            From::Extent(tensor, dim) => (&vec![(*tensor, *dim)], None, None),
            From::Stride(places, packed) => (places, packed.as_ref().and_then(|(_, flat)| flat.as_ref()), None),
            From::Default(number) => (&nowhere, None, Some(*number)),
        };
        out.list(places, |out, (tensor, dim)| {
            out.index(*tensor);
            out.index(*dim);
        });
        out.word(packed.is_some().into());
        packed.into_iter().for_each(|flat| out.code(flat));
        out.word(default.is_some().into());
        if let Some(number) = default {
            out.long(encode_number(elem, number));
            out.word(number.to_i64().is_some().into());
            out.long(number.to_i64().unwrap_or(0).cast_unsigned());
        }
    });
}

/// One of the kernels that may be launched.
fn case<'c>(
    out: &mut Out,
    file: &LaunchFile,
    plan: &Plan,
    param: &impl Fn(&str) -> Result<&'c TensorParam, LaunchError>,
    table: &Table,
) -> Result<(), LaunchError> {
    let contract = &plan.contract;
    out.index(file.kernels.iter().position(|c| c.entry == contract.entry).unwrap_or(usize::MAX));
    contract.block.iter().chain(&contract.cluster).for_each(|n| out.word(*n));
    out.word(contract.programmatic.into());
    out.word(contract.dynamic_smem_bytes);
    for (codes, texts) in [(&plan.when, &plan.when_texts), (&plan.requires, &contract.requires)] {
        out.index(codes.len());
        for (code, text) in codes.iter().zip(texts) {
            out.code(code);
            out.text(text);
        }
    }
    plan.grid.iter().for_each(|axis| out.code(axis));
    out.list(&plan.sizes, |out, slot| out.index(*slot));
    out.list(&plan.aligned, |out, (tensor, align)| {
        out.index(*tensor);
        out.word(*align as u32);
    });
    out.list(&plan.scratch, |out, (own, kind, bytes)| {
        out.index(*own);
        out.word((*kind == Scratch::Signals).into());
        out.code(bytes);
    });
    out.index(plan.params.len());
    for passed in &plan.params {
        match passed {
            Passed::Address(taken) => {
                out.word(0);
                out.taken(*taken);
            }
            Passed::Map(taken, of) => {
                out.word(1);
                out.taken(*taken);
                map(out, of, param(&of.tensor)?, table)?;
            }
            Passed::Size(slot) => {
                out.word(2);
                out.index(*slot);
            }
            Passed::Stride(slot) => {
                out.word(3);
                out.index(*slot);
            }
            Passed::Scalar(slot, elem) => {
                out.word(4);
                out.index(*slot);
                out.word(elem.bytes_of(1) as u32);
            }
        }
    }
    Ok(())
}

/// A tensor map, with the numbers of the driver's enumerations.
fn map(out: &mut Out, map: &TensorMapParam, tensor: &TensorParam, table: &Table) -> Result<(), LaunchError> {
    let elem = tensor.elem;
    let no_map = || LaunchError::tensor(&map.tensor, format!("no tensor map has elements of {}", elem.name()));
    out.word(crate::tensor_map::data_type(elem).ok_or_else(no_map)?);
    out.word(crate::tensor_map::swizzle(map.swizzle));
    let modes: Vec<u32> = tensor.shape.iter().map(|d| d.parts().len() as u32).collect();
    let first = |dim: u32| modes[..dim as usize].iter().sum::<u32>();
    let mut boxed = map.extents.clone();
    boxed[0] /= elem.per(1).max(1);
    let steps = match &map.im2col {
        None => Vec::new(),
        Some(of) => std::iter::once(1).chain(of.steps.iter().copied()).collect(),
    };
    out.index(map.dims.len() + usize::from(map.ended.is_some()));
    out.word(map.ended.unwrap_or(0));
    let (begin, count) = (map.dims.iter().map(|&d| first(d)), map.dims.iter().map(|&d| modes[d as usize]));
    for list in [begin.collect::<Vec<u32>>(), count.collect(), boxed, steps] {
        list.into_iter().chain(std::iter::repeat(1)).take(MAX_TENSOR_RANK).for_each(|n| out.word(n));
    }
    out.word(map.im2col.is_some().into());
    for corners in map.im2col.iter().flat_map(|of| [&of.lower, &of.upper]) {
        out.index(corners.len());
        for text in corners {
            out.code(&table::flatten(text, table)?);
        }
    }
    Ok(())
}
