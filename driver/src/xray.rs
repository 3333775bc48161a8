//! A page that shows a kernel: source, passes, PTX and machine code side by side, and what the compiler knows of each line.
//!
//! The data of each view is a file here, made of what the compiler has and never of its text; the page that draws it is in
//! `driver/xray`, plain modules that are put into one HTML file as they are.

mod columns;
mod diff;
mod machine;
mod page;
mod pictures;

pub use columns::{Columns, Remark, Stage};
pub use machine::Machine;
pub use pictures::Picture;

use crate::compile::machine_code::{self, ByLine};
use crate::compile::{CompileOptions, Compiled, Diagnostics, Keep, compile};
use serde::Serialize;
use std::collections::BTreeMap;

/// The value of `schema`.
pub const SCHEMA: &str = "tilec.xray/1";

/// All that a page shows.
#[derive(Clone, Debug, Serialize)]
pub struct Xray {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The version of the compiler.
    pub version: &'static str,
    /// Name of the source.
    pub file: String,
    /// Target.
    pub target: &'static str,
    /// The kernels in source order, the variants of one beside each other.
    pub kernels: Vec<Named>,
    /// The program in all its forms.
    pub columns: Columns,
    /// Pictures of layouts.
    pub pictures: Vec<Picture>,
}

/// A kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Named {
    /// The name of its entry.
    pub entry: String,
    /// The values of its compile-time parameters.
    pub parameters: BTreeMap<String, String>,
}

/// Compiles `source` and collects what there is to show.
///
/// # Errors
/// Everything that is wrong with the program, as far as one run can tell; or this machine's assembler fails.
pub fn xray(source: &str, options: &CompileOptions) -> Result<Xray, Diagnostics> {
    let mut program = compiled(source, options)?;
    machine_code::meet_demands(&mut program)?;
    let machine = machine_code::by_ptx_line(&program)?;
    Ok(of(&program, machine.as_ref()))
}

/// Compiles `source` for a page.
///
/// # Errors
/// Everything that is wrong with the program, as far as one run can tell.
pub fn compiled(source: &str, options: &CompileOptions) -> Result<Compiled, Diagnostics> {
    compile(source, &CompileOptions { keep: Keep::All, keep_places: true, ..options.clone() })
}

/// What there is to show of a program that [`compiled`] gave; `machine`: its machine code, if there are tools for that.
pub fn of(program: &Compiled, machine: Option<&ByLine>) -> Xray {
    let kernels = program.kernels.iter().map(|k| Named {
        entry: k.contract.entry.clone(),
        parameters: k.tile.parameters.iter().filter_map(|(name, v)| Some((name.clone(), v.text()?))).collect(),
    });
    Xray {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        file: program.source.name().to_owned(),
        target: program.target.name(),
        kernels: kernels.collect(),
        columns: Columns::new(program, machine),
        pictures: pictures::pictures(program),
    }
}

impl Xray {
    /// The data as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("the data has only string keys")
    }

    /// The page: one HTML file that asks for nothing else.
    pub fn to_html(&self) -> String {
        page::page(&self.file, self.target, &self.to_json())
    }
}
