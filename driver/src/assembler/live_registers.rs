//! The number of live registers at each instruction, from nvdisasm's life ranges.

use super::find::find;
use super::sass::listed;
use crate::assembler::tools::{Arch, AssemblerError, Tool};
use std::collections::BTreeMap;

/// A function's name, and the 32-bit registers in use at its instructions by their addresses; nothing is known of padding.
pub type Live = (String, BTreeMap<u64, u32>);

/// The registers in use in every function of `cubin`, which must be for `arch`.
///
/// # Errors
/// As [`super::disassemble`].
pub fn live_registers(cubin: &[u8], arch: Arch) -> Result<Vec<Live>, AssemblerError> {
    let listing = listed(&find(Tool::Nvdisasm, arch)?, cubin, &["-c", "-lrm", "count", "in.cubin"])?;
    Ok(parse(&listing.text))
}

/// Parses a listing of `nvdisasm -c -lrm count`: the first column after `// |` counts general registers.
fn parse(text: &str) -> Vec<Live> {
    let mut functions: Vec<Live> = Vec::new();
    for line in text.lines() {
        let code = line.trim_start();
        if let Some(name) = code.strip_prefix(".section").and_then(|rest| rest.trim_start().strip_prefix(".text.")) {
            functions.push((name.split(',').next().unwrap_or(name).to_owned(), BTreeMap::new()));
        } else if let Some((_, live)) = functions.last_mut()
            && let Some((address, rest)) = code.strip_prefix("/*").and_then(|rest| rest.split_once("*/"))
            && let Ok(address) = u64::from_str_radix(address, 16)
            && let Some((_, counts)) = rest.rsplit_once("// |")
        {
            // No number: no register.
            live.insert(address, counts.split('|').next().and_then(|n| n.trim().parse().ok()).unwrap_or(0));
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn counts_of_instructions_are_read() {
        let text = "\t.section\t.text.k,\"ax\",@progbits\n // | GPR | PRED |\n\
            .text.k:   // |   |   |\n/*0000*/ MOV R1, c[0x0][0x28] ; // |  1 |   |\n/*0010*/ NOP ; // |    |   |\n";
        assert_eq!(parse(text), [("k".to_owned(), [(0, 1), (16, 0)].into())]);
        assert_eq!(parse("/*0000*/ MOV ; // | 1 |"), []);
    }
}
