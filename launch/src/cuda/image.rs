//! Checks of images before they are passed to the driver as a module.
//!
//! The driver gets an address without a length. It tells PTX from machine code by the first bytes, reads PTX up to a
//! zero byte, and trusts the headers of machine code. Text must therefore not look like machine code, and machine code
//! must not claim more bytes than there are.

use crate::cuda::context::CudaError;

/// An image whose every byte the driver may request is there. Eight-byte aligned, zero-terminated.
pub(super) struct Image {
    words: Vec<u64>,
}

impl Image {
    fn new(bytes: &[u8]) -> Self {
        // At least eight zero bytes follow the contents.
        let words = bytes
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_ne_bytes(word)
            })
            .chain([0])
            .collect();
        Self { words }
    }

    /// The address of the first byte, valid as long as the image.
    pub(super) fn as_ptr(&self) -> *const std::ffi::c_void {
        self.words.as_ptr().cast()
    }
}

/// An image of PTX text. Refuses control characters, zero and the ELF mark among them.
pub(super) fn ptx(text: &str) -> Result<Image, CudaError> {
    let odd = text.char_indices().find(|(_, c)| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
    match odd {
        Some((at, c)) => {
            Err(CudaError::refused(format!("PTX has the control character `{}` at byte {at}", c.escape_default())))
        }
        None if text.trim().is_empty() => Err(CudaError::refused("PTX is empty")),
        None => Ok(Image::new(text.as_bytes())),
    }
}

/// An image of a cubin: a little-endian 64-bit ELF file for CUDA whose tables, sections and segments are inside it.
pub(super) fn cubin(bytes: &[u8]) -> Result<Image, CudaError> {
    match check_elf(bytes) {
        Ok(()) => Ok(Image::new(bytes)),
        Err(what) => Err(CudaError::refused(format!("not a whole cubin: {what}"))),
    }
}

/// ELF-64 file header, section header and program header (System V ABI, chapters 4 and 5).
fn check_elf(bytes: &[u8]) -> Result<(), String> {
    const EM_CUDA: u64 = 190;
    const SHT_NOBITS: u64 = 8;
    let field = |at: u64, width: u64| -> Result<u64, String> {
        let end = at.checked_add(width).and_then(|end| usize::try_from(end).ok());
        let start = usize::try_from(at).ok();
        let slice = start.zip(end).and_then(|(start, end)| bytes.get(start..end));
        let slice = slice.ok_or_else(|| format!("it ends inside a header at byte {at}"))?;
        Ok(slice.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    let inside = |offset: u64, size: u64, what: &str| match offset.checked_add(size) {
        Some(end) if end <= bytes.len() as u64 => Ok(()),
        _ => Err(format!("{what} reaches beyond its {} bytes", bytes.len())),
    };
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return Err("it does not start as a little-endian 64-bit ELF file".to_owned());
    }
    if field(18, 2)? != EM_CUDA {
        return Err("its machine is not CUDA".to_owned());
    }
    let (segments, segment_size, n_segments) = (field(32, 8)?, field(54, 2)?, field(56, 2)?);
    let (sections, section_size, n_sections) = (field(40, 8)?, field(58, 2)?, field(60, 2)?);
    if n_sections == 0 || section_size != 64 || (n_segments > 0 && segment_size != 56) {
        return Err("its header sizes are not those of ELF-64".to_owned());
    }
    inside(sections, n_sections * section_size, "the section table")?;
    inside(segments, n_segments * segment_size, "the segment table")?;
    for index in 0..n_sections {
        let header = sections + index * section_size;
        if field(header + 4, 4)? != SHT_NOBITS {
            inside(field(header + 24, 8)?, field(header + 32, 8)?, &format!("section {index}"))?;
        }
    }
    for index in 0..n_segments {
        let header = segments + index * segment_size;
        inside(field(header + 8, 8)?, field(header + 32, 8)?, &format!("segment {index}"))?;
    }
    Ok(())
}
