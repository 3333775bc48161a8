//! Permissions for the bytes of an allocation: gaps between elements, read-only memory, memory that is written first.
//! Every form of access to global memory is tested, in every landing mode.
#![allow(clippy::unwrap_used, reason = "tests")]

use tilec_sim::{
    Device, Landing, Launch, Memory, Options, Outside, Program, Report, ReportKind, Swizzle, TensorElement, TensorMap,
};

/// Rows of 8 words, 12 words apart.
const ROWS: u64 = 3;
const ROW: u64 = 32;
const APART: u64 = 48;
const BYTES: u64 = (ROWS - 1) * APART + ROW;
/// The words `i` of the rows are `i`.
const FILL: u8 = 0xff;

/// How the tensor is there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    /// Elements may be read and written.
    Open,
    /// And what is between them read.
    Padded,
    /// Elements may be read.
    ReadOnly,
    /// Elements may be read when they are written.
    Unwritten,
}

/// `%a` is the address of the tensor, `%map` that of its map, `%wide` that of a map without gaps, `%s` that of shared memory; one
/// thread of a warp executes the body where it is predicated with `%p7`.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 a, .param .align 64 .b8 map[128], .param .align 64 .b8 wide[128])\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<4>;\n.reg .b32 %r<16>, %t, %b, %s;\n.reg .b64 %rd<8>, %a, %map, %wide;\n.reg .f32 %f<8>;\n\
         .shared .align 1024 .b8 sm[1024];\n.shared .align 8 .b64 bar;\nld.param.u64 %a, [a];\nmov.b64 %map, map;\n\
         cvta.param.u64 %map, %map;\nmov.b64 %wide, wide;\ncvta.param.u64 %wide, %wide;\nmov.u32 %t, %tid.x;\nmov.u32 %s, sm;\n\
         mov.u32 %b, bar;\nsetp.eq.u32 %p7, %t, 5;\nmov.u32 %r0, 1;\nmov.u32 %r1, 1;\nmov.u32 %r2, 0;\nmov.u64 %rd0, 1;\n\
         mad.lo.u32 %r9, %t, 16, %s;\nst.shared.v4.u32 [%r9], {{%r2, %r2, %r2, %r2}};\n@%p7 mbarrier.init.shared.b64 [%b], 1;\n\
         fence.proxy.async;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n{body}\nret;\n}}\n"
    )
}

/// The address that a report names, counted from the tensor's, and the report; else the tensor.
fn run(is: Is, body: &str, landing: Landing) -> Result<Vec<u8>, (i64, Box<Report>)> {
    let text = kernel(body);
    let program = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut device = Device::new();
    let a = device.alloc_behind(16, BYTES).unwrap();
    device.make_gap(a, BYTES as usize).unwrap();
    if is == Is::Padded {
        device.upload(a, &[FILL; BYTES as usize]).unwrap();
    }
    for row in 0..ROWS {
        let at = a + row * APART;
        device.fill_gap(at, ROW as usize).unwrap();
        device.upload(at, &(0..8u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
        if is == Is::Unwritten {
            device.forget(at, ROW as usize).unwrap();
        }
    }
    device.set_read_only(a, is == Is::ReadOnly).unwrap();
    let map = |row: u64| {
        let map = TensorMap {
            element: TensorElement::U32,
            address: a,
            dims: vec![row, ROWS],
            strides: vec![APART],
            box_dims: vec![12, 4],
            element_strides: vec![1, 1],
            swizzle: Swizzle::None,
            outside: Outside::Zero,
            pixels: None,
        };
        map.encode().unwrap().to_vec()
    };
    let params = vec![a.to_le_bytes().to_vec(), map(8), map(12)];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
    match device.run(&program, &launch, &Options { landing, fuel: 100_000, ..Options::default() }) {
        Ok(_) => Ok(device.download(a, BYTES as usize).unwrap()),
        Err(report) => Err((report.address.unwrap_or(0) as i64 - a as i64, report)),
    }
}

#[track_caller]
fn good(is: Is, body: &str) -> Vec<u8> {
    let mut all = Landing::ALL.map(|l| run(is, body, l).unwrap_or_else(|(_, r)| panic!("{is:?}, {l:?}: {r}\n{body}")));
    assert!(all.iter().all(|one| *one == all[0]), "{body}");
    std::mem::take(&mut all[0])
}

/// The report is of this kind, names this byte of the tensor, the last line of the body and the thread.
#[track_caller]
fn bad(is: Is, body: &str, kind: ReportKind, byte: i64) {
    for landing in Landing::ALL {
        let (at, report) = run(is, body, landing).expect_err(body);
        assert_eq!((report.kind, at, report.memory), (kind, byte, Some(Memory::Global)), "{is:?}: {report}\n{body}");
        let place = report.place.as_ref().unwrap();
        let line = kernel(body).lines().nth(place.ptx_line as usize - 1).unwrap().to_owned();
        assert!(body.lines().last().unwrap().starts_with(&line), "{report}\n{body}");
        assert_eq!(place.thread, [5, 0, 0], "{report}");
    }
}

const COMMIT: &str = "\n@%p7 cp.async.bulk.commit_group;\n@%p7 cp.async.bulk.wait_group 0;";
const WAIT: &str = "\nL: mbarrier.try_wait.parity.shared.b64 %p1, [%b], 0;\n@!%p1 bra L;";

/// Loads whose first byte in a gap is the one named.
const LOADS: [(&str, i64); 8] = [
    ("@%p7 ld.global.u32 %r3, [%a+32];", 32),
    ("@%p7 ld.global.u8 %h0, [%a+47];", 47),
    ("@%p7 ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%a+80];", 80),
    ("@%p7 ld.global.nc.u64 %rd1, [%a+40];", 40),
    ("@%p7 ld.volatile.global.u32 %r3, [%a+36];", 36),
    ("@%p7 ld.u32 %r3, [%a+92];", 92),
    ("@%p7 cp.async.ca.shared.global [%s], [%a+32], 16;", 32),
    ("@%p7 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%a], 48, [%b];", 32),
];

/// Stores and updates whose first byte in a gap is the one named.
const STORES: [(&str, i64); 10] = [
    ("@%p7 st.global.u32 [%a+32], %r0;", 32),
    ("@%p7 st.global.u8 [%a+47], %r0;", 47),
    ("@%p7 st.global.v4.u32 [%a+80], {%r0, %r0, %r0, %r0};", 80),
    ("@%p7 st.volatile.global.u64 [%a+40], %rd0;", 40),
    ("@%p7 st.u32 [%a+92], %r0;", 92),
    ("@%p7 red.global.add.u32 [%a+32], %r0;", 32),
    ("@%p7 atom.global.exch.b64 %rd1, [%a+40], %rd0;", 40),
    ("@%p7 atom.global.cas.b32 %r3, [%a+80], %r0, %r0;", 80),
    ("@%p7 cp.async.bulk.global.shared::cta.bulk_group [%a], [%s], 48;", 32),
    ("@%p7 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a], [%s], 48;", 32),
];

#[test]
fn gaps_are_read_by_nobody() {
    for (body, at) in LOADS {
        bad(Is::Open, body, ReportKind::OutOfBounds, at);
        bad(Is::ReadOnly, body, ReportKind::OutOfBounds, at);
    }
    let wide = "@%p7 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%wide, {%r2, %r2}], [%b];";
    bad(Is::Open, wide, ReportKind::OutOfBounds, 32);
}

#[test]
fn gaps_are_written_by_nobody() {
    for is in [Is::Open, Is::Padded, Is::Unwritten] {
        for (body, at) in STORES {
            // Reductions read unwritten memory in front of the gap, but they also access a gap.
            bad(is, body, ReportKind::OutOfBounds, at);
        }
        let wide = "@%p7 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%wide, {%r2, %r2}], [%s];";
        bad(is, wide, ReportKind::OutOfBounds, 32);
    }
    // Half of it is an element: the report names the half that is not.
    let half =
        "add.u64 %a, %a, 4;\n@%p7 st.global.v2.u32 [%a+20], {%r0, %r0};\n@%p7 st.global.v2.u32 [%a+28], {%r0, %r0};";
    bad(Is::Open, half, ReportKind::OutOfBounds, 32);
}

/// A kernel that shifts elements out of whole words may find anything between them.
#[test]
fn gaps_may_be_read_where_the_host_put_something() {
    for (body, _) in LOADS.iter().filter(|(body, _)| !body.contains("bulk")) {
        good(Is::Padded, body);
    }
    let expect = "@%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%b], 48;\n";
    good(Is::Padded, &format!("{expect}{}{WAIT}", LOADS[7].0));
    let word = "@%p7 ld.global.u32 %r3, [%a+32];\n@%p7 st.global.u32 [%a], %r3;";
    assert_eq!(good(Is::Padded, word)[..8], [FILL, FILL, FILL, FILL, 1, 0, 0, 0]);
}

#[test]
fn what_is_only_read_is_not_written() {
    for (body, _) in STORES.iter().filter(|(body, _)| !body.contains("bulk")) {
        let element =
            ["32", "47", "80", "40", "92"].iter().fold((*body).to_owned(), |b, n| b.replace(&format!("+{n}]"), "+16]"));
        bad(Is::ReadOnly, &element, ReportKind::ReadOnly, 16);
        good(Is::Open, &element);
    }
    for (body, _) in &STORES[8..] {
        let row = body.replace(" 48;", " 32;");
        bad(Is::ReadOnly, &row, ReportKind::ReadOnly, 0);
        good(Is::Open, &format!("{row}{COMMIT}"));
    }
    for (body, _) in &LOADS[..7] {
        let element = ["32", "36", "47", "80", "40", "92"]
            .iter()
            .fold((*body).to_owned(), |b, n| b.replace(&format!("+{n}]"), "+16]"));
        good(Is::ReadOnly, &element);
    }
}

#[test]
fn what_is_written_first_is_read_afterwards() {
    for body in [
        "ld.global.u32 %r3, [%a+60];",
        "red.global.add.u32 [%a+60], %r0;",
        "cp.async.ca.shared.global [%s], [%a+60], 4;",
    ] {
        bad(Is::Unwritten, &format!("@%p7 {body}"), ReportKind::Uninitialised, 60);
        let after = format!("@%p7 st.global.u32 [%a+60], %r0;\n@%p7 {body}");
        // For the host the others hold what they held.
        let elements: Vec<u8> = (0..8u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(good(Is::Unwritten, &after)[..32], elements);
    }
    // Of several words the first that is missing and goes to a register is named.
    let one = "@%p7 st.global.u32 [%a], %r0;\n@%p7 ld.global.v2.u32 {_, %r4}, [%a];";
    bad(Is::Unwritten, one, ReportKind::Uninitialised, 4);
}

/// A box may be wider than the tensor and its strides than its rows: what is not in the tensor is not touched.
#[test]
fn boxes_end_with_their_tensor() {
    let load = "@%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%b], 192;\n\
                @%p7 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%map, {%r2, %r2}], [%b];";
    let store = "@%p7 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {%r2, %r2}], [%s];";
    good(Is::ReadOnly, &format!("{load}{WAIT}"));
    good(Is::Open, &format!("{load}{WAIT}"));
    let after = good(Is::Unwritten, &format!("{store}{COMMIT}"));
    assert!(after.iter().all(|byte| *byte == 0));
    bad(Is::ReadOnly, store, ReportKind::ReadOnly, 0);
}

/// Rows may begin and end inside a word, and what surrounds a tensor is not a part of it.
#[test]
fn single_bytes_are_told_apart() {
    let program = |body: &str| Program::parse(&kernel(body)).unwrap();
    let outcome = |body: &str| {
        let mut device = Device::new();
        // Rows of 3 bytes, 5 apart.
        let a = device.alloc_behind(1, 13).unwrap();
        device.make_gap(a, 13).unwrap();
        for row in 0..3 {
            device.fill_gap(a + 5 * row, 3).unwrap();
            device.upload(a + 5 * row, &[1; 3]).unwrap();
        }
        let params = vec![a.to_le_bytes().to_vec(), vec![0; 128], vec![0; 128]];
        let launch = Launch { entry: "k".into(), grid: [1; 3], block: [32, 1, 1], dynamic_smem: 0, params };
        device
            .run(&program(body), &launch, &Options::default())
            .map(|_| ())
            .map_err(|r| (r.kind, r.address.unwrap().wrapping_sub(a)))
    };
    for at in 0..13u64 {
        let want = if at % 5 < 3 { Ok(()) } else { Err((ReportKind::OutOfBounds, at)) };
        assert_eq!(outcome(&format!("@%p7 ld.global.u8 %h0, [%a+{at}];")), want, "{at}");
        assert_eq!(outcome(&format!("@%p7 st.global.u8 [%a+{at}], %r0;")), want, "{at}");
    }
    // The address is odd: words begin at the third byte, and the last is half outside.
    assert_eq!(outcome("@%p7 ld.global.u16 %h0, [%a+5];"), Ok(()));
    assert_eq!(outcome("@%p7 ld.global.u16 %h0, [%a+7];"), Err((ReportKind::OutOfBounds, 8)));
    assert_eq!(outcome("@%p7 st.global.u16 [%a+9], %r0;"), Err((ReportKind::OutOfBounds, 9)));
    assert_eq!(outcome("@%p7 st.global.u32 [%a+11], %r0;"), Err((ReportKind::OutOfBounds, 13)));
    assert!(outcome("@%p7 ld.global.u8 %h0, [%a+-1];").is_err() && outcome("@%p7 st.global.u8 [%a+13], %r0;").is_err());
}
