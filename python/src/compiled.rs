//! Compilation: the options from Python, and the result.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeSet;
use tilec::compile::{Caller, Compiled};
use tilec::contract::LaunchFile;
use tilec::render::{self, SourceFile};
use tilec::{CompileOptions, Diagnostics, Target, compile, machine_code};
use tilec_ir::diag::{Diagnostic, Severity};
use tilec_launch::bundle::{Bundle, PayloadKind, architecture};

/// A program for a target.
pub(crate) struct Program {
    /// Its name in messages.
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) ptx: String,
    pub(crate) cubin: Option<Vec<u8>>,
    pub(crate) file: LaunchFile,
    /// The compilation result; a kernel from a bundle has none.
    pub(crate) made: Option<CompilerOutput>,
}

/// The compiler's output for a program.
pub(crate) struct CompilerOutput {
    pub(crate) source: String,
    pub(crate) options: CompileOptions,
    pub(crate) report: String,
    /// The program after all passes, as text.
    pub(crate) tile: String,
    pub(crate) warnings: String,
    pub(crate) remarks: String,
}

impl Program {
    /// Compiles.
    ///
    /// # Errors
    /// Everything that is wrong with the program.
    pub(crate) fn new(source: String, options: CompileOptions) -> Result<Program, Diagnostics> {
        let mut compiled: Compiled = compile(&source, &options)?;
        machine_code::check_demands(&mut compiled)?;
        let said = |wanted: Severity| {
            let some: Vec<Diagnostic> = compiled.diagnostics.iter().filter(|d| d.severity == wanted).cloned().collect();
            if some.is_empty() {
                String::new()
            } else {
                // What is asked for is shown, remarks too.
                let style = render::Style { remarks: true, ..render::Style::default() };
                render::human(&compiled.source, &some, 0, style)
            }
        };
        let made = CompilerOutput {
            warnings: said(Severity::Warning),
            remarks: said(Severity::Remark),
            report: compiled.report().to_json(),
            tile: compiled
                .kernels
                .iter()
                .map(|k| tilec_ir::print::print(&k.tile.kernel))
                .collect::<Vec<_>>()
                .join("\n"),
            source,
            options,
        };
        Ok(Program {
            name: made.options.source_name.clone(),
            target: made.options.target,
            file: compiled.launch_file(),
            ptx: compiled.ptx,
            cubin: None,
            made: Some(made),
        })
    }

    /// Takes what is for a target out of a bundle: for the one that is named, else for what a device of this compute capability
    /// runs, else for the newest.
    ///
    /// # Errors
    /// The bytes are no bundle, it has nothing for the target or the device, or this package does not know the target.
    pub(crate) fn of_bundle(
        bytes: &[u8],
        name: &str,
        target: Option<&str>,
        device: Option<(u32, u32)>,
    ) -> Result<Program, String> {
        let bundle = Bundle::from_bytes(bytes).map_err(|e| format!("{name}: {e}"))?;
        let all = bundle.targets();
        let target = match (target, device) {
            (Some(target), _) if all.contains(&target) => target,
            (Some(target), _) => {
                return Err(format!("{name}: there is no code for `{target}`; the bundle has {}", all.join(", ")));
            }
            (None, Some(capability)) => bundle.image(capability).map_err(|e| format!("{name}: {e}"))?.target,
            (None, None) => {
                let newest = all.iter().copied().max_by_key(|target| architecture(target));
                newest.ok_or_else(|| format!("{name}: there are no kernels in it"))?
            }
        };
        let (file, ptx) = bundle.program(target).map_err(|e| format!("{name}: {e}"))?;
        let cubin = bundle.payload(PayloadKind::Cubin, target).map(<[u8]>::to_vec);
        let known = Target::from_name(target).ok_or_else(|| format!("{name}: `{target}` is no target known here"))?;
        Ok(Program { name: name.to_owned(), target: known, ptx: ptx.to_owned(), cubin, file, made: None })
    }

    /// The text that spans of messages refer to: the source, or PTX if there is none.
    pub(crate) fn source_file(&self) -> SourceFile {
        let text = self.made.as_ref().map_or(&self.ptx, |made| &made.source);
        SourceFile::new(self.name.as_str(), text.as_str())
    }
}

/// Options of a compilation; `params` become definitions.
pub(crate) fn options(
    name: &str,
    target: &str,
    params: &Bound<'_, PyDict>,
    sizes: &Bound<'_, PyList>,
    variants: &Bound<'_, PyList>,
    zeros: Vec<String>,
) -> PyResult<CompileOptions> {
    let Some(target) = Target::from_name(target) else {
        let known: Vec<&str> = Target::ALL.iter().map(|t| t.name()).collect();
        return Err(pyo3::exceptions::PyValueError::new_err(format!(
            "no target `{target}`; there are {}",
            known.join(", ")
        )));
    };
    let sizes = dicts(sizes)?
        .iter()
        .map(|d| d.iter().map(|(k, v)| Ok((k.extract()?, v.extract()?))).collect())
        .collect::<PyResult<_>>()?;
    Ok(CompileOptions {
        source_name: name.to_owned(),
        target,
        defines: definitions(params)?,
        sizes,
        variants: dicts(variants)?.iter().map(definitions).collect::<PyResult<_>>()?,
        zeros,
        deny: BTreeSet::new(),
        report_accesses: true,
        verify_each: false,
        caller: Caller::Python,
        ..CompileOptions::default()
    })
}

/// The dictionaries of a list.
fn dicts<'py>(list: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, PyDict>>> {
    list.iter().map(|d| Ok(d.downcast_into::<PyDict>()?)).collect()
}

/// Compile-time parameters as text: numbers, words, and lists of numbers.
fn definitions(params: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    let text = |value: &Bound<'_, PyAny>| -> PyResult<String> {
        if let Ok(truth) = value.extract::<bool>() {
            return Ok(i32::from(truth).to_string());
        }
        Ok(value.str()?.to_string())
    };
    params.iter().map(|(name, value)| Ok((name.extract()?, text(&value)?))).collect()
}

/// The exception for what is wrong with a program: its text is what the command shows, with the caret.
pub(crate) fn error(py: Python<'_>, diagnostics: &Diagnostics) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let json = render::json(&diagnostics.source, &diagnostics.list, render::Style::default());
        let class = py.import("tilec._errors")?.getattr("CompileError")?;
        Ok(PyErr::from_value(class.call1((diagnostics.to_string(), json))?))
    };
    made().unwrap_or_else(|e| e)
}
