//! Messages of the assembler.

/// How bad a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something worth knowing, such as a serialised `wgmma`.
    Info,
    /// A warning.
    Warning,
    /// An error, fatal or not.
    Error,
}

/// Something `ptxas` said about the PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxasMessage {
    /// How bad it is.
    pub severity: Severity,
    /// Line of the PTX, from 1, where one was given; [`tile_location`] maps it to the source.
    pub line: Option<u32>,
    /// The message without prefix.
    pub text: String,
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
