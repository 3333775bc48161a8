//! Bundles: kernels for several targets in one file, with their launch contracts (`docs/bundle.md`).
//!
//! ```text
//! header    magic "TILECBDL", version, number of rows, checksum, length of the file      40 bytes
//! table     a row for each payload: kind, target, offset, length                         40 bytes each
//! payloads  launch files (JSON), PTX, cubins; each begins at a multiple of 8
//! ```
//!
//! All numbers are little-endian. The same payloads give the same bytes. The reader trusts nothing
//! before it has checked the checksum and every row.

use crate::contract::{Contract, ContractError, LaunchFile};
use std::collections::BTreeMap;
use thiserror::Error;

/// The first bytes of a bundle.
pub const MAGIC: [u8; 8] = *b"TILECBDL";
/// The version of the format that is written, and read.
pub const VERSION: u32 = 1;

const HEADER: usize = 40;
const ROW: usize = 40;
/// Bytes of a target's name in a row, padded with zeros.
const TARGET: usize = 16;
const ALIGN: usize = 8;

/// What a payload is.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PayloadKind {
    /// The launch file of a target, JSON.
    Contract,
    /// PTX text of a target.
    Ptx,
    /// Machine code of a target, an ELF file.
    Cubin,
    /// The launch table of a target: its contracts as numbers, for readers without JSON and expressions.
    Table,
}

impl PayloadKind {
    const ALL: [PayloadKind; 4] = [PayloadKind::Contract, PayloadKind::Ptx, PayloadKind::Cubin, PayloadKind::Table];

    /// The number in the table.
    pub fn code(self) -> u32 {
        match self {
            PayloadKind::Contract => 1,
            PayloadKind::Ptx => 2,
            PayloadKind::Cubin => 3,
            PayloadKind::Table => 4,
        }
    }
}

/// Why bytes are not a bundle, or not one for the device.
#[derive(Debug, Error)]
pub enum BundleError {
    /// The bytes are not a bundle of this version, or damaged.
    #[error("not a bundle: {0}")]
    Form(String),
    /// It contains an invalid launch file.
    #[error("the launch file for {target}: {error}")]
    Contract {
        /// The target.
        target: String,
        /// Why.
        error: ContractError,
    },
    /// It has no image for a device of this compute capability.
    #[error("compute capability {major}.{minor} runs none of the targets {targets}")]
    NoImage {
        /// The device's.
        major: u32,
        /// The device's.
        minor: u32,
        /// Those of the bundle.
        targets: String,
    },
}

/// Kernels for several targets. Payloads are ordered by kind and target.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bundle {
    payloads: BTreeMap<(PayloadKind, String), Vec<u8>>,
}

/// The image of a bundle for a device.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Image<'b> {
    /// The target.
    pub target: &'b str,
    /// Its launch file.
    pub contract: &'b [u8],
    /// Its PTX.
    pub ptx: &'b [u8],
    /// Its machine code, if the device can run it.
    pub cubin: Option<&'b [u8]>,
}

impl Bundle {
    /// Adds payloads of a target, or replaces them.
    #[cfg(any(feature = "cuda", feature = "sim"))]
    pub(crate) fn put(
        &mut self,
        target: &str,
        payloads: impl IntoIterator<Item = (PayloadKind, Vec<u8>)>,
    ) -> Result<(), BundleError> {
        architecture(target).ok_or_else(|| BundleError::Form(format!("`{target}` is no target")))?;
        self.payloads.extend(payloads.into_iter().map(|(kind, bytes)| ((kind, target.to_owned()), bytes)));
        Ok(())
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; HEADER + ROW * self.payloads.len()];
        for (row, ((kind, target), payload)) in self.payloads.iter().enumerate() {
            out.resize(out.len().next_multiple_of(ALIGN), 0);
            let (at, offset) = (HEADER + ROW * row, out.len() as u64);
            out[at..][..4].copy_from_slice(&kind.code().to_le_bytes());
            out[at + 8..][..target.len()].copy_from_slice(target.as_bytes());
            out[at + 24..][..8].copy_from_slice(&offset.to_le_bytes());
            out[at + 32..][..8].copy_from_slice(&(payload.len() as u64).to_le_bytes());
            out.extend_from_slice(payload);
        }
        let len = out.len() as u64;
        let sum = checksum(&out[HEADER..]);
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&(self.payloads.len() as u32).to_le_bytes());
        out[16..24].copy_from_slice(&sum.to_le_bytes());
        out[24..32].copy_from_slice(&len.to_le_bytes());
        out
    }

    /// Reads what [`Bundle::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes are not a bundle of this version, are truncated, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Bundle, BundleError> {
        let form = |what: &str| BundleError::Form(what.to_owned());
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        if bytes.len() < HEADER || bytes[..8] != MAGIC {
            return Err(form("it does not begin with `TILECBDL`"));
        }
        match word(8) {
            Some(VERSION) => {}
            version => {
                let version = version.unwrap_or(0);
                return Err(BundleError::Form(format!("version {version}, expected {VERSION}")));
            }
        }
        if long(24) != Some(bytes.len() as u64) {
            return Err(form("the file is longer or shorter than it says"));
        }
        if long(16) != Some(checksum(&bytes[HEADER..])) {
            return Err(form("the checksum is wrong"));
        }
        let rows = word(12).unwrap_or(0) as usize;
        let mut bundle = Bundle::default();
        for row in 0..rows {
            let at = row.checked_mul(ROW).and_then(|at| at.checked_add(HEADER)).filter(|at| at + ROW <= bytes.len());
            let at = at.ok_or_else(|| form("the table does not fit the file"))?;
            let target = &bytes[at + 8..at + 8 + TARGET];
            let end = target.iter().position(|b| *b == 0).unwrap_or(TARGET);
            let target = std::str::from_utf8(&target[..end]).ok().filter(|t| architecture(t).is_some());
            let target = target.ok_or_else(|| form("a row of the table has no target"))?;
            let within = |x: Option<u64>| x.and_then(|x| usize::try_from(x).ok());
            let payload = within(long(at + 24)).zip(within(long(at + 32)));
            let payload = payload.and_then(|(offset, len)| bytes.get(offset..offset.checked_add(len)?));
            let payload = payload.ok_or_else(|| form("a payload is not inside of the file"))?;
            // Unknown kinds belong to later versions; older readers skip them.
            if let Some(kind) = PayloadKind::ALL.into_iter().find(|kind| Some(kind.code()) == word(at)) {
                bundle.payloads.insert((kind, target.to_owned()), payload.to_vec());
            }
        }
        Ok(bundle)
    }

    /// The targets that have PTX and a launch file, in order.
    pub fn targets(&self) -> Vec<&str> {
        let ptx = self.payloads.keys().filter(|(kind, _)| *kind == PayloadKind::Ptx);
        let has = |target: &String| self.payloads.contains_key(&(PayloadKind::Contract, target.clone()));
        ptx.filter(|(_, target)| has(target)).map(|(_, target)| target.as_str()).collect()
    }

    /// A payload.
    pub fn payload(&self, kind: PayloadKind, target: &str) -> Option<&[u8]> {
        self.payloads.get(&(kind, target.to_owned())).map(Vec::as_slice)
    }

    /// The launch file of a target.
    ///
    /// # Errors
    /// There is none, or it is no launch file.
    pub fn launch_file(&self, target: &str) -> Result<LaunchFile, BundleError> {
        let bytes = self.payload(PayloadKind::Contract, target);
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| BundleError::Form(format!("there is no launch file for {target}")))?;
        LaunchFile::from_json(text).map_err(|error| BundleError::Contract { target: target.to_owned(), error })
    }

    /// The launch file and the PTX of a target, which go together.
    ///
    /// # Errors
    /// There are none, or one is not that of the other.
    pub fn program(&self, target: &str) -> Result<(LaunchFile, &str), BundleError> {
        let file = self.launch_file(target)?;
        let ptx = self.payload(PayloadKind::Ptx, target).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let ptx = ptx.ok_or_else(|| BundleError::Form(format!("the PTX for {target} is no text")))?;
        for contract in &file.kernels {
            let ids = contract.id.as_deref().zip(Contract::id_in(ptx, &contract.entry));
            if ids.is_some_and(|(own, of_ptx)| own != of_ptx) {
                let entry = &contract.entry;
                return Err(BundleError::Form(format!("the launch contract of `{entry}` is not that of its PTX")));
            }
        }
        Ok((file, ptx))
    }

    /// The image for a device of this compute capability: the newest target that it runs. PTX of an architecture with a
    /// letter (`sm_90a`) runs only on that architecture, other PTX on all that are not older; machine code runs on devices of its
    /// major number that are not older.
    ///
    /// # Errors
    /// It runs none.
    pub fn image(&self, (major, minor): (u32, u32)) -> Result<Image<'_>, BundleError> {
        let card = major * 10 + minor;
        let runs = |target: &&str| match architecture(target) {
            Some((of, true)) => of == card,
            Some((of, false)) => of <= card,
            None => false,
        };
        let all = self.targets();
        let Some(target) = all.iter().copied().filter(runs).max_by_key(|target| architecture(target)) else {
            return Err(BundleError::NoImage { major, minor, targets: all.join(", ") });
        };
        let get = |kind| self.payload(kind, target).unwrap_or(&[]);
        Ok(Image {
            target,
            contract: get(PayloadKind::Contract),
            ptx: get(PayloadKind::Ptx),
            cubin: self.payload(PayloadKind::Cubin, target).filter(|_| runs_machine_code(target, (major, minor))),
        })
    }
}

/// The number of an architecture, and whether it has a letter: `sm_90a` is 90 with one.
pub fn architecture(target: &str) -> Option<(u32, bool)> {
    let rest = target.strip_prefix("sm_").filter(|_| target.len() < TARGET)?;
    let digits = rest.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(rest);
    let plain = digits.len() == rest.len();
    let digits = Some(digits).filter(|d| (2..=3).contains(&d.len()) && d.bytes().all(|b| b.is_ascii_digit()))?;
    Some((digits.parse().ok()?, !plain))
}

/// Whether a device runs the machine code of a target: same major number, and not older.
pub fn runs_machine_code(target: &str, (major, minor): (u32, u32)) -> bool {
    architecture(target).is_some_and(|(of, letter)| {
        of / 10 == major && if letter { of == 10 * major + minor } else { of <= 10 * major + minor }
    })
}

/// The FNV-1a hash of 64 bits.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(all(test, any(feature = "cuda", feature = "sim")))]
mod tests {
    use super::*;
    use crate::contract::tests::gemm;
    use pretty_assertions::assert_eq;

    fn bundle(targets: &[&str]) -> Bundle {
        let mut bundle = Bundle::default();
        for target in targets {
            let file = LaunchFile { kernels: vec![gemm()], ..LaunchFile::default() };
            let cubin = (*target == "sm_80").then(|| vec![0x7f, b'E', b'L', b'F', 1]);
            bundle.add(target, &file, &format!(".target {target}\n"), cubin).expect("a target");
        }
        bundle
    }

    #[test]
    fn bytes_are_read_back_and_are_the_same() {
        let one = bundle(&["sm_90a", "sm_70", "sm_80"]);
        let bytes = one.to_bytes();
        assert_eq!(Bundle::from_bytes(&bytes).expect("a bundle"), one);
        assert_eq!(
            bundle(&["sm_70", "sm_80", "sm_90a"]).to_bytes(),
            bytes,
            "the order of addition is none of the file"
        );
        assert_eq!(one.launch_file("sm_80").expect("a launch file").kernels, [gemm()]);
        assert!(one.launch_file("sm_75").is_err());
        assert_eq!(Bundle::from_bytes(&Bundle::default().to_bytes()).expect("empty").targets(), [""; 0]);
    }

    #[test]
    fn damage_is_seen() {
        let bytes = bundle(&["sm_70", "sm_80"]).to_bytes();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            // Eight bytes of the header are reserved for later versions.
            assert_eq!(Bundle::from_bytes(&damaged).is_ok(), (32..40).contains(&at), "byte {at}");
        }
        for len in (0..bytes.len()).step_by(7) {
            assert!(Bundle::from_bytes(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn rows_outside_of_the_file_are_refused() {
        let good = bundle(&["sm_70"]).to_bytes();
        for (at, value) in [(HEADER + 24, u64::MAX), (HEADER + 32, 1 << 40), (HEADER + 24, good.len() as u64)] {
            let mut bytes = good.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            let sum = checksum(&bytes[HEADER..]);
            bytes[16..24].copy_from_slice(&sum.to_le_bytes());
            let error = Bundle::from_bytes(&bytes).expect_err("outside").to_string();
            assert_eq!(error, "not a bundle: a payload is not inside of the file");
        }
        let mut bytes = good;
        bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Bundle::from_bytes(&bytes).is_err());
    }

    #[test]
    fn devices_take_the_newest_that_they_run() {
        let all = bundle(&["sm_70", "sm_80", "sm_86", "sm_90", "sm_90a"]);
        let target = |cc| all.image(cc).map(|image| image.target).map_err(|e| e.to_string());
        for (cc, expected) in [
            ((7, 0), "sm_70"),
            ((7, 5), "sm_70"),
            ((8, 0), "sm_80"),
            ((8, 9), "sm_86"),
            ((9, 0), "sm_90a"),
            ((10, 0), "sm_90"),
            ((12, 0), "sm_90"),
        ] {
            assert_eq!(target(cc), Ok(expected), "{cc:?}");
        }
        let none = "compute capability 6.1 runs none of the targets sm_70, sm_80, sm_86, sm_90, sm_90a";
        assert_eq!(target((6, 1)), Err(none.to_owned()));
        let two = bundle(&["sm_80", "sm_90a"]);
        // Machine code of sm_80 runs on 8.9 and not on 10.0, which assembles the PTX.
        assert_eq!(two.image((8, 9)).map(|i| i.cubin.is_some()).ok(), Some(true));
        assert_eq!(two.image((10, 0)).map(|i| (i.target, i.cubin)).ok(), Some(("sm_80", None)));
    }

    #[test]
    fn targets_are_architectures() {
        assert_eq!(architecture("sm_90a"), Some((90, true)));
        assert_eq!(architecture("sm_100"), Some((100, false)));
        for wrong in ["", "sm_", "sm_9", "sm_90ab", "compute_80", "sm_+80", "sm_8000"] {
            assert_eq!(architecture(wrong), None, "{wrong}");
        }
        assert!(Bundle::default().add("sm_x", &LaunchFile::default(), "", None).is_err());
    }
}
