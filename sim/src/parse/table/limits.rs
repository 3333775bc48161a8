//! Instructions that the assembler accepts and the simulator does not execute, by their first words, with the reason
//! for the message.

/// Opcode, a word that it has, why it is not executed.
const INSTRUCTIONS: &[(&str, Option<&str>, &str)] = &[
    ("alloca", None, GROWING),
    ("clusterlaunchcontrol", None, "instructions of sm_100 are not executed"),
    ("cp", Some("im2col"), "of the im2col mode of TMA copies loads are executed alone, and prefetches are not"),
    ("cp", Some("im2col_no_offs"), "the im2col mode of TMA copies is not executed: copy tiles"),
    ("istypep", None, TEXTURES),
    ("mma", Some("sp"), SPARSE),
    ("mma", Some("sp::ordered_metadata"), SPARSE),
    ("multimem", None, "there is one device"),
    ("stackrestore", None, GROWING),
    ("stacksave", None, GROWING),
    ("suld", None, TEXTURES),
    ("suq", None, TEXTURES),
    ("sured", None, TEXTURES),
    ("sust", None, TEXTURES),
    ("tcgen05", None, "instructions of sm_100 are not executed"),
    ("tensormap", None, "maps of tensors cannot be changed by a kernel: pass one for each tensor"),
    ("tex", None, TEXTURES),
    ("tld4", None, TEXTURES),
    ("txq", None, TEXTURES),
    ("wgmma", Some("sp"), SPARSE),
    ("wgmma", Some("b1"), "asynchronous products of single bits are not executed"),
];

const GROWING: &str = "a stack that grows while the kernel runs is not executed";
const SPARSE: &str = "products of sparse matrices are not executed";
const TEXTURES: &str = "there are no textures, samplers and surfaces";

/// Why an instruction with these words is not executed, if the assembler knows it.
pub(crate) fn of(op: &str, words: &[&str]) -> Option<&'static str> {
    if words.contains(&"b128") && matches!(op, "mov" | "ld" | "st" | "atom") {
        return Some("128-bit registers are not executed");
    }
    let fits = |row: &&(&str, Option<&str>, &str)| row.0 == op && row.1.is_none_or(|word| words.contains(&word));
    INSTRUCTIONS.iter().find(fits).map(|row| row.2)
}

/// Instructions that ptxas 12.9 takes for targets whose machine does not have them: the first target that does, and what comes of it.
pub(crate) fn miscompiled(op: &str, words: &[&str]) -> Option<(u32, &'static str)> {
    let has = |word: &str| words.contains(&word);
    match op {
        // `F2F.FTZ.F32.F16`; ptxas 13 refuses it.
        "cvt" if has("ftz") && words.ends_with(&["f32", "bf16"]) => {
            Some((90, "on earlier ones ptxas reads the number as f16"))
        }
        // The result is a register that nothing wrote, in 13 as well.
        "cvt" if has("satfinite") && words.ends_with(&["f16", "f32"]) => {
            Some((80, "on earlier ones the result is undefined"))
        }
        _ => None,
    }
}

/// Why a special register cannot be read, if there is one of this name.
pub(crate) fn of_register(name: &str) -> Option<&'static str> {
    let numbered = |start: &str, end: &str, count: u32| {
        let number = name.strip_prefix(start).and_then(|n| n.strip_suffix(end));
        number.is_some_and(|n| (n == "0" || !n.starts_with('0')) && n.parse().is_ok_and(|n: u32| n < count))
    };
    if numbered("%envreg", "", 32) {
        return Some("the driver alone knows what it holds");
    }
    if numbered("%pm", "", 8) || numbered("%pm", "_64", 8) {
        return Some("there are no performance counters to be read");
    }
    match name {
        "%current_graph_exec" => Some("a launch is not part of a graph"),
        "%reserved_smem_offset_begin"
        | "%reserved_smem_offset_end"
        | "%reserved_smem_offset_cap"
        | "%reserved_smem_offset_0"
        | "%reserved_smem_offset_1" => Some("no shared memory is reserved"),
        _ => None,
    }
}
