//! Rule 30: the marks `elected` (one lane acts for all), `spread` (a loop that only awaits signals is divided among
//! threads) and `changing` (warps skip multiplications by one).

use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::fix_locations::FixLocation;
use crate::kernel::StmtData;
use crate::lanes::{lanes, scaling};
use crate::types::Lanes;
use crate::verify::context::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut said = Vec::new();
    k.walk(k.body, &mut |k, _, s| said.extend(k.lanes[s].map(|own| (s, own))));
    if said.is_empty() {
        return;
    }
    let needed = lanes(k);
    for (s, own) in said {
        if needed.get(&s) == Some(&own) || own == Lanes::Changing && scaling(k, s).is_some() {
            continue;
        }
        let why = match (own, &k.stmts[s]) {
            (Lanes::Elected, StmtData::Role { .. }) => {
                "the role does more than issue TMA loads, which takes all of its threads"
            }
            (Lanes::Elected, _) => "only one lane would run this, and all threads that reach it must",
            (Lanes::Spread, _) => "the loop does more than await signals, and would do it in one thread each",
            (Lanes::Changing, _) => "a warp that skips this would change the result",
        };
        let note = match own {
            Lanes::Changing => {
                "`changing`: `o = o * a changing`, of register tiles of floating-point numbers; leave it out to have it chosen"
            }
            Lanes::Elected | Lanes::Spread => {
                "`elected`: TMA copies, what expects and awaits them, and roles that do nothing else; leave it out to have it chosen"
            }
        };
        let d = Diagnostic::error(codes::BAD_LANES, k.stmt_spans[s], why).with_note(note);
        // For a role or a loop the mark precedes those of its body.
        let word = k.spots_behind(Span { end: k.stmt_spans[s].start, ..k.stmt_spans[s] }, FixLocation::Lanes).next();
        cx.report(d.with_left_out(word));
    }
}
