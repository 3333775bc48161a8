//! Examples compiled for the targets of headers.

use tilec::c_header::{Image, header};
use tilec::{CompileOptions, Compiled, Target, compile};
use tilec_launch::Bundle;

/// The targets of each header.
pub(super) const TARGETS: [Target; 3] = [Target::Sm70, Target::Sm80, Target::Sm90a];

/// The program for each of the targets that it compiles for: some are for one target, and what they are compiled for elsewhere is another matter.
pub(super) fn compiled(source: &str, text: &str, defines: &[(&str, &str)], alignments: &[&str]) -> Vec<Compiled> {
    let variants = alignments.iter().map(|n| vec![("ALIGN".to_owned(), (*n).to_owned())]).collect::<Vec<_>>();
    TARGETS
        .into_iter()
        .filter_map(|target| {
            let variants = variants.clone();
            let defines = defines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let options = CompileOptions {
                source_name: source.to_owned(),
                target,
                defines,
                variants,
                report_accesses: false,
                verify_each: false,
                ..CompileOptions::default()
            };
            compile(text, &options).ok()
        })
        .collect()
}

/// The header of an example, and its bundle.
pub(super) fn header_and_bundle(stem: &str) -> Result<(String, Vec<u8>), String> {
    let source = format!("examples/{stem}.tile");
    let text =
        std::fs::read_to_string(crate::root().join(&source)).map_err(|e| format!("cannot read {source}: {e}"))?;
    let all = compiled(&source, &text, &[], &[]);
    let files: Vec<_> = all.iter().map(Compiled::launch_file).collect();
    let images: Vec<Image<'_>> =
        all.iter().zip(&files).map(|(c, file)| Image { target: c.target, ptx: &c.ptx, file }).collect();
    let mut bundle = Bundle::default();
    for image in &images {
        bundle.add(image.target.name(), image.file, image.ptx, None).map_err(|e| e.to_string())?;
    }
    Ok((header(&source, &images).map_err(|e| e.to_string())?, bundle.to_bytes()))
}
