//! Bank conflicts of the emitted code, counted lane by lane.
//!
//! The compiler proves its layouts free of conflicts by rank. Here the PTX itself runs on the simulator, which takes the
//! address of every lane of every shared-memory access and counts distinct words per bank and phase; it knows nothing of
//! layouts.

#[cfg(test)]
mod tests {
    use tilec::contract::ParamKind;
    use tilec::{CompileOptions, Compiled};
    use tilec_ir::target::Target;
    use tilec_sim::{Device, Launch, Options, Program};

    const M: u64 = 128;
    const N: u64 = 128;
    const K: u64 = 128;

    /// Extra wavefronts of one block of the program, and its wavefronts in all.
    fn conflicts(compiled: &Compiled) -> (u64, u64) {
        let program = Program::parse(&compiled.ptx).expect("our PTX parses");
        let contract = &compiled.kernels[0].contract;
        let mut device = Device::new();
        let params = contract.params.iter().map(|p| match &p.kind {
            ParamKind::Tensor(_) | ParamKind::Pointers(_) => {
                let bytes = (M * K.max(N) * 4) as usize;
                let address = device.alloc(bytes as u64).expect("memory");
                device.upload(address, &vec![0; bytes]).expect("in bounds");
                address.to_le_bytes().to_vec()
            }
            ParamKind::TensorMap(_) => unreachable!("none of these is for sm_90a"),
            ParamKind::Size { .. } => (M as u32).to_le_bytes().to_vec(),
            ParamKind::Stride { .. } => M.to_le_bytes().to_vec(),
            ParamKind::Scalar { .. } => 0f32.to_le_bytes().to_vec(),
        });
        let launch = Launch {
            params: params.collect(),
            entry: contract.entry.clone(),
            // Rasterisation: eight columns of blocks per row, of which the first has work.
            grid: [1, 1, 1],
            block: contract.block,
            dynamic_smem: contract.dynamic_smem_bytes,
        };
        let counters = device.run(&program, &launch, &Options::default()).expect("no report");
        let sum = |what: &str| counters.sum(what);
        let all = [sum("ld.shared"), sum("st.shared"), sum("ldmatrix")];
        (all.iter().map(|c| c.conflicts()).sum(), all.iter().map(|c| c.wavefronts).sum())
    }

    fn gemm(target: Target, defines: &[(&str, &str)], disabled: &[&str]) -> Compiled {
        let path = crate::root().join("examples/gemm.tile");
        let source = std::fs::read_to_string(path).expect("the example is there");
        let mut options = CompileOptions { source_name: "gemm.tile".into(), target, ..CompileOptions::default() };
        let tiles = [("BM", "128"), ("BN", "128"), ("BK", "32"), ("WM", "64"), ("WN", "64")];
        let schedule = [&tiles[..], &[("KW", "1"), ("STAGES", "2")]].concat();
        // The last definition of a name counts.
        let all = schedule.iter().chain(defines);
        options.defines = all.map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        options.disabled = disabled.iter().map(|s| (*s).to_owned()).collect();
        tilec::compile(&source, &options).expect("it compiles")
    }

    #[test]
    fn products_have_none_in_any_order() {
        for target in [Target::Sm70, Target::Sm80] {
            for bk in ["8", "16", "32", "64"] {
                if target == Target::Sm80 && bk == "8" {
                    continue;
                }
                for (la, lb) in [("row", "row"), ("row", "col"), ("col", "row"), ("col", "col")] {
                    let compiled = gemm(target, &[("BK", bk), ("LA", la), ("LB", lb)], &[]);
                    let (extra, all) = conflicts(&compiled);
                    assert!(all > 0, "nothing counted");
                    assert_eq!(extra, 0, "{} BK={bk} A {la} B {lb}: {extra} of {all} wavefronts", target.name());
                }
            }
        }
    }

    /// Scalar products: tiles are transposed in registers, or by asynchronous copies of single elements.
    #[test]
    fn scalar_products_have_none_in_any_order() {
        for target in [Target::Sm70, Target::Sm75, Target::Sm80] {
            for (bk, wm) in [("8", "32"), ("16", "32"), ("16", "64"), ("32", "64")] {
                for (la, lb) in [("row", "row"), ("row", "col"), ("col", "row"), ("col", "col")] {
                    let defines = [("T", "f32"), ("ALIGN", "4"), ("BK", bk), ("WM", wm), ("LA", la), ("LB", lb)];
                    let (extra, all) = conflicts(&gemm(target, &defines, &[]));
                    assert!(all > 0, "nothing counted");
                    assert_eq!(extra, 0, "{} BK={bk} WM={wm} A {la} B {lb}: {extra} of {all}", target.name());
                }
            }
        }
    }

    /// The count would notice: natural layouts do conflict.
    #[test]
    fn natural_layouts_have_some() {
        let (extra, _) = conflicts(&gemm(Target::Sm70, &[], &["swizzle"]));
        assert!(extra > 0);
    }
}
