//! Messages of the assembler.

/// Severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something worth knowing.
    Info,
    /// A warning, or a loss of performance, such as a serialised `wgmma`.
    Warning,
    /// An error, fatal or not.
    Error,
}

/// A message of `ptxas` about the PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxasMessage {
    /// How bad it is.
    pub severity: Severity,
    /// Line of the PTX, from 1, where one was given; [`tile_location`] maps it to the source.
    pub line: Option<u32>,
    /// The function that it is about, where one was named.
    pub function: Option<String>,
    /// The entry that calls this function, where the function is none.
    pub caller: Option<String>,
    /// The message without prefix.
    pub text: String,
}

impl PtxasMessage {
    /// The message, and the place that its words name: `in the function 'k' in line 12`, `in around line 12`.
    pub(super) fn new(severity: Severity, line: Option<u32>, text: &str) -> PtxasMessage {
        let function = text.split_once("function '").and_then(|(_, rest)| rest.split_once('\''));
        let number = text.split_once(" line ").map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next());
        PtxasMessage {
            severity,
            line: line.or_else(|| number.flatten()?.parse().ok()),
            function: function.map(|(name, _)| name.to_owned()),
            caller: None,
            text: text.to_owned(),
        }
    }

    /// Whether it reports spilled registers.
    #[must_use]
    pub fn spills(&self) -> bool {
        self.text.starts_with("Registers are spilled")
    }

    /// The instruction that it is about: a word with a dot in it (`wgmma.mma_async`), or in quotes (`'setmaxnreg'`).
    #[must_use]
    pub fn instruction(&self) -> Option<&str> {
        let opcode = |w: &&str| w.starts_with(|c: char| c.is_ascii_lowercase()) && !w.contains(['/', '(']);
        let dotted = self.text.split_whitespace().find(|w| opcode(w) && w.trim_end_matches('.').contains('.'));
        let quoted = self.text.split('\'').nth(1).filter(|w| opcode(w) && Some(*w) != self.function.as_deref());
        dotted.or(quoted)
    }
}

/// A place in a `.tile` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileLocation {
    /// File name as the PTX's `.file` directive has it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
}

/// Where line `ptx_line` (from 1) of `ptx` comes from: the last `.loc` on or before it in the same
/// function. `None` before the first `.loc`, and for a `.loc` of line 0 or of an unknown file.
#[must_use]
pub fn tile_location(ptx: &str, ptx_line: u32) -> Option<TileLocation> {
    let mut loc = None;
    let upto = usize::try_from(ptx_line).ok()?;
    for line in ptx.lines().take(upto) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some(".loc") => loc = Some(words),
            // Directives before the name of a function end the reach of the last `.loc`.
            Some(".visible" | ".extern" | ".weak" | ".entry" | ".func") => loc = None,
            _ => {}
        }
    }
    let mut numbers = loc?.map(|word| word.trim_end_matches([',', ';']).parse::<u32>().ok());
    let mut next = || numbers.next().flatten();
    let (file, line, column) = (next()?, next()?, next().unwrap_or(0));
    if line == 0 {
        return None;
    }
    Some(TileLocation { file: file_name(ptx, file)?.to_owned(), line, column })
}

/// The name in `.file INDEX "NAME"`.
pub(crate) fn file_name(ptx: &str, index: u32) -> Option<&str> {
    ptx.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix(".file")?.trim_start();
        let (number, rest) = rest.split_once('"')?;
        if number.trim().parse() != Ok(index) {
            return None;
        }
        rest.split_once('"').map(|(name, _)| name)
    })
}
