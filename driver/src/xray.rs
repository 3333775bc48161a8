//! A page that shows a kernel: source, passes, PTX and machine code side by side, and what the compiler knows of each line.
//!
//! The data of each view is a file here, made of what the compiler has and never of its text; the page that draws it is in
//! `driver/xray`, plain modules that are put into one HTML file as they are.

mod banks;
mod boxes;
mod budget;
mod columns;
mod diff;
mod grid;
mod lines;
mod machine;
mod measured;
mod operands;
mod padded;
mod page;
pub mod path;
mod picture;
mod pictures;
mod registers;
mod remark;
mod roles;
mod sectors;
mod slots;
mod svg;
mod threads;
mod time;
mod two_variants;
mod warps;

pub(crate) use budget::{peak, registers_of, registers_of_roles};
pub use columns::{Columns, Stage};
pub use machine::Machine;
pub use measured::Measured;
pub use picture::{Picture, Room};
pub use remark::Remark;
pub use two_variants::{OtherVariant, VariantDiff};

use crate::compile::machine_code::{self, ByLine};
use crate::compile::{CompileOptions, Compiled, CompiledKernel, Diagnostics, Keep, compile};
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
    /// The kernels in source order, the variants of one next to each other.
    pub kernels: Vec<KernelPage>,
    /// The program in all its forms.
    pub columns: Columns,
    /// Pictures of layouts.
    pub pictures: Vec<Picture>,
    /// Why none of the measurements that were given is shown.
    #[serde(skip)]
    pub unmeasured: Option<String>,
    /// Why the element that was requested has no picture.
    #[serde(skip)]
    pub no_way: Option<String>,
    /// The same program with other values, to compare with this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<OtherVariant>,
}

/// A kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelPage {
    /// The name of its entry.
    pub entry: String,
    /// The values of its compile-time parameters.
    pub parameters: BTreeMap<String, String>,
    /// Figures in words: name and value.
    pub figures: Vec<(String, String)>,
}

/// Compiles `source` and collects what there is to show.
///
/// # Errors
/// Everything that is wrong with the program, as far as one run can tell; or this machine's assembler fails.
pub fn xray(source: &str, options: &CompileOptions, more: &PageOptions) -> Result<Xray, Diagnostics> {
    let (program, machine) = made(source, options)?;
    let mut shown = of_measured(&program, machine.as_ref(), &more.measured);
    if !more.measured.is_empty() {
        let fits = |k: &CompiledKernel| measured::fitting(&more.measured, program.target, k).err();
        // Of a file with several kernels some are measured.
        let why: Option<Vec<String>> = program.kernels.iter().map(fits).collect();
        shown.unmeasured = why.and_then(|all| all.into_iter().next());
    }
    if let Some(element) = &more.element {
        match path::path(&program, element) {
            Ok(way) => {
                let name = more.picture.clone();
                shown.pictures.push(path::draw::picture(name, &element.to_string(), &way, Default::default()));
            }
            Err(why) => shown.no_way = Some(why),
        }
    }
    let other = &more.compare;
    if other.target.is_some() || !other.values.is_empty() {
        let (other, code) = made(source, &other.options(options, &program))?;
        let other = of(&other, code.as_ref());
        let figures = two_variants::Figures { own: &shown.kernels_in_words(), other: &other.kernels_in_words() };
        shown.beside = Some(OtherVariant::new((&shown.columns, &other.columns), figures, &more.compare.to_string()));
    }
    Ok(shown)
}

/// What a page has in addition to the program.
#[derive(Clone, Debug, Default)]
pub struct PageOptions {
    /// Measurements, of which those that fit are shown.
    pub measured: Vec<Measured>,
    /// What is different in a second variant, which is compared with this one.
    pub compare: VariantDiff,
    /// An element whose way is a picture.
    pub element: Option<path::Element>,
    /// What that picture is called.
    pub picture: String,
}

/// A program and its machine code.
fn made(source: &str, options: &CompileOptions) -> Result<(Compiled, Option<ByLine>), Diagnostics> {
    let mut program = compiled(source, options)?;
    machine_code::show_demands(&mut program)?;
    let machine = machine_code::by_ptx_line(&program)?;
    Ok((program, machine))
}

/// Compiles `source` for a page.
///
/// # Errors
/// Everything that is wrong with the program, as far as one run can tell.
pub fn compiled(source: &str, options: &CompileOptions) -> Result<Compiled, Diagnostics> {
    let shown = CompileOptions { keep: Keep::All, keep_places: true, report_accesses: true, ..options.clone() };
    compile(source, &CompileOptions { show_broken: true, ..shown })
}

/// What there is to show of a program that [`compiled`] gave; `machine`: its machine code, if there are tools for that.
pub fn of(program: &Compiled, machine: Option<&ByLine>) -> Xray {
    of_measured(program, machine, &[])
}

/// The same, with what was measured.
fn of_measured(program: &Compiled, machine: Option<&ByLine>, measured: &[Measured]) -> Xray {
    let columns = Columns::new(program, machine);
    let pictures = pictures::pictures(program, columns.machine.as_ref(), measured);
    let kernels = program.kernels.iter().map(|k| KernelPage {
        entry: k.contract.entry.clone(),
        parameters: k.tile.parameters.iter().filter_map(|(name, v)| Some((name.clone(), v.text()?))).collect(),
        figures: figures(k),
    });
    Xray {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        file: program.source.name().to_owned(),
        target: program.target.name(),
        kernels: kernels.collect(),
        columns,
        pictures,
        unmeasured: None,
        no_way: None,
        beside: None,
    }
}

/// What a kernel takes, in words.
fn figures(k: &CompiledKernel) -> Vec<(String, String)> {
    let mut out = vec![
        ("shared memory".to_owned(), format!("{} bytes", k.report.smem_bytes)),
        ("threads".to_owned(), k.contract.block.iter().product::<u32>().to_string()),
        ("slots of the deepest channel".to_owned(), k.report.stages.to_string()),
        ("wavefronts of bank conflicts in loops".to_owned(), k.report.conflicts_in_loop.to_string()),
        ("barriers inside of loops".to_owned(), k.report.barriers_in_loop.to_string()),
    ];
    out.extend(time::missing(k).map(|why| ("picture of a loop in time".to_owned(), format!("none: {why}"))));
    if let Some(p) = k.tile.whole() {
        out.push((
            "predicted".to_owned(),
            format!("{:.1} us on {}, most of it {}", p.seconds * 1e6, p.card, p.budget().largest().name()),
        ));
        out.push(("blocks of a multiprocessor, predicted".to_owned(), p.resident.to_string()));
    } else {
        let why = k.tile.unpredicted.as_ref().map_or(String::new(), |why| format!(": {why}"));
        out.push(("predicted".to_owned(), format!("nothing, so there are no pictures `time` and `roofline`{why}")));
    }
    out
}

impl Xray {
    /// Values of parameters and figures, by kernel.
    fn kernels_in_words(&self) -> Vec<(String, String)> {
        let several = self.kernels.len() > 1;
        let target = ("target".to_owned(), self.target.to_owned());
        let of = |k: &KernelPage| -> Vec<(String, String)> {
            let named = |name: &String| if several { format!("{}: {name}", k.entry) } else { name.clone() };
            let parameters = k.parameters.iter().map(|(name, value)| (named(name), value.clone()));
            let figures = k.figures.iter().map(|(name, value)| (format!("{}: {name}", k.entry), value.clone()));
            parameters.chain(figures).collect()
        };
        std::iter::once(target).chain(self.kernels.iter().flat_map(of)).collect()
    }

    /// The data as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("the data has only string keys")
    }

    /// The page: one HTML file that requests nothing else.
    pub fn to_html(&self) -> String {
        page::page(&self.file, self.target, &self.to_json())
    }
}
