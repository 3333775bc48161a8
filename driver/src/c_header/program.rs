//! The launches after a name: one of the variants of a kernel, or the launches of a program.

use super::body::{Body, Placed, Subject, overlaps};
use super::image::Image;
use super::interface::{FieldKind, HeaderError, Interface, scalar_type};
use super::messages::{Kind, Messages};
use super::text::{comment, member};
use crate::contract::{Contract, Dispatch, Param, ParamKind, Program};
use crate::run::program::may_alias;
use std::fmt::Write as _;
use tilec_ir::types::Elem;

/// The index of a function of a target, in the order of the PTX.
pub(super) fn position(image: &Image<'_>, entry: &str) -> Result<usize, HeaderError> {
    let missing = || HeaderError::Missing { name: entry.to_owned() };
    image.file.kernels.iter().position(|c| c.entry == entry).ok_or_else(missing)
}

/// The function of a kernel on a target, which launches the first variant that fits.
pub(super) fn kernel(
    image: &Image<'_>,
    name: &str,
    kernels: &str,
    messages: &mut Messages,
) -> Result<String, HeaderError> {
    let variants = image.variants(name);
    let Some(first) = variants.first() else { return Err(HeaderError::Missing { name: name.to_owned() }) };
    let who = Subject { kernel: format!("{name} ({})", image.target.name()), variant: None };
    let mut body = Body::new(first, who, messages);
    body.values()?;
    match image.file.dispatch.iter().find(|d| d.kernel == name) {
        None => {
            let at = position(image, &first.entry)?;
            let entry = image.symbol(&format!("{}_entry", first.entry));
            body.line(&format!("return {entry}(k->functions[{at}], stream, v, room);"));
        }
        Some(dispatch) => {
            cases(image, dispatch, kernels, &mut body)?;
            nearest(image, dispatch, &mut body)?;
            body.line("return last;");
        }
    }
    let statements = body.finish();
    let several = image.file.dispatch.iter().any(|d| d.kernel == name);
    let mut out = format!(
        "static inline int {}(const {kernels} *k, CUstream stream, const {name}_args *given, tilec_room *room)\n{{\n    {name}_args values = *given, *v = &values;\n    int e = 0;\n",
        image.symbol(name)
    );
    if several {
        out.push_str("    int code, last = 0, holds, fewest = INT32_MAX;\n    tilec_room before;\n");
    }
    out.push_str("    (void)v;\n");
    out.push_str(&statements);
    out.push_str("}\n");
    Ok(out)
}

/// Statements that try the variants in order.
fn cases(image: &Image<'_>, dispatch: &Dispatch, kernels: &str, body: &mut Body<'_>) -> Result<(), HeaderError> {
    let none = body.no_value();
    for case in &dispatch.cases {
        let at = position(image, &case.entry)?;
        let conditions: Vec<String> = case.when.iter().map(|text| body.expression(text)).collect::<Result<_, _>>()?;
        let conditions = if conditions.is_empty() { "1".to_owned() } else { conditions.join(" && ") };
        let name = if case.variant.is_empty() { String::new() } else { format!(", {}", case.variant) };
        body.line(&comment(&format!("{}{name}: {}", case.entry, case.when.join(", "))));
        body.line(&format!("holds = {conditions};"));
        body.line(&format!("if (e)\n        return {none};"));
        body.line("if (holds) {");
        body.line("    before = *room;");
        let entry = image.symbol(&format!("{}_entry", case.entry));
        body.line(&format!("    code = {entry}(k->functions[{at}], stream, v, room);"));
        body.line(&format!("    if (!{kernels}_next(code))\n            return code;"));
        body.line("    *room = before;");
        body.line("}");
    }
    Ok(())
}

/// Statements that find the variant that came nearest, where none fits: as `Refused::nearest`.
fn nearest(image: &Image<'_>, dispatch: &Dispatch, body: &mut Body<'_>) -> Result<(), HeaderError> {
    body.line("/* None fits. The nearest has the fewest things that keep it from being launched; of several it is the last. */");
    body.line("before = *room;");
    for case in &dispatch.cases {
        let at = position(image, &case.entry)?;
        let kernel = format!("{} ({})", dispatch.kernel, image.target.name());
        let who = Subject { kernel, variant: Some(case.name().to_owned()) };
        body.line("tilec_count_reasons(room, &before);");
        for text in &case.when {
            let condition = body.expression(text)?;
            let code = who.code(body.messages, Kind::Requires, &format!("requires {text}"));
            body.line(&format!("if (!({condition}))\n        tilec_refused(room, {code});"));
        }
        let entry = image.symbol(&format!("{}_entry", case.entry));
        body.line(&format!("code = {entry}(k->functions[{at}], stream, v, room);"));
        body.line("if (code != 0)\n        tilec_refused(room, code);");
        body.line("if (room->reasons <= fewest) {");
        body.line("    fewest = room->reasons;");
        body.line("    last = room->reason;");
        body.line("}");
    }
    body.line("*room = before;");
    Ok(())
}

/// A contract that takes what any launch of a program takes.
fn joined(image: &Image<'_>, program: &Program) -> Result<Contract, HeaderError> {
    let mut all: Option<Contract> = None;
    for launch in &program.launches {
        let variants = image.variants(launch);
        if variants.is_empty() {
            return Err(HeaderError::Missing { name: launch.clone() });
        }
        for contract in variants {
            let made = all.get_or_insert_with(|| Contract {
                entry: program.name.clone(),
                params: Vec::new(),
                requires: Vec::new(),
                ..contract.clone()
            });
            for param in &contract.params {
                join(&mut made.params, param);
            }
        }
    }
    all.ok_or_else(|| HeaderError::Missing { name: program.name.clone() })
}

/// Merges a parameter of a launch: all launches share its default, and it is written if any of them writes it.
fn join(params: &mut Vec<Param>, param: &Param) {
    let Some(known) = params.iter_mut().find(|p| p.name == param.name) else {
        params.push(param.clone());
        return;
    };
    match (&mut known.kind, &param.kind) {
        (ParamKind::Tensor(known), ParamKind::Tensor(other))
        | (ParamKind::Pointers(known), ParamKind::Pointers(other))
            if other.access.writes() =>
        {
            known.access = crate::contract::Access::ReadWrite;
        }
        (ParamKind::Stride { packed, .. }, ParamKind::Stride { packed: other, .. }) => {
            *packed = packed.take().or_else(|| other.clone());
        }
        _ => {}
    }
}

/// The function of a program on a target.
pub(super) fn program(
    image: &Image<'_>,
    program: &Program,
    interfaces: &[Interface],
    kernels: &str,
    messages: &mut Messages,
) -> Result<String, HeaderError> {
    let all = joined(image, program)?;
    let who = Subject { kernel: format!("{} ({})", program.name, image.target.name()), variant: None };
    let mut body = Body::new(&all, who, messages);
    body.values()?;
    let temporary = |name: &str| program.temporaries.iter().any(|t| t.name == name);
    let given: Vec<&Param> = all
        .params
        .iter()
        .filter(|p| p.kind.tensor().is_some_and(|t| t.scratch.is_none()) && !temporary(&p.name))
        .collect();
    let variants: Vec<Vec<&Contract>> = program.launches.iter().map(|launch| image.variants(launch)).collect();
    let mut placed = Vec::new();
    for (at, param) in given.iter().enumerate() {
        let Some(tensor) = param.kind.tensor() else { continue };
        let pointers = matches!(param.kind, ParamKind::Pointers(_));
        body.tensor(at, &param.name, tensor, pointers)?;
        body.line(&format!("t[{at}].address = v->{};", member(&param.name)));
        let (written, may_alias) = (tensor.access.writes(), may_alias(&variants, &param.name));
        placed.push(Placed { name: &param.name, written, pointers, may_alias });
    }
    overlaps(&mut body, &placed);
    let none = body.no_value();
    let mut declared = String::new();
    for (i, temporary) in program.temporaries.iter().enumerate() {
        let bytes = body.expression(&temporary.bytes)?;
        body.line(&comment(&format!("`{}`, which one launch leaves to another", temporary.name)));
        body.line(&format!("bytes = {bytes};"));
        body.line(&format!("if (e)\n        return {none};"));
        body.line(&format!("m{i} = tilec_take(&room->workspace, bytes < 0 ? 0 : (uint64_t)bytes);"));
        let _ = writeln!(declared, "    CUdeviceptr m{i};");
    }
    if !program.temporaries.is_empty() {
        declared.push_str("    int64_t bytes;\n");
        let what = "`workspace` is absent, too small, or no multiple of 256";
        body.refuse("!tilec_fits(room, &room->workspace)", Kind::Scratch, what);
    }
    let shared = image.file.shared_launch(&program.name);
    for (i, launch) in program.launches.iter().enumerate() {
        let Some(interface) = interfaces.iter().find(|one| one.name == *launch) else {
            return Err(HeaderError::Missing { name: launch.clone() });
        };
        let _ = writeln!(declared, "    {launch}_args l{i};");
        body.line(&format!("memset(&l{i}, 0, sizeof l{i});"));
        for field in &interface.fields {
            let member = field.member();
            let value = match program.temporaries.iter().position(|t| t.name == field.param) {
                Some(at) => format!("m{at}"),
                None if all.param(&field.param).is_some() => format!("v->{member}"),
                // A kernel of that name for another target.
                None => continue,
            };
            body.line(&format!("l{i}.{member} = {value};"));
        }
        let call = format!("{}(k, stream, &l{i}, room)", image.symbol(launch));
        if i == shared {
            body.line(&format!("code = {call};"));
        } else {
            body.line(&format!("code = room->step == TILEC_COUNT ? 0 : {call};"));
        }
        body.line("if (code != 0)\n        return code;");
    }
    body.line("return 0;");
    let statements = body.finish();
    let name = &program.name;
    let mut out = format!(
        "static inline int {}(const {kernels} *k, CUstream stream, const {name}_args *given, tilec_room *room)\n{{\n    {name}_args values = *given, *v = &values;\n    int e = 0, code;\n",
        image.symbol(name)
    );
    if !given.is_empty() {
        let _ = writeln!(out, "    tilec_tensor t[{}];", given.len());
    }
    out.push_str(&declared);
    if !given.is_empty() {
        out.push_str("    memset(t, 0, sizeof t);\n");
    }
    out.push_str("    (void)v;\n");
    out.push_str(&statements);
    out.push_str("}\n");
    Ok(out)
}

/// The declarations of what [`public`] defines.
pub(super) fn prototypes(interface: &Interface, kernels: &str) -> String {
    let name = &interface.name;
    let mut out = String::new();
    if interface.workspace || interface.signals {
        let _ = writeln!(
            out,
            "/* Bytes of scratch memory for a launch of `{name}` with these arguments (addresses of tensors among them). */
TILEC_API int {name}_scratch(const {kernels} *k, const {name}_args *a, size_t *workspace_bytes, size_t *signals_bytes);"
        );
    }
    let _ = writeln!(
        out,
        "/* Clusters of `{name}` that the device of the current context runs at one time, for a launch with these arguments (addresses of tensors
   among them): for {} of one wave. A block without a cluster is a cluster of one. */
TILEC_API int {name}_max_active_clusters(const {kernels} *k, const {name}_args *a, int *clusters);",
        if interface.chosen.is_empty() { "a grid".to_owned() } else { format!("`{}`", interface.chosen.join("`, `")) }
    );
    let _ = writeln!(
        out,
        "/* Queues `{name}` on a stream; does not wait. 0, or a code: nothing was launched, unless the driver refused a later launch of several. */
TILEC_API int {name}_launch(const {kernels} *k, CUstream stream, const {name}_args *a);
/* What a code of a launch means, with the arguments' values, as a text of at most `text_bytes` bytes; gives `text`. */
TILEC_API const char *{name}_explain(int code, const {name}_args *a, char *text, size_t text_bytes);"
    );
    out
}

/// The function that returns the text of a code, with the values of arguments.
fn explain(interface: &Interface, kernels: &str) -> String {
    let name = &interface.name;
    let mut out = format!(
        "TILEC_API const char *{name}_explain(int code, const {name}_args *a, char *text, size_t text_bytes)\n{{\n    (void)a;\n    if (text_bytes == 0)\n        return \"\";\n    snprintf(text, text_bytes, \"%s\", {kernels}_message(code));\n"
    );
    let mut before = " (";
    for field in &interface.fields {
        let member = field.member();
        let how = match &field.kind {
            FieldKind::Tensor { .. } => continue,
            FieldKind::Scalar { elem: Elem::U64, .. } => "unsigned",
            FieldKind::Scalar { elem, .. } if elem.is_float() && !scalar_type(*elem).1 => "real",
            FieldKind::Scalar { .. } | FieldKind::Size => "integer",
            FieldKind::Stride { .. } => "stride",
        };
        let _ = writeln!(out, "    tilec_say_{how}(text, text_bytes, \"{before}\", \"{}\", a->{member});", field.param);
        before = ", ";
    }
    if before == ", " {
        out.push_str("    tilec_end(text, text_bytes);\n");
    }
    out.push_str("    return text;\n}\n");
    out
}

/// The function that returns how many clusters run at the same time.
fn active(interface: &Interface, kernels: &str) -> String {
    let name = &interface.name;
    let mut out = format!(
        "TILEC_API int {name}_max_active_clusters(const {kernels} *k, const {name}_args *a, int *clusters)\n{{\n    {name}_args values = *a;\n    tilec_room room = tilec_room_of(TILEC_COUNT, 0, 0, 0, 0);\n    int code;\n"
    );
    for size in &interface.chosen {
        let member = member(size);
        let _ = writeln!(out, "    if (values.{member} == 0)\n        values.{member} = 1;");
    }
    let _ = writeln!(
        out,
        "    code = {name}__run(k, NULL, &values, &room);\n    *clusters = room.clusters > 0 ? room.clusters : 1;\n    return code;\n}}\n"
    );
    out
}

/// The functions that people call.
pub(super) fn public(interface: &Interface, images: &[Image<'_>], kernels: &str, messages: &mut Messages) -> String {
    let name = &interface.name;
    let there: Vec<&str> = interface.targets.clone();
    let absent = messages.code(
        Kind::Target,
        format!("{name}: nothing is loaded that runs it ({kernels}_load loads it for {})", there.join(", ")),
    );
    let mut out = format!(
        "static inline int {name}__run(const {kernels} *k, CUstream stream, const {name}_args *a, tilec_room *room)\n{{\n    switch (k->image) {{\n"
    );
    let mut is_program = false;
    for (i, image) in images.iter().enumerate().filter(|(_, image)| there.contains(&image.target.name())) {
        let _ = writeln!(out, "    case {}:\n        return {}(k, stream, a, room);", i + 1, image.symbol(name));
        is_program |= image.file.programs.iter().any(|p| p.name == *name);
    }
    let _ = writeln!(out, "    default:\n        return {absent};\n    }}\n}}\n");
    let room = |step: &str| {
        let (none, none_signals) = (("0", "0"), ("0", "0"));
        let workspace = if interface.workspace { ("a->workspace", "a->workspace_bytes") } else { none };
        let signals = if interface.signals { ("a->signals", "a->signals_bytes") } else { none_signals };
        format!("tilec_room_of({step}, {}, {}, {}, {})", workspace.0, workspace.1, signals.0, signals.1)
    };
    if interface.workspace || interface.signals {
        let _ = writeln!(
            out,
            "TILEC_API int {name}_scratch(const {kernels} *k, const {name}_args *a, size_t *workspace_bytes, size_t *signals_bytes)\n{{"
        );
        out.push_str(
            "    tilec_room room = tilec_room_of(TILEC_MEASURE, TILEC_SCRATCH_ALIGN, 0, TILEC_SCRATCH_ALIGN, 0);\n",
        );
        let _ = writeln!(out, "    int code = {name}__run(k, NULL, a, &room);");
        out.push_str("    *workspace_bytes = (size_t)room.workspace.used;\n    *signals_bytes = (size_t)room.signals.used;\n    return code;\n}\n\n");
    }
    out.push_str(&active(interface, kernels));
    let _ = writeln!(out, "TILEC_API int {name}_launch(const {kernels} *k, CUstream stream, const {name}_args *a)\n{{");
    let _ = writeln!(out, "    tilec_room room = {};", room(if is_program { "TILEC_CHECK" } else { "TILEC_LAUNCH" }));
    if is_program {
        let _ =
            writeln!(out, "    int code = {name}__run(k, stream, a, &room);\n    if (code != 0)\n        return code;");
        let _ = writeln!(out, "    room = {};", room("TILEC_LAUNCH"));
    }
    let _ = writeln!(out, "    return {name}__run(k, stream, a, &room);\n}}\n");
    out + &explain(interface, kernels)
}
