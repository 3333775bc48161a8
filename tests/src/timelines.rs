//! Roles in time: what the model's clock has warpgroups and units do agrees with the program.

use std::fs;
use std::path::Path;
use tilec::xray::compiled;
use tilec::{CompileOptions, Compiled, Target};
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData};
use tilec_passes::timeline::{Event, Timeline, Unit};

fn program(source: &str, values: &[(&str, &str)]) -> Compiled {
    let own = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = CompileOptions { target: Target::Sm90a, variants: vec![own], ..CompileOptions::default() };
    compiled(source, &options).expect("compiles")
}

fn example(name: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples")).join(name);
    fs::read_to_string(path).unwrap()
}

fn timeline(program: &Compiled) -> (&Kernel, Timeline) {
    let k = &program.kernels[0].tile;
    let t = k.timeline().expect("it has roles");
    check(&t);
    (&k.kernel, t)
}

/// Nobody does two things at once, and a wait says for what.
fn check(t: &Timeline) {
    let apart = |of: Vec<&Event>, what: &str| {
        let mut of = of;
        of.sort_by_key(|e| e.begin);
        for pair in of.windows(2) {
            assert!(pair[0].end <= pair[1].begin, "{what}: {pair:?}");
        }
    };
    for row in 0..t.rows.len() {
        apart(t.events.iter().filter(|e| e.row == row).collect(), &format!("{:?}", t.rows[row]));
    }
    for unit in Unit::ALL {
        apart(t.units.iter().filter(|(u, _)| *u == unit).map(|(_, e)| e).collect(), unit.name());
    }
    for e in t.events.iter().filter(|e| e.waits) {
        let line = t.lines.iter().find(|l| l.number == Some(e.number)).expect("its line");
        assert!(line.waits_for.is_some(), "{e:?} of {line:?} waits for nothing");
    }
}

fn of(t: &Timeline, unit: Unit) -> Vec<&Event> {
    let mut all: Vec<&Event> = t.units.iter().filter(|(u, _)| *u == unit).map(|(_, e)| e).collect();
    all.sort_by_key(|e| e.begin);
    all
}

/// Attention as the compiler schedules it: a row for each warpgroup, both products of each, and special functions of one beside products of the other.
#[test]
fn loops_of_several_products_have_a_row_for_each_warpgroup() {
    let program = program(&example("attention.tile"), &[]);
    let (k, t) = timeline(&program);
    let groups: Vec<_> = t.rows.iter().map(|r| (r.role.as_str(), r.warpgroup, r.elected)).collect();
    assert_eq!(groups, [("producer", None, true), ("consumer", Some(0), false), ("consumer", Some(1), false)]);
    let products = of(&t, Unit::TensorCores);
    for row in [1, 2] {
        let own: Vec<&&Event> = products.iter().filter(|e| e.row == row).collect();
        let sums: std::collections::BTreeSet<_> = own
            .iter()
            .map(|e| {
                let line = t.lines.iter().find(|l| l.number == Some(e.number)).expect("its line");
                let StmtData::Assign { dst, .. } = k.stmts[line.stmt] else { panic!("no product") };
                dst
            })
            .collect();
        assert_eq!(sums.len(), 2, "the scores and the sums");
        // 64 x 128 x 128 multiply-adds of a warpgroup at 2048 per clock.
        assert!(own.iter().all(|e| e.end - e.begin == 512), "{own:?}");
    }
    let special = of(&t, Unit::SpecialFunctions);
    let meets = |a: &Event, b: &Event| a.row != b.row && a.begin < b.end && b.begin < a.end;
    assert!(special.iter().any(|s| products.iter().any(|p| meets(s, p))), "one computes while the other multiplies");
    // The schedule has the second product of an iteration in the next one: the tensor cores do both one after the other.
    let again = |pair: &[&Event]| pair[0].row == pair[1].row && pair[0].iteration == pair[1].iteration + 1;
    assert!(products.windows(2).any(again));
}

/// Two replicas multiply whole tiles in turns: while one multiplies the other stores.
#[test]
fn ping_pong_alternates() {
    let source = example("gemm.tile").replace("raster RASTER ", "raster RASTER ping_pong 1 ");
    let values = [("BM", "128"), ("BN", "128"), ("BK", "64"), ("WM", "128"), ("WN", "128"), ("KW", "1")];
    let values = [&values[..], &[("STAGES", "4"), ("RASTER", "8"), ("Out", "f16")]].concat();
    let program = program(&source, &values);
    let (_, t) = timeline(&program);
    let products = of(&t, Unit::TensorCores);
    let replicas: Vec<u32> = products.iter().filter_map(|e| t.rows[e.row].replica).collect();
    assert_eq!(replicas, [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]);
    let iterations: Vec<u64> = products.iter().map(|e| e.iteration).collect();
    assert_eq!(iterations, (0..12).collect::<Vec<_>>());
    let stores = of(&t, Unit::Stores);
    assert_eq!(stores.len(), 4);
    let beside = |s: &Event| products.iter().any(|p| p.row != s.row && p.begin < s.end && s.begin < p.end);
    assert!(stores[..3].iter().all(|s| beside(s)), "{stores:?}");
}

/// Attention whose roles are in the source: a slot is filled again when both warpgroups have released it, and read when its bytes have landed.
#[test]
fn roles_of_the_source_hand_slots_over() {
    let program = program(&example("flash_attention.tile"), &[]);
    let (k, t) = timeline(&program);
    let number = |wanted: ChannelOp, channel: &str| {
        let is = |s: &StmtData| matches!(s, StmtData::Channel { op, channels, .. } if *op == wanted && k.values[channels[0]].name == channel);
        t.lines.iter().find(|l| is(&k.stmts[l.stmt])).and_then(|l| l.number).expect("a numbered line")
    };
    for (channel, slots) in [("ks", 2), ("vs", 2)] {
        let when = |op: ChannelOp, iteration: u64| {
            let number = number(op, channel);
            let all = t.events.iter().filter(move |e| e.number == number && !e.waits && e.iteration == iteration);
            all.map(|e| (e.begin, e.end)).collect::<Vec<_>>()
        };
        for iteration in 0..t.iterations {
            let [filled] = when(ChannelOp::Publish, iteration)[..] else { panic!("one role fills it") };
            let waits = when(ChannelOp::Wait, iteration);
            assert!(waits.len() == 2 && waits.iter().all(|w| w.0 >= filled.1 + t.latency), "{channel} {iteration}");
            let Some(before) = iteration.checked_sub(slots) else { continue };
            let [acquired] = when(ChannelOp::Acquire, iteration)[..] else { panic!("one role fills it") };
            let released = when(ChannelOp::Release, before);
            assert!(released.len() == 2 && released.iter().all(|r| r.1 <= acquired.0), "{channel} {iteration}");
        }
    }
    let figures = &tilec::xray::of(&program, None).kernels[0].figures;
    assert!(figures.iter().all(|(name, _)| name != "picture of a loop in time"), "{figures:?}");
}

/// A kernel without roles has none in time, and programs with roles of every kind have.
#[test]
fn programs_with_roles_have_them_in_time() {
    for name in ["conv2d.tile", "back_to_back.tile", "gemm_w4a16.tile", "attention_backward.tile", "gemm_splitk.tile"] {
        let program = program(&example(name), &[]);
        let timed = program.kernels.iter().filter_map(|k| k.tile.timeline().ok()).inspect(check).count();
        assert!(timed > 0, "{name}");
        assert!(tilec::xray::of(&program, None).pictures.iter().any(|p| p.name.ends_with("roles")), "{name}");
    }
    let rows = program(&example("softmax.tile"), &[]);
    assert_eq!(rows.kernels[0].tile.timeline(), Err("the kernel has no roles"));
}
