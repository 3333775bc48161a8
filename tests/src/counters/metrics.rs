//! Which counter of the profiler holds which count of the simulator.
//!
//! Names are those of `ncu --query-metrics`; where several are given the first that the profiler knows is taken. The
//! `smsp__sass` ones are counted for each instruction by instrumented code, where a lane at least executes it; the others by the
//! units themselves. `smsp__inst_executed_op_*` has instructions whose predicate is false in every lane too: the dummies before an
//! `LDGSTS` (`@!PT LDS`), stores and loads that ptxas made of short branches. The tensor pipe of Hopper also executes packed f16
//! arithmetic (`HFMA2.MMA`, with which ptxas loads constants), which is subtracted. The counter of bank conflicts of `LDGSTS` is
//! not among them: it stays at zero whatever the copies cost; their wavefronts are compared.

use std::collections::BTreeMap;
use tilec_sim::{Counters, Counts};

/// A kind of access; what the assembler changes, it changes for a whole group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// `ld.shared`.
    SharedLoads,
    /// `st.shared`.
    SharedStores,
    /// `ldmatrix`.
    MatrixLoads,
    /// The shared side of `cp.async`.
    CopyWrites,
    /// The global side of `cp.async`.
    CopyReads,
    /// `ld.global`.
    GlobalLoads,
    /// `st.global`, `wmma.store` to global memory.
    GlobalStores,
    /// Matrix products.
    Products,
}

impl Group {
    /// The counts of the instructions of this group.
    fn counts(self, counters: &Counters) -> Counts {
        let mut sum = Counts::default();
        for row in &counters.rows {
            let words: Vec<&str> = row.instruction.split('.').collect();
            let has = |word: &str| words.iter().any(|w| w.split("::").next() == Some(word));
            let is = match self {
                Group::SharedLoads => matches!(words[0], "ld") && has("shared"),
                Group::SharedStores => matches!(words[0], "st") && has("shared"),
                Group::MatrixLoads => words[0] == "ldmatrix",
                Group::CopyWrites | Group::CopyReads => words[0] == "cp" && (has("ca") || has("cg")),
                Group::GlobalLoads => matches!(words[0], "ld") && has("global"),
                Group::GlobalStores => has("global") && (words[0] == "st" || row.instruction.starts_with("wmma.store")),
                Group::Products => words[0] == "mma" || row.instruction.starts_with("wmma.mma"),
            };
            if is {
                sum.executed += match self {
                    Group::Products => row.counts.executed * pieces(&words),
                    // A fragment is stored by several instructions, each a request.
                    Group::GlobalStores => row.counts.requests,
                    _ => row.counts.executed,
                };
                sum.wavefronts += row.counts.wavefronts;
                sum.ideal_wavefronts += row.counts.ideal_wavefronts;
                sum.parted += row.counts.parted;
                sum.requests += row.counts.requests;
                sum.sectors += row.counts.sectors;
            }
        }
        sum
    }
}

/// Machine instructions of a product on Hopper: `wmma` of 16 x 16 x 16 is two of 16 x 8 x 16, the others are one.
fn pieces(words: &[&str]) -> u64 {
    if words[0] == "wmma" { 2 } else { 1 }
}

/// Which number of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// Instructions executed.
    Executed,
    /// Wavefronts of shared memory.
    Wavefronts,
    /// Wavefronts beyond those that bank conflicts leave no choice about.
    Conflicts,
    /// Requests to global memory.
    Requests,
    /// Sectors of global memory.
    Sectors,
}

/// A count and the counters that hold it.
#[derive(Debug)]
pub struct Metric {
    /// What is counted.
    pub group: Group,
    /// Which number.
    pub number: Number,
    /// Counters, best first.
    pub names: &'static [&'static str],
    /// A counter whose events the first one includes; it is subtracted.
    pub less: Option<&'static str>,
}

impl Metric {
    /// Its name in tables.
    pub fn title(&self) -> String {
        let group = match self.group {
            Group::SharedLoads => "shared loads",
            Group::SharedStores => "shared stores",
            Group::MatrixLoads => "ldmatrix",
            Group::CopyWrites => "cp.async, shared",
            Group::CopyReads => "cp.async, global",
            Group::GlobalLoads => "global loads",
            Group::GlobalStores => "global stores",
            Group::Products => "products",
        };
        let number = match self.number {
            Number::Executed => "executed",
            Number::Wavefronts => "wavefronts",
            Number::Conflicts => "conflicts",
            Number::Requests => "requests",
            Number::Sectors => "sectors",
        };
        format!("{group}: {number}")
    }

    /// The profiler's count, if it has one.
    pub fn measured(&self, values: &BTreeMap<String, f64>) -> Option<u64> {
        let got = *self.names.iter().find_map(|name| values.get(*name))?;
        let less = self.less.and_then(|name| values.get(name)).copied().unwrap_or(0.0);
        Some((got - less).max(0.0) as u64)
    }

    /// The simulator's count.
    pub fn expected(&self, counters: &Counters) -> u64 {
        let counts = self.group.counts(counters);
        match self.number {
            Number::Executed => counts.executed,
            Number::Wavefronts => counts.wavefronts,
            Number::Conflicts => counts.conflicts(),
            Number::Requests => counts.requests,
            Number::Sectors => counts.sectors,
        }
    }
}

macro_rules! less {
    () => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

macro_rules! metrics {
    ($($group:ident $number:ident: $($name:literal)* $(less $less:literal)?;)*) => {
        &[$(Metric { group: Group::$group, number: Number::$number, names: &[$($name),*], less: less!($($less)?) }),*]
    };
}

/// All of them.
pub const METRICS: &[Metric] = metrics! {
    SharedLoads Executed: "smsp__sass_inst_executed_op_shared_ld.sum" "smsp__inst_executed_op_shared_ld.sum";
    SharedLoads Wavefronts: "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum";
    SharedLoads Conflicts: "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum";
    SharedStores Executed: "smsp__sass_inst_executed_op_shared_st.sum" "smsp__inst_executed_op_shared_st.sum";
    SharedStores Wavefronts: "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum";
    SharedStores Conflicts: "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum";
    MatrixLoads Executed: "smsp__sass_inst_executed_op_ldsm.sum" "smsp__inst_executed_op_ldsm.sum";
    MatrixLoads Wavefronts: "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum"
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum";
    MatrixLoads Conflicts: "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum"
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum";
    CopyWrites Executed: "smsp__sass_inst_executed_op_ldgsts.sum" "smsp__inst_executed_op_ldgsts.sum";
    CopyWrites Wavefronts: "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum";
    CopyReads Requests: "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts.sum"
        "smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum";
    CopyReads Sectors: "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum"
        "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum";
    GlobalLoads Executed: "smsp__sass_inst_executed_op_global_ld.sum" "smsp__inst_executed_op_global_ld.sum";
    GlobalLoads Requests: "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
    GlobalLoads Sectors: "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
    GlobalStores Executed: "smsp__sass_inst_executed_op_global_st.sum" "smsp__inst_executed_op_global_st.sum";
    GlobalStores Requests: "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum";
    GlobalStores Sectors: "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";
    Products Executed: "sm__inst_executed_pipe_tensor_op_hmma.sum" "smsp__inst_executed_pipe_tensor_op_hmma.sum"
        "sm__inst_executed_pipe_tensor.sum" less "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum";
};
