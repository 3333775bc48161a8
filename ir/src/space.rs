//! Memory spaces: where the elements of a tile are, a row each.
//!
//! Passes and the verifier query properties of the row, not its name: the scope in which writes are visible, whether
//! windows have bounds, whether elements have addresses. So they need no code for a space with known properties.
//! Lowering chooses the instructions for a space, and allocates its bytes.

/// Who sees what is in a space.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// One thread: an element is in the registers of those that the layout names.
    Thread,
    /// The threads of a block.
    Block,
    /// All blocks of the grid, and the host.
    Grid,
}

/// What a space can do.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Row {
    name: &'static str,
    scope: Scope,
    /// Extents are those of a tensor, past whose end windows may reach: what is there reads as zero and is not written.
    bounded: bool,
    /// Copies may end there.
    written: bool,
}

macro_rules! spaces {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $scope:ident bounded $bounded:literal written $written:literal;)+) => {
        /// The memory a tile lives in.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Space { $($(#[doc = $doc])+ $variant,)+ }

        impl Space {
            /// Every space.
            pub const ALL: &'static [Space] = &[$(Space::$variant,)+];

            fn row(self) -> Row {
                match self {
                    $(Space::$variant => Row {
                        name: $name, scope: Scope::$scope, bounded: $bounded, written: $written,
                    },)+
                }
            }
        }
    };
}

spaces! {
    /// Global memory: a tensor parameter, or a view of one.
    Gmem "gmem" Grid bounded true written true;
    /// Shared memory of the thread block.
    Smem "smem" Block bounded false written true;
    /// Constant memory: tables that the text holds, the same for every launch.
    Const "const" Grid bounded false written false;
    /// Registers, distributed over the threads of the block.
    Reg "reg" Thread bounded false written true;
}

impl Space {
    /// The name of the text form.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether threads hold the elements, each those that a layout says; others are at addresses.
    pub fn in_registers(self) -> bool {
        self.row().scope == Scope::Thread
    }

    /// Whether elements are at addresses.
    pub fn is_memory(self) -> bool {
        !self.in_registers()
    }

    /// Whether it is memory of the block: the compiler lays its tiles out, and what one thread writes others read after a barrier.
    pub fn is_of_block(self) -> bool {
        self.row().scope == Scope::Block
    }

    /// Whether it holds tensors, whose extents are known at the launch at the latest: windows may reach past their ends, and accesses have bounds.
    pub fn has_bounds(self) -> bool {
        self.row().bounded
    }

    /// Whether copies may end there.
    pub fn is_written(self) -> bool {
        self.row().written
    }

    /// Whether threads must meet between what one of them writes and what another reads.
    pub fn needs_barriers(self) -> bool {
        self.is_of_block() && self.is_written()
    }
}
