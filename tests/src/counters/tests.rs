use super::compare::{self, Summary};
use super::csv::{self, Measured};
use super::launches::launches;
use super::metrics::{Group, METRICS};
use std::collections::BTreeMap;

#[test]
fn both_forms_of_the_profilers_table_are_read() {
    let raw = "==PROF== Connected to process 7\nkernel done\n\
        \"ID\",\"Process Name\",\"Kernel Name\",\"l1tex__a.sum\",\"smsp__b.sum\"\n\
        \"\",\"\",\"\",\"\",\"inst\"\n\
        \"0\",\"x, \"\"y\"\"\",\"scan(int *, int)\",\"1,024\",\"3\"\n\
        \"1\",\"x\",\"ring\",\"n/a\",\"12.00\"\n==PROF== Disconnected\n";
    let rows = csv::read(raw).unwrap();
    let measured = |kernel: &str, values: &[(&str, f64)]| Measured {
        kernel: kernel.to_owned(),
        values: values.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
    };
    let first = measured("scan", &[("l1tex__a.sum", 1024.0), ("smsp__b.sum", 3.0)]);
    assert_eq!(rows, [first.clone(), measured("ring", &[("smsp__b.sum", 12.0)])]);
    let long = "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n\
        \"0\",\"scan\",\"l1tex__a.sum\",\"\",\"1,024\"\n\"0\",\"scan\",\"smsp__b.sum\",\"inst\",\"3\"\n";
    assert_eq!(csv::read(long).unwrap(), [first]);
    let refused = csv::read("==ERROR== ERR_NVGPUCTRPERM - no permission").unwrap_err();
    assert!(refused.contains("ERR_NVGPUCTRPERM"), "{refused}");
}

#[test]
fn constants_loaded_on_the_tensor_pipe_are_no_products() {
    let products = METRICS.iter().find(|m| m.group == Group::Products).unwrap();
    let mut values = BTreeMap::from([("sm__inst_executed_pipe_tensor_op_hmma.sum".to_owned(), 75.0)]);
    assert_eq!(products.measured(&values), Some(75));
    values.insert("sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum".to_owned(), 72.0);
    assert_eq!(products.measured(&values), Some(3));
    assert_eq!(products.measured(&BTreeMap::new()), None);
}

/// Expected counts written in the profiler's form compare equal, and a changed count is found.
#[test]
fn expected_counts_survive_the_table_and_changes_do_not() {
    let expected = compare::expected(launches().unwrap()).unwrap();
    assert!(expected.len() >= 14);
    let mut measured = csv::read(&compare::csv(&expected)).unwrap();
    let (text, summary) = compare::table(&expected, &measured).unwrap();
    let all = Summary { equal: summary.counts, equal_launches: summary.launches, ..summary };
    assert_eq!((summary, summary.launches), (all, expected.len()), "{text}");
    // Every counter is needed by some launch.
    for metric in METRICS {
        assert!(text.contains(&format!("    {} ", metric.title())), "no launch has {}", metric.title());
    }
    let conflicts = "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum";
    let at = expected.iter().position(|e| e.counted.case.name == "transpose_plain 96").unwrap();
    *measured[at].values.get_mut(conflicts).unwrap() += 1.0;
    let (text, summary) = compare::table(&expected, &measured).unwrap();
    assert_eq!((summary.different, summary.equal_launches), (1, summary.launches - 1), "{text}");
    // A different number of instructions explains a different number of wavefronts, not itself.
    let executed = "smsp__sass_inst_executed_op_shared_ld.sum";
    *measured[at].values.get_mut(executed).unwrap() += 1.0;
    let (text, summary) = compare::table(&expected, &measured).unwrap();
    assert_eq!((summary.different, summary.explained), (0, 2), "{text}");
    *measured[at].values.get_mut("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum").unwrap() += 1.0;
    let (text, summary) = compare::table(&expected, &measured).unwrap();
    assert_eq!((summary.different, summary.explained), (1, 2), "{text}");
    // The counter of the unit alone may say more, where wavefronts are as expected.
    let (mut unit, mut fewer) =
        (csv::read(&compare::csv(&expected)).unwrap(), csv::read(&compare::csv(&expected)).unwrap());
    for (rows, by) in [(&mut unit, 7.0), (&mut fewer, -7.0)] {
        let count = rows[at].values.remove(conflicts).unwrap();
        rows[at].values.insert("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum".to_owned(), count + by);
    }
    let summaries = [unit, fewer].map(|rows| compare::table(&expected, &rows).unwrap().1);
    assert_eq!(summaries.map(|s| (s.different, s.explained)), [(0, 1), (1, 0)]);
    // Arrival order is not modelled if many warps gather lines; the allowed difference is limited.
    let wavefronts = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum";
    for (name, by, explained) in [("gemm.tile sm_80", 1.0, 1), ("gemm.tile sm_80", 448.0, 0), ("ring 11", 1.0, 0)] {
        let mut other = csv::read(&compare::csv(&expected)).unwrap();
        let at = expected.iter().position(|e| e.counted.case.name == name).unwrap();
        *other[at].values.get_mut(wavefronts).unwrap() += by;
        let summary = compare::table(&expected, &other).unwrap().1;
        assert_eq!((summary.explained, summary.different), (explained, 1 - explained), "{name} {by}");
    }
    // The counter of all loads may have some of a copy's sectors, not more than all.
    for (by, explained) in [(1.0, 1), (32.0, 1), (33.0, 0), (-1.0, 0)] {
        let mut other = csv::read(&compare::csv(&expected)).unwrap();
        let at = expected.iter().position(|e| e.counted.case.name == "copies copy16 rotated by a piece").unwrap();
        *other[at].values.get_mut("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum").unwrap() += by;
        let summary = compare::table(&expected, &other).unwrap().1;
        assert_eq!((summary.explained, summary.different), (explained, 1 - explained), "{by}");
    }
    measured[at].kernel = "another".to_owned();
    assert!(compare::table(&expected, &measured).is_err());
}
