//! Mechanisms: what moves the elements of a copy, a row each.
//!
//! Passes and the verifier ask whether threads move the elements and whether they land later; which mechanism it is concerns its own rule of the verifier,
//! its lowering, and the pass that chooses it.

/// The mechanism that moves the elements of a copy. Each has a word in the text, and a copy has at most one.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Mechanism {
    /// Threads load and store elements, between two memories through registers.
    #[default]
    Registers,
    /// As above, but only this many of the `vec` elements of a global access are known to be aligned. The copy reads
    /// aligned words of that width and shifts them into place: `unaligned 1`.
    Words {
        /// Elements that are known to be aligned.
        aligned: u32,
    },
    /// Shared memory is read or written as 8x8 matrices of 16-bit elements, eight rows of 16 bytes each (`ldmatrix`, `stmatrix`): `matrix`.
    Matrices,
    /// From global memory into a channel's slot without passing through registers (`cp.async`); lands at the latest at the
    /// `wait` for the slot: `async`.
    Asynchronous,
    /// From global memory into a channel's slot, or from a buffer to global memory, by TMA (`cp.async.bulk.tensor`): `tma`.
    /// A descriptor of the tensor clips boxes at its end. A load lands at the latest at the `wait` for the slot. A store
    /// has read the buffer at the latest at its `await`.
    Tensor {
        /// For a window that several blocks of the cluster load (all, or those of a row or column): each block loads
        /// its part and multicasts it to all: `tma multicast`.
        multicast: bool,
    },
    /// To or from scratch memory, whose elements are in the order of the threads' registers: `fragment`.
    Fragment,
    /// Nothing is copied: the second-level cache is requested the window: `prefetch`.
    Prefetch,
}

/// The properties of a mechanism.
struct Row {
    /// Its word; empty: it needs none.
    word: &'static str,
    /// Threads address the elements, each those that a layout says, and check their bounds.
    by_threads: bool,
    /// Elements may land, or be read, after the copy.
    later: bool,
}

impl Mechanism {
    /// The mechanisms that a keyword selects, independent of the other attributes.
    pub(crate) const NAMED: [Mechanism; 6] = [
        Mechanism::Words { aligned: 1 },
        Mechanism::Matrices,
        Mechanism::Asynchronous,
        Mechanism::Tensor { multicast: false },
        Mechanism::Fragment,
        Mechanism::Prefetch,
    ];

    fn row(self) -> Row {
        let row = |word, by_threads, later| Row { word, by_threads, later };
        match self {
            Mechanism::Registers => row("", true, false),
            Mechanism::Words { .. } => row("unaligned", true, false),
            Mechanism::Matrices => row("matrix", true, false),
            Mechanism::Asynchronous => row("async", true, true),
            Mechanism::Tensor { .. } => row("tma", false, true),
            Mechanism::Fragment => row("fragment", true, false),
            Mechanism::Prefetch => row("prefetch", true, false),
        }
    }

    /// The word of the text form; `None` where threads move elements in no other way.
    pub fn word(self) -> Option<&'static str> {
        Some(self.row().word).filter(|word| !word.is_empty())
    }

    /// What a word names.
    pub(crate) fn from_word(word: &str) -> Option<Mechanism> {
        Mechanism::NAMED.into_iter().find(|m| m.row().word == word)
    }

    /// The words, for people.
    pub(crate) fn words() -> String {
        let words: Vec<String> = Mechanism::NAMED.iter().map(|m| format!("`{}`", m.row().word)).collect();
        let (last, others) = words.split_last().expect("there are mechanisms");
        format!("{} and {last}", others.join(", "))
    }

    /// Whether threads address the elements, each those that a layout says, and check their bounds.
    pub fn is_by_threads(self) -> bool {
        self.row().by_threads
    }

    /// Whether elements may land, or be read, after the copy.
    pub fn lands_later(self) -> bool {
        self.row().later
    }
}
