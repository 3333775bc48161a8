//! What calls return: results of the driver (`CUresult`), with a sentence for standard error.

use tilec_sim::{Report, ReportKind};

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $number:literal, $name:literal;)+) => {
        /// A result of the driver that is no success.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Code { $($(#[doc = $doc])+ $variant = $number,)+ }

        impl Code {
            const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The name in `cuda.h`, and its sentence, both with a zero after.
            fn texts(self) -> (&'static str, &'static str) {
                match self { $(Code::$variant => (concat!($name, "\0"), concat!($($doc),+, "\0")),)+ }
            }
        }
    };
}

codes! {
    /// invalid argument
    InvalidValue = 1, "CUDA_ERROR_INVALID_VALUE";
    /// out of memory
    OutOfMemory = 2, "CUDA_ERROR_OUT_OF_MEMORY";
    /// cuInit was not called
    NotInitialized = 3, "CUDA_ERROR_NOT_INITIALIZED";
    /// the process is ending
    Deinitialized = 4, "CUDA_ERROR_DEINITIALIZED";
    /// invalid device ordinal
    InvalidDevice = 101, "CUDA_ERROR_INVALID_DEVICE";
    /// no context is current
    InvalidContext = 201, "CUDA_ERROR_INVALID_CONTEXT";
    /// the simulator executes PTX, and no machine code
    NoBinary = 209, "CUDA_ERROR_NO_BINARY_FOR_GPU";
    /// PTX that the simulator does not read
    InvalidPtx = 218, "CUDA_ERROR_INVALID_PTX";
    /// a file cannot be read
    FileNotFound = 301, "CUDA_ERROR_FILE_NOT_FOUND";
    /// invalid handle
    InvalidHandle = 400, "CUDA_ERROR_INVALID_HANDLE";
    /// the name was not found
    NotFound = 500, "CUDA_ERROR_NOT_FOUND";
    /// an access out of bounds
    IllegalAddress = 700, "CUDA_ERROR_ILLEGAL_ADDRESS";
    /// the kernel does not end
    LaunchTimeout = 702, "CUDA_ERROR_LAUNCH_TIMEOUT";
    /// an instruction used against its rules
    IllegalInstruction = 715, "CUDA_ERROR_ILLEGAL_INSTRUCTION";
    /// a misaligned address
    MisalignedAddress = 716, "CUDA_ERROR_MISALIGNED_ADDRESS";
    /// the simulator found an error in the kernel
    LaunchFailed = 719, "CUDA_ERROR_LAUNCH_FAILED";
    /// the simulator does not have this
    NotSupported = 801, "CUDA_ERROR_NOT_SUPPORTED";
}

impl Code {
    /// The code of this number.
    pub(crate) fn of(number: u32) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| *code as u32 == number)
    }

    /// The name in `cuda.h`, with a zero after.
    pub(crate) fn name(self) -> &'static str {
        self.texts().0
    }

    /// A sentence, with a zero after.
    pub(crate) fn sentence(self) -> &'static str {
        self.texts().1.trim_start()
    }
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the call returns.
    pub code: Code,
    /// The message on standard error; none if programs expect this error.
    pub message: Option<String>,
}

impl Failure {
    /// A failure with its reason.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: Some(message.into()) }
    }
}

impl From<Code> for Failure {
    fn from(code: Code) -> Failure {
        Failure { code, message: None }
    }
}

impl From<Box<Report>> for Failure {
    fn from(report: Box<Report>) -> Failure {
        let code = match report.kind {
            ReportKind::Launch => Code::InvalidValue,
            ReportKind::OutOfBounds => Code::IllegalAddress,
            ReportKind::Misaligned => Code::MisalignedAddress,
            ReportKind::Deadlock | ReportKind::Fuel | ReportKind::Cancelled => Code::LaunchTimeout,
            ReportKind::Invalid => Code::IllegalInstruction,
            ReportKind::ReadOnly
            | ReportKind::Uninitialised
            | ReportKind::Undefined
            | ReportKind::Race
            | ReportKind::Divergence
            | ReportKind::Trap => Code::LaunchFailed,
        };
        Failure::new(code, report.to_string())
    }
}
