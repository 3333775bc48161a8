//! Kernels on a device, launched from their contracts.

use crate::bind::{ADDRESS_BYTES, Bound, TensorPlan, bind};
use crate::contract::encode::encode_number;
use crate::contract::number::{Args, Number};
use crate::contract::{Case, Contract, Dispatch, LaunchFile, ParamKind, Program, Scratch};
use crate::cuda::{
    Buffer, CudaError, Device, Function, FunctionAttributes, LaunchArg, MAX_PLACES, Module, PixelBox, Shape, Stream,
    TensorMap,
};
use crate::dispatch::{NoCase, pick};
use crate::error::LaunchError;
use crate::program::{BoundProgram, bind_program, decided, may_alias};
use crate::tensor_map::Description;
use std::cell::RefCell;
use std::collections::BTreeMap;
use tilec_core::elem::Elem;
use tilec_core::hardware::{MAX_TENSOR_RANK, SMEM_WITHOUT_OPTIN};

/// The variants of a kernel, loaded on a device. A launch dispatches to one by the rules of the launch file.
pub struct LoadedVariants<'d> {
    kernels: Vec<LoadedKernel<'d>>,
    contracts: Vec<Contract>,
    dispatch: Dispatch,
}

/// A kernel that is loaded on a device, with its contract.
pub struct LoadedKernel<'d> {
    device: &'d Device,
    function: Function,
    contract: Contract,
    /// Its scratch memory, as large as the largest launch needed.
    scratch: RefCell<BTreeMap<String, Buffer>>,
    /// Memory that was too small for a later launch.
    outgrown: RefCell<Vec<Buffer>>,
}

/// A program of several kernels on a device.
pub struct LoadedProgram<'d> {
    kernels: Vec<LoadedKernel<'d>>,
    /// Temporaries and scratch memory, as large as the largest launch needed.
    temporaries: RefCell<BTreeMap<String, Buffer>>,
}

impl<'d> LoadedKernel<'d> {
    /// Loads `ptx` on `device` by the driver's assembler, and gets the entry of `contract`.
    ///
    /// # Errors
    /// The driver refuses the PTX, or the shared memory that the contract requests.
    pub fn load(device: &'d Device, ptx: &str, contract: &Contract) -> Result<LoadedKernel<'d>, CudaError> {
        LoadedKernel::of(device, &device.load_ptx(ptx)?, ptx, contract)
    }

    /// The kernel of a module made from `ptx`.
    fn of(device: &'d Device, module: &Module, ptx: &str, contract: &Contract) -> Result<LoadedKernel<'d>, CudaError> {
        let ids = contract.id.as_deref().zip(Contract::id_in(ptx, &contract.entry));
        if ids.is_some_and(|(own, of_ptx)| own != of_ptx) {
            return Err(CudaError::refused(format!(
                "the launch contract of `{}` is not that of this PTX",
                contract.entry
            )));
        }
        let function = module.function(&contract.entry)?;
        if contract.dynamic_smem_bytes > SMEM_WITHOUT_OPTIN {
            function.set_max_dynamic_smem(contract.dynamic_smem_bytes)?;
        }
        if contract.has_large_clusters() {
            function.allow_large_clusters()?;
        }
        Ok(LoadedKernel {
            device,
            function,
            contract: contract.clone(),
            scratch: RefCell::default(),
            outgrown: RefCell::default(),
        })
    }

    /// Launches on the default stream with the values `args` and a buffer for every tensor but scratch memory, which this has (of an array of pointers: the
    /// buffer that holds the addresses); does not wait.
    ///
    /// # Errors
    /// A value or buffer is missing or does not fit, a precondition does not hold, or the driver refuses.
    pub fn launch(&self, args: &Args, tensors: &[(&str, &Buffer)]) -> Result<(), LaunchError> {
        let bound = bind(&self.contract, args).map_err(LaunchError::Bind)?;
        check_buffers(&[&self.contract], &bound.tensors, tensors)?;
        Ok(self.launch_bound(self.device.default_stream(), &bound, |name| address(tensors, name))?)
    }

    /// Queues a launch on `stream`; `address` gives the device address of a tensor other than scratch memory. Launches
    /// with scratch memory must not overlap: use one stream, or wait. The first launch allocates it, and so does one
    /// that needs more than previous ones.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn launch_bound(&self, stream: &Stream, bound: &Bound, address: impl Fn(&str) -> u64) -> Result<(), CudaError> {
        if !bound.has_blocks() {
            return Ok(());
        }
        let mut own = self.scratch.borrow_mut();
        for (scratch, plan) in &bound.scratch {
            if own.get(&plan.name).map_or(0, |b| b.bytes() as u64) >= plan.bytes() {
                continue;
            }
            let too_large = |_| CudaError::Refused { what: format!("`{}` is too large", plan.name) };
            let bytes = usize::try_from(plan.bytes()).map_err(too_large)?;
            let room = self.device.alloc(bytes)?;
            if *scratch == Scratch::Signals {
                room.fill(0)?;
                // Streams that do not wait for the default stream find the zeros too.
                self.device.synchronize()?;
            }
            // A graph that was captured has the address of what was too small.
            self.outgrown.borrow_mut().extend(own.insert(plan.name.clone(), room));
        }
        let address = |name: &str| own.get(name).map_or_else(|| address(name), Buffer::address);
        let args = launch_args(&self.contract, bound, address);
        stream.launch(&self.function, &Shape::of(&self.contract, bound.grid), &args)
    }

    /// The number of active clusters of the kernel on the device: see [`Device::max_active_clusters`].
    ///
    /// # Errors
    /// If the device has no room for a cluster, or the driver refuses.
    pub fn max_active_clusters(&self) -> Result<u32, CudaError> {
        self.device.max_active_clusters(&self.function, &Shape::of(&self.contract, [1; 3]))
    }

    /// The driver's figures of the kernel.
    pub fn attributes(&self) -> FunctionAttributes {
        self.function.attributes()
    }
}

impl<'d> LoadedProgram<'d> {
    /// Loads `ptx` on `device` by the driver's assembler, and gets the kernels to launch, in this order: see
    /// [`LaunchFile::launches`](crate::contract::LaunchFile::launches), which says for given sizes which variants these are.
    ///
    /// # Errors
    /// The driver refuses the PTX, or the shared memory that a contract requests.
    pub fn load(device: &'d Device, ptx: &str, launches: &[&Contract]) -> Result<LoadedProgram<'d>, CudaError> {
        let kernels = launches.iter().map(|contract| LoadedKernel::load(device, ptx, contract));
        Ok(LoadedProgram { kernels: kernels.collect::<Result<_, _>>()?, temporaries: RefCell::default() })
    }

    /// Launches all kernels on the default stream; does not wait. Temporaries need no
    /// buffer; a later launch with larger ones waits for the device.
    ///
    /// # Errors
    /// As those of [`LoadedKernel::launch`].
    pub fn launch(&self, args: &Args, tensors: &[(&str, &Buffer)]) -> Result<(), LaunchError> {
        let contracts: Vec<&Contract> = self.kernels.iter().map(|k| &k.contract).collect();
        let bound = bind_program(&contracts, args).map_err(LaunchError::Bind)?;
        let program = Program::new("", &contracts).map_err(|misfits| LaunchError::Misfit(misfits.join("\n")))?;
        let mut temporaries = self.temporaries.borrow_mut();
        for plan in &bound.tensors {
            let given = tensors.iter().any(|(name, _)| *name == plan.name);
            if given || program.temporaries.iter().all(|t| t.name != plan.name) {
                continue;
            }
            let room = temporaries.get(&plan.name).map_or(0, |b| b.bytes() as u64);
            if let (true, Some(kernel)) = (room < plan.bytes(), self.kernels.first()) {
                let too_large = |_| CudaError::Refused { what: format!("`{}` is too large", plan.name) };
                let bytes = usize::try_from(plan.bytes()).map_err(too_large)?;
                temporaries.insert(plan.name.clone(), kernel.device.alloc(bytes)?);
            }
        }
        let all: Vec<(&str, &Buffer)> =
            tensors.iter().copied().chain(temporaries.iter().map(|(name, b)| (name.as_str(), b))).collect();
        check_buffers(&contracts, &bound.tensors, &all)?;
        match self.kernels.first() {
            Some(kernel) => Ok(self.launch_bound(kernel.device.default_stream(), &bound, |name| address(&all, name))?),
            None => Ok(()),
        }
    }

    /// Queues all launches on `stream`; `address` gives the device address of a tensor.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn launch_bound(
        &self,
        stream: &Stream,
        bound: &BoundProgram,
        address: impl Fn(&str) -> u64,
    ) -> Result<(), CudaError> {
        let mut launches = self.kernels.iter().zip(&bound.launches);
        launches.try_for_each(|(kernel, launch)| kernel.launch_bound(stream, launch, &address))
    }

    /// The kernels, in launch order.
    pub fn kernels(&self) -> &[LoadedKernel<'d>] {
        &self.kernels
    }
}

/// The device address of the buffer for a tensor.
fn address(tensors: &[(&str, &Buffer)], name: &str) -> u64 {
    tensors.iter().find(|(n, _)| *n == name).map_or(0, |(_, buffer)| buffer.address())
}

/// Refuses missing and short buffers, and overlaps that the contracts do not allow.
fn check_buffers(launches: &[&Contract], plans: &[TensorPlan], tensors: &[(&str, &Buffer)]) -> Result<(), LaunchError> {
    for plan in plans {
        let wrong = |what: String| LaunchError::Tensor { name: plan.name.clone(), what };
        let Some((_, buffer)) = tensors.iter().find(|(name, _)| *name == plan.name) else {
            return Err(wrong("no buffer was given".to_owned()));
        };
        // For an array of pointers, the buffer holds the addresses, not the elements.
        let expected = if plan.pointers { plan.parts() * ADDRESS_BYTES } else { plan.bytes() };
        if (buffer.bytes() as u64) < expected {
            return Err(wrong(format!("its buffer has {} bytes, expected {expected}", buffer.bytes())));
        }
    }
    overlap(launches, plans, |name| address(tensors, name))
}

/// Refuses one address for two tensors of which one is written, unless the contracts allow it.
fn overlap(launches: &[&Contract], plans: &[TensorPlan], address: impl Fn(&str) -> u64) -> Result<(), LaunchError> {
    for over in plans.iter().filter(|plan| plan.access.writes()) {
        let allowed = may_alias(&decided(launches), &over.name);
        let meets = |other: &&TensorPlan| other.name != over.name && address(&other.name) == address(&over.name);
        for under in plans.iter().filter(meets) {
            if !(allowed.contains(&under.name) && over.same_layout(under)) {
                let what =
                    format!("it is written, and at the address of `{}`, which the contract does not allow", under.name);
                return Err(LaunchError::Tensor { name: over.name.clone(), what });
            }
        }
    }
    Ok(())
}

impl<'d> LoadedVariants<'d> {
    /// Loads `ptx` on `device` by the driver's assembler, and gets the variants of the kernel `name`. A kernel without variants is
    /// always launched.
    ///
    /// # Errors
    /// The driver refuses the PTX, the shared memory that a variant requests, or there is no such kernel.
    pub fn load(device: &'d Device, ptx: &str, file: &LaunchFile, name: &str) -> Result<LoadedVariants<'d>, CudaError> {
        let alone = || Dispatch { kernel: name.to_owned(), cases: vec![Case::alone(name)] };
        let dispatch = file.dispatch.iter().find(|d| d.kernel == name).cloned().unwrap_or_else(alone);
        let module = device.load_ptx(ptx)?;
        let (mut kernels, mut contracts) = (Vec::new(), Vec::new());
        for contract in file.kernels.iter().filter(|c| dispatch.cases.iter().any(|case| case.entry == c.entry)) {
            kernels.push(LoadedKernel::of(device, &module, ptx, contract)?);
            contracts.push(contract.clone());
        }
        if kernels.is_empty() {
            return Err(CudaError::refused(format!("the launch file has no kernel `{name}`")));
        }
        Ok(LoadedVariants { kernels, contracts, dispatch })
    }

    /// The variant for these values and tensors.
    ///
    /// # Errors
    /// The values fit none.
    pub fn pick(&self, args: &Args, tensors: &[(&str, &Buffer)]) -> Result<&LoadedKernel<'d>, LaunchError> {
        let aligned = |contract: &Contract| {
            let misaligned = contract.params.iter().find(|param| match &param.kind {
                ParamKind::Tensor(tensor) => {
                    let given = tensors.iter().find(|(name, _)| *name == param.name);
                    given.is_some_and(|(_, buffer)| !buffer.address().is_multiple_of(u64::from(tensor.align.max(1))))
                }
                // Only the device knows the addresses in the array.
                ParamKind::Pointers(_)
                | ParamKind::TensorMap(_)
                | ParamKind::Size { .. }
                | ParamKind::Stride { .. }
                | ParamKind::Scalar { .. } => false,
            });
            misaligned.map(|param| format!("the address of `{}` is not aligned as it wants", param.name))
        };
        let picked = pick(&self.dispatch, &self.contracts, args, aligned).map_err(|no_case| match no_case {
            NoCase::Arguments(errors) => LaunchError::Bind(errors),
            NoCase::Nearest(refused) => refused.into(),
        })?;
        let missing = || LaunchError::Misfit(format!("`{}` is not loaded", picked.entry));
        self.kernels.iter().find(|k| k.contract.entry == picked.entry).ok_or_else(missing)
    }

    /// [`LoadedKernel::launch`] of the variant for these values and tensors.
    ///
    /// # Errors
    /// As [`LoadedVariants::pick`] and [`LoadedKernel::launch`].
    pub fn launch(&self, args: &Args, tensors: &[(&str, &Buffer)]) -> Result<(), LaunchError> {
        self.pick(args, tensors)?.launch(args, tensors)
    }
}

/// The arguments of a launch in parameter order; `address` gives the device address of a tensor by name.
pub fn launch_args(contract: &Contract, bound: &Bound, address: impl Fn(&str) -> u64) -> Vec<LaunchArg> {
    let value = |name: &str| bound.values.get(name).copied().unwrap_or(Number::Int(0));
    contract
        .params
        .iter()
        .map(|param| match &param.kind {
            ParamKind::Tensor(_) | ParamKind::Pointers(_) => LaunchArg::Ptr(address(&param.name)),
            ParamKind::TensorMap(map) => {
                let own = bound.scratch.iter().map(|(_, plan)| plan);
                let plan = bound.tensors.iter().chain(own).find(|t| t.name == map.tensor);
                let plan = plan.expect("a contract describes tensors that it has");
                let number = |name: &str| bound.values.get(name).and_then(|v| v.to_i64());
                LaunchArg::TensorMap(tensor_map(&map.describe(plan, number), address(&map.tensor)))
            }
            ParamKind::Size { .. } => {
                let size = value(&param.name).to_i64().and_then(|i| u32::try_from(i).ok());
                LaunchArg::U32(size.expect("binding checked the range"))
            }
            ParamKind::Stride { .. } => {
                LaunchArg::I64(value(&param.name).to_i64().expect("binding checked that it is whole"))
            }
            ParamKind::Scalar { elem, .. } => scalar(*elem, value(&param.name)),
        })
        .collect()
}

/// The tensor map of the contract for a tensor at an address.
pub fn tensor_map(described: &Description, address: u64) -> TensorMap {
    let rank = described.extents.len().min(MAX_TENSOR_RANK);
    let mut out = TensorMap {
        elem: described.elem,
        address,
        in_front: described.in_front,
        rank: rank as u32,
        extents: [1; MAX_TENSOR_RANK],
        strides: [0; MAX_TENSOR_RANK],
        box_extents: [1; MAX_TENSOR_RANK],
        swizzle: described.swizzle,
        steps: [1; MAX_TENSOR_RANK],
        pixels: None,
    };
    out.extents[..rank].copy_from_slice(&described.extents[..rank]);
    out.box_extents[..rank].copy_from_slice(&described.box_extents[..rank]);
    out.steps[..rank].copy_from_slice(&described.element_strides()[..rank]);
    if let Some(p) = &described.pixels {
        let mut pixels = PixelBox { lower: [0; MAX_PLACES], upper: [0; MAX_PLACES], count: p.count };
        pixels.lower.iter_mut().zip(&p.lower).for_each(|(to, &from)| *to = from);
        pixels.upper.iter_mut().zip(&p.upper).for_each(|(to, &from)| *to = from);
        out.pixels = Some(pixels);
    }
    for (to, from) in out.strides[1..].iter_mut().zip(&described.strides) {
        *to = *from;
    }
    out
}

fn scalar(elem: Elem, value: Number) -> LaunchArg {
    let whole = value.to_i64().unwrap_or(0);
    // The narrowing casts below keep the bits of the encoding, which has that width.
    let bits = encode_number(elem, value);
    match elem {
        Elem::F16 => LaunchArg::F16(bits as u16),
        Elem::BF16 => LaunchArg::Bf16(bits as u16),
        Elem::F32 | Elem::TF32 => LaunchArg::F32(f32::from_bits(bits as u32)),
        Elem::F64 => LaunchArg::F64(value.to_f64()),
        Elem::I8 => LaunchArg::I8(whole as i8),
        Elem::U8 | Elem::I4 | Elem::U4 | Elem::Bool | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0 => {
            LaunchArg::U8(bits as u8)
        }
        Elem::I16 | Elem::U16 => LaunchArg::U16(bits as u16),
        Elem::I32 => LaunchArg::I32(whole as i32),
        Elem::U32 => LaunchArg::U32(whole as u32),
        Elem::I64 => LaunchArg::I64(whole),
        Elem::U64 => LaunchArg::U64(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Access;
    use crate::contract::tests::gemm;

    #[test]
    fn arguments_have_the_order_and_types_of_the_contract() {
        let number = |i: i64| Number::Int(i);
        let args = Args::from([
            ("M".to_owned(), number(3)),
            ("N".to_owned(), number(5)),
            ("K".to_owned(), number(8)),
            ("C_ld".to_owned(), number(1 << 40)),
            ("beta".to_owned(), Number::Float(0.5)),
        ]);
        let bound = bind(&gemm(), &args).expect("complete");
        let address = |name: &str| u64::from(name.as_bytes()[0]);
        assert_eq!(
            launch_args(&gemm(), &bound, address),
            [
                LaunchArg::Ptr(65),
                LaunchArg::Ptr(66),
                LaunchArg::Ptr(67),
                LaunchArg::U32(3),
                LaunchArg::U32(8),
                LaunchArg::U32(5),
                LaunchArg::I64(8),
                LaunchArg::I64(5),
                LaunchArg::I64(1 << 40),
                LaunchArg::F32(1.0),
                LaunchArg::F32(0.5),
            ]
        );
    }

    #[test]
    fn outputs_stand_on_inputs_where_the_contract_says_so() {
        let plan = |name: &str, access, ld| TensorPlan {
            reads_gaps: false,
            name: name.to_owned(),
            elem: Elem::F16,
            access,
            shape: vec![4, 8],
            strides: vec![ld, 1],
            modes: vec![1; 2],
            span: 3 * ld + 8,
            pointers: false,
        };
        let mut contract = gemm();
        let check = |contract: &Contract, ld: u64, at: [u64; 3]| {
            let plans = [plan("A", Access::Read, 8), plan("B", Access::Read, 8), plan("C", Access::Write, ld)];
            let address = |name: &str| plans.iter().zip(at).find(|(p, _)| p.name == name).map_or(0, |(_, at)| at);
            overlap(&[contract], &plans, address).map_err(|e| e.to_string())
        };
        assert_eq!(check(&contract, 8, [1, 1, 2]), Ok(()));
        let refused = "tensor `C`: it is written, and at the address of `B`, which the contract does not allow";
        assert_eq!(check(&contract, 8, [1, 2, 2]), Err(refused.to_owned()));
        if let ParamKind::Tensor(tensor) = &mut contract.params[2].kind {
            tensor.may_alias = vec!["B".to_owned()];
        }
        assert_eq!(check(&contract, 8, [1, 2, 2]), Ok(()));
        assert_eq!(check(&contract, 16, [1, 2, 2]), Err(refused.to_owned()));
        assert!(check(&contract, 8, [2, 1, 2]).is_err());
    }

    #[test]
    fn scalars_keep_sign_and_width() {
        assert_eq!(scalar(Elem::I8, Number::Int(-3)), LaunchArg::I8(-3));
        assert_eq!(scalar(Elem::U32, Number::Float(4e9)), LaunchArg::U32(4_000_000_000));
        assert_eq!(scalar(Elem::F16, Number::Float(-2.0)), LaunchArg::F16(0xC000));
        let most = |text: &str| text.parse().unwrap();
        assert_eq!(scalar(Elem::U64, most("18446744073709551615")), LaunchArg::U64(u64::MAX));
        assert_eq!(scalar(Elem::U16, Number::Int(65_535)), LaunchArg::U16(65_535));
        assert_eq!(scalar(Elem::I64, Number::Int(i64::MIN)), LaunchArg::I64(i64::MIN));
    }
}
