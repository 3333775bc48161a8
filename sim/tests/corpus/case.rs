//! A launch of a kernel of the corpus, and the expected outcome.

use super::data;
use std::borrow::Cow;
use tilec_sim::{Counters, Device, Launch, Options, Program, Report, ReportKind};

/// The PTX of a kernel of `data/cuda`.
macro_rules! ptx {
    ($name:literal) => {
        include_str!(concat!("../data/cuda/", $name, ".ptx"))
    };
}
pub(super) use ptx;

/// A parameter of a launch.
#[derive(Clone)]
pub enum Param {
    /// A buffer that is only read.
    In(Vec<u8>),
    /// A buffer with its contents before the launch; it is compared afterwards.
    Out(Vec<u8>),
    /// A scalar: its little-endian bytes.
    Value(Vec<u8>),
}

/// What a buffer must hold after the launch.
#[derive(Clone)]
pub enum Output {
    /// Exactly this.
    Bits(Vec<u8>),
    /// Values of f32, each with the largest distance that is right.
    Near(Vec<(f64, f64)>),
}

/// How a launch must end.
#[derive(Clone)]
pub enum Expect {
    /// With these contents of the [`Param::Out`] buffers, in their order.
    Outputs(Vec<Output>),
    /// With a report of one of these kinds, and with this text in it.
    Report(&'static [ReportKind], &'static str),
}

/// How near a GPU must come to the simulator.
#[derive(Clone, Copy, PartialEq)]
pub enum Agreement {
    /// Bit for bit.
    Bits,
    /// f32 outputs, every value to this relative distance, for the reason given.
    Relative(f64, &'static str),
    /// f32 outputs to this part of the largest magnitude of the output: values that are sums of either sign.
    OfLargest(f64, &'static str),
}

/// A launch of a kernel of the corpus.
#[derive(Clone)]
pub struct Case {
    /// Unique in the table; begins with the kernel's file.
    pub name: String,
    /// Text of the module.
    pub ptx: Cow<'static, str>,
    /// Name of the kernel in it.
    pub entry: Cow<'static, str>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic: u32,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// What must come out.
    pub expect: Expect,
    /// What a GPU must agree with the simulator in.
    pub agreement: Agreement,
}

impl Case {
    pub(super) fn new(name: impl Into<String>, ptx: &'static str, entry: &'static str) -> Case {
        Case {
            name: name.into(),
            ptx: ptx.into(),
            entry: entry.into(),
            grid: [1; 3],
            block: [1; 3],
            dynamic: 0,
            params: Vec::new(),
            expect: Expect::Outputs(Vec::new()),
            agreement: Agreement::Bits,
        }
    }

    pub(super) fn grid(mut self, x: u32, y: u32) -> Case {
        self.grid = [x, y, 1];
        self
    }

    pub(super) fn block(mut self, x: u32, y: u32) -> Case {
        self.block = [x, y, 1];
        self
    }

    pub(super) fn dynamic(mut self, bytes: u32) -> Case {
        self.dynamic = bytes;
        self
    }

    /// A buffer that is read.
    pub(super) fn input<const N: usize, T: Copy>(mut self, values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Case {
        self.params.push(Param::In(data::bytes(values, bytes)));
        self
    }

    /// A buffer that starts as `before` and must become `after`.
    pub(super) fn output(mut self, before: Vec<u8>, after: Output) -> Case {
        self.params.push(Param::Out(before));
        if let Expect::Outputs(outputs) = &mut self.expect {
            outputs.push(after);
        }
        self
    }

    /// A buffer that starts as a pattern and must become `after`.
    pub(super) fn result<const N: usize, T: Copy>(self, after: &[T], bytes: impl Fn(T) -> [u8; N]) -> Case {
        let after = data::bytes(after, bytes);
        self.output(vec![0xA5; after.len()], Output::Bits(after))
    }

    /// A buffer of f32 that must come near `after`.
    pub(super) fn near(self, after: Vec<(f64, f64)>) -> Case {
        self.output(vec![0xA5; 4 * after.len()], Output::Near(after))
    }

    pub(super) fn int(mut self, value: i32) -> Case {
        self.params.push(Param::Value(value.to_le_bytes().to_vec()));
        self
    }

    pub(super) fn agreement(mut self, agreement: Agreement) -> Case {
        self.agreement = agreement;
        self
    }

    /// Whether the kernel is right, so that a GPU may run it.
    pub fn is_right(&self) -> bool {
        matches!(self.expect, Expect::Outputs(_))
    }

    /// Runs on the simulator: contents of the outputs, and the counts.
    ///
    /// # Errors
    /// What the simulator reports.
    pub fn simulate(&self, options: &Options) -> Result<(Vec<Vec<u8>>, Counters), Box<Report>> {
        let program = Program::parse(&self.ptx).map_err(|e| {
            let message = format!("{}: {e}", self.name);
            Report {
                cause: None,
                kind: ReportKind::Launch,
                message,
                place: None,
                other: None,
                other_block: None,
                block: [0; 3],
                address: None,
                memory: None,
            }
        })?;
        let mut device = Device::new();
        let mut outputs = Vec::new();
        let mut params = Vec::new();
        for param in &self.params {
            let (Param::In(bytes) | Param::Out(bytes) | Param::Value(bytes)) = param;
            if matches!(param, Param::Value(_)) {
                params.push(bytes.clone());
                continue;
            }
            let address = device.alloc(bytes.len() as u64)?;
            device.upload(address, bytes)?;
            if matches!(param, Param::Out(_)) {
                outputs.push((address, bytes.len()));
            }
            params.push(address.to_le_bytes().to_vec());
        }
        let launch = Launch {
            entry: self.entry.to_string(),
            grid: self.grid,
            block: self.block,
            dynamic_smem: self.dynamic,
            params,
        };
        let counters = device.run(&program, &launch, options)?;
        let outputs = outputs.into_iter().map(|(address, n)| device.download(address, n)).collect::<Result<_, _>>()?;
        Ok((outputs, counters))
    }

    /// Whether these contents of the outputs are right.
    ///
    /// # Errors
    /// The first value that is not, or that the kernel should have been reported.
    pub fn check(&self, actual: &[Vec<u8>]) -> Result<(), String> {
        let Expect::Outputs(expected) = &self.expect else {
            return Err("a wrong kernel ran to its end".to_owned());
        };
        if expected.len() != actual.len() {
            return Err(format!("{} outputs, expected {}", actual.len(), expected.len()));
        }
        for (i, (want, got)) in expected.iter().zip(actual).enumerate() {
            match want {
                Output::Bits(want) => {
                    if let Some(at) = data::difference(want, got) {
                        return Err(format!("output {i} differs from the reference: {at}"));
                    }
                }
                Output::Near(want) => {
                    let got = data::floats(got);
                    for (at, ((want, distance), got)) in want.iter().zip(got).enumerate() {
                        let off = (f64::from(got) - want).abs();
                        if off.is_nan() || off > *distance {
                            return Err(format!(
                                "output {i}: value {at} is {got}, expected {want} within {distance:e}"
                            ));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
