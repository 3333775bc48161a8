//! The memory of a launch ([`tilec_launch::simulator`]), filled while the clock is watched.

use crate::console::clock::Clock;
use tilec_launch::simulator::Watch;
pub(super) use tilec_launch::simulator::{Memory, difference, parameters};

impl Watch for Clock {
    fn begin(&mut self, what: String, total: u64) {
        Clock::begin(self, what, total);
    }

    fn more_of(&mut self, elements: usize) -> bool {
        Clock::more_of(self, elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Access;
    use crate::contract::launch_file::contracts;
    use crate::contract::number::Args;
    use crate::run::data;
    use crate::run::program::bind_program;
    use tilec_launch::program::Aliases;

    /// No larger alignment than the one requested holds, and the allocation ends with the last element.
    #[test]
    fn tensors_lie_at_odd_multiples_of_their_alignment() {
        for align in [1u64, 2, 4, 8, 16, 128, 256, 512, 4096] {
            let json = format!(
                r#"{{"entry": "k", "block": 1, "grid": 1,
                "params": [{{"name": "a", "type": "f32", "shape": [2, 3], "strides": [4, 1], "align": {align}, "access": "read"}}]}}"#
            );
            let contract = contracts(&json, "").expect("a description").kernels.remove(0);
            let bound = bind_program(&[&contract], &Args::new()).expect("no arguments");
            assert_eq!(bound.tensors[0].access, Access::Read);
            let mut clock = Clock::new(std::time::Duration::from_secs(3600), false);
            let tensors = [data::poisoned(&bound.tensors[0], &mut clock)];
            let memory = Memory::new(&[&contract], &bound, &tensors, &Aliases::new(), 1, &mut clock);
            let memory = memory.expect("small");
            let base = memory.tensors[0].argument();
            assert_eq!((base % align, base / align % 2), (0, 1), "{align}: {base:#x}");
            assert_eq!(parameters(&contract, &bound, &memory, &[]), [base.to_le_bytes()]);
            assert!(memory.device.download(base, 28).is_ok() && memory.device.download(base, 29).is_err());
            assert!(memory.device.download(base - 1, 1).is_err());
        }
    }
}
