use super::*;

/// Every number that is tried one by one, and the first of them, for indices of each form.
#[test]
fn places_are_those_that_are_found_by_trying() {
    let source = "kernel t(A: gmem f32[M, N] multiple 4) grid (i: ceildiv(M, 16), j: ceildiv(N, 32)) {\n\
        let r = ceildiv(M, 16) - 1 - i\nlet b = i / 3\nlet p = i % 3\n\
        for k in i * 2..min(N, i * 2 + 9) step 3 {\nvar x = reg f32[16, 8]\n\
        copy A[EXPR.., 0..] -> x\ncopy x -> A[0.., 0..]\n}\n}\n";
    for expr in ["i * 16 - 1", "r * 16", "b * 7 + p", "k", "k - i", "select(i < 2, 3 * i, 40 - i)", "(i * 5 + j) / 2"] {
        let module = tilec_ir::parser::parse(&source.replace("EXPR", expr), &mut tilec_ir::diag::Sink::new());
        let module = module.expect("it parses");
        let k = &module.kernels[0];
        let named = |name: &str| k.values.keys().find(|&v| k.values[v].name == name).expect("a name");
        let solver = Solver::new(k);
        let start = k.statement_data().find_map(|s| match s {
            StmtData::Copy { src, .. } => tilec_ir::typing::resolve_view(k, *src)?.dims[0].starts().first().copied(),
            _ => None,
        });
        let start = start.expect("a window");
        let sizes: Numbers = [(named("M"), 90), (named("N"), 70)].into();
        for wanted in [0, 5, 17, 33] {
            let bounds = Interval::new(wanted - 15, wanted);
            let all = [Constraint::Between { terms: vec![(start, 1)], constant: 0, bounds, apart: None }];
            let found = solver.solve(&all, &sizes, &Numbers::new());
            let mut tried = Vec::new();
            for i in 0..6 {
                for j in 0..3 {
                    for turn in 0..3 {
                        let k_now = i * 2 + turn * 3;
                        if k_now >= 70.min(i * 2 + 9) {
                            continue;
                        }
                        let mut at = sizes.clone();
                        at.extend([(named("i"), i), (named("j"), j), (named("k"), k_now)]);
                        if solver
                            .range(start, &at)
                            .is_some_and(|s| s.lo == s.hi && bounds.lo <= s.lo && s.lo <= bounds.hi)
                        {
                            tried.push(at);
                        }
                    }
                }
            }
            match (&found, tried.first()) {
                (Solution::At(at, count), Some(first)) => {
                    let at = &at[0];
                    assert!(at.iter().all(|(v, n)| first[v] == *n), "{expr} {wanted}: {at:?} {first:?}");
                    let blocks: BTreeSet<Vec<i64>> = tried
                        .iter()
                        .map(|t| {
                            at.keys().filter(|v| matches!(k.values[**v].def, ValueDef::Grid)).map(|v| t[v]).collect()
                        })
                        .collect();
                    assert_eq!(count.blocks, blocks.len(), "{expr} {wanted}");
                }
                (Solution::Nowhere, None) => {}
                other => panic!("{expr} {wanted}: {other:?}"),
            }
        }
        // Without sizes the rows of `r` alone depend on them.
        let all =
            [Constraint::Between { terms: vec![(start, 1)], constant: 0, bounds: Interval::new(0, 15), apart: None }];
        let open = solver.solve(&all, &Numbers::new(), &Numbers::new());
        assert_eq!(matches!(&open, Solution::Unknown(names) if names == &["M"]), expr == "r * 16", "{expr}: {open:?}");
    }
}
