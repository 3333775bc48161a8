//! Control flow and synchronisation (PTX 9.7.12, 9.7.13, 9.7.19).

use super::row::{Row, table};
use crate::parse::sem;

pub(super) const ROWS: &[Row] = table! {
    // 9.7.12 control flow
    "bra" "uni?", "l" => sem::bra;
    "brx" "idx uni?", "s:b32 t" => sem::brx;
    "ret" "uni?", "" => sem::exit;
    "exit" "", "" => sem::exit;
    "trap" "", "" => sem::trap;
    "brkpt" "", "" => sem::trap;
    // 9.7.13 synchronisation
    "bar" "cta? sync", "s:b32 s:b32?" => sem::bar;
    "bar" "cta? arrive", "s:b32 s:b32" => sem::bar;
    "barrier" "cta? sync aligned?", "s:b32 s:b32?" => sem::bar;
    "barrier" "cta? arrive aligned?", "s:b32 s:b32" => sem::bar;
    "bar" "cta? red popc u32", "d s:b32 q" => sem::bar_red;
    "bar" "cta? red popc u32", "d s:b32 s:b32 q" => sem::bar_red;
    "bar" "cta? red and|or pred", "p s:b32 q" => sem::bar_red;
    "bar" "cta? red and|or pred", "p s:b32 s:b32 q" => sem::bar_red;
    "barrier" "cta? red popc aligned? u32", "d s:b32 q" => sem::bar_red;
    "barrier" "cta? red popc aligned? u32", "d s:b32 s:b32 q" => sem::bar_red;
    "barrier" "cta? red and|or aligned? pred", "p s:b32 q" => sem::bar_red;
    "barrier" "cta? red and|or aligned? pred", "p s:b32 s:b32 q" => sem::bar_red;
    "bar" "warp sync", "s:b32" => sem::bar_warp;
    "membar" "cta|gl|sys", "" => sem::fence;
    "membar" "proxy alias", "" => sem::nop;
    "fence" "sc|acq_rel|acquire|release? cta|cluster|gpu|sys", "" => sem::fence;
    // The restriction limits which accesses are ordered; here the fence orders all.
    "fence" "acquire sync_restrict::shared::cluster cluster", "" => sem::fence;
    "fence" "release sync_restrict::shared::cta cluster", "" => sem::fence;
    "shfl" "sync up|down|bfly|idx b32", "dp s s s s" => sem::shfl;
    "vote" "sync all|any|uni pred", "p q s:b32" => sem::vote;
    "vote" "sync ballot b32", "d q s" => sem::vote;
    "match" "any sync b32|b64", "d:b32 s s:b32" => sem::match_sync;
    "match" "all sync b32|b64", "dp_:b32 s s:b32" => sem::match_sync;
    "activemask" "b32", "d" => sem::active_mask;
    "redux" "sync add|min|max u32|s32", "d s s:b32" => sem::redux;
    "redux" "sync and|or|xor b32", "d s s:b32" => sem::redux;
    // 9.7.13.15 mbarrier
    "mbarrier" "init shared|shared::cta? b64", "m s:b32" => sem::mbarrier;
    "mbarrier" "inval shared|shared::cta? b64", "m" => sem::mbarrier;
    "mbarrier" "expect_tx|complete_tx shared|shared::cta|shared::cluster? b64", "m s:b32" => sem::mbarrier;
    "mbarrier" "expect_tx|complete_tx relaxed cta|cluster shared|shared::cta|shared::cluster? b64", "m s:b32" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop shared|shared::cta? b64", "d_:b64 m s:b32?" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop release|relaxed cta|cluster shared|shared::cta? b64", "d_:b64 m s:b32?" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop shared::cluster b64", "_ m s:b32?" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop release|relaxed cta|cluster shared::cluster b64", "_ m s:b32?" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop expect_tx shared|shared::cta? b64", "d_:b64 m s:b32" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop expect_tx release|relaxed cta|cluster shared|shared::cta? b64", "d_:b64 m s:b32" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop expect_tx shared::cluster b64", "_ m s:b32" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop expect_tx release|relaxed cta|cluster shared::cluster b64", "_ m s:b32" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop noComplete shared|shared::cta? b64", "d_:b64 m s:b32" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop noComplete release cta shared|shared::cta? b64", "d_:b64 m s:b32" => sem::mbarrier;
    "mbarrier" "test_wait shared|shared::cta? b64", "p m s:b64" => sem::mbarrier;
    "mbarrier" "test_wait acquire|relaxed cta|cluster shared|shared::cta? b64", "p m s:b64" => sem::mbarrier;
    "mbarrier" "test_wait parity shared|shared::cta? b64", "p m s:b32" => sem::mbarrier;
    "mbarrier" "test_wait parity acquire|relaxed cta|cluster shared|shared::cta? b64", "p m s:b32" => sem::mbarrier;
    "mbarrier" "try_wait shared|shared::cta? b64", "p m s:b64 s:b32?" => sem::mbarrier;
    "mbarrier" "try_wait acquire|relaxed cta|cluster shared|shared::cta? b64", "p m s:b64 s:b32?" => sem::mbarrier;
    "mbarrier" "try_wait parity shared|shared::cta? b64", "p m s:b32 s:b32?" => sem::mbarrier;
    "mbarrier" "try_wait parity acquire|relaxed cta|cluster shared|shared::cta? b64", "p m s:b32 s:b32?" => sem::mbarrier;
    "mbarrier" "pending_count b64", "d:b32 s:b64" => sem::pending_count;
    "cp" "async mbarrier arrive noinc? shared|shared::cta? b64", "m" => sem::mbarrier;
    "elect" "sync", "dp_:b32 s:b32" => sem::elect;
    "fence" "proxy alias", "" => sem::nop;
    "fence" "proxy async global|shared::cta|shared::cluster?", "" => sem::proxy_fence;
    "fence" "mbarrier_init release cluster", "" => sem::proxy_fence;
    // 9.7.19 miscellaneous
    "nanosleep" "u32", "s" => sem::nop;
    "pmevent" "mask?", "i" => sem::nop;
    "griddepcontrol" "wait|launch_dependents", "" => sem::grid_dependency;
};
