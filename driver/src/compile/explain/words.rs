//! What the words of the language mean, for `tilec explain`.

use tilec_ir::atoms::AtomRow;
use tilec_ir::types::{Elem, ElemClass};

/// A word, how it is written, and what it means.
pub(super) const ALL: &[(&str, &str, &str)] = &[
    (
        "kernel",
        "kernel NAME<PARAMETERS>(TENSORS, SCALARS) where .. grid .. schedule { .. } { .. }",
        "A program for the blocks of a grid, compiled to one PTX entry.",
    ),
    (
        "gmem",
        "A: gmem f16[M, K]",
        "A tensor in global memory, a parameter of the kernel. Names in its shape that are no compile-time parameters are sizes.",
    ),
    (
        "dsmem",
        "kernel f(.., sums: dsmem f32[1, 64, 64])",
        "Tiles in the shared memory of the last block of each cluster, which the others pass to it: `copy acc -> sums[0, 0.., 0..] fragment`, `signal sums[0]`, `await sums[0]`.",
    ),
    ("smem", "let a = smem f16[64, 32]", "A buffer in shared memory, one for the block."),
    (
        "const",
        "kernel f(.., codes: const f16[4] = (0.0, 0.5, 1.0, 2.0))",
        "A table in constant memory, which the text holds; `codes[x]` reads the elements that a tile or a scalar `x` names.",
    ),
    (
        "reg",
        "var acc = reg f32[64, 64] = 0.0",
        "A tile in registers, spread over the threads of the block. Without a first value it holds nothing yet.",
    ),
    (
        "channel",
        "let ring = channel f16[64, 32] slots 3",
        "A ring of buffers in shared memory between a producer and a consumer.",
    ),
    (
        "let",
        "let x = e",
        "Names a value that does not change, or a window of memory, which is read where the name is used.",
    ),
    ("var", "var x = reg f32[64] = 0.0", "Declares a register tile that assignments and copies change."),
    (
        "copy",
        "copy SOURCE -> WINDOW",
        "Moves elements between memories, converting them. The source is a window, a tile or an expression.",
    ),
    (
        "for",
        "for k in 0..K step 32 { .. }",
        "Runs its body for k = 0, 32, .. below K; windows of tensors that begin at k end at K (`k..e`: at e, `k..inf`: with the tensor). `unroll` lays the bodies out one after the other.",
    ),
    (
        "while",
        "while c { .. }, for i in a..b while c { .. }",
        "Runs its body as long as the condition holds, which is read in front of each iteration; after a `for`, as long as the range lasts, too. The condition is the same in all threads.",
    ),
    (
        "exchange",
        "copy x -> Y[i..] exchange old y",
        "Stores to memory and returns the previous value, atomically for each element.",
    ),
    (
        "old",
        "copy 1 -> next[0] add old ticket",
        "After `add`, `min`, `max` and `exchange`: the register tile that gets the previous value of memory.",
    ),
    (
        "padded",
        "X: gmem f16[(B, P, Q), (R, S, C)] strides ((xb, xh, xw), (xh, xw, 1)) padded (xh: H behind PH, xw: W behind PW)",
        "Along the stride `xh` the tensor has PH lines of padding, then H lines in memory, then more padding. Elements in the padding read as zero.",
    ),
    ("in", "for k in 0..K { .. }", "Between a loop's variable and its bounds."),
    (
        "if",
        "if beta == 0.0 { .. } else { .. }",
        "Takes one of two branches. The condition is the same in all threads; element by element, use `select`.",
    ),
    ("else", "if c { .. } else { .. }", "The branch that runs if the condition of `if` is false."),
    (
        "role",
        "role producer warps 4 registers 40 { .. }",
        "Statements for separate warps, which run at the same time as the adjacent roles (warp specialisation).",
    ),
    (
        "ordered",
        "ordered { .. }",
        "In a loop whose iterations are distributed over the replicas of a role: statements that run in the order of the iterations.",
    ),
    (
        "barrier",
        "barrier",
        "The threads of the block, or of the role, wait for each other. The compiler places those that are missing.",
    ),
    (
        "await",
        "await acc, 0",
        "Waits until at most so many asynchronous products into a register tile, or TMA stores out of a buffer, are pending.",
    ),
    (
        "signal",
        "signal ready[cta]",
        "Sets a signal when all threads of the block, or of the role, have arrived. After `await ready[i]`, another block sees all that they have written.",
    ),
    ("acquire", "acquire ring", "The producer takes the next slot of a channel, `ring.put`, to fill it."),
    ("publish", "publish ring", "The producer hands the slot that it filled to the consumer."),
    (
        "wait",
        "wait ring pending 1",
        "The consumer waits for the next slot, `ring.get`. `pending n`: the last n groups of asynchronous copies may still be in flight.",
    ),
    ("release", "release ring", "The consumer gives the slot that it read back to the producer."),
    (
        "vec",
        "copy A[i.., k..] -> a vec 8",
        "Elements for each access to memory. A width that cannot be proved is an error that names the missing fact.",
    ),
    (
        "unaligned",
        "copy A[i.., k..] -> a vec 8 unaligned 1",
        "Accesses of 16 bytes are aligned to only so many elements: two aligned words are loaded and shifted.",
    ),
    (
        "tma",
        "copy A[i.., k..] -> ring.put tma",
        "TMA copies a box of a tensor into a whole slot of a channel, or a whole buffer to a tensor (sm_90a).",
    ),
    (
        "multicast",
        "copy A[i / 2 * 64.., k..] -> ring.put tma multicast",
        "All blocks of a cluster load the same window: each loads a part, and the hardware writes it to all of them.",
    ),
    (
        "fragment",
        "copy acc -> sums[cta, 0.., 0..] fragment",
        "Scratch memory has the elements in the order in which threads hold them, so that accesses have 16 bytes.",
    ),
    (
        "prefetch",
        "copy A[i.., k + 64..] -> r prefetch",
        "Loads a window into the L2 cache. The registers do not change.",
    ),
    (
        "threads",
        "copy A[..] -> a threads LAYOUT;  schedule { threads 128 }",
        "Which thread moves which element of a copy; in a schedule, the threads of a block.",
    ),
    (
        "check",
        "copy A[i.., k..] -> a check (0)",
        "The dimensions whose bounds are tested; `check ()` promises that all of the window is inside.",
    ),
    (
        "apart",
        "copy c_tile -> C[first.., 0..] tma apart",
        "Promises that the launch stores to each of these elements once.",
    ),
    (
        "keep",
        "copy A[i.., k..] -> r check (0) keep",
        "Elements outside the bounds do not change the registers, instead of setting them to zero.",
    ),
    (
        "fill",
        "copy X[i.., j..] -> x fill -inf",
        "Elements outside the bounds read as this number of the tensor's type instead of zero. Threads write it, so such a copy is neither `async` nor `tma`.",
    ),
    (
        "matrix",
        "copy a -> fragment matrix",
        "Reads 8 x 8 matrices of 16-bit elements from shared memory (`ldmatrix`, from sm_75).",
    ),
    (
        "async",
        "copy A[i.., k..] -> ring.put async",
        "A copy into a channel's slot that does not pass through registers (`cp.async`, from sm_80).",
    ),
    (
        "when",
        "copy A[i.., k..] -> a when i < n",
        "If the condition is false, the whole window counts as outside the bounds.",
    ),
    (
        "add",
        "copy x -> C[i..] add",
        "Adds to global memory atomically; `min` and `max` are atomic as well. With `tma` the hardware adds a whole buffer.",
    ),
    ("auto", "kernel f<BM = auto>(..)", "The compiler chooses the value of the parameter by predicting times."),
    (
        "layout",
        "var x = reg f16[32, 64] layout (32,64):(1,32);  LA: layout = row",
        "Which thread holds which element, or its address in shared memory; as a kind of parameter, `row` or `col`.",
    ),
    ("slots", "let ring = channel f16[64, 32] slots 3", "The number of buffers of a channel."),
    (
        "over",
        "let x = smem f32[64, 64] over a, b",
        "Puts a buffer into the memory of other buffers, whose contents are lost.",
    ),
    (
        "multiple",
        "A: gmem f16[M, K] multiple 8",
        "A precondition, checked at launch: the contiguous extent and all other strides are multiples of so many elements, as wide accesses need.",
    ),
    (
        "align",
        "A: gmem f16[M, K] align 32",
        "A precondition, checked at launch: the address of the tensor is a multiple of so many bytes.",
    ),
    (
        "constant",
        "W: gmem f16[K, N] constant",
        "A promise: nobody writes the tensor while the kernel may run. On sm_90a it is loaded before the launches in front have ended.",
    ),
    (
        "strides",
        "A: gmem f16[M, K] strides (lda, 1)",
        "Strides in elements, one for each dimension, instead of packed rows or columns; 0 broadcasts.",
    ),
    (
        "pointers",
        "A: gmem f16[Z, M, N] pointers",
        "The parts along the first dimension have separate addresses, which an array holds.",
    ),
    ("scratch", "sums: gmem f32[n, 64] strides (64, 1) scratch", "Neither input nor result. The host allocates it."),
    ("signals", "ready: gmem u32[n] strides (1) signals", "Words of scratch memory for `signal` and `await`."),
    ("where", "kernel f(..) where K % 8 == 0", "Preconditions over sizes, strides and parameters, checked at launch."),
    (
        "grid",
        "kernel f(..) grid (i: ceildiv(M, BM), j: ceildiv(N, BN))",
        "The blocks that run the kernel, and the names of their indices.",
    ),
    (
        "require",
        "kernel f(..) require no spills, wgmma, registers <= 168",
        "Properties that the compiled code must have, or compiling fails. It does not change the code.",
    ),
    ("sequence", "sequence NAME { first, second }", "Kernels of the file that are launched one after the other."),
    (
        "reduce",
        "let (m, l) = reduce (x, 1.0) along 1 with (m1, l1), (m2, l2) { .. give .. }",
        "Reduces tuples of elements along a dimension, two at a time, by a combination of the program.",
    ),
    (
        "scan",
        "let (g, h) = scan (a, x) along 1 with (a1, h1), (a2, h2) { give a1 * a2, a2 * h1 + h2 }",
        "Scans tuples along a dimension: at each element the combination of all tuples up to it.",
    ),
    (
        "sort",
        "let (v, p) = sort (x, iota(x, 1)) along 1 with (x1, p1: i32), (x2, p2) { give x1 > x2 || x1 == x2 && p1 < p2 }",
        "Sorts the tuples along a dimension: `give` says whether the first of two belongs in front.",
    ),
    ("step", "for k in 0..K step 32 { .. }", "The increment of a loop's variable; 1 if absent."),
    ("unroll", "for i in 0..4 unroll { .. }", "Unrolls the loop completely; the bounds are literals."),
    (
        "recompute",
        "if j < K recompute { .. }",
        "Rematerialisation. A branch computes the values that only it needs; code after a loop (`for .. recompute { .. }`) computes values from before the loop again. So they take no registers in the loop. Chosen if accumulators leave few registers.",
    ),
    (
        "stage",
        "@(stage 2, cycle 5) acc = mma(a.get, b.get, acc)",
        "The pipeline stage of a statement: it runs so many iterations later than those of stage 0.",
    ),
    (
        "cycle",
        "@(stage 2, cycle 5) acc = mma(a.get, b.get, acc)",
        "When a statement is issued in an iteration of a software-pipelined loop: statements run in the order of their cycles.",
    ),
    ("producer", "@(producer) copy A[i * 64.., k..] -> a", "The producer warps run the statement (sm_90a)."),
    (
        "open",
        "@(open) for k in 0..K step 32 { .. }",
        "A software-pipelined loop without a drain. Stages before the last only move tiles; they run on past the end of the range, where they load nothing.",
    ),
    (
        "ragged",
        "@(ragged) for k in 0..K step 32 { .. }",
        "The first tile of the reduction is the one with fewer elements than a step, so that all others are read without checks.",
    ),
    ("warps", "role consumer warps 4 { .. }", "How many warps a role has."),
    ("registers", "role producer warps 4 registers 40 { .. }", "Registers of each thread of a role."),
    (
        "warp_tile",
        "schedule { warp_tile (64, 64) }",
        "Rows and columns of the output that a warp computes, or a warpgroup on sm_90a.",
    ),
    ("k_warps", "schedule { k_warps 2 }", "Sliced-K: so many groups of warps divide the reduction of a product."),
    (
        "stages",
        "schedule { stages 3 }",
        "Slots of the ring (pipeline) that the compiler makes of each buffer of a loop: how many tiles are in shared memory at once. 1: no ring.",
    ),
    (
        "ctas",
        "schedule { ctas 4 }",
        "Blocks of a cluster that share the tiles of one block: each holds a part of a row (from sm_90 on).",
    ),
    (
        "raster",
        "schedule { raster 8 }",
        "The order of tiles: so many neighbouring columns of blocks before the next row, so that they share the L2 cache.",
    ),
    (
        "promote",
        "schedule { promote 128 }",
        "For wgmma on 8-bit floats with f32 sums: at most so many products are summed before they are added to the accumulator in f32.",
    ),
    (
        "pending",
        "schedule { pending 1 };  wait ring pending 1",
        "wgmma products, or groups of copies, that may still be running.",
    ),
    ("ping_pong", "schedule { ping_pong 1 }", "Two warpgroups compute alternate tiles of a block (sm_90a)."),
    ("min_ctas", "schedule { min_ctas 2 }", "Blocks that should fit a multiprocessor at once."),
    (
        "align_rows",
        "schedule { align_rows 1 }",
        "Operands that TMA or wgmma cannot read from their place in memory are copied first (sm_90a).",
    ),
    (
        "stage_stores",
        "schedule { stage_stores 1 }",
        "Results go through a buffer in shared memory, which TMA stores (sm_90a).",
    ),
    (
        "split_k",
        "schedule { split_k 2 }",
        "Blocks of a cluster share each tile along the reduction; sums pass through distributed shared memory (sm_90a).",
    ),
    ("stream_k", "schedule { stream_k 1 }", "A persistent grid whose blocks split tiles along the reduction (sm_90a)."),
    (
        "queue",
        "schedule { queue 1 }",
        "A persistent grid whose blocks take their tiles from a counter in memory (sm_90a).",
    ),
    (
        "overlap",
        "schedule { overlap 1 }",
        "Programmatic dependent launch: a launch may begin before the one in front of it has ended (from sm_90 on).",
    ),
    ("cluster", "schedule { cluster (2, 1) }", "Blocks of a cluster along each axis of the grid (from sm_90 on)."),
    ("target", "schedule { target sm_80 }", "The chip that a program was scheduled for."),
    ("row", "A: gmem f16[M, K] row", "The last dimension is contiguous: matrices by rows. This is the default."),
    ("col", "B: gmem f16[K, N] col", "The last but one dimension is contiguous: matrices by columns."),
    (
        "cast",
        "cast<f16>(x)",
        "Converts elements, rounded to nearest even; 8-bit types saturate, i32 and u32 keep the bits of each other.",
    ),
    ("bitcast", "bitcast<u32>(x)", "The same bits as another type of the same size, for tiles and scalars."),
    (
        "round_random",
        "round_random<bf16>(x, random(seed, place))",
        "Stochastic rounding: up with a probability that is the fraction of the distance, else down.",
    ),
    (
        "mma",
        "acc = mma(a, b, acc)",
        "The product of two tiles added to a register tile; `mma<m8n8k4>` names the instruction, `mma<fma>` scalar code.",
    ),
    ("transpose", "transpose(x)", "The transpose of a tile or window of two dimensions."),
    ("iota", "iota(x, 1)", "The index along a dimension, in the shape of the tile."),
    ("inf", "-inf", "The infinity of floating-point types."),
    ("nan", "nan", "Not a number."),
    ("true", "true", "The condition that always holds."),
    ("false", "false", "The condition that never holds."),
];

/// What an element type is.
pub(super) fn element(elem: Elem) -> String {
    let bits = elem.bits();
    match (elem, elem.class()) {
        (Elem::F16, _) => "IEEE 754 binary16: 5 bits of exponent, 10 of fraction. Computed in f32.".to_owned(),
        (Elem::BF16, _) => "The upper half of an f32: 8 bits of exponent, 7 of fraction. Computed in f32.".to_owned(),
        (Elem::TF32, _) => "An f32 whose upper 19 bits products read. Computed in f32.".to_owned(),
        (Elem::E4M3, _) => {
            "8 bits: 4 of exponent, 3 of fraction; conversions saturate. Computed in f32; products from sm_89.".to_owned()
        }
        (Elem::E5M2, _) => {
            "8 bits: 5 of exponent, 2 of fraction; conversions saturate. Computed in f32; products from sm_89.".to_owned()
        }
        (Elem::E2M1, _) => "4 bits, two elements to a byte: 0, 0.5, 1, 1.5, 2, 3, 4 and 6, of both signs. Conversions saturate, and a NaN becomes 6. Computed in f32.".to_owned(),
        (Elem::UE8M0, _) => "8 bits: a power of two from 2^-127 to 2^127, or NaN. Conversions give the power of two below a number. Computed in f32.".to_owned(),
        (Elem::Bool, _) => "A condition. Tiles of conditions are not stored in memory.".to_owned(),
        (_, ElemClass::Float) => format!("IEEE 754 binary{bits}."),
        _ => format!("An integer of {bits} bits. Arithmetic is done in at least 32, and wraps around."),
    }
}

/// What computes with a product instruction, and how much.
pub(super) fn instruction(row: &AtomRow) -> String {
    let (m, n, k) = row.log2_shape;
    let (m, n, k, first) = (1u32 << m, 1u32 << n, 1u32 << k, row.first.name());
    if row.asynchronous() {
        let columns: Vec<u32> = (1..=256).filter(|n| row.has_columns(u64::from(*n))).collect();
        let least = columns.first().copied().unwrap_or(n);
        let apart = columns.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(n);
        let some = if apart == least { String::new() } else { format!(", multiples of {apart} above 32") };
        return format!(
            "A warpgroup, four warps, computes {m} x N x {k} with it (`wgmma`), from {first} on. N is a multiple of {least} up to 256{some}. \
             The second operand is in shared memory, the first in shared memory or registers."
        );
    }
    if !row.tensor_core {
        return format!(
            "Scalar code of a warp: {m} x {n} sums, of {k} products at a time, from {first} on. It uses no tensor cores."
        );
    }
    format!("A warp computes {m} x {n} x {k} with it on tensor cores, from {first} on.")
}
