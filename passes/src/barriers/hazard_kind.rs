//! Hazards that barriers resolve.

/// A hazard between accesses of different threads.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A read of what another thread wrote.
    ReadAfterWrite,
    /// A write over what another thread may still read.
    WriteAfterRead,
    /// A write over what another thread may still write.
    WriteAfterWrite,
}

impl Kind {
    pub(super) fn text(self) -> &'static str {
        match self {
            Kind::ReadAfterWrite => "read after write",
            Kind::WriteAfterRead => "write after read",
            Kind::WriteAfterWrite => "write after write",
        }
    }
}
