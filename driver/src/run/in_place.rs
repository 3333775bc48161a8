//! Tensors that alias others, where the contract allows it.

use crate::contract::Contract;
use crate::run::bind::TensorPlan;
use crate::run::program::{Aliases, BoundProgram, decided, may_alias};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};

/// Checks that the launches allow these tensors to alias those.
///
/// # Errors
/// If there is no such tensor, the contract does not allow it, or their layouts differ.
pub(super) fn allowed(launches: &[&Contract], bound: &BoundProgram, aliases: &Aliases) -> Result<(), Box<Diagnostic>> {
    let error = |message: String| Box::new(Diagnostic::error(codes::BAD_ARGUMENT, Span::default(), message));
    let find = |name: &str| -> Result<&TensorPlan, Box<Diagnostic>> {
        let names = || bound.tensors.iter().map(|t| format!("`{}`", t.name)).collect::<Vec<_>>().join(", ");
        bound
            .tensors
            .iter()
            .find(|t| t.name == *name)
            .ok_or_else(|| error(format!("no tensor `{name}`; there are {}", names())))
    };
    for (over, under) in aliases {
        let (a, b) = (find(over)?, find(under)?);
        let allowed = may_alias(&decided(launches), over);
        if !allowed.contains(under) {
            let d = error(format!("the contract does not allow `{over}` at the address of `{under}`"));
            return Err(Box::new(d.with_note(if allowed.is_empty() {
                format!("`{over}` must not overlap any other tensor: an element could be written before it is read")
            } else {
                format!("`{over}` may be at the address of {}", allowed.join(", "))
            })));
        }
        if !a.same_layout(b) {
            let message = if (&a.strides, &a.modes) == (&b.strides, &b.modes) {
                format!("elements of `{over}` share addresses: they would be written before others are read")
            } else {
                format!("`{over}` and `{under}` have different strides: their elements are at different addresses")
            };
            return Err(error(message));
        }
        if aliases.contains_key(under) {
            return Err(error(format!("`{under}` itself is aliased to another tensor")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::CompileOptions;
    use crate::contract::{Access, Contract};
    use pretty_assertions::assert_eq;

    fn contract(body: &str, more: &str) -> Contract {
        let source = format!(
            "kernel k(C: gmem f32[M, N], D: gmem f32[M, N], E: gmem f32[N, M], R: gmem f16[M, N], s: f32 = 1.0)
                grid (i: ceildiv(M, 32), j: ceildiv(N, 32){more} {{
                var x = reg f32[32, 32] = 1.0
                {body}
            }}"
        );
        let compiled = crate::compile(&source, &CompileOptions::default()).unwrap_or_else(|d| panic!("{d}"));
        compiled.contracts().remove(0)
    }

    fn allowed(body: &str) -> Vec<String> {
        contract(body, ")").param("D").and_then(|p| p.kind.tensor()).map_or_else(Vec::new, |t| t.may_alias.clone())
    }

    #[test]
    fn elements_read_ahead_by_the_thread_that_writes_them_may_share_memory() {
        for body in [
            format!("var c = reg f32[32, 32]\ncopy C{AT} -> c\nc = c / sum(c, 1)\ncopy x + c -> D{AT}"),
            // A row is read as a whole, and again where it is written.
            "var c = reg f32[32, 32]\nvar m = reg f32[32, 1] = 0.0
             for k in 0..128 step 32 {\ncopy C[i * 32.., j * 128 + k..] -> c\nm = max(m, maximum(c, 1))\n}
             for k in 0..128 step 32 {\ncopy C[i * 32.., j * 128 + k..] -> c\ncopy c * m -> D[i * 32.., j * 128 + k..]\n}"
                .to_owned(),
        ] {
            assert_eq!(allowed(&body), ["C"], "{body}");
        }
    }

    const AT: &str = "[i * 32.., j * 32..]";

    #[test]
    fn elements_read_where_they_are_written_may_share_memory() {
        for body in [
            format!("copy x + C{AT} -> D{AT}"),
            format!("let c = C{AT}\nlet y = x * c\ncopy y + c -> D{AT}"),
            format!("if s == 0.0 {{ copy x -> D{AT} }} else {{ copy x + s * C{AT} -> D{AT} }}"),
            format!("copy x + C{AT} + cast<f32>(R{AT}) + D{AT} -> D{AT}"),
            // One warp of the four loads the row, and stores it.
            "var c = reg f32[1, 32]\ncopy C[i.., j * 32..] -> c\ncopy c + 1.0 -> D[i.., j * 32..]".to_owned(),
            "for t in 0..4 {\ncopy C[i * 32 + t * 8..i * 32 + t * 8 + 8, j * 32..] + 1.0 -> D[i * 32.., j * 32..]\n}"
                .replace("copy C", "var y = reg f32[8, 32] = 1.0\ncopy y + C")
                .replace("..i * 32 + t * 8 + 8", "..")
                .replace("D[i * 32..", "D[i * 32 + t * 8.."),
        ] {
            assert_eq!(allowed(&body), ["C"], "{body}");
        }
    }

    #[test]
    fn other_elements_are_not_promised() {
        for body in [
            // Neighbours, transposed elements, and another tensor's shape.
            "copy x + C[i * 32 + 1.., j * 32..] -> D[i * 32.., j * 32..]".to_owned(),
            format!("copy x + E[i * 32.., j * 32..] -> D{AT}"),
            // Read again, in another distribution, by several threads, and in part.
            format!(
                "var c = reg f32[32, 32]\ncopy C{AT} -> c\ncopy x + c -> D{AT}\ncopy C{AT} -> c\ncopy c -> E[j * 32.., i * 32..]"
            ),
            format!("var c = reg f32[32, 32]\ncopy C{AT} -> c\ncopy x + transpose(c) -> D{AT}"),
            format!("var c = reg f32[1, 32]\ncopy C{AT} -> c\ncopy x + c -> D{AT}"),
            format!(
                "var c = reg f32[32, 32]\nfor t in 0..2 {{\ncopy C[i * 32.., j * 32 + t..] -> c\n}}\ncopy x + c -> D{AT}"
            ),
            format!("copy x + C{AT} -> D{AT}\ncopy x + C{AT} -> D{AT}"),
            // The same elements in every iteration, and by every block of a column.
            format!("for t in 0..4 {{\ncopy x + C{AT} -> D{AT}\n}}"),
            "copy x + C[0.., j * 32..] -> D[0.., j * 32..]".to_owned(),
            "copy x + C[i * 16.., j * 32..] -> D[i * 16.., j * 32..]".to_owned(),
            // Nothing to share.
            format!("copy x -> D{AT}"),
        ] {
            assert_eq!(allowed(&body), [""; 0], "{body}");
        }
        let of_every_plane = contract(&format!("copy x + C{AT} -> D{AT}"), ", z: M)");
        assert!(of_every_plane.param("D").and_then(|p| p.kind.tensor()).is_some_and(|t| t.may_alias.is_empty()));
    }

    /// What `D` may be in a kernel whose blocks have 32 whole rows each.
    fn allowed_in_rows(body: &str) -> Vec<String> {
        let source = format!(
            "kernel k(C: gmem f32[M, 128], D: gmem f32[M, 128], P: gmem i32[M, 128]) grid (i: ceildiv(M, 32)) {{
                var c = reg f32[32, 128]
                var p = reg i32[32, 128]
                copy P[i * 32.., ..] -> p fill -1
                {body}
            }}"
        );
        let compiled = crate::compile(&source, &CompileOptions::default()).unwrap_or_else(|d| panic!("{d}"));
        let contract = compiled.contracts().remove(0);
        contract.param("D").and_then(|p| p.kind.tensor()).map_or_else(Vec::new, |t| t.may_alias.clone())
    }

    #[test]
    fn rows_that_a_block_has_read_may_share_memory_behind_a_barrier() {
        for body in [
            // Elements that indices name, read and written.
            "copy C[i * 32.., p] -> c\nbarrier\ncopy c -> D[i * 32.., ..]",
            "copy C[i * 32.., ..] -> c\nbarrier\ncopy c -> D[i * 32.., p]",
            // Written in parts, by other threads than those that read.
            "let s = smem f32[32, 128]\ncopy C[i * 32.., ..] -> c\ncopy c -> s
             for k in 0..128 step 32 {\ncopy s[0.., k..+32] -> D[i * 32.., k..]\n}",
        ] {
            assert_eq!(allowed_in_rows(body), ["C"], "{body}");
        }
    }

    #[test]
    fn rows_of_others_and_what_is_not_behind_a_barrier_are_not_promised() {
        for body in [
            "copy C[i * 32.., p] -> c\ncopy c -> D[i * 32.., ..]",
            "copy C[i * 32.., ..] -> c\nbarrier\ncopy c -> D[i * 32.., p]\ncopy C[i * 32.., p] -> c\ncopy c -> D[i * 32.., ..]",
            "copy C[p, 0..] -> c\nbarrier\ncopy c -> D[i * 32.., ..]",
            "copy C[i * 32.., p] -> c\nbarrier\ncopy c -> D[p, 0..]",
            "copy C[i * 32 + 1.., p] -> c\nbarrier\ncopy c -> D[i * 32.., ..]",
            "copy C[i * 16.., p] -> c\nbarrier\ncopy c -> D[i * 16.., ..]",
            // The next iteration reads what this one has written.
            "for t in 0..2 {\ncopy C[i * 32.., p] -> c\nbarrier\ncopy c -> D[i * 32.., ..]\n}",
            "if P[0, 0] > 0 {\ncopy C[i * 32.., p] -> c\nbarrier\n}\ncopy c -> D[i * 32.., ..]",
        ] {
            assert_eq!(allowed_in_rows(body), [""; 0], "{body}");
        }
    }

    /// Blocks that take tiles in the order of strips, as persistent grids do; `what` of this text is replaced.
    fn allowed_in_strips([what, by]: [&str; 2]) -> Vec<String> {
        let source =
            "kernel k(C: gmem f32[M, N], D: gmem f32[M, N]) grid (cta: min(ceildiv(M, 32) * ceildiv(N, 32), 132)) {
            var x = reg f32[32, 32] = 1.0
            for tile in cta..ceildiv(M, 32) * ceildiv(N, 32) step 132 {
                let strip = tile / (ceildiv(M, 32) * 8)
                let place = tile % (ceildiv(M, 32) * 8)
                let columns = max(1, min(8, ceildiv(N, 32) - strip * 8))
                let i = min(place / columns, ceildiv(M, 32) - 1)
                let j = min(strip * 8 + place % columns, ceildiv(N, 32) - 1)
                copy x + C[i * 32.., j * 32..] -> D[i * 32.., j * 32..]
            }
        }";
        assert!(source.contains(what), "{what}");
        let source = source.replace(what, by);
        let compiled = crate::compile(&source, &CompileOptions::default()).unwrap_or_else(|d| panic!("{d}"));
        let contract = compiled.contracts().remove(0);
        contract.param("D").and_then(|p| p.kind.tensor()).map_or_else(Vec::new, |t| t.may_alias.clone())
    }

    #[test]
    fn tiles_of_a_persistent_grid_may_share_memory() {
        assert_eq!(allowed_in_strips(["8", "8"]), ["C"]);
        assert_eq!(allowed_in_strips(["8", "1"]), ["C"]);
        for change in [
            // A tile for two blocks, tiles past the last, and strips that overlap.
            ["step 132", "step 131"],
            ["ceildiv(N, 32) step", "(ceildiv(N, 32) + 1) step"],
            ["tile / (ceildiv(M, 32) * 8)", "tile / (ceildiv(M, 32) * 4)"],
            ["tile % (ceildiv(M, 32) * 8)", "tile % (ceildiv(M, 32) * 4)"],
            ["min(strip * 8 +", "min(strip * 4 +"],
            ["max(1, min(8,", "max(1, min(4,"],
            ["place / columns", "tile / columns"],
            ["i * 32.., j * 32..] ->", "i * 32.., j * 32 + 1..] ->"],
            ["-> D[i * 32.., j * 32..]", "-> D[i * 32.., j * 16..]"],
        ] {
            assert_eq!(allowed_in_strips(change), [""; 0], "{change:?}");
        }
    }

    #[test]
    fn the_matrix_that_an_epilogue_of_wgmma_adds_may_be_the_output() {
        let source = "kernel k(A: gmem f16[M, K] multiple 8, B: gmem f16[K, N] multiple 8, D: gmem f32[M, N] multiple 4, C: gmem f32[M, N] multiple 4)
            grid (i: ceildiv(M, 64), j: ceildiv(N, 64))
        {
            let a = smem f16[64, 64]
            let b = smem f16[64, 64]
            var acc = reg f32[64, 64] = 0.0
            for k in 0..K step 64 {
                copy A[i * 64.., k..] -> a
                copy B[k.., j * 64..] -> b
                acc = mma(a, b, acc)
            }
            copy acc + D[i * 64.., j * 64..] -> C[i * 64.., j * 64..]
        }";
        let target = tilec_ir::target::Target::from_name("sm_90a").expect("it is a target");
        let options = CompileOptions { target, ..CompileOptions::default() };
        let compiled = crate::compile(source, &options).unwrap_or_else(|d| panic!("{d}"));
        assert!(compiled.ptx.contains("wgmma"));
        let contract = compiled.contracts().remove(0);
        assert_eq!(contract.param("C").and_then(|p| p.kind.tensor()).expect("the output").may_alias, ["D"]);
    }

    #[test]
    fn barriers_that_wait_for_counted_bytes_alone_order_no_reads() {
        let source = include_str!("../../../examples/cross_entropy.tile");
        for (in_place, allowed) in [("0", vec![]), ("1", vec!["X".to_owned()])] {
            let define = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            let defines =
                vec![define("BN", "32768"), define("T", "bf16"), define("ALIGN", "8"), define("IN_PLACE", in_place)];
            let target = tilec_ir::target::Target::from_name("sm_90a").expect("it is a target");
            let options = CompileOptions { target, defines, ..CompileOptions::default() };
            let compiled = crate::compile(source, &options).unwrap_or_else(|d| panic!("{d}"));
            let contract = compiled.contracts().remove(0);
            let output = contract.param("dX").and_then(|p| p.kind.tensor()).expect("the gradient");
            assert_eq!(output.may_alias, allowed, "{in_place}");
        }
    }

    #[test]
    fn what_a_name_stands_for_is_read() {
        let c = contract(&format!("let y = x + C{AT}\ncopy y -> C{AT}"), ")");
        assert_eq!(c.param("C").and_then(|p| p.kind.tensor()).map(|t| t.access), Some(Access::ReadWrite));
    }
}
