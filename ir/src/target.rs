//! Targets: properties of a GPU generation for passes and the emitter, a row each.
//!
//! Limits are from the table "Compute Capabilities" of the CUDA programming guide, and from the release notes of the
//! PTX ISA (first `.version`). The unit of shared memory is the allocation granularity of `cuda_occupancy.h` (CUDA
//! toolkit).

use crate::bits::Bits;
pub use tilec_core::hardware::MAX_TENSOR_RANK;

macro_rules! targets {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal cc $cc:literal ptx ($maj:literal, $min:literal)
        smem_optin $optin:literal smem_sm $sm:literal smem_unit $unit:literal ctas $ctas:literal warps $warps:literal;)+) => {
        /// A compilation target.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Target { $($(#[doc = $doc])+ $variant,)+ }

        impl Target {
            /// Every target, oldest first.
            pub const ALL: &'static [Target] = &[$(Target::$variant,)+];

            /// The name of the command line and of the PTX `.target` directive.
            pub fn name(self) -> &'static str { match self { $(Target::$variant => $name,)+ } }

            /// Compute capability times ten.
            pub fn cc(self) -> u32 { match self { $(Target::$variant => $cc,)+ } }

            /// The first PTX version that supports the target.
            pub fn min_ptx(self) -> (u8, u8) { match self { $(Target::$variant => ($maj, $min),)+ } }

            /// Shared memory a block may have (with opt-in), in bytes.
            pub fn smem_per_block(self) -> u64 { match self { $(Target::$variant => $optin * 1024,)+ } }

            /// Shared memory of a multiprocessor, in bytes.
            pub fn smem_per_sm(self) -> u64 { match self { $(Target::$variant => $sm * 1024,)+ } }

            /// Bytes in which a multiprocessor's shared memory is allotted.
            pub fn smem_granularity(self) -> u64 { match self { $(Target::$variant => $unit,)+ } }

            /// Blocks that can be resident on a multiprocessor.
            pub fn ctas_per_sm(self) -> u32 { match self { $(Target::$variant => $ctas,)+ } }

            /// Warps that can be resident on a multiprocessor.
            pub fn warps_per_sm(self) -> u32 { match self { $(Target::$variant => $warps,)+ } }

            /// One line for people.
            pub fn doc(self) -> &'static str { match self { $(Target::$variant => concat!($($doc),+),)+ } }
        }
    };
}

targets! {
    /// Volta (V100): tensor cores through mma.m8n8k4
    Sm70 "sm_70" cc 70 ptx (6, 0) smem_optin 96 smem_sm 96 smem_unit 256 ctas 32 warps 64;
    /// Turing (T4, RTX 20): ldmatrix, mma.m16n8k8
    Sm75 "sm_75" cc 75 ptx (6, 3) smem_optin 64 smem_sm 64 smem_unit 256 ctas 16 warps 32;
    /// Ampere (A100): cp.async, mma.m16n8k16
    Sm80 "sm_80" cc 80 ptx (7, 0) smem_optin 163 smem_sm 164 smem_unit 128 ctas 32 warps 64;
    /// Ampere (RTX 30, A10)
    Sm86 "sm_86" cc 86 ptx (7, 1) smem_optin 99 smem_sm 100 smem_unit 128 ctas 16 warps 48;
    /// Ada (RTX 40, L4): fp8 mma
    Sm89 "sm_89" cc 89 ptx (7, 8) smem_optin 99 smem_sm 100 smem_unit 128 ctas 24 warps 48;
    /// Hopper (H100, H200), portable subset
    Sm90 "sm_90" cc 90 ptx (7, 8) smem_optin 227 smem_sm 228 smem_unit 128 ctas 32 warps 64;
    /// Hopper (H100, H200): TMA, wgmma, warp roles
    Sm90a "sm_90a" cc 90 ptx (8, 0) smem_optin 227 smem_sm 228 smem_unit 128 ctas 32 warps 64;
}

/// Registers of a multiprocessor, and of a block, on every target.
pub const REGISTERS_PER_SM: u32 = 65_536;
/// Registers a thread may use.
pub const REGISTERS_PER_THREAD: u32 = 255;
/// Bytes that one access of an asynchronous copy may have (`cp.async`, PTX ISA 9.7.9.25).
pub const ASYNCHRONOUS_COPY_BYTES: [u32; 3] = [4, 8, 16];
/// Threads of a warp.
pub const WARP: u32 = 32;
/// Schedulers of a multiprocessor, among which its warps are distributed, on every target (compute capability 7.0 to 9.0).
pub const SCHEDULERS: u64 = 4;
/// Bytes that the shared memory of a multiprocessor moves per clock: 32 banks of 4 bytes, on every target.
pub const SHARED_BYTES_PER_CLOCK: u64 = 128;
/// Clocks in which a scheduler's 4 special function units execute an instruction of a warp, on every target (16 results per
/// clock and multiprocessor, CUDA C++ Programming Guide, arithmetic instructions).
pub const SPECIAL_CLOCKS: u64 = 8;
/// Bytes of a sector, the unit in which global memory is read and written, on every target.
pub const SECTOR_BYTES: u32 = 32;
/// Threads a block may have.
pub const MAX_THREADS: u32 = 1024;
/// Warps of a warpgroup, the unit that multiplies out of shared memory and changes its registers (PTX ISA 9.7.15).
pub const WARPGROUP: u32 = 4;

/// Whether an asynchronous copy has accesses of so many elements.
pub fn is_asynchronous_access(elem: Bits, count: u32) -> bool {
    ASYNCHRONOUS_COPY_BYTES.iter().any(|&bytes| count * elem.get() == bytes * 8)
}

/// Whether accesses of aligned words can be shifted by elements of this size (`unaligned`): by whole bytes, inside of a register.
pub fn is_shifted(elem: Bits) -> bool {
    elem.whole_bytes().is_some_and(|bytes| bytes <= 4)
}

/// Registers with which each thread of a block starts where `blocks` blocks of `threads` share a multiprocessor: equal shares, in
/// steps of 8.
pub fn register_share(threads: u32, blocks: u32) -> u32 {
    REGISTERS_PER_SM / threads.saturating_mul(blocks).max(1) / 8 * 8
}

impl Target {
    /// Bytes of a multiprocessor's shared memory that the system takes for each block: 1 KiB from sm_80 on. It is what a block
    /// cannot have of all (CUDA programming guide, "Shared Memory" of compute capability 8.x).
    pub fn smem_reserved(self) -> u64 {
        self.smem_per_sm() - self.smem_per_block()
    }

    /// Bytes of a multiprocessor's shared memory that a block with so many takes.
    pub fn smem_taken(self, bytes: u64) -> u64 {
        (bytes + self.smem_reserved()).next_multiple_of(self.smem_granularity())
    }

    /// Bytes of shared memory that each of so many blocks on a multiprocessor may have: the most of which all have room.
    pub fn smem_of_each(self, blocks: u64) -> u64 {
        let share = self.smem_per_sm() / blocks.max(1) / self.smem_granularity() * self.smem_granularity();
        self.smem_per_block().min(share.saturating_sub(self.smem_reserved()))
    }

    /// The target called `name`.
    pub fn from_name(name: &str) -> Option<Target> {
        Target::ALL.iter().copied().find(|t| t.name() == name)
    }

    /// Whether the target has everything that `first` introduced: what is of one architecture alone no other has.
    pub fn at_least(self, first: Target) -> bool {
        match first {
            Target::Sm90a => self == first,
            _ => self.cc() >= first.cc(),
        }
    }

    /// Whether a GPU of compute capability `cc` (times ten) runs PTX of this target. PTX of an architecture alone, such as
    /// `sm_90a`, runs on no other; else on all later ones (PTX ISA 11.1.2, `.target`).
    pub fn runs_on(self, cc: u32) -> bool {
        if self == Target::Sm90a { cc == self.cc() } else { cc >= self.cc() }
    }

    /// The newest target whose PTX a GPU of compute capability `cc` (times ten) runs.
    pub fn newest_on(cc: u32) -> Option<Target> {
        Target::ALL.iter().rev().copied().find(|target| target.runs_on(cc))
    }

    /// Whether it copies boxes of tensors by descriptors, and multiplies out of shared memory (`wgmma`, PTX ISA 9.7.15).
    pub fn has_tensor_copies(self) -> bool {
        self.at_least(Target::Sm90a)
    }

    /// Whether blocks of a cluster reach one another's shared memory (PTX ISA 9.7.13.3).
    pub fn has_clusters(self) -> bool {
        self.at_least(Target::Sm90)
    }

    /// Whether a grid can begin while the one in front of it ends (`griddepcontrol`, PTX ISA 9.7.13.13).
    pub fn has_dependent_launches(self) -> bool {
        self.at_least(Target::Sm90)
    }

    /// Whether it has an instruction for the hyperbolic tangent (`tanh.approx`, PTX ISA 9.7.3.22).
    pub fn has_tanh(self) -> bool {
        self.at_least(Target::Sm75)
    }

    /// Whether it reads shared memory as 8x8 matrices (`ldmatrix`, PTX ISA 9.7.14.5.15).
    pub fn has_matrix_loads(self) -> bool {
        self.at_least(Target::Sm75)
    }

    /// Whether it writes 8x8 matrices to shared memory (`stmatrix`, PTX ISA 9.7.14.5.16).
    pub fn has_matrix_stores(self) -> bool {
        self.at_least(Target::Sm90)
    }

    /// Whether it converts two f32 to a pair of 16-bit floats (`cvt.rn.f16x2.f32`, PTX ISA 9.7.9.21).
    pub fn has_pair_conversions(self) -> bool {
        self.at_least(Target::Sm80)
    }

    /// Whether it has minima and maxima of pairs of 16-bit floats (`max.bf16x2`, PTX ISA 9.7.4.8).
    pub fn has_pair_extremes(self) -> bool {
        self.at_least(Target::Sm80)
    }

    /// Whether it converts f32 to bf16 in an instruction (`cvt.rn.bf16.f32`, PTX ISA 9.7.9.21).
    pub fn has_bf16_conversions(self) -> bool {
        self.at_least(Target::Sm80)
    }

    /// Whether it converts 8-bit floats (`cvt` with e4m3x2 and e5m2x2, PTX ISA 9.7.9.21).
    pub fn has_fp8_conversions(self) -> bool {
        self.at_least(Target::Sm89)
    }

    /// Whether it copies from global to shared memory without registers (`cp.async`, PTX ISA 9.7.9.25).
    pub fn has_asynchronous_copies(self) -> bool {
        self.at_least(Target::Sm80)
    }

    /// Whether m8n8k4 runs on the tensor cores; later chips emulate it with scalar code (ptx.md section 1).
    pub fn has_native_m8n8k4(self) -> bool {
        self.cc() < 80
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    /// PTX of sm_90a runs on 9.0 alone, and other PTX on all later GPUs.
    #[test]
    fn the_newest_target_of_a_gpu() {
        let of = |cc| Target::newest_on(cc).map(Target::name);
        assert_eq!([None, Some("sm_70"), Some("sm_75")], [of(60), of(72), of(75)]);
        assert_eq!([Some("sm_86"), Some("sm_89"), Some("sm_90a"), Some("sm_90")], [of(87), of(89), of(90), of(100)]);
    }

    /// Blocks with the bytes of `smem_of_each` fit, and one more byte does not.
    #[test]
    fn shares_of_shared_memory_are_the_largest() {
        for &target in Target::ALL {
            for blocks in 1..=u64::from(target.ctas_per_sm()) {
                let each = target.smem_of_each(blocks);
                let room = |bytes| target.smem_per_sm() / target.smem_taken(bytes);
                assert!(room(each) >= blocks, "{} {blocks}", target.name());
                assert!(each == target.smem_per_block() || room(each + 1) < blocks, "{} {blocks}", target.name());
            }
        }
        assert_eq!((Target::Sm75.smem_taken(257), Target::Sm80.smem_taken(1)), (512, 1152));
    }
}
