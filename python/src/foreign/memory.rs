//! Bytes of arrays on the host.

/// Copies `bytes` bytes from the array at `address`.
///
/// The caller has the address and the extent from the array's library, and holds the array.
pub(crate) fn read(address: u64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0u8; bytes];
    if bytes > 0 {
        // SAFETY: an array of the caller is there, which is held while this runs; the target was just made of that length.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, out.as_mut_ptr(), bytes) };
    }
    out
}

/// Copies bytes to the array at `address`, which is as long and may be written.
pub(crate) fn write(address: u64, from: &[u8]) {
    if !from.is_empty() {
        // SAFETY: as in `read`; the array is writable, and no other thread accesses its bytes while the interpreter
        // lock is held.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), address as *mut u8, from.len()) };
    }
}
