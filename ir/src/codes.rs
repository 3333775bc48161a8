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

/// Whether a code is an error of the text form, after which the program's meaning is unknown.
pub fn is_of_text(code: Code) -> bool {
    code.0.starts_with("E01")
}

codes! {
    BAD_CHARACTER "E0101" "a character or literal that the language does not have"
        "The text contains a character, number or string that is not part of the tile language. Numbers are decimal or 0x hexadecimal integers that fit 64 bits, or decimal fractions with an optional exponent.";
    EXPECTED "E0102" "an unexpected token"
        "The parser found another word or sign than the grammar requires here. The message names both. `docs/grammar.md` has the grammar.";
    TOO_DEEP "E0103" "nesting is too deep"
        "Expressions, blocks and layouts may nest 64 levels deep. Split the expression with `let`.";
    TOO_LARGE "E0104" "the source is too large"
        "A source file may have 1 MiB, a kernel 4096 statements. Tile programs are short; generated ones should be split.";

    OPEN_COMMENT "E0105" "a comment is never closed"
        "A comment that begins with `/*` runs to its `*/`; comments nest, so each `/*` inside needs a `*/` too. Use `//` for a comment up to the end of the line.";
    BAD_LAYOUT "E0106" "a layout cannot be read"
        "`layout` and `threads` are followed by a layout in CuTe notation, `((4,8),2):((1,16),8)`, or by the columns of its bits after `bits`. For shared memory `swizzle<B,M,S>` may follow on the same line. Shape and stride nest alike. The message points to the first character that does not fit.";
    RESERVED "E0107" "a word of the language is used as a name"
        "Words such as `copy`, `row`, `f16` or `max` belong to the language and cannot name parameters or variables. `tilec explain` lists them. Choose another name, for example `copy_`. A kernel may have the name of a function, such as `add`, `sum` or `max`.";
    REPEATED "E0108" "a clause or attribute is written twice"
        "`where`, `grid`, `schedule`, each item of a schedule and each attribute of a copy may be written once. Keep one of them; several preconditions go into one `where`, separated by commas.";
    WRONG_COUNT "E0109" "the wrong number of operands"
        "Every function has a fixed number of operands: `max(a, b)`, `select(c, a, b)`, `mma(a, b, acc)`. `strides (..)` has one stride per dimension.";
    UNKNOWN_ITEM "E0110" "a schedule has no such item"
        "A schedule may have `target`, `threads`, `warp_tile`, `k_warps`, `ctas`, `stages`, `raster`, `promote`, `pending`, `ping_pong`, `min_ctas`, `align_rows`, `stage_stores`, `stream_k`, `split_k`, `queue`, `overlap` and `cluster`. The compiler chooses what is left out.";
    UNKNOWN_NAME "E0201" "a name is not declared"
        "The name is no parameter, and no size or stride of a tensor. No statement before this one in the same or an enclosing block declares it. Run-time sizes are declared by using them in the shape of a tensor parameter. A tensor `A` of two dimensions declares its leading stride as `A_ld`.";
    DUPLICATE "E0202" "a name is declared twice"
        "A declaration cannot repeat a name from the kernel's header, the same block, or an enclosing block. Separate blocks may each declare the same name. Sizes (`M` in `gmem f16[M, K]`) and leading strides (`A_ld`) count as declarations.";
    UNKNOWN_FUNCTION "E0203" "no function has this name"
        "All functions are built in; a program cannot define functions. The note lists functions with similar names, or all functions; `tilec explain NAME` says what a function computes.";
    UNKNOWN_TYPE "E0204" "no element type has this name"
        "The element types are `f16`, `bf16`, `tf32`, `f32`, `f64`, `e4m3`, `e5m2`, `e2m1`, `ue8m0`, `i4`, `u4`, `i8`, `u8`, `i16`, `u16`, `i32`, `u32`, `i64`, `u64` and `bool`. A compile-time parameter may stand for one: `<T: f16 | bf16 = f16>`.";
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
        "Layouts inside a tile are linear over address bits, so extents of register and shared-memory tiles are powers of two. The compiler pads other extents, say from 80 columns to 128, if the result is the same. Windows of the tile then end where the written tile ends, and a reduction or product sums zeros beyond it. On sm_90a extents of products stay as they are if they are multiples of 8 up to 256. `wgmma` may have such columns (i8 and u8 above 32: multiples of 16), and 192 rows: 64 for each of three warpgroups. The depth is a multiple of 16 (8-bit types: of 32). If no `wgmma` takes them, they are padded, unless the schedule has `warp_tile` or `threads`. Extents of products above 256 must be powers of two. docs/language.md has the rules (types and places). Tensors have any extent: elements outside a tensor read as zero and are not written.";
    MMA_FORM "E0407" "a product in an unsupported form"
        "Products are statements `acc = mma(a, b, acc)`: they accumulate in place, and both operands are tiles (or windows of tiles) in shared memory, global memory, or registers. In roles on sm_90a one operand may be in registers, and the other a slot of a channel. Such a product is a wgmma. Warpgroups share its rows, 64 each or a multiple, or its columns if it is computed transposed.";
    NO_ATOM "E0408" "no instruction computes this product"
        "The target has no product instruction, tensor core or scalar, for these element types and this warp tile. Tiles with fewer rows or columns than the smallest instruction are padded, unless rows or columns are repeated, reshaped, joined or indices: the message names the place. There, copy the tile to a buffer first, and load what is needed from that.";
    WARP_TILE "E0409" "an invalid warp tile"
        "`warp_tile (WM, WN)` divides the accumulator tile into warps. Both extents are powers of two and at most the accumulator's. All warps have at most 1024 threads, and a thread's share of the accumulator must fit its registers. In a kernel with several products it must fit one of them. A row that is reduced, or used in another product, belongs to one warp. Leave it out to have a tile chosen for each product.";
    THREADS "E0410" "an invalid thread count"
        "Blocks have a power of two of threads, from 32 to 1024. With three warpgroups that multiply, they have 384.";
    NO_LAYOUT "E0411" "a register tile has no layout"
        "The compiler found no layout for a register tile: it meets neither memory nor a product nor a tile of the same shape. Write one after `layout`.";
    NOT_VECTORIZABLE "E0412" "a copy cannot have the requested width"
        "`vec n` requests n elements per access. The message names the missing fact; usually a `where` clause about a size or a leading dimension provides it. Elements of 4 bits are stored two at a time. `multiple 2` after the tensor promises even extents and strides; windows must begin at even positions.";
    HAZARD "E0413" "unordered accesses to the same memory"
        "Channels: a producer acquires a slot, fills it, and publishes it; a consumer waits for a slot, reads it, and releases it. The message names the missing step. The compiler explores all states of the synchronisation, so the proof holds for all trip counts. A slot is filled once, because the order in which two asynchronous copies land is not defined. Buffers: a `barrier` must stand between a write by one thread and a read or overwrite by another. A buffer belongs to one role; roles pass tiles through channels. TMA stores: the buffer is read until `await s, 0`, and the data has arrived only at the end of the kernel. So the kernel uses the tensor in no other way after that, and stores no element of it twice. Windows must advance by at least their extents from iteration to iteration, or be disjoint.";
    SMEM_LIMIT "E0414" "too much shared memory"
        "The buffers and channel slots of a block exceed what a block of the target may have. Use smaller tiles or fewer stages.";
    TOO_MANY_REGISTERS "E0415" "a register tile that no thread can hold"
        "A register tile is distributed over the threads of the block, and a thread has 255 registers. A tile that needs more than four times as many is an error. Use smaller tiles or more threads.";
    BAD_DIVISOR "E0416" "a divisor that is not positive"
        "Index arithmetic divides by positive numbers only. After binding the compile-time parameters a literal divisor is zero or negative.";
    K_WARPS "E0418" "a reduction that `k_warps` cannot split"
        "`k_warps n` gives each of n groups of warps a slice of every tile of the reduction. A slice is at least as deep as the product's instruction, and the message says how deep the tile must be. The groups share one accumulator tile with a sum for each group. The compiler makes it from `acc = mma(a, b, acc)`.";
    REGISTER_LIMIT "E0417" "a register tile that a thread cannot hold"
        "A thread has 255 registers of 32 bits. A register tile is distributed over the threads of the block; this one leaves each of them more than that. Use a smaller tile or more threads.";
    CANNOT_CHOOSE "E0430" "a parameter that cannot be chosen"
        "The compiler can choose an `auto` parameter that is the extent of a tile. It can also choose one that the schedule uses as `warp_tile`, `k_warps`, `stages`, `raster` or `threads`. This parameter is used for none of these. Give it a value.";
    NO_CHOICE "E0431" "no choice is legal"
        "The compiler searches values for the `auto` parameters among powers of two, and for some extents among other multiples. With the given values of the other parameters, every combination breaks a rule of the target or of the kernel. The note names the rule that the last combination broke. Change the given values, or give values for the `auto` parameters too.";
    UNKNOWN_SIZE "E0432" "no such size"
        "`--for NAME=VALUE` names run-time sizes of the kernel: the names that the shapes of its tensors declare.";
    VARIANTS_DIFFER "E0433" "variants with different interfaces"
        "One call launches a kernel with variants, and the sizes decide which variant runs. So all of them need the same interface: element types, orders of tensors and types of scalars. Promises (`ALIGN`), tiles and stages may differ. Compile programs with different interfaces into separate files.";
    NEVER_LAUNCHED "W0402" "a variant that is never launched"
        "A launch takes the first variant whose preconditions hold, in the order of the command line. This variant comes after one whose preconditions are not stronger, so it is never launched. Give the variant with the strongest preconditions first, such as `--variant ALIGN=8/1`.";
    FORBIDDEN_SIZE "E0434" "sizes that the kernel does not take"
        "`--for` names sizes that a precondition of the kernel, or of each of its variants, excludes. A kernel for these sizes could never be launched. Give other sizes, or compile with weaker preconditions (`--variant ALIGN=8/1`).";
    OTHER_GENERATION "W0403" "a card of another generation than the target"
        "`--card` names a card that runs code for the target, but has faster instructions that only code for its own generation can use. `auto` parameters are chosen for that card with the target's instructions. To use its instructions, give `--target` of the card's generation.";
    ONE_ELEMENT "W0404" "an operand that ends after one element"
        "A window of a tensor whose dimension has one element is combined with a tile that has more. Elements outside the tensor read as zero, so only the first row (or column) has the values of the tensor. To broadcast a vector, use `_` or stride 0: `bias: gmem f16[N]` with the window `bias[j..]`, or `bias: gmem f16[M, N] strides (0, 1)`.";
    OTHER_STEP "W0405" "a step that is not the extent of the tile"
        "`for k in a..b step s` runs over the tiles of a range, and a window `k..` has as many elements as the tile on the other side. With a larger step, elements between the windows are skipped. With a smaller step, windows overlap. Make the step the extent of the tile. If a skip or an overlap is meant, write the end of the window, `k..k + 32`, or `k..inf` for a window that continues past the range.";
    SPILLED "W0406" "tiles that exceed the registers of a thread"
        "A thread has at most 255 registers of 32 bits. It has fewer if the threads of a block, or of the blocks that share a multiprocessor, would need more than 65536 registers. A role may have its own number. The register tiles that are live at one statement need more. The assembler then spills: it keeps some of them in local memory, which is slow. Use smaller tiles or more threads, or let the compiler choose them (`BM = auto`): the search takes no candidate that spills if another is legal.";
    NO_WGMMA "W0407" "products that could be faster by wgmma"
        "On sm_90a warpgroups multiply tiles in shared memory by `wgmma`, about 1.5 times as fast as `mma.sync`. Types and extents of this product allow it, and the message names the statement that prevents it. The requirements are: operands are buffers (`let a = smem f16[128, 64]`), or windows at constant places of them (`a[.., 0..+32]`). Along the rows of a buffer such a window begins at a multiple of 32 bytes, or of 128 bytes if the rows lie across the reduction; along the other dimension at a multiple of 8. Copies of windows of tensors (`copy A[i * 128.., k..] -> a`) fill each buffer, before the product in the same block, with rows in multiples of 16 bytes (`where K % 8 == 0`). One operand may be a register tile instead. No copy depends on a value that threads compute, and no product of the kernel names another instruction. This is a warning if the model predicts that a launch takes more than a tenth longer, and a remark otherwise; `--for M=..` gives the sizes. A product with a written instruction (`mma<m16n8k16>(..)`) gets no warning.";
    NOT_AHEAD "W0408" "a loop that waits for its loads"
        "In a pipelined loop, copies from tensors into buffers run ahead, into several slots of each buffer, while earlier tiles are multiplied. The message names the statement that prevents this, so each iteration waits for its own loads. The requirements are: the loop's body itself copies windows without conversion, before the use of the buffer. Nothing outside of the loop uses the buffer, and shared memory has room for two slots. If a tile is converted, copy it first and convert it after that. Tiles that go through registers, for example because they are transposed, are loaded only one iteration ahead. Store the tensor in the order that the product needs. This is a warning if the model predicts that a launch takes more than a tenth longer, and a remark otherwise; `--for M=..` gives the sizes. A loop with `stages 1` written gets no warning.";
    NARROW "W0409" "accesses that could be wide"
        "Threads move 16 bytes of global memory at once if this is proved to be aligned. For that, the sizes and strides of the tensor are known multiples of that many elements (`A: gmem f16[M, K] multiple 8`, `where K % 8 == 0`). The message names the missing precondition. This is a warning if the model predicts that a launch takes more than a tenth longer, and a remark otherwise; `--for M=..` gives the sizes. Several variants of a kernel serve aligned and other sizes: `--variant ALIGN=8/1`. A copy with a written width (`vec 2`) gets no warning.";
    STORED_BY_THREADS "W0410" "results that TMA could store"
        "On sm_90a results of wgmma go through a buffer in shared memory. TMA stores them from there while the next tile is computed. The message names the statement that prevents it. This is a warning if the model predicts that a launch takes more than a tenth longer, and a remark otherwise; `--for M=..` gives the sizes. `stage_stores 0`, or a written width of the store (`vec 2`), gets no warning.";
    RACED "W0411" "stores of several blocks to the same elements"
        "The window of this store does not depend on one of the grid's indices. So all blocks along that axis store to the same elements, in no defined order, and any of them may be the last. If each block has a part of the result, combine the parts: `copy x -> Y[i..] add` (or `min`, `max`), into a tensor that holds zeros before the launch. Or leave the axis out of the grid, and loop over its range in the kernel. A store under a condition that depends on the index, or on numbers from memory, gets no warning.";
    PAST_END "W0412" "elements past the end that change a result"
        "A window reads as 0, or as the value of `fill`, past the end of its tensor. A reduction includes such elements. They do not change the result if they are neutral: zeros in a sum or a matrix product, `-inf` in a maximum. Here they are not neutral, or the compiler cannot prove it. So the result may be wrong for sizes that end within a tile. Ways out: `copy X[i, j..] -> x fill -inf`, for extremes and sums of exponentials. A mask by positions: `select(j + iota(x, 0) < N, x, 0.0)`. A precondition, if all sizes are multiples of the tile: `where N % 128 == 0`. A mean divides by the number of elements, `sum(x, 0) / N`, not by the extent of the tile. A text of `--emit tile`, whose schedule names a target, is not examined: the program from which it was made was.";
    NOT_COVERED "W0413" "a window that leaves out the rest of a dimension"
        "A window such as `X[i, 0..+1024]` has the first 1024 elements of a dimension with a run-time size. Nothing in the kernel reads the other elements: no loop, no axis of the grid, no other window. So larger sizes give a partial result, without an error. Declare the bound, `where N <= 1024`; a launch with a larger size is then an error. Or cover all elements: `for j in 0..N step 1024` with windows `j..`, or an axis of the grid. If the kernel is meant to use only the first elements, write the window's end, `copy X[i, ..4] -> x`. There is no warning for windows with an end, for windows that are stored to, and for sizes with a lower bound, `where N >= 1024`.";
    USED_ONCE "W0414" "a size that is used once"
        "A new name in the shape of a tensor declares a size. This name occurs in only one shape, and a similar name occurs in others. The similar name differs by a doubled letter, by case, or by exchanged letters. There is no warning about case if several names differ only in case, or one shape has both. If both are the same size, write one name; then a launch whose tensors disagree is an error. Otherwise use names that differ more.";
    COMMENTED "W0415" "a comment in place of a division"
        "`//` begins a comment in this language. It is not the integer division of Python: `let y = x // 2` means `let y = x`. Use `/`, which rounds down for indices and integers. For floats write `floor(x / 2.0)`. If it is a comment, begin it with a word.";
    UNPREDICTED "W0416" "values that no model chose"
        "The compiler chooses values of `auto` parameters by a model of the card, which predicts the time of each candidate. The model does not know this kernel; the message says why. So the parameters have plain values: tiles of 64, a depth of 32, and one stage, which means that loads do not run ahead. Give values: `-D STAGES=3`, or `STAGES = 3` in the source. Or write the kernel as the message says, for example with an operand whose tile has written extents.";
    CROSSED "W0417" "a vector that is read along another dimension"
        "Operands align at their last dimensions, as in NumPy. So a vector next to a tile of rows and columns has an element for each column. This vector has the size of the rows (`s: gmem f32[M]`), and begins where the stored window begins along the rows. It is read along the columns all the same: element (r, c) takes `s[i * 4 + c]`. `_` says that the vector broadcasts along the columns: `copy x * s[i * 4.., _] -> Y[i * 4.., j..]`. If there is a single row, write `s[i]`. There is no warning if both sizes are one by a precondition (`where M == N`).";
    DEPENDS_ON_CHOICE "E0435" "a result that depends on a chosen value"
        "The compiler may choose any value for an `auto` parameter, so the result must not depend on it. The parameter may be used in extents of tiles, steps of loops, and positions added to `iota`. It may be used in grids and loops over `ceildiv(N, BN)` tiles that begin at `i * BN`. A window `i * BN..` ends with its tensor, or as written (`i * BN..N`), and the tiles must reach that end. A loop over tiles may carry a sum or an extreme of values for each position, such as `x = mma(a, b, x)` and `m = max(m, maximum(abs(t), 1))`. It may also carry a sum of exponentials that is rescaled by an extreme (online softmax). Elements beyond the end of the range are zero, and must not change the result. If they would, mask them by an upper bound of positions that the compiler proves to be at most the end, such as `select(k + iota(t, 1) < K, t, -1.0e30)`. The kernel may store values for each position, and values that are the same for all tiles. It may store parts of a sum or an extreme by `add`, `max` or `min`. All other uses need a written value: `BN = 128` in the source, or `-D BN=128`. `BN = auto promised` promises that the result does not depend on it. docs/language.md has the rules (auto parameters).";
    SCALAR_PRODUCT "W0401" "a product of small floats without tensor cores for them"
        "The target has no tensor-core instruction for these element types and this warp tile. Products of f16, bf16 and tf32 then compile to scalar multiply-adds, which take many times longer. Operands of e4m3 and e5m2 are converted to f16, which is exact, and multiplied as f16. The results are correct in both cases. Products of f32 have no tensor cores on any target, and are no reason for this warning. Declare the operands as `tf32`, tensors and buffers: from sm_80 on tensor cores multiply them, with operands rounded to tf32. `require tensor cores`, and `tilec why --not 'tensor cores'`, say so of each product.";
    NOT_LOWERED "E0501" "a construct that cannot be compiled to PTX yet"
        "The program is valid, and `tilec run --device interp` runs it, but lowering has no code for the construct. No such construct is known. Hardware that the target lacks is E0504, and a written decision that cannot be carried out is E0505. This error is a gap in the compiler: please report it with the program.";
    INDEX_OVERFLOW "E0502" "an index may overflow"
        "Index arithmetic is exact. This expression can exceed 64 bits for admissible sizes, or divides by something that may not be positive.";
    ILLEGAL_PTX "E0503" "the generated PTX is not legal for the target"
        "The legality check found an instruction that the target or the PTX version lacks. This is a limitation of the lowering for the target.";
    TARGET_LACKS "E0504" "hardware that the target lacks"
        "The program needs hardware of a later target. TMA copies (`tma`), roles, producer warps and `ordered` warpgroups need sm_90a. Clusters (`cluster`, `ctas`) and `add` to bf16 need sm_90. For `add`, `min`, `max` and `exchange` the message lists the types that the target supports. For another type, combine in a tensor of a listed type, and convert it in a kernel after this one. Decisions that do not change the result can be left out; the compiler then chooses what the target has.";
    UNFIT "E0505" "a written decision that cannot be carried out"
        "Layouts, `threads` of copies, attributes of copies (`vec`, `matrix`, `async`, `tma`, `unaligned`, `fragment`), instructions, clusters and roles say how a program is computed. Here they contradict one another. For example, threads do not hold the elements that the instruction moves. Or different threads hold the operands of an operator. Or a role does something that its barriers do not count. The program is valid, and compiles if these decisions are left out or changed as the message says.";
    TOO_LONG "E0506" "a kernel of too many instructions"
        "Unrolled loops, and tiles of which each thread holds very many elements, are written out instruction by instruction. Unroll less, use smaller tiles, or more threads.";
    TYPE_MISMATCH "E0220" "types do not match"
        "The operands of an operator have equal element types, or one is implicitly widened to the other. So do a value and its destination. Floats of 8 and 16 bits widen to f32, f32 to f64, and integers to integers that represent all their values. Literals and indices take the type of the other operand. Every other conversion needs `cast<T>(x)`.";
    SHAPE_MISMATCH "E0221" "shapes do not match"
        "Tiles combine element by element: same rank, and in each dimension the same extent or an extent of 1, which broadcasts. Both sides of a copy have the same shape.";
    WRONG_OPERAND "E0222" "an operator does not work on this type"
        "Each operator works on some types: numbers, integers, floating-point numbers or conditions. `tilec explain` lists the operators.";
    MMA_TYPES "E0223" "no product has these element types"
        "f16, bf16, tf32, f32, e4m3 and e5m2 accumulate in f32; f16, e4m3 and e5m2 also in f16; f64 in f64; i8 and u8 in i32. Both operands have one type, with two exceptions: e4m3 and e5m2, and i8 and u8, may be mixed. Other operands are converted by `cast<T>(..)`.";
    MMA_SHAPE "E0224" "the tiles of a product do not match"
        "`mma(a, b, c)` multiplies a tile [M, K] with a tile [K, N] and adds a register tile [M, N].";
    NO_EXTENTS "E0225" "extents are missing"
        "A window of memory such as `A[i.., k..]` takes its extents from the tile on the other side of a copy or an operator. Here there is no such tile. Operands that broadcast give no extent: the sum of a row, a column, a vector. In a copy, and in the operand of a reduction, write the extents, each dimension in at least one window: `A[i * 64..+64, k..+32]`.";
    BAD_VIEW "E0226" "an invalid window"
        "A window is of a tensor, a shared-memory buffer, a channel slot or a register variable. For each dimension it has an index or a range: `start..`, `start..end`, `start..+extent`. Channels need a slot (`.put` or `.get`), nothing else has one. In a copy, dimensions of a tensor may have register tiles of integers in place of ranges (`X[rows, j..]`). These are the indices of elements that are gathered or scattered: of rows, or with the dimensions of the window (`X[i.., p]`) of single elements.";
    NOT_INDEX "E0227" "an index is expected"
        "Loop bounds, window starts, extents and grid sizes are exact integers: sizes, strides, grid indices, loop variables, integer literals and parameters, and arithmetic on them. In the body of a kernel, integers in registers and in memory may be indices, too. The host computes extents and grid sizes, so these may use only sizes and strides.";
    BAD_AXIS "E0228" "no such dimension"
        "Dimensions count from 0: a tile of rank 2 has axes 0 (down the rows) and 1 (along a row).";
    NOT_A_VALUE "E0229" "not a value"
        "Type and layout parameters, and channels as a whole, have no value that an expression could use.";
    MALFORMED "E0230" "the kernel is malformed"
        "The tables of the program contradict each other: an expression or statement used twice, a value declared twice or as something else. The text form cannot express this. It is a bug of the pass or tool that made the kernel.";
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
        "A launch has at most three axes. The first has 1 to 2^31 - 1 blocks, the others 1 to 65535: `grid (m: ceildiv(M, 128), n: ceildiv(N, 128))`.";
    BAD_SCHEDULE "E0238" "an invalid schedule item"
        "Schedule items are positive; `promote` may be 0, `pending`, `ping_pong`, `align_rows`, `stage_stores`, `stream_k` and `queue` are 0 or 1, `overlap` is 0 to 64. A requested item that is not possible is an error. A block has 32 to 1024 threads in whole warps. A cluster has 1, 2, 4 or 8 blocks in all, along axes that the grid has. `k_warps` and `split_k` are powers of two.";
    BAD_LOOP "E0239" "an invalid loop"
        "Loops count upward by at least 1. `unroll` repeats the body for every value of the loop variable, so the bounds must be known at compile time. Nested unrolled loops may make at most 4096 copies.";
    BAD_CONDITION "E0240" "an invalid condition"
        "All threads of a block take the same branch of an `if`, so its condition is a scalar, or a tile with one truth value. To select element by element, use `select(c, a, b)`.";
    BAD_CHANNEL "E0241" "an invalid use of a channel"
        "`acquire`, `publish`, `wait` and `release` take names of channels, each once. A channel has 1 to 1024 slots.";
    BAD_OVERLAY "E0244" "memory that cannot be reused"
        "`let x = smem T[..] over a, b` puts `x` in the memory of `a` and `b`, whose contents are lost. `a` and `b` are buffers or channels that do not reuse memory themselves. They must not be used again before they are declared again.";
    BAD_PLACE "E0249" "an invalid place in shared memory"
        "`let x = smem T[..] at n` puts x n bytes after the start of the block's shared memory, `channel T[..] slots s at n stride m` its slots, each m bytes after the previous one. Both are multiples of 128, and of 1024 where TMA copies fill or wgmma products read shared memory. Slots do not overlap, and all are within the shared memory of a block. A buffer that shares bytes with another is declared after the last use of the other. Without `at`, the compiler chooses the addresses.";
    BAD_LANES "E0250" "an invalid `elected`, `spread` or `changing`"
        "`elected`: one lane of the first warp executes a statement for all. It is for a role that only issues TMA loads (`role producer warps 4 elected`). It is also for a TMA load in another role and the `publish` that expects its bytes, and for a TMA store and its `await`. `spread` after the range of a loop that only awaits signals: each thread awaits some of them. `changing` after `o = o * a`: a warp skips the statement if all its factors are 1. Without these words, the compiler chooses.";
    BAD_ROLE "E0242" "an invalid role"
        "Roles are adjacent statements in the body of the kernel. Outside of roles there are only names (`let`), buffers, channels and barriers, because no role would execute other statements. Each role has its own name and 1 to 32 warps; all roles have at most 32 warps. Each may have 24 to 256 registers per thread in steps of 8, set for whole warpgroups (`setmaxnreg`). Registers that one role takes beyond its equal share must be released by another. A role with `replicas` consists of names and a loop, whose iterations its groups of warps execute alternately. `ordered` is directly in the body of that loop.";
    BAD_COPY "E0243" "a copy cannot have this attribute"
        "What each attribute of a copy needs:\n\n\
         * `vec n`: n is a power of two, and an access has at most 16 bytes.\n\
         * `check (..)`: dimensions of the window of global memory.\n\
         * `keep`: a copy into registers.\n\
         * `add`, `min` and `max`: a copy into global or shared memory.\n\
         * `threads`: a copy between two memories, because register tiles have their own layouts.\n\
         * `async`: a copy of a window of global memory into a channel's slot, from sm_80 on. It moves 4, 8 or 16 bytes at a time, without conversion.\n\
         * `unaligned n`: a load of a window of global memory, 16 bytes at a time, of elements of 1, 2 or 4 bytes. Only n elements, fewer than are loaded, are known to be aligned.\n\
         * `matrix`: a copy of a window of shared memory into a register tile of the same elements (8 or 16 bits, tf32), or of registers into shared memory (16 bits). Only `vec` may be combined with it.\n\
         * `prefetch`: a window of global memory, and a register tile of its extents.\n\
         * `tma`: a copy of a window of a tensor into a whole slot of a channel, or of a whole buffer to a window of a tensor, on sm_90a. The strides of the tensor are multiples of 16 bytes. There is no conversion and no other attribute. A store may have `add`, `min` or `max`, of types that TMA combines.\n\
         * `when c`: an access to global memory.\n\
         * `held x (-1, 0)`: a register tile of the same type and layout, which an earlier copy of the block has loaded from another window of the tensor, and the distance between the windows.";
    BAD_SIGNAL "E0247" "an invalid use of scratch memory"
        "`signal s[i]` and `await s[i]` use flags between blocks: a tensor parameter of one dimension of u32 that is declared `signals` and used for nothing else. All flags are 0 before a launch and after it. Elements that blocks exchange are in a tensor declared `scratch`. Neither can be an array of pointers. A block may wait only for blocks with a lower index in the grid, because those start first.";
    BAD_SEQUENCE "E0245" "kernels of a sequence do not match"
        "The kernels of a `sequence` are launched one after the other, and share parameters of the same name. Tensors of the same name need the same element type, shape and strides. Scalars of the same name need the same type and, if both have one, the same default. Rename a parameter that is not meant to be shared.";
    BAD_PLAN "E0248" "an invalid schedule of a statement"
        "`@(stage 1, cycle 512)` in front of a statement is its position in a software-pipelined loop. The statement runs as many iterations after stage 0 as its stage says, in the order of the cycles. Either no statement of a loop has a stage, or all have one. A slot is filled between `acquire` and `publish`, and a register tile is read before the next iteration writes it. `@(open) for ..` has no drain: stages in front of the last one only copy tiles, into slots or registers that nothing after the loop reads. `@(ragged) for ..` begins with the tile that has fewer elements; the loop must sum products. `@(producer)` gives a statement to the producer warps: copies into buffers or slots, and the `acquire` and `publish` around them. It is not allowed in a program that writes roles.";
    BAD_PARTIAL "E0251" "an invalid use of a tile of partial results"
        "`var l = reg f32[64, 1] layout L partial sum (0, 1) = 0.0`: lanes whose numbers differ in bits 0 and 1 hold partial results of the same elements. `copy l -> total` combines them: it adds them, or with `maximum` or `minimum` takes the extreme. Until then a statement may only apply operations that can be applied to each partial result: `l = l * a + sum(x, 1)`, where `a` does not depend on `l`. A partial sum begins with 0. Without `partial`, the pass `defer-reductions` finds such tiles.";
    BAD_TABLE "E0252" "an invalid table"
        "A table is declared in the header, `codes: const f32[4] = (0.0, 0.5, 1.0, 2.0)`. It has as many numbers as elements, each a number of its type: floats of up to 64 bits, whole numbers of up to 32. `codes[x]` reads the elements at the integer indices `x`, a tile or a scalar; an index outside of the table gives zero. A table has no windows and cannot be written. The tables of a kernel take at most 64 KiB of constant memory, with 4 bytes for an element, 8 for f64.";
    READ_UNWRITTEN "E0246" "a register variable is read that nothing wrote"
        "A register variable without an initial value is undefined until something is assigned or copied to it. Initialise an accumulator: `var acc = reg f32[BM, BN] = 0.0`.";
    LAYOUT_EXTENT "E0301" "a layout has gaps"
        "Layouts inside a tile are linear over address bits. An extent that is not a power of two counts as the next one, and elements beyond the extent do not exist. All threads must have the same registers of a tile without those elements. So bits that select threads are below the extent's lowest bit. Or they are the highest bits of a thread's number, and threads beyond the extent do not exist (384 threads for 192 rows).";
    LAYOUT_SIZE "E0302" "a layout is for a tile of another size"
        "A shared-memory layout has a mode for each dimension, with the extents of the tile. A register layout `(threads, values):(..)` gives positions in column-major order of the whole tile, from 0 to one less than the number of elements.";
    LAYOUT_COVER "E0303" "a layout misses elements"
        "Every element of a register tile must be held by some thread, and every element of a copy must be moved by some thread. The message says how many are.";
    LAYOUT_THREADS "E0304" "a layout is for another number of threads"
        "A register layout is for all threads of the block, or of the role it is in. A thread mode of stride 0 repeats the tile over further threads.";
    LAYOUT_BIJECTION "E0305" "a layout is not a bijection"
        "In shared memory every element has its own address and there are no gaps. The message names two elements that share an address, or the size of the gaps.";
    LAYOUT_FRAGMENT "E0306" "layouts that the instruction does not have"
        "A product instruction fixes which thread holds which element of its operands. The layouts of the register tiles must be such fragments, repeated over the tile in the same way for all operands. The message names the first bit of a lane, register or warp that disagrees.";

    NOT_READABLE "E0601" "the input cannot be read"
        "The source file does not exist, is a directory, or may not be read. `-` reads standard input.";
    NOT_TEXT "E0602" "the input is not text"
        "A source is UTF-8 text. The message names the first byte that is not.";
    NOT_WRITABLE "E0603" "the output cannot be written"
        "The directory of the output does not exist or may not be written, or the device is full. An output file is replaced as a whole or not touched at all.";
    NO_ASSEMBLER "E0604" "no assembler was found"
        "A cubin, a disassembly and real register counts need NVIDIA's ptxas and nvdisasm. The command looks for them in TILEC_PTXAS and TILEC_NVDISASM, in PATH, in CUDA_HOME and in the project's own cache. `scripts/fetch_tools.sh` fetches pinned versions into that cache. If a variable is set, only that tool is tried. It is an error if that tool does not run or does not support the target. PTX output needs none of them.";
    ASSEMBLER_REFUSED "E0605" "the assembler refuses the PTX"
        "ptxas found an error in PTX that tilec wrote. This is a bug of tilec, or an assembler too old for the target; please report it with the source.";
    ASSEMBLER_FAILED "E0606" "the assembler failed"
        "ptxas or nvdisasm could not be started, crashed, or took too long.";
    BAD_ARGUMENT "E0607" "a run-time argument is wrong"
        "`tilec run` takes NAME=VALUE for the sizes, strides and scalars of the kernel. Sizes are 0 to 2^31 - 1, strides at least 0, scalars numbers. Strides that are not given are those of packed tensors, scalars that are not given have their defaults.";
    MISSING_ARGUMENT "E0608" "a run-time argument is missing"
        "Every size of the kernel needs a value, and so does every stride and scalar without a default: `tilec run gemm.tile M=512 N=512 K=512`.";
    UNMET_PRECONDITION "E0609" "a precondition of the kernel does not hold"
        "The kernel has preconditions on sizes and strides (`where`, `multiple`), and these arguments violate one. The result would be undefined, so the kernel is not launched. Give other sizes, or compile with weaker preconditions, such as `-D ALIGN=1` for `examples/gemm.tile`.";
    TOO_BIG_TO_RUN "E0610" "the launch is too large"
        "The tensors exceed the memory limit of `tilec run`, or the grid has more blocks than a launch may have.";
    NO_GPU "E0611" "no GPU can be used"
        "`--device cuda` needs an NVIDIA GPU and its driver library (libcuda.so.1, nvcuda.dll), which tilec opens at run time. Without them `--device sim` runs the same PTX on the simulator, and so does `--device auto`, the default. Compiling needs neither.";
    LAUNCH_FAILED "E0612" "the launch failed"
        "The driver refused the module or the launch, or the kernel faulted. The message is the driver's.";
    LAUNCH_TIMEOUT "E0613" "the kernel did not finish in time"
        "`tilec run` ends a run after `--timeout` seconds, because a kernel may hang. The simulator is some ten thousand times slower than a GPU: choose smaller sizes, more `--sim-threads`, or a larger `--timeout`.";
    BAD_LAUNCH_FILE "E0615" "the launch description cannot be used"
        "`tilec run FILE.ptx --launch FILE.json` needs a launch contract with the PTX. `tilec IN.tile --emit launch` writes it. For PTX of another compiler, write it by hand; most fields are optional. `docs/launch-contract.md` has the fields and an example.";
    BAD_TENSOR_FILE "E0616" "a tensor file does not fit"
        "`--in NAME=FILE` reads the elements of a tensor as raw bytes, as NumPy's `tofile` writes them. They are little-endian, in row-major order of their index, without gaps for any strides. The file must have exactly as many bytes as the elements of the tensor; `--out NAME=FILE` writes the same format.";
    NOTHING_TO_TUNE "E0617" "nothing can be tuned"
        "`tilec tune` measures the values of `auto` parameters, in the order of the model's prediction. This program has no `auto` parameter, because `-D` or the source gives all values (`BM = 128`), or the model cannot predict the kernel. `tilec bench --variant NAME=A/B` measures values that you name.";
    BROKEN_DEMAND "E0619" "a requirement that the code does not meet"
        "A kernel says `require wgmma, registers <= 168`, or `--require` does, and the compiled code is different. The message names the statements that are responsible. The notes say why the fast path was not taken, and how to take it. `require` does not change the code; it only checks it.";
    DEMAND_UNCHECKED "W0602" "a requirement was not checked"
        "Registers and spills are known only from an assembler, and none was found. `scripts/fetch_tools.sh` fetches a pinned version; `TILEC_PTXAS` names another. Or a demand is about a prediction (`predicted >= 0.9 roofline`), and the model cannot predict the kernel; a note says why.";
    OTHER_LAUNCH "E0618" "the launch description belongs to other PTX"
        "`tilec run FILE.ptx --launch FILE.json` launches as the description says. PTX that was compiled for another target, or with other tiles, would compute something else. The notes say what differs. PTX of tilec names its contract in a comment, and the contract has that `id`. A description by hand needs no `id`; it is compared with the parameters and threads in the PTX. Compile both with the same options. The code of the PTX may be edited by hand: its launch contract stays the same.";
    ASSEMBLER_WARNS "W0601" "the assembler warns"
        "ptxas accepted the PTX with a warning, for example about spilled registers.";

    PRECONDITION "E0701" "a precondition does not hold"
        "The arguments violate a condition of the kernel's `where` clause. Choose others, or compile with weaker preconditions (`-D ALIGN=1`).";
    UNFIT_INPUT "E0702" "an argument is missing or does not fit"
        "A run needs a value for every size, scalar and tensor of the kernel, of the type that the kernel declares. Sizes are less than 2^31, strides at least 0. Compiled kernels assume that sizes are at least 1; `--zero K`, or `where K == 0` in a kernel, compiles for a size of 0. `tilec run` adds `--zero` if a size is given as 0.";
    INDEX_ARITHMETIC "E0703" "index arithmetic without a result"
        "An index computation divides by zero, does not fit 64 bits, or a loop has a step below 1.";
    OUT_OF_BOUNDS "E0704" "an access outside the bounds"
        "A copy accesses an element outside its tensor or buffer. If `check` leaves out the dimension, the access is undefined on the device. Add the dimension to `check`, or correct the index. A single index (without `..`) is never tested.";
    UNWRITTEN "E0705" "a value that was never written"
        "A result depends on an element of a register tile, a buffer or a channel slot that was never written. Initialise it, or copy all of it before it is read.";
    CHANNEL "E0706" "channel operations in the wrong order"
        "The order is `acquire`, fill `.put`, `publish`; then `wait`, read `.get`, `release`. At most n slots of a channel with n slots can be acquired or published and not yet released. A `wait` without a published slot would never end.";
    OUT_OF_FUEL "E0707" "the run was stopped"
        "The interpreter gives up after a bounded amount of work. Choose smaller sizes, or look for a loop that does not end.";
    OUT_OF_MEMORY "E0708" "the tiles are too large to interpret"
        "The interpreter bounds how many tile elements are live at once. Choose smaller tiles.";
    ILL_FORMED "E0709" "an ill-formed program"
        "The interpreter found an error that the verifier also refuses: extents that do not match, a name without a value, a window without extents.";
    STORED_TWICE "E0710" "two stores to one element"
        "A scatter (`copy y -> Y[rows, j..]`) stores two rows to the same row of the tensor, or a store with `apart` writes an element twice. It is undefined which value remains. Combine them (`add`, `min`, `max`), or use distinct indices; a row with an index outside the tensor, such as -1, is not stored.";

    SIM_ALLOWED "W0801" "an error that the run allows"
        "The PTX breaks a rule of the PTX ISA. Shipped compilers rely on it, and their hardware does what they expect. `--allow NAME` makes it a warning; docs/launch-contract.md has the names, and the hardware on which each was tested. `tilec explain E0805` explains the error.";
    SIM_OUT_OF_BOUNDS "E0801" "an access outside the memory of the launch"
        "A thread accessed global memory that belongs to no tensor: after its end, in front of it, or in a gap between its rows. Or it accessed shared memory beyond what the block has, or wrote a tensor that the launch contract says is only read. On a GPU this may fault, or silently read or overwrite other data. The message names the nearest tensor. Check the predicate and the address of the instruction.";
    SIM_MISALIGNED "E0802" "a misaligned access"
        "An access of n bytes needs an address that is a multiple of n. The simulator places tensors at odd multiples of the alignment that the launch contract requires, so that no larger alignment holds by chance. Require a larger alignment in the contract, or use narrower accesses.";
    SIM_UNINITIALISED "E0803" "a read of uninitialised memory"
        "A thread read a byte of shared, local or global memory that no thread had written. Often some threads do not write, or the index is outside of the written part. A tensor with `\"access\": \"write\"` in the launch contract is uninitialised before the launch.";
    SIM_UNDEFINED "E0804" "an undefined value reaches memory, an address or a branch"
        "A register that was never written, or a value computed from one, decides what the kernel does. Initialise the register on every path. Uninitialised elements of a vector load are undefined; they are an error only if they are used.";
    SIM_RACE "E0805" "a data race"
        "Nothing orders two accesses to the same bytes of shared or global memory, or to the registers of a wgmma product. At least one of them is a write. On a GPU the result depends on which comes first, so it may be wrong only rarely. Add what the note says between the two places of the message. It may be a barrier for both threads, or a wait for the copy or the product. It may be a proxy fence between ordinary accesses and those of TMA or wgmma. For the previous launch it is `griddepcontrol.wait`. In a loop it may be missing between the last access of one iteration and the first of the next. The order in the simulation does not matter: if copies are involved, `--sim-landing late` shows the other order.";
    SIM_DIVERGENCE "E0806" "a divergent warp at a warp-wide instruction"
        "Instructions marked `.aligned`, and instructions such as `mma.sync` and `ldmatrix`, need all threads of the warp at once. Some threads took another branch. Move the instruction out of the branch, or make the condition the same for the whole warp.";
    SIM_DEADLOCK "E0807" "a deadlock"
        "Every thread that has not ended waits for others. A barrier has fewer arrivals than it expects, or a phase that is waited for never completes. The message lists where threads wait, which threads have arrived, and which have exited. Look for a barrier inside a branch, a thread count that is not the block's, or a wait that comes before its arrival.";
    SIM_FUEL "E0808" "the instruction budget is spent"
        "Each block may execute `--fuel` instructions (counted by warp). A kernel that needs more probably never ends; if it does, increase `--fuel`. Only as many blocks run at once as on a device. A block that waits for a block that is not resident waits forever.";
    SIM_TRAP "E0809" "the kernel trapped"
        "The kernel executed `trap`, which ends it with an error. Kernels use it for conditions that must not occur.";
    SIM_INVALID "E0810" "an instruction used against its rules"
        "The operands break a rule of the PTX manual: a barrier number, a membermask that lacks the executing thread, a byte count. The message says which.";
    SIM_LANDING "E0811" "the result depends on when asynchronous copies land"
        "The kernel was run several times, with its asynchronous copies reading and writing as early and as late as the rules allow. The results differ: it reads the destination of a copy before waiting for it, or overwrites the source too soon. Look for a missing `cp.async.wait_group`, or one that leaves too many groups pending.";
    SIM_PTX "E0812" "PTX that the simulator does not know"
        "The simulator executes most instructions of sm_70 to sm_90a; docs/simulator.md lists the others. It refuses unknown instructions instead of skipping them. A syntax error in edited PTX gives the same error. `--device cuda` lets the driver check the PTX.";
    SIM_LAUNCH "E0813" "the launch does not fit the kernel"
        "The PTX and the launch description do not match. The entry does not exist, the number or sizes of parameters differ, or there are more threads or more shared memory than possible.";
}
