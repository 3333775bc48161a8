//! The slots of the channels of a kernel with roles over time, by the clock of [`tilec_passes::timeline`]: whoever wrote the roles.

use super::lines::DIM;
use super::picture::{Picture, Room};
use super::roles::tick;
use super::svg::{Anchor, Key, STRONG, Svg, TINTS};
use crate::compile::CompiledKernel;
use tilec_ir::entities::Value;
use tilec_passes::timeline::{SlotUse, Timeline};

const WIDTH: f64 = 1360.0;
const ROW: f64 = 22.0;
const TOP: f64 = 44.0;
/// What a slot is: being filled, full, being read.
const STATES: [(&str, &str); 3] = [("f", TINTS[6]), ("=", TINTS[3]), ("r", TINTS[0])];

/// The picture; none: no role has a channel.
pub(super) fn picture(kernel: &CompiledKernel, prefix: &str) -> Option<Picture> {
    let t = kernel.tile.timeline().ok()?;
    let k = &kernel.tile.kernel;
    let first = t.slots.first()?;
    let span = k.values[first.channel].span;
    let title =
        format!("Slots of the channels over time, by the rates of the model and not measured: {} clocks", t.end());
    let svg = draw(&t, &|v| k.values[v].name.clone(), &title);
    Some(Picture { title, span, ..Picture::new(Room::Time, format!("{prefix}slots"), svg) })
}

fn draw(t: &Timeline, name: &dyn Fn(Value) -> String, title: &str) -> String {
    let mut rows: Vec<(Value, u64)> = t.slots.iter().map(|s| (s.channel, s.slot)).collect();
    rows.sort_unstable();
    rows.dedup();
    let label = |(channel, slot): (Value, u64)| format!("{} slot {slot}", name(channel));
    let left = rows.iter().map(|&row| Svg::wide(&label(row))).fold(0.0, f64::max) + 20.0;
    let scale = WIDTH / t.end().max(1) as f64;
    let x = |clock: u64| left + clock as f64 * scale;
    let bottom = TOP + rows.len() as f64 * ROW;
    let mut svg = Svg::new(left + WIDTH + 20.0, bottom + 8.0, title);
    for (i, &(channel, slot)) in rows.iter().enumerate() {
        let y = TOP + i as f64 * ROW;
        svg.text(left - 8.0, y + 15.0, Anchor::End, &label((channel, slot)));
        for s in t.slots.iter().filter(|s| (s.channel, s.slot) == (channel, slot)) {
            for ((from, to), (sign, fill)) in states(s, t.end()).into_iter().zip(STATES) {
                let (wide, text) = ((to - from) as f64 * scale, format!("{sign}{}", s.number));
                if wide > 0.0 {
                    svg.rect((x(from), y + 2.0), (wide, ROW - 4.0), fill);
                }
                if wide > Svg::wide(&text) + 2.0 {
                    svg.text(x(from) + wide / 2.0, y + 15.0, Anchor::Middle, &text);
                }
            }
            if let Some(released) = s.released {
                svg.line((x(released), y), (x(released), y + ROW), STRONG, false);
            }
        }
    }
    for clock in (0..=t.end()).step_by(tick(scale) as usize) {
        svg.line((x(clock), 26.0), (x(clock), bottom), "#bbbbbb", true);
        svg.colored(x(clock) + 2.0, 36.0, Anchor::Start, DIM, &clock.to_string());
    }
    svg.colored(left - 8.0, 36.0, Anchor::End, DIM, "clock");
    svg.key(Key::Cell(STATES[0].1), "f3: being filled for the fourth use of the channel (they count from 0)");
    svg.key(Key::Cell(STATES[1].1), "=3: full, and nobody reads it yet");
    svg.key(Key::Cell(STATES[2].1), "r3: being read");
    svg.key(Key::Line(STRONG), "the last reader released the slot: its `empty` barrier completes");
    svg.note("Where f ends, the `full` barrier completes: the producer has published the slot, and the bytes of its loads have landed.");
    svg.note("Clocks are those of `roles`, which shows what the warpgroups do meanwhile.");
    svg.done()
}

/// From when to when a use of a slot is being filled, full, and being read.
fn states(s: &SlotUse, end: u64) -> [(u64, u64); 3] {
    let released = s.released.unwrap_or(end).max(s.full);
    let read = s.read.unwrap_or(released).clamp(s.full, released);
    [(s.acquired.min(s.full), s.full), (s.full, read), (read, released)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_filled_then_full_then_read() {
        let channel = Value::from_u32(0);
        let used = SlotUse { channel, number: 0, slot: 0, acquired: 5, full: 9, read: Some(12), released: Some(20) };
        assert_eq!(states(&used, 100), [(5, 9), (9, 12), (12, 20)]);
        let last = SlotUse { read: None, released: None, ..used };
        assert_eq!(states(&last, 100), [(5, 9), (9, 100), (100, 100)]);
    }
}
