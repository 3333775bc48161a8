//! A launch watched and ended from another thread, and names of shared memory.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use tilec_sim::{Device, Launch, Options, Program, Progress, ReportKind};

const TEXT: &str = ".version 7.0\n.target sm_80\n.address_size 64\n.shared .b32 first[4];\n\
    .extern .shared .align 16 .b8 rest[];\n\
    .visible .entry spin()\n{\n.shared .align 8 .b64 second[2];\nL: bra L;\n}\n\
    .visible .entry ends()\n{\nret;\n}\n";

fn run(entry: &str, blocks: u32, threads: usize, progress: &Arc<Progress>) -> Result<(), ReportKind> {
    let program = Program::parse(TEXT).unwrap();
    let options = Options { threads, progress: Some(Arc::clone(progress)), ..Options::default() };
    let launch =
        Launch { entry: entry.into(), grid: [blocks, 1, 1], block: [64, 1, 1], dynamic_smem: 0, params: Vec::new() };
    Device::new().run(&program, &launch, &options).map(|_| ()).map_err(|report| {
        assert_eq!(report.place.as_ref().map(|p| p.ptx_line), Some(9), "{report}");
        report.kind
    })
}

#[test]
fn a_launch_that_does_not_end_is_ended() {
    for threads in [1, 2] {
        let progress = Arc::new(Progress::default());
        let watched = Arc::clone(&progress);
        let running = std::thread::spawn(move || run("spin", 5, threads, &watched));
        progress.cancel();
        assert_eq!(running.join().unwrap(), Err(ReportKind::Cancelled));
        assert_eq!(progress.blocks(), 0);
    }
}

#[test]
fn finished_blocks_are_counted() {
    for threads in [1, 3] {
        let progress = Arc::new(Progress::default());
        run("ends", 70, threads, &progress).unwrap();
        assert_eq!(progress.blocks(), 70);
    }
}

#[test]
fn shared_memory_has_names() {
    let program = Program::parse(TEXT).unwrap();
    let name = |entry, at| program.shared_variable(entry, at);
    assert_eq!(name("spin", 5), Some(("first", 5)));
    // Each variable is followed by a gap of 128 bytes.
    assert_eq!(name("spin", 17), None);
    assert_eq!(name("spin", 145), Some(("second", 1)));
    assert_eq!(name("spin", 159), Some(("second", 15)));
    assert_eq!(name("spin", 356), Some(("rest", 68)));
    assert_eq!(name("ends", 228), Some(("rest", 84)));
    assert_eq!(name("nothing", 0), None);
}
