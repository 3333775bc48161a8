//! Programs with known barriers, and programs that no barrier can repair.

/// Correct programs, and the number of barriers that they need.
pub(super) const GOOD: &[(&str, usize, &str)] = &[
    (
        "two slots, register staging",
        2,
        "let a = channel f16[32, 32] slots 2
         var s = reg f16[32, 32] = 0.0
         acquire a
         copy s -> a.put
         publish a
         wait a
         for k in 32..N step 32 {
             copy A[0.., k..] -> s
             acquire a
             copy s -> a.put
             publish a
             copy a.get -> O[0.., k..]
             release a
             wait a
         }
         copy a.get -> O[32.., 0..]
         release a",
    ),
    (
        "one slot",
        2,
        "let a = channel f16[32, 32] slots 1
         for k in 0..N step 32 {
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             wait a
             copy a.get -> O[0.., k..]
             release a
         }",
    ),
    (
        "three slots, two ahead",
        2,
        "let a = channel f16[32, 32] slots 3
         for i in 0..2 unroll {
             acquire a
             copy A[0.., i * 32..] -> a.put
             publish a
         }
         wait a
         for k in 64..N step 32 {
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             copy a.get -> O[0.., k..]
             release a
             wait a
         }
         copy a.get -> O[32.., 0..]
         release a
         wait a
         copy a.get -> O[0.., 32..]
         release a",
    ),
    (
        "a buffer filled once is fenced before the loop that reads it",
        1,
        "let a = smem f16[32, 32]
         copy A -> a
         for k in 0..N step 32 { copy a -> O[0.., k..] }",
    ),
    (
        "a buffer filled before a loop that may not run",
        1,
        "let a = smem f16[32, 32]
         copy A -> a
         for k in 32..N step 32 { copy a -> O[0.., k..] }
         copy a -> O[32.., 0..]",
    ),
    (
        "unrolled slices need no barriers of their own",
        2,
        "let a = smem f16[32, 32]
         for k in 0..N step 32 {
             copy A[0.., k..] -> a
             for kk in 0..32 step 8 unroll {
                 let x = reg f16[32, 8] = copy a[0.., kk..]
                 copy x -> O[0.., k + kk..]
             }
         }",
    ),
    (
        "each branch needs its own",
        3,
        "let a = smem f16[32, 32]
         for k in 0..N step 32 {
             copy A[0.., k..] -> a
             if n == 1 { copy a -> O[0.., k..] } else { copy a * 2.0 -> O[0.., k..] }
         }",
    ),
    (
        "one branch writes, what follows reads",
        2,
        "let a = smem f16[32, 32]
         copy A -> a
         if n == 1 { copy A[0.., 32..] -> a }
         copy a -> O",
    ),
    (
        "nested loops",
        3,
        "let a = smem f16[32, 32]
         let b = smem f16[32, 32]
         for i in 0..M step 32 {
             copy A[i.., 0..] -> a
             for j in 0..N step 32 {
                 copy A[i.., j..] -> b
                 copy a + b -> O[i.., j..]
             }
         }",
    ),
    (
        "a product reads its operands",
        2,
        "let a = smem f16[32, 32]
         var acc = reg f32[32, 32] = 0.0
         for k in 0..N step 32 {
             copy A[0.., k..] -> a
             acc = mma(a, transpose(a), acc)
         }
         copy acc -> O",
    ),
    (
        "barriers that are there are counted on",
        2,
        "let a = smem f16[32, 32]
         for k in 0..N step 32 {
             barrier
             copy A[0.., k..] -> a
             barrier
             copy a -> O[0.., k..]
         }",
    ),
    (
        "element by element, a buffer may be rewritten in place",
        2,
        "let a = smem f16[32, 32]
         copy A -> a
         copy a * 2.0 -> a
         copy a -> O",
    ),
    (
        "and beside a tile of which a thread has each element once",
        2,
        "let a = smem f16[32, 32]
         var x = reg f16[32, 32] layout (32,32):(1,32) = 1.0
         copy A -> a
         copy a * x -> a
         copy a -> O",
    ),
    (
        "a condition that holds once holds again",
        1,
        "let a = channel f16[32, 32] slots 1
         if n == 1 { acquire a copy A -> a.put publish a }
         if n == 1 { wait a copy a.get -> O release a }",
    ),
    (
        "a buffer over another waits for its readers",
        3,
        "let a = smem f16[32, 32]
         copy A -> a
         copy a -> O
         let x = smem f32[32, 32] over a
         copy A -> x
         copy x -> O[32.., 0..]",
    ),
    (
        "a buffer at the place of another",
        3,
        "let a = smem f16[32, 32] at 0
         copy A -> a
         copy a -> O
         let x = smem f16[32, 32] at 1024
         copy A -> x
         copy x -> O[32.., 0..]",
    ),
    (
        "a buffer behind another",
        2,
        "let a = smem f16[32, 32] at 0
         copy A -> a
         copy a -> O
         let x = smem f16[32, 32] at 2048
         copy A -> x
         copy x -> O[32.., 0..]",
    ),
    (
        "a buffer in the second slot of a ring",
        3,
        "let a = channel f16[32, 32] slots 2 at 0 stride 4096
         acquire a
         copy A -> a.put
         publish a
         wait a
         copy a.get -> O
         release a
         let x = smem f16[32, 32] at 4096
         copy A -> x
         copy x -> O[32.., 0..]",
    ),
    (
        "a buffer between the slots of a ring",
        2,
        "let a = channel f16[32, 32] slots 2 at 0 stride 4096
         acquire a
         copy A -> a.put
         publish a
         wait a
         copy a.get -> O
         release a
         let x = smem f16[32, 32] at 2048
         copy A -> x
         copy x -> O[32.., 0..]",
    ),
    (
        "a buffer over a ring, and the ring again over the buffer",
        4,
        "for k in 0..N step 32 {
             let a = channel f16[32, 32] slots 2
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             wait a
             copy a.get -> O
             release a
             wait a
             copy a.get -> O[32.., 0..]
             release a
             let x = smem f16[32, 32] over a
             copy A -> x
             copy x -> O[64.., 0..]
         }",
    ),
    (
        "two buffers over the same",
        5,
        "let a = smem f16[32, 32]
         copy A -> a
         copy a -> O
         let x = smem f16[32, 32] over a
         copy A -> x
         copy x -> O[32.., 0..]
         let y = smem f16[32, 32] over a
         copy A -> y
         copy y -> O[64.., 0..]",
    ),
    (
        "a TMA store waits for writers, the next writers for it",
        2,
        "let a = smem f16[32, 32]
         for k in 0..N step 32 {
             await a, 0
             copy A[0.., k..] -> a
             copy a -> O[0.., k..] tma
         }
         await a, 0",
    ),
    (
        "two buffers in turn",
        4,
        "let a = smem f16[32, 32]
         let b = smem f16[32, 32]
         for k in 0..N step 64 {
             await a, 1
             copy A[0.., k..] -> a
             copy a -> O[0.., k..] tma
             await b, 1
             copy A[0.., k + 32..] -> b
             copy b -> O[0.., k + 32..] tma
         }
         await b, 0",
    ),
    (
        "a tensor is loaded, or stored to by TMA",
        3,
        "let a = smem f16[32, 32]
         for k in 0..N step 32 {
             copy A[0.., k..] -> a
             if n == 1 { copy a -> O[0.., k..] tma await a, 0 } else { copy a + O[0.., k..] -> O[0.., k..] }
         }",
    ),
    ("no conflict, no barrier", 0, "let a = smem f16[32, 32]\n copy A -> a"),
];

/// Stores to one tensor, and the number of barriers that they need.
pub(super) const STORED: &[(&str, usize, &str)] = &[
    ("beside each other", 0, "copy x -> O[g * 32.., 0..] copy x -> O[g * 32.., 32..]"),
    ("one behind the other", 0, "copy x -> O[g * 64.., 0..] copy x -> O[g * 64 + 32.., 0..]"),
    ("of different tensors", 0, "copy x -> O[g * 32.., 0..] copy x -> A[g * 32.., 16..]"),
    ("that overlap", 1, "copy x -> O[g * 32.., 0..] copy x -> O[g * 32.., 16..]"),
    ("that overlap on a diagonal", 1, "copy x -> O[g * 32.., n..] copy x -> O[n.., g * 32..]"),
    ("three of which meet", 2, "copy x -> O copy x -> O[16.., 16..] copy x -> O"),
    ("the third of which meets the first", 1, "copy x -> O copy x -> O[0.., 32..] copy x -> O[16.., 0..]"),
    ("that add", 0, "copy x -> O add copy x -> O[16.., 0..] add"),
    ("of which one adds", 1, "copy x -> O copy x -> O[16.., 0..] add"),
    ("on two sides of a branch", 0, "if n == 1 { copy x -> O } else { copy x -> O[16.., 0..] }"),
    ("on sides of two branches", 0, "if n == 1 { copy x -> O } if n == 1 { } else { copy x -> O[16.., 0..] }"),
    ("of which one may not happen", 1, "copy x -> O if n == 1 { copy x -> O[16.., 0..] }"),
    ("that move on by their extent", 0, "for k in 0..N step 32 { copy x -> O[0.., k..] }"),
    ("that move on by less", 1, "for k in 0..N step 16 { copy x -> O[0.., k..] }"),
    ("that stay", 0, "for k in 0..N step 16 { copy x -> O[g * 32.., n..] }"),
    ("that come back to their places", 0, "for i in 0..M { for k in 0..N step 32 { copy x -> O[0.., k..] } }"),
    ("that come back to others", 1, "for i in 0..M { for k in 0..N step 32 { copy x -> O[0.., k + i..] } }"),
    ("in front of a loop over others", 0, "copy x -> O for k in 32..64 step 32 { copy x -> O[0.., k..] }"),
    ("in front of a loop", 1, "copy x -> O for k in 16..N step 32 { copy x -> O[0.., k..] }"),
    (
        "in two loops",
        1,
        "for k in 0..N step 32 { copy x -> O[0.., k..] } for k in 0..N step 32 { copy x -> O[0.., k..] }",
    ),
];

/// Programs that no barrier can repair: the message, and (in part) its path.
pub(super) const BAD: &[(&str, &str, &str, &str)] = &[
    (
        "a thread reads an element that another one, which holds it too, has written",
        "`a` is overwritten while other threads may still be reading it",
        "",
        "let a = smem f16[8, 8]
         var x = reg f16[8, 8] layout ((32,4),2):((1,0),32) = 1.0
         copy A -> a
         copy a * x -> a
         copy a -> O",
    ),
    (
        "used after its memory was taken over",
        "`a` is used after `x` reused its memory",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         let x = smem f16[32, 32] over a
         copy A -> x
         copy a -> O",
    ),
    (
        "used again in the next iteration without being declared",
        "`a` is used after `x` reused its memory",
        "after 1 iteration of the loop over `k`",
        "let a = channel f16[32, 32] slots 1
         for k in 0..N step 32 {
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             wait a
             copy a.get -> O
             release a
             let x = smem f16[32, 32] over a
             copy A -> x
         }",
    ),
    (
        "taken over on its way",
        "the memory of slot 0 of `a` is reused while asynchronous copies into it may be in flight",
        "",
        "let a = channel f16[32, 32] slots 1
         acquire a
         copy A -> a.put async
         publish a
         let x = smem f16[32, 32] over a
         copy A -> x
         copy x -> O",
    ),
    (
        "its bytes are taken on its way",
        "the memory of slot 0 of `a` is reused while asynchronous copies into it may be in flight",
        "",
        "let a = channel f16[32, 32] slots 1 at 0 stride 2048
         acquire a
         copy A -> a.put async
         publish a
         let x = smem f16[32, 32] at 1024
         copy A -> x
         copy x -> O",
    ),
    (
        "its bytes are taken while a TMA store reads them",
        "the memory of `a` is reused while a TMA store may still be reading it",
        "",
        "let a = smem f16[32, 32] at 0
         copy A -> a
         copy a -> O tma
         let x = smem f16[32, 32] at 1024
         copy A -> x
         copy x -> O
         await a, 0",
    ),
    (
        "used after its bytes were taken",
        "`a` is used after `x` reused its memory",
        "",
        "let a = smem f16[32, 32] at 0
         let x = smem f16[32, 32] at 1024
         copy A -> a
         copy a -> O",
    ),
    (
        "its contents are lost",
        "`x` is read before anything is written",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         let x = smem f16[32, 32] over a
         copy x -> O",
    ),
    (
        "missing publish",
        "would wait forever",
        "",
        "let a = channel f16[32, 32] slots 2
         acquire a
         copy A -> a.put
         wait a
         copy a.get -> O
         release a",
    ),
    ("wait before anything", "would wait forever", "", "let a = channel f16[32, 32] slots 2\n wait a\n release a"),
    (
        "missing release",
        "every slot of `a` is in use: slot 0 of `a` would be overwritten",
        "after 2 iterations of the loop over `k`",
        "let a = channel f16[32, 32] slots 2
         for k in 0..N step 32 {
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             wait a
             copy a.get -> O[0.., k..]
         }",
    ),
    (
        "get before wait",
        "no slot of `a` was waited for",
        "",
        "let a = channel f16[32, 32] slots 2
         acquire a
         copy A -> a.put
         publish a
         copy a.get -> O
         wait a
         release a",
    ),
    (
        "get after release",
        "no slot of `a` was waited for",
        "",
        "let a = channel f16[32, 32] slots 2
         acquire a
         copy A -> a.put
         publish a
         wait a
         release a
         copy a.get -> O",
    ),
    ("put before acquire", "no slot of `a` is acquired", "", "let a = channel f16[32, 32] slots 2\n copy A -> a.put"),
    (
        "put after publish",
        "no slot of `a` is acquired",
        "",
        "let a = channel f16[32, 32] slots 2
         acquire a
         copy A -> a.put
         publish a
         copy A -> a.put",
    ),
    ("publish before acquire", "no slot of `a` is acquired", "", "let a = channel f16[32, 32] slots 2\n publish a"),
    ("release before wait", "no slot of `a` was waited for", "", "let a = channel f16[32, 32] slots 2\n release a"),
    (
        "acquired twice",
        "`a` is acquired twice",
        "",
        "let a = channel f16[32, 32] slots 2\n acquire a\n acquire a\n copy A -> a.put\n publish a",
    ),
    (
        "never published",
        "slot 0 of `a` is acquired and never published",
        "",
        "let a = channel f16[32, 32] slots 2\n acquire a\n copy A -> a.put",
    ),
    (
        "published empty",
        "slot 0 of `a` is read before anything is written",
        "",
        "let a = channel f16[32, 32] slots 2\n acquire a\n publish a\n wait a\n copy a.get -> O\n release a",
    ),
    (
        "stale on the second round",
        "slot 0 of `a` is read before anything is written",
        "after 1 iteration of the loop over `k`",
        "let a = channel f16[32, 32] slots 1
         acquire a
         copy A -> a.put
         publish a
         for k in 0..N step 32 {
             wait a
             copy a.get -> O[0.., k..]
             release a
             acquire a
             publish a
         }",
    ),
    (
        "the drain of a loop that may not run",
        "would wait forever",
        "after 0 iterations of the loop over `k`",
        "let a = channel f16[32, 32] slots 2
         for k in 32..N step 32 {
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             wait a
             copy a.get -> O[0.., k..]
             release a
             if k == 32 { acquire a copy A[0.., k..] -> a.put publish a }
             if k > 64 { wait a release a }
         }
         wait a
         release a",
    ),
    (
        "read after a loop that may not run",
        "`a` is read before anything is written",
        "after 0 iterations of the loop over `k`",
        "let a = smem f16[32, 32]
         for k in 32..N step 32 { copy A[0.., k..] -> a }
         copy a -> O",
    ),
    (
        "one branch fills",
        "`a` is read before anything is written",
        "if `n == 1` does not hold",
        "let a = smem f16[32, 32]
         if n == 1 { copy A -> a }
         copy a -> O",
    ),
    (
        "one slot too few",
        "every slot of `a` is in use: slot 1 of `a`",
        "",
        "let a = channel f16[32, 32] slots 3
         for i in 0..4 unroll { acquire a copy A -> a.put publish a wait a release a }
         for i in 0..4 unroll { acquire a copy A -> a.put publish a }",
    ),
    (
        "stored again without waiting",
        "`a` is overwritten while a TMA store may still be reading it",
        "after 1 iteration of the loop over `k`",
        "let a = smem f16[32, 32]
         for k in 0..N step 32 { copy A[0.., k..] -> a copy a -> O[0.., k..] tma }
         await a, 0",
    ),
    (
        "one store too many in flight",
        "`a` is overwritten while a TMA store may still be reading it",
        "after 1 iteration of the loop over `k`",
        "let a = smem f16[32, 32]
         for k in 0..N step 32 { await a, 1 copy A[0.., k..] -> a copy a -> O[0.., k..] tma }
         await a, 0",
    ),
    (
        "a store that the end does not wait for",
        "a TMA store may still be reading `a` when its threads end",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         copy a -> O tma",
    ),
    (
        "memory that is taken over from a store",
        "the memory of `a` is reused while a TMA store may still be reading it",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         copy a -> O tma
         let x = smem f16[32, 32] over a
         copy A -> x
         copy x -> A
         await a, 0",
    ),
    (
        "a tensor that is loaded after a store",
        "`O` is used after a TMA store to it, which may not have arrived",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         copy a -> O tma
         await a, 0
         copy O -> a",
    ),
    (
        "a tensor that is loaded in the next iteration",
        "`O` is used after a TMA store to it",
        "after 1 iteration of the loop over `k`",
        "let a = smem f16[32, 32]
         for k in 0..N step 32 { await a, 0 copy O[0.., k..] -> a copy a -> O[0.., k..] tma }
         await a, 0",
    ),
    (
        "a tensor that is stored to in two ways",
        "a TMA store to `O`, which other copies of the same threads store to",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         copy A -> O
         copy a -> O tma
         await a, 0",
    ),
    (
        "nothing is stored",
        "`a` is read before anything is written to it",
        "",
        "let a = smem f16[32, 32]
         copy a -> O tma
         await a, 0",
    ),
    (
        "a thread's elements are others' in the transpose",
        "`a` is overwritten while other threads may still be reading it",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         copy transpose(a) -> a
         copy a -> O",
    ),
];
