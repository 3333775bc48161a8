//! The header as a whole.

use super::body::Subject;
use super::image::Image;
use super::interface::{HeaderError, Interface};
use super::messages::{Kind, Messages};
use super::text::{comment, identifier, pieces};
use super::{entry, program};
use crate::contract::ParamKind;
use std::fmt::Write as _;
use std::path::Path;

/// Functions and types that any header needs.
pub(super) const RUNTIME: &str = include_str!("runtime.h");
/// The declaration prefix of public functions.
const API: &str = include_str!("api.h");
/// C-style casts are used in C++, too.
pub(super) const CASTS: &str = "#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \"-Wold-style-cast\"
#endif
";
/// The end of [`CASTS`].
pub(super) const CASTS_END: &str = "#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
";
/// Those of clusters and programmatic launches.
pub(super) const LAUNCH: &str = include_str!("launch.h");
/// Those of tensor maps.
pub(super) const MAPS: &str = include_str!("maps.h");

/// The header of what was compiled from `source`, for one target or several; the names in it begin with that of the file.
///
/// # Errors
/// Targets take different arguments under one name, or a contract is none.
pub fn header(source: &str, images: &[Image<'_>]) -> Result<String, HeaderError> {
    let stem = Path::new(source).file_stem().and_then(|s| s.to_str()).unwrap_or("input");
    let kernels = format!("{}_kernels", identifier(stem));
    let mut messages = Messages::default();
    let mut names: Vec<&str> = Vec::new();
    // Kernels in front of the programs that launch them.
    for is_program in [false, true] {
        for image in images {
            for name in image.file.names() {
                let program = image.file.programs.iter().any(|p| p.name == name);
                if program == is_program && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    let interfaces: Vec<Interface> = names.iter().map(|name| Interface::new(name, images)).collect::<Result<_, _>>()?;
    let declared = declarations(images, &interfaces, &kernels);
    let mut functions = String::new();
    for image in images {
        functions.push_str(&of_target(image, &interfaces, &kernels, &mut messages)?);
    }
    for interface in &interfaces {
        let _ = writeln!(functions, "{}", program::public(interface, images, &kernels, &mut messages));
    }
    let load = load(images, &kernels, &mut messages);
    let guard = format!("TILEC_{}_H", kernels.to_uppercase());
    let mut out = introduction(source, images, &kernels, &interfaces);
    let _ = writeln!(out, "#ifndef {guard}\n#define {guard} 1\n\n{CASTS}\n#include <cuda.h>");
    if declared.contains("INFINITY") || declared.contains("NAN") {
        out.push_str("#include <math.h>\n");
    }
    let _ = writeln!(
        out,
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    );
    let _ = writeln!(out, "{RUNTIME}\n{API}\n{declared}#ifndef TILEC_DECLARE_ONLY\n");
    let contracts = || images.iter().flat_map(|image| &image.file.kernels);
    if contracts().any(|c| c.programmatic || c.cluster != [1, 1, 1]) {
        let _ = writeln!(out, "{LAUNCH}");
    }
    if contracts().flat_map(|c| &c.params).any(|p| matches!(p.kind, ParamKind::TensorMap(_))) {
        let _ = writeln!(out, "{MAPS}");
    }
    out.push_str(&messages.write(&kernels));
    let _ = write!(out, "\n{load}\n{functions}#endif\n\n{CASTS_END}\n#endif\n");
    Ok(out)
}

/// The comment at the top of the header: contents and usage.
fn introduction(source: &str, images: &[Image<'_>], kernels: &str, interfaces: &[Interface]) -> String {
    let targets: Vec<&str> = images.iter().map(|image| image.target.name()).collect();
    let mut out = comment(&format!(
        "Kernels of {source} for {}, made by tilec {}. C99 and C++11; needs cuda.h, and -lcuda to link.",
        targets.join(", "),
        env!("CARGO_PKG_VERSION")
    ));
    let _ = writeln!(
        out,
        "\n/*\n    {kernels} k;\n    int code = {kernels}_load(&k, NULL, 0);         the current context's device"
    );
    for interface in interfaces {
        let name = &interface.name;
        let _ =
            writeln!(out, "    {name}_args {name} = {name}_make(..);\n    code = {name}_launch(&k, stream, &{name});");
    }
    let _ = writeln!(out, "    if (code != 0)\n        puts({kernels}_message(code));\n    {kernels}_unload(&k);\n*/");
    out
}

/// PTX, and the functions that launch what is in it.
fn of_target(
    image: &Image<'_>,
    interfaces: &[Interface],
    kernels: &str,
    messages: &mut Messages,
) -> Result<String, HeaderError> {
    let mut out = format!("/* ---- {} ---- */\n\n", image.target.name());
    for contract in &image.file.kernels {
        let symbol = image.symbol(&format!("{}_entry", contract.entry));
        let cases = image.file.dispatch.iter().flat_map(|d| d.cases.iter().map(move |case| (&d.kernel, case)));
        let variant = cases.into_iter().find(|(_, case)| case.entry == contract.entry);
        let group = variant.map_or(&contract.entry, |(kernel, _)| kernel);
        let who = Subject {
            kernel: format!("{group} ({})", image.target.name()),
            variant: variant.map(|(_, case)| case.name().to_owned()),
        };
        let _ = writeln!(out, "{}", entry::function(contract, &symbol, &format!("{group}_args"), who, messages)?);
    }
    let programs = || image.file.programs.iter();
    let there = |interface: &&Interface| interface.targets.contains(&image.target.name());
    for interface in interfaces.iter().filter(there) {
        let name = &interface.name;
        let text = match programs().find(|p| p.name == *name) {
            Some(of) => program::program(image, of, interfaces, kernels, messages)?,
            None => program::kernel(image, name, kernels, messages)?,
        };
        let _ = writeln!(out, "{text}");
    }
    Ok(out)
}

/// Declarations for programs that call functions defined in another file: types, arguments, and the functions.
fn declarations(images: &[Image<'_>], interfaces: &[Interface], kernels: &str) -> String {
    let most = images.iter().map(|image| image.file.kernels.len()).max().unwrap_or(0).max(1);
    let mut out = format!(
        "/* The kernels in a context. Zeros are nothing loaded. */
typedef struct {kernels} {{
    CUmodule module;
    int image; /* which PTX of the header is loaded, counted from 1; 0: none */
    CUfunction functions[{most}];
}} {kernels};

/* Loads the newest PTX that the device of the current context runs; what the driver's assembler says of it goes to `log`, which may be null. */
TILEC_API int {kernels}_load({kernels} *k, char *log, size_t log_bytes);
TILEC_API int {kernels}_unload({kernels} *k);
/* What a code is about: compare this, not codes, which differ from one compilation to another. */
TILEC_API tilec_kind {kernels}_kind(int code);
/* What a code means, in words. */
TILEC_API const char *{kernels}_message(int code);

"
    );
    for interface in interfaces {
        let _ = writeln!(out, "{}\n{}", interface.write(), program::prototypes(interface, kernels));
    }
    out
}

/// PTX, and the functions that load it.
fn load(images: &[Image<'_>], kernels: &str, messages: &mut Messages) -> String {
    let mut out = String::new();
    for image in images {
        let target = image.target.name();
        out.push_str(&pieces(&format!("{kernels}_{target}_ptx"), image.ptx));
        let _ = writeln!(out, "\nstatic const tilec_entry {kernels}_{target}_entries[] = {{");
        for contract in &image.file.kernels {
            let (entry, shared) = (&contract.entry, contract.dynamic_smem_bytes);
            let _ = writeln!(out, "    {{\"{entry}\", {shared}, {}}},", u8::from(contract.has_large_clusters()));
        }
        out.push_str("};\n\n");
    }
    let _ = writeln!(
        out,
        "/* Whether another variant may fit where one was refused with this code. */
static inline int {kernels}_next(int code)
{{
    tilec_kind kind = {kernels}_kind(code);
    return {};
}}

TILEC_API int {kernels}_load({kernels} *k, char *log, size_t log_bytes)
{{
    CUdevice device;
    int major = 0, minor = 0, cc, code;
    memset(k, 0, sizeof *k);
    code = (int)TILEC_CU(cuCtxGetDevice)(&device);
    if (code == 0)
        code = (int)TILEC_CU(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (code == 0)
        code = (int)TILEC_CU(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (code != 0)
        return code;
    cc = 10 * major + minor;",
        Kind::of_variant()
    );
    let mut order: Vec<(usize, &Image<'_>)> = images.iter().enumerate().collect();
    let specific = |image: &Image<'_>| !image.target.runs_on(image.target.cc() + 1);
    order.sort_by_key(|(_, image)| std::cmp::Reverse((image.target.cc(), specific(image))));
    for (i, image) in order {
        let (target, cc) = (image.target.name(), image.target.cc());
        // Code for one architecture runs on that alone; other PTX on all that came later.
        let relation = if specific(image) { "==" } else { ">=" };
        let count = image.file.kernels.len();
        let _ = writeln!(
            out,
            "    if (cc {relation} {cc}) {{
        code = tilec_load(&k->module, k->functions, {kernels}_{target}_ptx, {kernels}_{target}_entries, {count}, log, log_bytes);
        k->image = code == 0 ? {} : 0;
        return code;
    }}",
            i + 1
        );
    }
    let targets: Vec<&str> = images.iter().map(|image| image.target.name()).collect();
    let none =
        messages.code(Kind::Target, format!("the device runs none of the PTX in the header: {}", targets.join(", ")));
    let _ = writeln!(
        out,
        "    return {none};
}}

TILEC_API int {kernels}_unload({kernels} *k)
{{
    int code = k->image == 0 ? 0 : (int)TILEC_CU(cuModuleUnload)(k->module);
    memset(k, 0, sizeof *k);
    return code;
}}"
    );
    out
}
