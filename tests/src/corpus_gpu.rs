//! A launch of the corpus on a GPU, compared with the simulator's results.

use crate::corpus::{Agreement, Case, Param, data};
use tilec::cuda::{Device, LaunchArg, Shape};

/// Guard bytes after every buffer, which must not be written.
const GUARD: usize = 256;
/// What they hold.
const PATTERN: u8 = 0xC3;

/// Launches once: contents of the outputs.
///
/// # Errors
/// The driver refuses, the kernel faults, or it writes after a buffer.
pub fn launch(device: &Device, case: &Case) -> Result<Vec<Vec<u8>>, String> {
    let module = device.load_ptx(&case.ptx).map_err(|e| e.to_string())?;
    let function = module.function(&case.entry).map_err(|e| e.to_string())?;
    if case.dynamic > function.max_dynamic_smem().map_err(|e| e.to_string())? {
        function.set_max_dynamic_smem(case.dynamic).map_err(|e| e.to_string())?;
    }
    let (mut args, mut buffers) = (Vec::new(), Vec::new());
    for param in &case.params {
        let (bytes, written) = match param {
            Param::In(bytes) => (bytes, false),
            Param::Out(bytes) => (bytes, true),
            Param::Value(bytes) => {
                args.push(scalar(bytes)?);
                continue;
            }
        };
        let buffer = device.alloc(bytes.len() + GUARD).map_err(|e| e.to_string())?;
        let mut image = bytes.clone();
        image.resize(bytes.len() + GUARD, PATTERN);
        buffer.upload(0, &image).map_err(|e| e.to_string())?;
        args.push(buffer.arg());
        buffers.push((buffer, image, written));
    }
    let (grid, block, dynamic_smem) = (case.grid, case.block, case.dynamic);
    let shape = Shape { grid, block, dynamic_smem, cluster: [1; 3], programmatic: false };
    device.launch(&function, &shape, &args).map_err(|e| e.to_string())?;
    device.synchronize().map_err(|e| format!("fault: {e}"))?;
    let mut outputs = Vec::new();
    for (i, (buffer, image, written)) in buffers.iter().enumerate() {
        let mut bytes = vec![0; image.len()];
        buffer.download(0, &mut bytes).map_err(|e| e.to_string())?;
        let end = image.len() - GUARD;
        if bytes[end..] != image[end..] {
            return Err(format!("memory behind buffer {i} was written"));
        }
        if *written {
            bytes.truncate(end);
            outputs.push(bytes);
        } else if bytes != *image {
            return Err(format!("buffer {i} is only read, and was written"));
        }
    }
    Ok(outputs)
}

fn scalar(bytes: &[u8]) -> Result<LaunchArg, String> {
    match bytes {
        [a, b, c, d] => Ok(LaunchArg::U32(u32::from_le_bytes([*a, *b, *c, *d]))),
        [a, b, c, d, e, f, g, h] => Ok(LaunchArg::U64(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]))),
        _ => Err(format!("a scalar of {} bytes", bytes.len())),
    }
}

/// The comparison of two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Words of four bytes.
    pub words: usize,
    /// Words that differ.
    pub different: usize,
    /// The largest relative distance of f32 values, where the case allows one; against the largest magnitude of the output
    /// where values cancel.
    pub distance: f64,
}

/// Compares the outputs of a GPU with those of the simulator.
///
/// # Errors
/// They disagree by more than the case allows.
pub fn compare(case: &Case, simulated: &[Vec<u8>], gpu: &[Vec<u8>]) -> Result<Comparison, String> {
    let mut out = Comparison::default();
    if simulated.len() != gpu.len() {
        return Err(format!("{} outputs, expected {}", gpu.len(), simulated.len()));
    }
    for (i, (want, got)) in simulated.iter().zip(gpu).enumerate() {
        out.words += want.len().div_ceil(4);
        let different = want.chunks(4).zip(got.chunks(4)).filter(|(w, g)| w != g).count();
        out.different += different;
        let Some(text) = data::difference(want, got) else { continue };
        let (limit, against_largest) = match case.agreement {
            Agreement::Bits => return Err(format!("output {i}: {text}")),
            Agreement::Relative(limit, _) => (limit, false),
            Agreement::OfLargest(limit, _) => (limit, true),
        };
        let (want, got) = (data::floats(want), data::floats(got));
        let largest = want.iter().fold(0f32, |a, x| a.max(x.abs()));
        for (at, (w, g)) in want.iter().zip(&got).enumerate() {
            if w.to_bits() == g.to_bits() {
                continue;
            }
            let unit = if against_largest { largest } else { w.abs() };
            let distance = (f64::from(*g) - f64::from(*w)).abs() / f64::from(unit);
            if distance.is_nan() || distance > limit {
                return Err(format!("output {i}: value {at} is {g}, simulated {w}; allowed is {limit:e}"));
            }
            out.distance = out.distance.max(distance);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;
    use tilec_sim::Options;

    #[test]
    fn a_changed_bit_is_seen_and_a_small_distance_measured() {
        for case in corpus::all().iter().filter(|c| c.is_right()).take(30) {
            let (outputs, _) = case.simulate(&Options::default()).unwrap();
            assert_eq!(compare(case, &outputs, &outputs).unwrap().different, 0);
            let mut changed = outputs.clone();
            changed[0][0] ^= 1;
            match case.agreement {
                Agreement::Bits => assert!(compare(case, &outputs, &changed).is_err(), "{}", case.name),
                _ => assert_eq!(compare(case, &outputs, &changed).unwrap().different, 1, "{}", case.name),
            }
            changed[0][3] ^= 0x40;
            assert!(compare(case, &outputs, &changed).is_err(), "{}", case.name);
        }
    }
}
