//! The first PTX version and the first target of instructions, by their words.

use crate::parse::error::ParseError;
use crate::parse::lex::Pos;

/// The version and target that an instruction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// Major and minor.
    pub(crate) version: (u32, u32),
    /// 80 for `sm_80`.
    pub(crate) target: u32,
    /// This target and no later one: `sm_90a`.
    pub(crate) specific: bool,
}

impl Need {
    /// The larger of both, part by part.
    pub(crate) fn and(self, other: Need) -> Need {
        Need {
            version: self.version.max(other.version),
            target: self.target.max(other.target),
            specific: self.specific || other.specific,
        }
    }

    /// An error unless a module of this version and target has the instruction.
    pub(crate) fn check(self, need: Need, op: &str, words: &[&str], pos: Pos) -> Result<(), ParseError> {
        let mut missing = Vec::new();
        if self.target < need.target || (need.specific && !(self.specific && self.target == need.target)) {
            let suffix = |need: Need| if need.specific { "a" } else { "" };
            missing.push(format!("sm_{}{} (this is sm_{}{})", need.target, suffix(need), self.target, suffix(self)));
        }
        if self.version < need.version {
            let ((major, minor), (have, rest)) = (need.version, self.version);
            missing.push(format!("PTX {major}.{minor} (this is {have}.{rest})"));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let shown = words.iter().map(|w| format!(".{w}")).collect::<String>();
        Err(pos.error(format!("`{op}{shown}` needs {}", missing.join(" and "))))
    }
}

/// The last minor version of each major one, from 1 on, as far as ptxas 13.5 knows them.
const LAST_MINORS: [u32; 9] = [5, 3, 2, 3, 1, 5, 8, 8, 5];

/// The newest version of PTX that is known.
pub(crate) const NEWEST: (u32, u32) = (LAST_MINORS.len() as u32, LAST_MINORS[LAST_MINORS.len() - 1]);

/// Whether there is such a version of PTX.
pub(crate) fn exists((major, minor): (u32, u32)) -> bool {
    let last = (major as usize).checked_sub(1).and_then(|at| LAST_MINORS.get(at));
    last.is_some_and(|last| minor <= *last)
}

/// The minimum of every module for these targets.
pub(crate) const BASE: Need = Need { version: (6, 0), target: 70, specific: false };

/// Opcode, the words that call for it (bars between alternatives; `<f16`: the last word, the type of the sources), version and
/// target; `scripts/check_sim_table.sh` has ptxas
/// confirm them.
#[rustfmt::skip]
const NEEDS: &[(&str, &str, (u32, u32), u32)] = &[
    ("abs", "f16|f16x2", (6, 5), 70),
    ("abs", "bf16|bf16x2", (7, 0), 80),
    ("activemask", "", (6, 2), 70),
    ("add", "bf16|bf16x2", (7, 8), 90),
    ("add", "s16x2|u16x2", (8, 0), 90),
    ("applypriority", "", (7, 4), 80),
    ("atom", "f16x2", (6, 2), 70),
    ("atom", "b16|f16", (6, 3), 70),
    ("atom", "shared::cta", (7, 8), 70),
    ("atom", "L2::cache_hint", (7, 4), 80),
    ("atom", "bf16|bf16x2|cluster", (7, 8), 90),
    ("atom", "shared::cluster", (7, 8), 90),
    ("atom", "v2|v4|v8", (8, 1), 90),
    ("bar", "cta", (7, 8), 70),
    ("barrier", "cta", (7, 8), 70),
    ("barrier", "cluster", (7, 8), 90),
    ("barrier", "cluster acquire|relaxed|release", (8, 0), 90),
    ("bmsk", "", (7, 6), 70),
    ("cp", "", (7, 0), 80),
    ("cp", "L2::128B|L2::256B|L2::64B|L2::cache_hint", (7, 4), 80),
    ("cp", "arrive shared::cta", (7, 8), 80),
    ("cp", "bulk", (8, 0), 90),
    ("cp", "bulk global mbarrier::complete_tx::bytes shared::cta", (8, 6), 90),
    ("createpolicy", "", (7, 4), 80),
    ("cvt", "pack", (6, 5), 72),
    ("cvt", "s2|s4|u2|u4", (6, 5), 75),
    ("cvt", "bf16|bf16x2|f16x2|relu|rna|tf32", (7, 0), 80),
    ("cvt", "satfinite", (8, 1), 80),
    ("cvt", "e4m3x2|e5m2x2", (8, 1), 89),
    ("cvt", "relu|rn|rz tf32", (7, 8), 90),
    ("cvt", "bf16 f16|f64|s16|s32|s64|s8|u16|u32|u64|u8", (7, 8), 90),
    ("cvt", "bf16 rmi|rni|rpi|rzi", (7, 8), 90),
    ("cvta", "param", (7, 7), 70),
    ("cvta", "param::entry", (8, 3), 70),
    ("cvta", "shared::cta", (7, 8), 70),
    ("cvta", "shared::cluster", (7, 8), 90),
    ("discard", "", (7, 4), 80),
    ("elect", "", (8, 0), 90),
    ("ex2", "f16|f16x2", (7, 0), 75),
    ("ex2", "bf16|bf16x2", (7, 8), 90),
    ("fence", "proxy", (7, 5), 70),
    ("fence", "cluster", (7, 8), 90),
    ("fence", "async|mbarrier_init", (8, 0), 90),
    ("fence", "tensormap::generic", (8, 3), 90),
    ("fence", "sync_restrict::shared::cluster|sync_restrict::shared::cta", (8, 6), 90),
    ("fma", "bf16|bf16x2|relu", (7, 0), 80),
    ("fma", "oob", (8, 1), 90),
    ("getctarank", "", (7, 8), 90),
    ("griddepcontrol", "", (7, 8), 90),
    ("isspacep", "param", (7, 7), 70),
    ("isspacep", "shared::cta", (7, 8), 70),
    ("isspacep", "param::entry", (8, 3), 70),
    ("isspacep", "shared::cluster", (7, 8), 90),
    ("ld", "L1::evict_first|L1::evict_last|L1::evict_normal|L1::evict_unchanged|L1::no_allocate", (7, 4), 70),
    ("ld", "shared::cta", (7, 8), 70),
    ("ld", "mmio", (8, 2), 70),
    ("ld", "param::entry|param::func", (8, 3), 70),
    ("ld", "L2::128B|L2::64B", (7, 4), 75),
    ("ld", "L2::256B|L2::cache_hint", (7, 4), 80),
    ("ld", "cluster", (7, 8), 90),
    ("ld", "shared::cluster", (7, 8), 90),
    ("ldmatrix", "", (6, 5), 75),
    ("ldmatrix", "shared::cta", (7, 8), 75),
    ("lop3", "and|or", (8, 2), 70),
    ("mapa", "", (7, 8), 90),
    ("max", "NaN|bf16|bf16x2|f16|f16x2", (7, 0), 80),
    ("max", "abs", (7, 2), 86),
    ("max", "relu|s16x2|u16x2", (8, 0), 90),
    ("mbarrier", "", (7, 0), 80),
    ("mbarrier", "parity", (7, 1), 80),
    ("mbarrier", "shared::cta", (7, 8), 80),
    ("mbarrier", "acquire|cta|release", (8, 0), 80),
    ("mbarrier", "try_wait", (7, 8), 90),
    ("mbarrier", "cluster|complete_tx|expect_tx|relaxed", (8, 0), 90),
    ("mbarrier", "arrive|arrive_drop|parity relaxed", (8, 6), 90),
    ("mbarrier", "relaxed test_wait|try_wait", (8, 6), 90),
    ("membar", "proxy", (7, 5), 70),
    ("min", "NaN|bf16|bf16x2|f16|f16x2", (7, 0), 80),
    ("min", "abs", (7, 2), 86),
    ("min", "relu|s16x2|u16x2", (8, 0), 90),
    ("mma", "", (6, 4), 70),
    ("mma", "m16n8k8|m8n8k16|m8n8k32", (6, 5), 75),
    ("mma", "b1", (7, 0), 75),
    ("mma", "bf16|f64|m16n8k128|m16n8k16|m16n8k256|m16n8k32|m16n8k4|m16n8k64|tf32", (7, 0), 80),
    ("mma", "and", (7, 1), 80),
    ("mma", "e4m3|e5m2", (8, 4), 89),
    ("mma", "e4m3|e5m2 f16", (8, 7), 89),
    ("mma", "e4m3|e5m2 m16n8k16", (8, 7), 89),
    ("mma", "f64 m16n8k16|m16n8k4|m16n8k8", (7, 8), 90),
    ("movmatrix", "", (7, 8), 75),
    ("mul", "bf16|bf16x2", (7, 8), 90),
    ("nanosleep", "", (6, 2), 70),
    ("neg", "bf16|bf16x2", (7, 0), 80),
    ("prefetch", "L2::evict_last|L2::evict_normal", (7, 4), 80),
    ("prefetch", "tensormap", (8, 0), 90),
    ("red", "f16x2", (6, 2), 70),
    ("red", "f16", (6, 3), 70),
    ("red", "async", (8, 1), 90),
    ("red", "shared::cta", (7, 8), 70),
    ("red", "L2::cache_hint", (7, 4), 80),
    ("red", "bf16|bf16x2|cluster", (7, 8), 90),
    ("red", "shared::cluster", (7, 8), 90),
    ("red", "v2|v4|v8", (8, 1), 90),
    ("redux", "", (7, 0), 80),
    ("set", "<f16 s16|s32|u16|u32", (6, 5), 70),
    ("set", "<f16x2 s32|u32", (6, 5), 70),
    ("set", "bf16|bf16x2", (7, 8), 90),
    ("setp", "bf16|bf16x2", (7, 8), 90),
    ("setmaxnreg", "", (8, 0), 90),
    ("st", "L1::evict_first|L1::evict_last|L1::evict_normal|L1::evict_unchanged|L1::no_allocate", (7, 4), 70),
    ("st", "async", (8, 1), 90),
    ("st", "shared::cta", (7, 8), 70),
    ("st", "mmio", (8, 2), 70),
    ("st", "param::func", (8, 3), 70),
    ("st", "L2::cache_hint", (7, 4), 80),
    ("st", "cluster", (7, 8), 90),
    ("st", "shared::cluster", (7, 8), 90),
    ("stmatrix", "", (7, 8), 90),
    ("sub", "bf16|bf16x2", (7, 8), 90),
    ("szext", "", (7, 6), 70),
    ("tanh", "", (7, 0), 75),
    ("tanh", "bf16|bf16x2", (7, 8), 90),
    ("wgmma", "", (8, 0), 90),
    ("wgmma", "s8 u8", (8, 4), 90),
    ("wmma", "", (6, 3), 70),
    ("wmma", "shared::cta", (7, 8), 70),
    ("wmma", "s32|s8|u8", (6, 3), 72),
    ("wmma", "m8n8k128|m8n8k32", (6, 3), 75),
    ("wmma", "bf16|f64|m16n16k8", (7, 0), 80),
    ("wmma", "and", (7, 1), 80),
];

/// Instructions that later targets got in an earlier PTX version: the version from this target on, whatever else their
/// words need.
const SOONER: &[(&str, &str, (u32, u32), u32)] = &[("cvt", "e4m3x2|e5m2x2", (7, 8), 90)];

/// Opcodes of one architecture alone.
const SPECIFIC: &[&str] = &["setmaxnreg", "wgmma"];

/// The version and target that an instruction needs in a module for this target: the maximum over the rows whose words
/// it has.
pub(crate) fn of(op: &str, words: &[&str], target: u32) -> Need {
    let has = |slot: &str| match slot.strip_prefix('<') {
        Some(word) => words.last() == Some(&word),
        None => slot.split('|').any(|word| words.contains(&word)),
    };
    let fits = |(o, slots, ..): &&(&str, &str, (u32, u32), u32)| *o == op && slots.split_ascii_whitespace().all(has);
    if let Some((_, _, version, first)) = SOONER.iter().filter(fits).find(|(.., first)| *first <= target) {
        return BASE.and(Need { version: *version, target: *first, specific: false });
    }
    let rows = NEEDS.iter().filter(fits);
    let base = Need { specific: SPECIFIC.contains(&op), ..BASE };
    rows.fold(base, |need, (_, _, version, target)| {
        need.and(Need { version: *version, target: *target, specific: false })
    })
}
