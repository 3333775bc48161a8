//! Values to launch with: those of head comments, ragged ones, and others of all magnitudes; strides of packed tensors and others.

use crate::programs::head_runs;
use tilec::c_header::Image;
use tilec::contract::{Contract, ParamKind};
use tilec::program::bind_program;
use tilec::{Args, Number};

/// A launch: of what, and with which values.
pub(super) struct Problem {
    pub(super) name: String,
    pub(super) args: Args,
}

/// Sizes of all kinds.
const SIZES: [i64; 20] = [0, 1, 2, 3, 7, 8, 16, 17, 32, 40, 64, 72, 128, 129, 136, 256, 264, 520, 1000, 1024];
/// Strides of images.
const STRIDES: [i64; 5] = [16, 144, 1584, 4096, 1 << 20];
/// Random problems of each name.
const RANDOM: usize = 12;
/// Those of them with multiples of 64 alone.
const ROUND: usize = 6;

/// Numbers without a pattern, the same ones each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// The kernels that may be launched under a name; of variants all.
pub(super) fn contracts<'a>(image: &Image<'a>, name: &str) -> Vec<&'a Contract> {
    let one = |name: &str| -> Vec<&'a Contract> {
        match image.file.dispatch.iter().find(|d| d.kernel == name) {
            Some(dispatch) => dispatch.cases.iter().filter_map(|case| image.file.contract(&case.entry)).collect(),
            None => image.file.contract(name).into_iter().collect(),
        }
    };
    match image.file.programs.iter().find(|p| p.name == name) {
        Some(program) => program.launches.iter().flat_map(|launch| one(launch)).collect(),
        None => one(name),
    }
}

/// Launches of everything in an image.
pub(super) fn problems(image: &Image<'_>, text: &str) -> Vec<Problem> {
    let mut all = Vec::new();
    for name in image.file.names() {
        let contracts = contracts(image, name);
        let mut random = Random(name.len() as u64 + 7);
        let head = head_runs(text).into_iter();
        let mut values: Vec<Args> = head.map(|line| given(&contracts, &line, &mut random)).collect();
        values.extend((0..RANDOM).map(|i| made_up(&contracts, i < ROUND, &mut random)));
        for args in values {
            for with_strides in strides(image, name, &args) {
                all.push(Problem { name: name.to_owned(), args: with_strides });
            }
            all.push(Problem { name: name.to_owned(), args });
        }
    }
    all
}

/// Values of all sizes and scalars without a default.
fn made_up(contracts: &[&Contract], round: bool, random: &mut Random) -> Args {
    let mut args = Args::new();
    for param in contracts.iter().flat_map(|c| &c.params) {
        let value = match &param.kind {
            ParamKind::Size { .. } if round => Number::Int(64 * (1 + random.below(8) as i64)),
            ParamKind::Size { .. } => Number::Int(SIZES[random.below(SIZES.len())]),
            // Strides without a value for packed tensors: those of rows of images, often enough.
            ParamKind::Stride { packed: None, .. } => Number::Int(STRIDES[random.below(STRIDES.len())]),
            ParamKind::Scalar { elem, default } if default.is_none() || random.below(2) == 0 => match elem.is_float() {
                true => Number::Float(random.below(64) as f64 / 8.0 - 3.0),
                false => Number::Int(random.below(6) as i64),
            },
            _ => continue,
        };
        args.entry(param.name.clone()).or_insert(value);
    }
    args
}

/// The values of a head comment, and others for what it does not name.
fn given(contracts: &[&Contract], line: &str, random: &mut Random) -> Args {
    let mut args = made_up(contracts, true, random);
    for (name, value) in line.split_whitespace().filter_map(|word| word.split_once('=')) {
        if let (Some(known), Ok(value)) = (args.get_mut(name), value.parse::<Number>()) {
            *known = value;
        }
    }
    args
}

/// The same with strides that are somewhat larger, or too small, for each stride.
fn strides(image: &Image<'_>, name: &str, args: &Args) -> Vec<Args> {
    let Ok(Some(launches)) = image.file.launches(name, args) else { return Vec::new() };
    let Ok(bound) = bind_program(&launches, args) else { return Vec::new() };
    let mut all = Vec::new();
    for param in launches.iter().flat_map(|c| &c.params) {
        let (ParamKind::Stride { .. }, Some(packed)) = (&param.kind, bound.values.get(&param.name)) else { continue };
        for more in [8, 3, -1] {
            let mut with = args.clone();
            with.insert(param.name.clone(), Number::Int(packed.to_i64().unwrap_or(0) + more));
            all.push(with);
        }
    }
    // A few of each kernel are enough.
    all.truncate(9);
    all
}
