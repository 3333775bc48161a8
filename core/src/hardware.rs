//! What the launch contract names of the hardware: how tensor maps exchange pieces of rows, and limits of a launch.

/// Dimensions of a tensor map (`cuTensorMapEncodeTiled`).
pub const MAX_TENSOR_RANK: usize = 5;

/// Bytes of dynamic shared memory of a block that need no permission (`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`; CUDA
/// programming guide, "Shared Memory" of compute capability 7.x on).
pub const SMEM_WITHOUT_OPTIN: u32 = 48 << 10;

/// Blocks of a cluster that every device can run at once (CUDA programming guide, "Thread Block Clusters").
pub const MAX_BLOCKS: i64 = 8;

/// Blocks along each axis of a grid (CUDA programming guide, "Technical Specifications per Compute Capability").
pub const MAX_GRID: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];

/// Threads along each axis of a block (the same table); of all together there are fewer.
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];

/// How pieces of 16 bytes are exchanged.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Exchange {
    /// Rows of 32 bytes.
    Bytes32,
    /// Rows of 64 bytes.
    Bytes64,
    /// Rows of 128 bytes.
    Bytes128,
    /// Rows of any multiple of 16 bytes, which stay as they are. wgmma products do not read them.
    Plain,
}

/// Address bits of the piece of 16 bytes, and of the row that exchanges it, start here.
const PIECE_BIT: u32 = 4;
const ROW_BIT: u32 = 7;

impl Exchange {
    /// Those with rows of one length, widest first.
    pub const ALL: [Exchange; 3] = [Exchange::Bytes128, Exchange::Bytes64, Exchange::Bytes32];

    /// Bytes of a row; of plain ones the least.
    pub fn row_bytes(self) -> u64 {
        match self {
            Exchange::Plain => 16,
            Exchange::Bytes32 => 32,
            Exchange::Bytes64 => 64,
            Exchange::Bytes128 => 128,
        }
    }

    /// The name of the launch contract.
    pub fn name(self) -> &'static str {
        match self {
            Exchange::Bytes32 => "32B",
            Exchange::Bytes64 => "64B",
            Exchange::Bytes128 => "128B",
            Exchange::Plain => "none",
        }
    }

    /// The mode called `name`.
    pub fn from_name(name: &str) -> Option<Exchange> {
        Exchange::ALL.into_iter().chain([Exchange::Plain]).find(|x| x.name() == name)
    }

    /// Bits 62 and 63 of a matrix descriptor.
    pub fn descriptor_code(self) -> u64 {
        match self {
            Exchange::Bytes128 => 1,
            Exchange::Bytes64 => 2,
            Exchange::Bytes32 => 3,
            Exchange::Plain => 0,
        }
    }

    /// From a plain byte address to where the byte is, and back: it is its own inverse.
    pub fn apply(self, address: u64) -> u64 {
        if self == Exchange::Plain {
            return address;
        }
        let pieces = self.row_bytes() / 16 - 1;
        address ^ (address >> (ROW_BIT - PIECE_BIT) & (pieces << PIECE_BIT))
    }
}
