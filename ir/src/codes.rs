//! The table of diagnostic codes. A code never changes its meaning; `tilec explain CODE` prints its text.
//!
//! Ranges: `E01..` text form, `E02..` names and types, `E03..` layouts, `E04..` passes and target limits, `E05..` lowering
//! and PTX legality, `E06..` the tool, the assembler and running, `E07..` what the interpreter finds, `E08..` what the
//! simulator finds.

use crate::diag::Code;

macro_rules! codes {
    ($($name:ident $code:literal $title:literal $text:literal;)+) => {
        $(#[doc = $title] pub const $name: Code = Code($code);)+

        /// Every code with its title and its explanation.
        pub const ALL: &[(Code, &str, &str)] = &[$(($name, $title, $text),)+];
    };
}

/// Whether a code is of the text form: what a text with such an error means is not known.
pub fn is_of_text(code: Code) -> bool {
    code.0.starts_with("E01")
}

codes! {
    BAD_CHARACTER "E0101" "a character or literal that the language does not have"
        "The text contains a character, number or string that is not part of the tile language. Numbers are decimal or 0x hexadecimal integers that fit 63 bits, or decimal fractions with an optional exponent.";
    EXPECTED "E0102" "an unexpected token"
        "The parser found a word or sign where the grammar wants another. The message names both. `docs/grammar.md` has the grammar.";
    TOO_DEEP "E0103" "nesting is too deep"
        "Expressions, blocks and layouts may nest 64 levels deep. Split the expression with `let`.";
    TOO_LARGE "E0104" "the source is too large"
        "A source file may have 1 MiB, a kernel 4096 statements. Tile programs are short; generated ones should be split.";

    OPEN_COMMENT "E0105" "a comment is never closed"
        "A comment that begins with `/*` runs to its `*/`; comments nest, so each `/*` inside needs a `*/` too. Use `//` for a comment up to the end of the line.";
    BAD_LAYOUT "E0106" "a layout cannot be read"
        "After `layout` and `threads` stands a layout: CuTe notation `((4,8),2):((1,16),8)`, for shared memory optionally followed by `swizzle<B,M,S>` on the same line, or the columns of its bits after `bits`. Shape and stride nest alike. The message says where the text stops being one.";
    RESERVED "E0107" "a word of the language is used as a name"
        "Words such as `copy`, `row`, `f16` or `max` belong to the language and cannot name parameters or variables. `tilec explain` lists them. Choose another name, for example `copy_`. A kernel may have the name of a function, such as `add`, `sum` or `max`.";
    REPEATED "E0108" "a clause or attribute is written twice"
        "`where`, `grid`, `schedule`, each item of a schedule and each attribute of a copy may be written once. Keep one of them; several preconditions go into one `where`, separated by commas.";
    WRONG_COUNT "E0109" "the wrong number of operands"
        "Every function has a fixed number of operands: `max(a, b)`, `select(c, a, b)`, `mma(a, b, acc)`. `strides (..)` has one stride per dimension.";
    UNKNOWN_ITEM "E0110" "a schedule has no such item"
        "A schedule may have `target`, `threads`, `warp_tile`, `k_warps`, `ctas`, `stages`, `raster`, `promote`, `pending`, `ping_pong`, `min_ctas`, `align_rows`, `stage_stores`, `stream_k`, `queue`, `overlap` and `cluster`. The compiler chooses what is left out.";
    UNKNOWN_NAME "E0201" "a name is not declared"
        "The name is no parameter, and no size or stride of a tensor. No statement before this one in the same or an enclosing block declares it. Run-time sizes are declared by using them in the shape of a tensor parameter. A tensor `A` of two dimensions declares its leading stride as `A_ld`.";
    DUPLICATE "E0202" "a name is declared twice"
        "A name means one thing wherever it is visible, so a declaration may not repeat one from the kernel's header or an enclosing block. Separate blocks may each declare the same name. Sizes (`M` in `gmem f16[M, K]`) and leading strides (`A_ld`) count as declarations.";
    UNKNOWN_FUNCTION "E0203" "no function has this name"
        "Functions are built in: `tilec` has no user-defined ones. The note lists what is near or all there is; `tilec explain NAME` says what each computes.";
    UNKNOWN_TYPE "E0204" "no element type has this name"
        "The element types are `f16`, `bf16`, `tf32`, `f32`, `f64`, `e4m3`, `e5m2`, `e2m1`, `ue8m0`, `i4`, `u4`, `i8`, `u8`, `i32`, `u32`, `i64` and `bool`. A compile-time parameter may stand for one: `<T: f16 | bf16 = f16>`.";
    WRONG_KIND "E0205" "a name stands for something of another kind"
        "An element type or a layout (`row`, `col`) is expected, and the name is declared as something else. Compile-time parameters are `T: f16 | bf16` or `T: type` for types, `LA: layout` for layouts, `BM = 128` or `BM: int` for integers.";
    UNKNOWN_TARGET "E0206" "no target has this name"
        "`tilec targets` lists the targets.";
    UNKNOWN_ATOM "E0207" "no matrix-product atom has this name"
        "`mma<ATOM>(a, b, acc)` names the instruction that computes the product. Leave `<ATOM>` out to have the compiler choose.";
    BAD_DEFAULT "E0208" "a default is not allowed by the parameter's kind"
        "The default of `T: f16 | bf16 = f32` is not one of the types listed. Add it to the list or choose another default. Only integers can be `auto`.";
    UNKNOWN_DEFINE "E0401" "no such compile-time parameter"
        "`-D NAME=VALUE` names a parameter in the angle brackets of the kernel. Run-time sizes and scalars are given at launch, not with -D.";
    BAD_DEFINE "E0402" "a compile-time parameter cannot have this value"
        "Integers are decimal; type parameters take one of the types listed after the colon; layout parameters take `row` or `col`.";
    MISSING_DEFINE "E0403" "a compile-time parameter has no value"
        "Give it with `-D NAME=VALUE` or write a default after `=` in the kernel's angle brackets.";
    FALSE_PRECONDITION "E0404" "a precondition never holds"
        "After binding the compile-time parameters a `where` clause is false whatever the run-time sizes are.";
    TARGET_MISMATCH "E0405" "the schedule is for another target"
        "A text printed after a pass records the target its decisions were made for. Compile it for that target, or remove `target` and the decisions that depend on it.";
    TILE_EXTENT "E0406" "a tile extent is not a power of two"
        "Layouts inside a tile are linear over address bits, so extents of register and shared-memory tiles are powers of two. There are exceptions for `wgmma` (sm_90a). Columns may be any multiple of 8 up to 256 (of bytes, above 32, of 16), the depth any multiple of 16 (of bytes, of 32). Rows may be 192: 64 for each of three warpgroups. Elsewhere the compiler pads, say from 80 columns to 128. It does so if the result is the same. Windows of the tile end where it did, and a reduction or product sums zeros beyond it. Tensors have any extent: elements outside a tensor read as zero and are not written.";
    MMA_FORM "E0407" "a product in an unsupported form"
        "Products are statements `acc = mma(a, b, acc)`: they accumulate in place, and both operands are tiles (or windows of tiles) in shared memory, global memory, or registers. In roles on sm_90a one operand may be in registers, and the other a slot that TMA loads fill. Such a product is a wgmma. Warpgroups share its rows, 64 each or a multiple, or its columns if it is computed transposed.";
    NO_ATOM "E0408" "no instruction computes this product"
        "The target has no product instruction, tensor core or scalar, for these element types and this warp tile.";
    WARP_TILE "E0409" "an invalid warp tile"
        "`warp_tile (WM, WN)` divides the accumulator tile into warps. Both extents are powers of two and at most the accumulator's. All warps have at most 1024 threads, and a thread's share of the accumulator must fit its registers. In a kernel with several products it must fit one of them. A row that is reduced, or used in another product, belongs to one warp. Leave it out to have a tile chosen for each product.";
    THREADS "E0410" "an invalid thread count"
        "Blocks have a power of two of threads, from 32 to 1024. With three warpgroups that multiply, they have 384.";
    NO_LAYOUT "E0411" "a register tile has no layout"
        "The compiler found no layout for a register tile: it meets neither memory nor a product nor a tile of the same shape. Write one after `layout`.";
    NOT_VECTORIZABLE "E0412" "a copy cannot have the requested width"
        "`vec n` requests n elements per access. The message names the missing fact; usually a `where` clause about a size or a leading dimension provides it. Elements of 4 bits are stored two at a time. `multiple 2` after the tensor promises even extents and strides; windows must begin at even positions.";
    HAZARD "E0413" "nothing orders two uses of the same memory"
        "Channels: a producer acquires a slot, fills it, and publishes it; a consumer waits for a slot, reads it, and releases it. The message names the missing step. The compiler explores all states of the synchronisation, so the proof holds for all trip counts. A slot is filled once, because the order in which two asynchronous copies land is not defined. Buffers: a `barrier` must stand between a write by one thread and a read or overwrite by another. A buffer belongs to one role; roles pass tiles through channels. TMA stores: the buffer is read until `await s, 0`, and the data has arrived only at the end of the kernel. So the kernel uses the tensor in no other way after that, and stores no element of it twice. Windows must advance by at least their extents from iteration to iteration, or be disjoint.";
    SMEM_LIMIT "E0414" "too much shared memory"
        "The buffers and channel slots of a block exceed what a block of the target may have. Use smaller tiles or fewer stages.";
    TOO_MANY_REGISTERS "E0415" "a register tile that no thread can hold"
        "A register tile is spread over the threads of the block, and a thread has 255 registers. Tiles of more than four times that are refused. Use smaller tiles or more threads.";
    BAD_DIVISOR "E0416" "a divisor that is not positive"
        "Index arithmetic divides by positive numbers only. After binding the compile-time parameters a literal divisor is zero or negative.";
    K_WARPS "E0418" "a reduction that cannot be split like this"
        "`k_warps n` gives each of n groups of warps a slice of every tile of the reduction. A slice is at least as deep as the product's instruction, and the message says how deep the tile must be. The groups share one accumulator tile with a sum for each group. The compiler makes it from `acc = mma(a, b, acc)`.";
    REGISTER_LIMIT "E0417" "a register tile that a thread cannot hold"
        "A thread has 255 registers of 32 bits. A register tile is distributed over the threads of the block; this one leaves each of them more than that. Use a smaller tile or more threads.";
    CANNOT_CHOOSE "E0430" "a parameter that cannot be chosen"
        "A parameter that is `auto` gets its value from what it is used for: an extent of a tile, `warp_tile`, `k_warps`, `stages`, `raster` or `threads`. This one is used for none of these. Give it a value.";
    NO_CHOICE "E0431" "no choice is legal"
        "The compiler searches values for the `auto` parameters among powers of two. With the given values of the other parameters, every combination breaks a rule of the target or of the kernel. The note names the rule that the last combination broke. Change the given values, or give values for the `auto` parameters too.";
    UNKNOWN_SIZE "E0432" "no such size"
        "`--for NAME=VALUE` names run-time sizes of the kernel: the names that the shapes of its tensors declare.";
    VARIANTS_DIFFER "E0433" "variants with different interfaces"
        "Variants of a kernel are launched by one call, and the sizes decide which of them runs. So all of them have the same interface: element types, orders of tensors and types of scalars. Promises (`ALIGN`), tiles and stages may differ. Compile programs with different interfaces into separate files.";
    NEVER_LAUNCHED "W0402" "a variant that is never launched"
        "Variants are tried in the order in which they are given, and the first whose preconditions hold is launched. One that comes after a variant with no stronger preconditions is never reached: give the one with the strongest preconditions first, such as `--variant ALIGN=8/1`.";
    FORBIDDEN_SIZE "E0434" "sizes that the kernel does not take"
        "`--for` names sizes that a precondition of the kernel, or of every variant of it, excludes: what is chosen for them could never be launched. Give other sizes, or compile with weaker promises (`--variant ALIGN=8/1`).";
    OTHER_GENERATION "W0403" "a card of another generation than the target"
        "`--card` names a card that runs code for the target, and has faster instructions that only code for its own generation uses. The choice is made for that card with the target's instructions. Give `--target` of the card's generation, unless this is what you want to know.";
    ONE_ELEMENT "W0404" "an operand that ends after one element"
        "A window of a tensor whose dimension has one element is combined with a tile that has more. Elements outside the tensor read as zero, so only the first row (or column) is what was meant. A tensor that repeats says so with stride 0: `bias: gmem f16[M, N] strides (0, 1)`.";
    OTHER_STEP "W0405" "a step that is not the extent of the tile"
        "`for k in a..b step s` goes over tiles of a range, and a window `k..` has the elements of the tile on the other side. Where the step is larger, the elements between the windows are skipped; where it is smaller, they overlap, and still end at `b`. Make the step the extent of the tile. Both may be meant: then say where the window ends, `k..k + 32`, or that it goes on past the range, `k..inf`.";
    SPILLED "W0406" "tiles that exceed the registers of a thread"
        "A thread has at most 255 registers of 32 bits. It has fewer if all threads of a block, or of the blocks that share a multiprocessor, exceed 65536 registers; roles state their own number. The register tiles that are live at one statement need more. The assembler then spills: it keeps some of them in memory, which is slow. Use smaller tiles or more threads, or let them be chosen (`BM = auto`): the search takes no candidate that spills if another is legal.";
    NO_WGMMA "W0407" "products that could be faster by wgmma"
        "On sm_90a warpgroups multiply tiles in shared memory by `wgmma`, about 1.5 times as fast as `mma.sync`. Types and extents of this product allow it, and the message names the statement that prevents it. The requirements are: operands are whole buffers (`let a = smem f16[128, 64]`). Copies of windows of tensors (`copy A[i * 128.., k..] -> a`) fill each of them, before the product in the same block, with rows in multiples of 16 bytes (`where K % 8 == 0`). One operand may be a register tile instead. No copy depends on a value that threads compute, and no product of the kernel names another instruction. This is a warning if the model predicts that a launch takes more than a tenth longer, and a remark otherwise; `--for M=..` gives the sizes. A product with a written instruction (`mma<m16n8k16>(..)`) gets no warning.";
    NOT_AHEAD "W0408" "a loop that waits for its loads"
        "Copies from tensors into buffers that a loop fills run ahead, into several slots of each buffer, while earlier tiles are multiplied. The message names the statement that prevents it, so each iteration waits for its own loads. The requirements are: the loop's body itself copies windows without conversion, before the use of the buffer. Nothing outside of the loop uses the buffer, and shared memory has room for two slots. If a tile is converted, copy it first and convert it after that. Tiles that go through registers, for example because they are transposed, are loaded only one iteration ahead. Store the tensor in the order that the product needs. This is a warning if the model predicts that a launch takes more than a tenth longer, and a remark otherwise; `--for M=..` gives the sizes. A loop with `stages 1` written gets no warning.";
    NARROW "W0409" "accesses that could be wide"
        "Threads move 16 bytes of global memory at once if this is proved to be aligned. For that, the sizes and strides of the tensor are known multiples of that many elements (`A: gmem f16[M, K] multiple 8`, `where K % 8 == 0`). The message names the missing precondition. This is a warning if the model predicts that a launch takes more than a tenth longer, and a remark otherwise; `--for M=..` gives the sizes. Several variants of a kernel serve aligned and other sizes: `--variant ALIGN=8/1`. A copy with a written width (`vec 2`) gets no warning.";
    STORED_BY_THREADS "W0410" "results that TMA could store"
        "On sm_90a results of wgmma go through a buffer in shared memory. TMA stores them from there while the next tile is computed. The message names the statement that prevents it. This is a warning if the model predicts that a launch takes more than a tenth longer, and a remark otherwise; `--for M=..` gives the sizes. `stage_stores 0`, or a written width of the store (`vec 2`), gets no warning.";
    RACED "W0411" "stores of several blocks to the same elements"
        "Each combination of the indices of the grid is a block. The blocks run in no order. The window of this store does not depend on one of the indices. So all blocks along that axis store to the same elements, and any of them may be the last. Where each block has a part of the result, combine the parts: `copy x -> Y[i..] add` (or `min`, `max`), into a tensor that holds zeros before the launch. Or leave the axis out of the grid, and go over its range by a loop in the kernel. A store under a condition that depends on the index, or on numbers from memory, gets no warning.";
    PAST_END "W0412" "elements past the end that change a result"
        "A window reads as 0 past the end of its tensor, or as the `fill` of its copy says. A reduction takes such elements in with the others. They change nothing where they are neutral: zeros in a sum or a product of matrices, `-inf` in a maximum. Here they are not, or the compiler cannot tell. So the result is wrong for sizes that end within a tile, and right for all others. Ways out: `copy X[i, j..] -> x fill -inf`, for extremes and sums of exponentials. A mask by positions: `select(j + iota(x, 0) < N, x, 0.0)`. A precondition, if sizes are always such: `where N % 128 == 0`. A mean divides by the number of elements, `sum(x, 0) / N`, not by the extent of the tile.";
    NOT_COVERED "W0413" "a window that leaves out the rest of a dimension"
        "A window such as `X[i, 0..+1024]` has the first 1024 elements of a dimension. Its size is a number of the launch. Nothing in the kernel reads the elements after them: no loop, no axis of the grid, no other window. So larger sizes give a partial result, without an error. Declare the bound, `where N <= 1024`: a launch with more is refused then. Or go over all elements: `for j in 0..N step 1024` with windows `j..`, or an axis of the grid. Where only the first elements are meant, write the window's end, `copy X[i, ..4] -> x`; such windows get no warning. Nor do windows that are stored to, and windows of a size that a precondition bounds from below, `where N >= 1024`.";
    USED_ONCE "W0414" "a size that is used once"
        "A name in the shape of a tensor that nothing else declares is a size, which each launch gives. This name stands in one shape alone, and a name that differs in a doubled letter, in case or in exchanged letters stands in others. Case alone is no mistake where several names differ in it, or one shape has both. If both are one size, write one name: then a launch whose tensors disagree is refused. If not, a name that differs more says so.";
    COMMENTED "W0415" "a comment in place of a division"
        "`//` begins a comment in this language, also where Python divides: `let y = x // 2` is `let y = x`, and `let g = i // G` is `let g = i`. Indices are divided by `/`, which rounds down, and so are elements: `x / 2.0`, of floats `floor(x / 2.0)`. If it is a comment, begin it with a word.";
    DEPENDS_ON_CHOICE "E0435" "a result that depends on a chosen value"
        "A parameter that is `auto` decides how a program is computed, not what: the compiler may choose any value. These may depend on it, because they mean the same whatever it is: extents of tiles, steps of loops, and positions added to `iota`. So may `ceildiv(N, BN)` blocks or iterations, each of which begins at `i * BN`. A window `i * BN..` ends with its tensor, or as written (`i * BN..N`). Tiles must reach that end: there are `ceildiv(N, BN)` of them. What a loop carries from tile to tile is a sum or an extreme of values for each position. Examples are `x = mma(a, b, x)` and `m = max(m, maximum(abs(t), 1))`. It may also be a sum of exponentials divided by that of an extreme (online softmax). Elements beyond the end of the range are zero, and must make no difference. A mask is an upper bound of positions that the compiler proves to be at most that end, such as `select(k + iota(t, 1) < K, t, -1.0e30)`. What the kernel stores is for each position, or the same for all tiles. It may be a part of a sum or an extreme that `add`, `max` or `min` combines with the others. Anything else needs a value that is written down: `BN = 128` in the source, or `-D BN=128`. `BN = auto promised` promises that it makes no difference.";
    SCALAR_PRODUCT "W0401" "a product of 16-bit inputs without tensor cores"
        "The target has no tensor-core instruction for these element types and this warp tile, so the product compiles to scalar multiply-adds. The result is right, and takes many times longer.";
    NOT_LOWERED "E0501" "a construct that cannot be compiled to PTX yet"
        "The program is valid, and `tilec run --device interp` runs it, but lowering has no code for the construct. No such construct is known. What a target has no hardware for is E0504, and a decision that cannot be carried out as it is written E0505. This code is a gap in the compiler: please report it with the program.";
    INDEX_OVERFLOW "E0502" "an index may overflow"
        "Index arithmetic is exact. This expression can exceed 64 bits for admissible sizes, or divides by something that may not be positive.";
    ILLEGAL_PTX "E0503" "the generated PTX is not legal for the target"
        "The legality check found an instruction that the target or the PTX version lacks. This is a limitation of the lowering for the target.";
    TARGET_LACKS "E0504" "hardware that the target lacks"
        "The program needs hardware of a later target. TMA copies (`tma`), roles, producer warps and `ordered` warpgroups need sm_90a. Clusters (`cluster`, `ctas`) and `add` to bf16 need sm_90. For `add`, `min`, `max` and `exchange` the message lists the types that the target combines in memory. For another type, combine in a tensor of a listed type, and convert it in a kernel after this one. Words that say only how to compute can be left out: the compiler then chooses what the target has.";
    UNFIT "E0505" "a written decision that cannot be carried out"
        "Layouts, `threads` of copies, attributes of copies (`vec`, `matrix`, `async`, `tma`, `unaligned`, `fragment`), instructions, clusters and roles say how a program is computed. Here they contradict one another. Threads do not hold the elements that the instruction moves, or elements that are combined lie in different threads. Or a role does something that its barriers do not count. The program is valid, and compiles if these words are left out or changed as the message says.";
    TOO_LONG "E0506" "a kernel of too many instructions"
        "Unrolled loops, and tiles of which each thread holds very many elements, are written out instruction by instruction. Unroll less, use smaller tiles, or more threads.";
    TYPE_MISMATCH "E0220" "types do not match"
        "The operands of an operator have equal element types, or one widens to the other. So do a value and the place it is stored in. Floats of 8 and 16 bits widen to f32, f32 to f64, integers to wider ones that hold them. Literals and indices take the type of the other operand. Every other conversion is written `cast<T>(x)`.";
    SHAPE_MISMATCH "E0221" "shapes do not match"
        "Tiles combine element by element: same rank, and in each dimension the same extent or an extent of 1, which is repeated. Both sides of a copy have the same shape.";
    WRONG_OPERAND "E0222" "an operator does not work on this type"
        "Each operator has a domain: numbers, integers, floating-point numbers or truth values. `tilec explain` lists the operators.";
    MMA_TYPES "E0223" "no product has these element types"
        "f16, bf16, tf32, f32, e4m3 and e5m2 accumulate in f32; f16, e4m3 and e5m2 also in f16; f64 in f64; i8 and u8 in i32. Both operands have one type, with two exceptions: e4m3 and e5m2, and i8 and u8, may be mixed. Other operands are converted by `cast<T>(..)`.";
    MMA_SHAPE "E0224" "the tiles of a product do not match"
        "`mma(a, b, c)` multiplies a tile [M, K] with a tile [K, N] and adds a register tile [M, N].";
    NO_EXTENTS "E0225" "extents are missing"
        "A window of memory such as `A[i.., k..]` has no extents of its own. It takes those of the tile on the other side of a copy or an operator. Here there is none. What repeats says none: the sum of a row, a column, a vector. In a copy, and in what is reduced, windows say how many elements there are, each dimension once: `A[i * 64..+64, k..+32]`.";
    BAD_VIEW "E0226" "an invalid window"
        "A window is of a tensor, a shared-memory buffer, a channel slot or a register variable. For each dimension it has an index or a range: `start..`, `start..end`, `start..+extent`. Channels need a slot (`.put` or `.get`), nothing else has one. In a copy, dimensions of a tensor may have register tiles of integers in place of ranges (`X[rows, j..]`). These are the numbers of the elements there, which are gathered or scattered.";
    NOT_INDEX "E0227" "an index is expected"
        "Loop bounds, window starts, extents and grid sizes are exact integers: sizes, strides, grid indices, loop variables, integer literals and parameters, and arithmetic on them. In the body of a kernel, integers in registers and in memory are indices, too. The host computes extents and grid sizes, and has sizes and strides alone.";
    BAD_AXIS "E0228" "no such dimension"
        "Dimensions count from 0: a tile of rank 2 has axes 0 (down the rows) and 1 (along a row).";
    NOT_A_VALUE "E0229" "not a value"
        "Type and layout parameters, and channels as a whole, have no value that an expression could use.";
    MALFORMED "E0230" "the kernel is malformed"
        "The tables of the program contradict each other: an expression or statement used twice, a value declared twice or as something else. The text form cannot express this; it is a bug of the pass or tool that made the kernel.";
    NOT_ASSIGNABLE "E0231" "this cannot be assigned"
        "Assignments change register variables (`var`). Copies end in register variables, in windows of tensors, in shared-memory buffers, or in slots of channels. Parameters, sizes, indices and `let` never change.";
    OUT_OF_SCOPE "E0232" "used outside its scope"
        "A name can be used after its declaration, in the same block and in blocks inside it. Loop variables exist in the body of their loop.";
    NOT_CONSTANT "E0233" "not known at compile time or at launch"
        "Extents of tiles, slots, warps and schedule items are fixed when the kernel is compiled: they may mention compile-time parameters only. Tensor shapes, strides, the grid and preconditions are fixed at launch: they may also mention sizes and strides.";
    BAD_SHAPE "E0234" "an invalid shape"
        "Tensors have 1 to 5 dimensions, tiles at most 5 and at most 2^20 elements; extents are at least 1. Boolean elements and scalars do not live in memory. Every dimension has a stride of at least 0, and alignments are powers of two.";
    BAD_SCALAR_DEFAULT "E0235" "an invalid default"
        "The default of a run-time scalar is a literal of its type, possibly negated: `alpha: f32 = 1.0`, `n: i32 = -1`.";
    BAD_PRECONDITION "E0236" "an invalid precondition"
        "`where` lists comparisons of sizes, strides and compile-time parameters: `where K % 8 == 0, A_ld >= K`.";
    BAD_GRID "E0237" "an invalid grid"
        "A launch has at most three axes of 1 to 2^31 - 1 blocks: `grid (m: ceildiv(M, 128), n: ceildiv(N, 128))`.";
    BAD_SCHEDULE "E0238" "an invalid schedule item"
        "Schedule items are positive; `promote` may be 0, `pending`, `ping_pong`, `align_rows`, `stage_stores`, `stream_k` and `queue` are 0 or 1, `overlap` is 0 to 64. A requested item that is not possible is an error. A block has 32 to 1024 threads in whole warps. A cluster has 1, 2, 4 or 8 blocks in all, along axes that the grid has. `k_warps` is a power of two.";
    BAD_LOOP "E0239" "an invalid loop"
        "Loops count upward by at least 1. `unroll` lays the body out once for every value of the loop variable, so that the bounds must be known at compile time. Nested unrolled loops may make at most 4096 copies.";
    BAD_CONDITION "E0240" "an invalid condition"
        "All threads of a block take the same branch of an `if`, so that its condition is a scalar truth value. Element by element, use `select(c, a, b)`.";
    BAD_CHANNEL "E0241" "an invalid use of a channel"
        "`acquire`, `publish`, `wait` and `release` take names of channels, each once. A channel has 1 to 1024 slots.";
    BAD_OVERLAY "E0244" "memory that cannot be reused"
        "`let x = smem T[..] over a, b` puts x in the memory of a and b, whose contents are lost. It names buffers and channels that have memory of their own, each once. They must not be used after it before they are declared again.";
    BAD_PLACE "E0249" "an invalid place in shared memory"
        "`let x = smem T[..] at n` puts x n bytes after the start of the block's shared memory, `channel T[..] slots s at n stride m` its slots, each m bytes after the previous one. Both are multiples of 128, and of 1024 where TMA copies fill or wgmma products read shared memory. Slots do not overlap, and all are within the shared memory of a block. Buffers that share bytes are declared where the other is no longer used. Without `at`, the compiler chooses the addresses.";
    BAD_LANES "E0250" "threads that cannot run this alone"
        "`elected` says that one lane of the first warp does a statement for all. It goes with a role that only issues TMA loads (`role producer warps 4 elected`). It goes with a TMA copy in another role and the `publish` that expects its bytes, and with a TMA store and its `await`. `spread` after the range of a loop that only awaits signals says that each thread awaits some of them. `changing` after `o = o * a` says that a warp leaves the statement out where all its factors are one. Without them, the compiler chooses.";
    BAD_ROLE "E0242" "an invalid role"
        "Roles stand side by side in the body of the kernel. Outside them are names (`let`), buffers, channels and barriers only: no role's threads would do anything else. Each role has its own name and 1 to 32 warps, together at most 32. Each has 24 to 256 registers per thread in steps of 8, which whole warpgroups give away. What one takes beyond its equal share another must give. One with `replicas` is names and a loop whose iterations they share, one after the other; `ordered` stands in the body of that loop.";
    BAD_COPY "E0243" "a copy cannot have this attribute"
        "`vec n`: n is a power of two and an access has at most 16 bytes. `check (..)` names dimensions of the window of global memory. `keep` is for copies into registers; `add`, `min` and `max` are for copies into global memory; `threads` is for copies between two memories, since register tiles have layouts of their own. `async` is for copies of a window of global memory into a channel's slot, from sm_80. They move 4, 8 or 16 bytes at a time, without conversion. `unaligned n` is for loads of a window of global memory, 16 bytes at a time, of elements of 1, 2 or 4 bytes. Only n elements, fewer than are loaded, are known to be aligned. `matrix` is for copies of a window of shared memory into a register tile of the same elements (8 or 16 bits, tf32). It is also for copies of registers into shared memory (16 bits). Only `vec` may be combined with it. `prefetch` is for windows of global memory and names a register tile of their extents. `tma` is for copies of a window of a tensor into a whole slot of a channel, on sm_90a. It is also for copies of a whole buffer of shared memory to a window of a tensor. The strides of the tensor are multiples of 16 bytes. There is no conversion and no other attribute. A store may have `add`, `min` or `max`, of types that TMA combines. `when c` goes with an access to global memory.";
    BAD_SIGNAL "E0247" "an invalid use of scratch memory"
        "`signal s[i]` and `await s[i]` are about signals between blocks: a tensor parameter of one dimension of u32 that is declared `signals` and used for nothing else. All are down before a launch and after it. Elements that blocks exchange are in a tensor declared `scratch`. Neither is an array of pointers. A block waits only for blocks in front of it in the grid: those begin first.";
    BAD_SEQUENCE "E0245" "kernels of a sequence do not match"
        "The kernels of a `sequence` are launched one after the other, and parameters of one name are one. Tensors of one name have the same element type, shape and strides. Scalars of one name have the same type and, where both have one, the same default. Rename a parameter that is to be another thing.";
    BAD_PLAN "E0248" "an invalid schedule of a statement"
        "`@(stage 1, cycle 512)` in front of a statement says when it runs in a software-pipelined loop. It runs so many iterations later than stage 0, in the order of the cycles. Either no statement of a loop has a stage, or all of them. A slot is filled between `acquire` and `publish`, and a register tile is read before the next iteration writes it. `@(open) for ..` has no drain: in front of the last stage it only copies tiles, into slots or registers that nothing after the loop reads. `@(ragged) for ..` begins with the tile that has fewer elements, which a sum of products may. `@(producer)` gives a statement to the producer warps: copies into buffers or slots, and the `acquire` and `publish` around them. A program with roles of its own gives no statement to a role.";
    BAD_PARTIAL "E0251" "an invalid use of a tile of partial results"
        "`var l = reg f32[64, 1] layout L partial sum (0, 1) = 0.0`: lanes whose numbers differ in bits 0 and 1 hold parts of the same elements. `copy l -> total` adds them up; with `maximum` or `minimum` it finds the largest or the smallest. Until then a statement does to each part what it does to the value: `l = l * a + sum(x, 1)`, with nothing of `l` in `a`. A sum of parts begins with 0. Left out, `defer-reductions` finds where lanes can wait.";
    BAD_TABLE "E0252" "an invalid table"
        "A table is declared in the header, `codes: const f32[4] = (0.0, 0.5, 1.0, 2.0)`. It has as many numbers as elements, each a number of its type: floats of up to 64 bits, whole numbers of up to 32. `codes[x]` reads the elements that a tile or a scalar `x` of whole numbers names, zero outside of the table. A table has no windows and is not written. The tables of a kernel take 64 KiB of constant memory at most, where each element has 4 bytes, of f64 8.";
    READ_UNWRITTEN "E0246" "a register variable is read that nothing wrote"
        "A register variable declared without a first value holds nothing in particular until something is assigned or copied to it. An accumulator begins with what the sum begins with: `var acc = reg f32[BM, BN] = 0.0`.";
    LAYOUT_EXTENT "E0301" "a layout has gaps"
        "Layouts inside a tile are linear over address bits. An extent that is not a power of two counts as the next one, and elements beyond the extent do not exist. All threads must have the same registers of a tile without those elements. So bits that select threads are below the extent's lowest bit. Or they are the highest bits of a thread's number, and threads beyond the extent do not exist (384 threads for 192 rows).";
    LAYOUT_SIZE "E0302" "a layout is for a tile of another size"
        "A shared-memory layout has a mode for each dimension, with the extents of the tile. A register layout `(threads, values):(..)` gives positions in column-major order of the whole tile, from 0 to one less than the number of elements.";
    LAYOUT_COVER "E0303" "a layout misses elements"
        "Every element of a register tile is held by some thread, and every element of a copy is moved by some thread. The message says how many are.";
    LAYOUT_THREADS "E0304" "a layout is for another number of threads"
        "A register layout is for all threads of the block, or of the role it is in. A thread mode of stride 0 repeats the tile over further threads.";
    LAYOUT_BIJECTION "E0305" "a layout is not a bijection"
        "In shared memory every element has a place of its own and there are no gaps. The message names two elements that share a place, or says how much is wasted.";
    LAYOUT_FRAGMENT "E0306" "layouts that the instruction does not have"
        "A product instruction fixes which thread holds which element of its operands. The layouts of the register tiles must be such fragments, repeated over the tile in the same way for all operands. The message names the first bit of a lane, register or warp that disagrees.";

    NOT_READABLE "E0601" "the input cannot be read"
        "The source file does not exist, is a directory, or may not be read. `-` reads standard input.";
    NOT_TEXT "E0602" "the input is not text"
        "A source is UTF-8 text. The message names the first byte that is not.";
    NOT_WRITABLE "E0603" "the output cannot be written"
        "The directory of the output does not exist or may not be written, or the device is full. An output file is replaced as a whole or not touched at all.";
    NO_ASSEMBLER "E0604" "no assembler was found"
        "A cubin, a disassembly and real register counts need NVIDIA's ptxas and nvdisasm. They are looked for in TILEC_PTXAS and TILEC_NVDISASM, in PATH, in CUDA_HOME and in the project's own cache; `scripts/fetch_tools.sh` fetches pinned versions into that cache. A variable that is set names the tool and no other: one that does not run, or does not know the target, is this error. PTX needs none of them.";
    ASSEMBLER_REFUSED "E0605" "the assembler refuses the PTX"
        "ptxas found an error in PTX that tilec wrote. This is a bug of tilec, or an assembler too old for the target; please report it with the source.";
    ASSEMBLER_FAILED "E0606" "the assembler failed"
        "ptxas or nvdisasm could not be started, crashed, or took too long.";
    BAD_ARGUMENT "E0607" "a run-time argument is wrong"
        "`tilec run` takes NAME=VALUE for the sizes, strides and scalars of the kernel. Sizes are 1 to 2^31 - 1, strides at least 0, scalars numbers. Strides that are not given are those of packed tensors, scalars that are not given have their defaults.";
    MISSING_ARGUMENT "E0608" "a run-time argument is missing"
        "Every size of the kernel needs a value, and so does every stride and scalar without a default: `tilec run gemm.tile M=512 N=512 K=512`.";
    UNMET_PRECONDITION "E0609" "a precondition of the kernel does not hold"
        "The kernel promises something about its sizes and strides with `where`, and these arguments break it. What it would compute is undefined, so it is not launched. Give other sizes, or compile with weaker promises, such as `-D ALIGN=1` for `examples/gemm.tile`.";
    TOO_BIG_TO_RUN "E0610" "the launch is too large"
        "The tensors do not fit the memory that `tilec run` is willing to use, or the grid has more blocks than a launch may have.";
    NO_GPU "E0611" "no GPU can be used"
        "`--device cuda` needs an NVIDIA GPU and its driver library (libcuda.so.1, nvcuda.dll), which tilec opens when it needs it. Without them `--device sim` runs the same PTX on the simulator, and `--device auto`, the default, does so by itself. Compiling needs neither.";
    LAUNCH_FAILED "E0612" "the launch failed"
        "The driver refused the module or the launch, or the kernel faulted. The message is the driver's.";
    LAUNCH_TIMEOUT "E0613" "the kernel did not finish in time"
        "A run is ended when `--timeout` seconds have passed: a kernel that waits for itself would otherwise hang forever. On a GPU the kernel therefore runs in a process of its own. The simulator is some ten thousand times slower than a GPU: choose smaller sizes, more `--sim-threads`, or a larger `--timeout`.";
    NO_REFERENCE "E0614" "the reference result cannot be computed"
        "`--check` compares with the interpreter, which found something that has no defined result. It is an access out of bounds that the program promised not to make, or a wait for something that never comes.";
    BAD_LAUNCH_FILE "E0615" "the launch description cannot be used"
        "`tilec run FILE.ptx --launch FILE.json` needs a launch contract with the PTX. `tilec IN.tile --emit launch` writes it. For another kernel it is written by hand, and much may be left out. `docs/launch-contract.md` has the fields and an example.";
    BAD_TENSOR_FILE "E0616" "a tensor file does not fit"
        "`--in NAME=FILE` reads the elements of a tensor as raw bytes, as NumPy's `tofile` writes them. They are little-endian, in row-major order of their index, without gaps, whatever the strides are. The file has exactly as many bytes as the elements of the tensor; `--out NAME=FILE` writes the same form.";
    NOTHING_TO_TUNE "E0617" "nothing can be tuned"
        "`tilec tune` measures the values of `auto` parameters, in the order of the model's prediction. This program has no `auto` parameter, because `-D` or the source gives all values (`BM = 128`), or the model cannot predict the kernel. `tilec bench --variant NAME=A/B` measures values that you name.";
    BROKEN_DEMAND "E0619" "a requirement that the code does not meet"
        "A kernel says `require wgmma, registers <= 168`, or `--require` does, and the compiled code is different. The message names the statements that are responsible. The notes say why the fast path was not taken, and how to take it. `require` does not change the code; it only checks it.";
    DEMAND_UNCHECKED "W0602" "a requirement was not checked"
        "Only an assembler knows registers and spills, and none was found: `scripts/fetch_tools.sh` fetches a pinned one, `TILEC_PTXAS` names another.";
    OTHER_LAUNCH "E0618" "the launch description belongs to other PTX"
        "`tilec run FILE.ptx --launch FILE.json` launches as the description says. PTX that was compiled for another target, or with other tiles, would compute something else. The notes say what differs. PTX of tilec names its contract in a comment, and the contract has that `id`. A description by hand needs no `id`; it is compared with the parameters and threads in the PTX. Compile both with the same options. The code of the PTX may be edited by hand: its launch contract stays the same.";
    ASSEMBLER_WARNS "W0601" "the assembler warns"
        "ptxas accepted the PTX and had something to say about it: spilled registers, for example.";

    PRECONDITION "E0701" "a precondition does not hold"
        "The kernel says under `where` what must hold of sizes, strides and compile-time parameters. These arguments break it: choose others, or compile with weaker promises (`-D ALIGN=1`).";
    UNFIT_INPUT "E0702" "an argument is missing or does not fit"
        "A run needs a value for every size, scalar and tensor of the kernel, of the type that the kernel declares. Sizes are less than 2^31, strides at least 0. Compiled kernels take sizes to be at least 1; `--zero K`, or `where K == 0` in a kernel, compiles for a size of 0, as `tilec run` does by itself where one is given.";
    INDEX_ARITHMETIC "E0703" "index arithmetic without a result"
        "An index computation divides by zero, does not fit 64 bits, or a loop has a step below 1.";
    OUT_OF_BOUNDS "E0704" "an access outside the bounds"
        "A copy touches an element outside its tensor or buffer. In a dimension that `check` leaves out this is undefined on the device: test the dimension, or prove the promise. An index written without `..` is never tested.";
    UNWRITTEN "E0705" "a value that was never written"
        "A result depends on an element of a register tile, a buffer or a channel slot that nothing was stored to. Initialise it, or copy all of it before it is read.";
    CHANNEL "E0706" "a channel is used out of turn"
        "The order is `acquire`, fill `.put`, `publish`; then `wait`, read `.get`, `release`. A ring of n slots holds n that are acquired or published and not yet released. Waiting for what nobody published would never end.";
    OUT_OF_FUEL "E0707" "the run was stopped"
        "The interpreter gives up after a bounded amount of work. Choose smaller sizes, or look for a loop that does not end.";
    OUT_OF_MEMORY "E0708" "the tiles are too large to interpret"
        "The interpreter bounds how many tile elements are live at once. Choose smaller tiles.";
    ILL_FORMED "E0709" "an ill-formed program"
        "The interpreter met something that the verifier refuses: extents that do not go together, a name without a value, a view whose extents nothing determines.";
    STORED_TWICE "E0710" "two elements are stored to one place"
        "A copy to rows that a tile of indices names (`copy y -> Y[rows, j..]`) stores each of its rows. If two of them go to the same row, it is undefined which one remains. Combine them (`add`, `min`, `max`), or give the copy distinct indices; an index outside the tensor, such as -1, is stored nowhere. A store with `apart` promises that the launch stores to each of its elements once; here one element is stored to twice.";

    SIM_ALLOWED "W0801" "an error that the run allows"
        "The PTX ISA calls this an error, shipped compilers rely on it, and the hardware that they are used on does what they expect. `--allow NAME` asked to let it pass; docs/launch-contract.md has the names, and on what hardware each was seen to be harmless. `tilec explain E0805` is about such errors where they are not allowed.";
    SIM_OUT_OF_BOUNDS "E0801" "an access outside the memory of the launch"
        "A thread accessed global memory that belongs to no tensor: after its end, in front of it, or in a gap between its rows. Or it accessed shared memory beyond what the block has, or wrote a tensor that the launch contract says is only read. On a GPU this may fault, or silently read and damage other data. The message names the nearest tensor; look at the predicate and the address of the instruction.";
    SIM_MISALIGNED "E0802" "an access at an address that is no multiple of its size"
        "An access of n bytes needs an address that is a multiple of n. The simulator places tensors at odd multiples of the alignment that the launch contract requires, so that no larger one holds by chance. Require more in the contract, or use narrower accesses.";
    SIM_UNINITIALISED "E0803" "a read of memory that nobody wrote"
        "A thread read a byte of shared, local or global memory before anyone wrote it. Often the write is missing for some threads, or the index runs past what was filled. A tensor that the launch contract says is only written holds nothing before.";
    SIM_UNDEFINED "E0804" "an undefined value reaches memory, an address or a branch"
        "A register that was never written, or a value computed from one, decides what the kernel does. Initialise the register on every path. Elements of a vector load that nobody wrote are undefined; they are an error only if they are used.";
    SIM_RACE "E0805" "a data race"
        "Nothing orders two accesses to the same bytes of shared or global memory, or to the registers of a wgmma product. At least one of them is a write. These would order them: a barrier that both threads pass, a wait for the copy or the product. So would a fence between ordinary accesses and those of TMA or wgmma, or a `griddepcontrol.wait` after the launch in front. On a GPU the result then depends on which comes first, and may be right a million times. The note says what is missing between the two places that the message names. In a loop it may be missing between the last access of one iteration and the first of the next. Which of the two came first in the simulation is chance: where copies are involved, `--sim-landing late` shows the other order.";
    SIM_DIVERGENCE "E0806" "a divergent warp at a warp-wide instruction"
        "Instructions marked `.aligned`, and the likes of `mma.sync` and `ldmatrix`, need all threads of the warp at once. Some took another branch. Move the instruction out of the branch, or make the condition the same for the whole warp.";
    SIM_DEADLOCK "E0807" "a deadlock"
        "Every thread that has not ended waits for others. A barrier has fewer arrivals than it expects, or a phase that is waited for never completes. The message lists who waits where, who has come there, and who has exited. Look for a barrier inside a branch, a thread count that is not the block's, or a wait that comes before its arrival.";
    SIM_FUEL "E0808" "the instruction budget is spent"
        "Each block may execute `--fuel` instructions (counted by warp). A kernel that needs more probably never ends; if it does end, give it more. As many blocks run side by side as a device has room for: one that waits for what is not among them waits forever.";
    SIM_TRAP "E0809" "the kernel trapped"
        "The kernel executed `trap`, which ends it with an error: the author's way to say that something is impossible.";
    SIM_INVALID "E0810" "an instruction used against its rules"
        "The operands break a rule of the PTX manual: a barrier number, a membermask that lacks the executing thread, a byte count. The message says which.";
    SIM_LANDING "E0811" "the result depends on when asynchronous copies land"
        "The kernel was run several times, with its asynchronous copies reading and writing as early and as late as the rules allow. The results differ: it reads the destination of a copy before waiting for it, or overwrites the source too soon. Look for a missing or too lax `cp.async.wait_group`.";
    SIM_PTX "E0812" "PTX that the simulator does not know"
        "The simulator knows most instructions of sm_70 to sm_90a code; docs/testing.md lists what it does not. It refuses what it does not know rather than skipping it. A syntax error in a text changed by hand looks the same. `--device cuda` has the driver judge.";
    SIM_LAUNCH "E0813" "the launch does not fit the kernel"
        "The PTX and the launch description do not go together. An entry does not exist, parameters have another number or other sizes, or there are more threads or more shared memory than possible.";
}
