//! Requirements of the registry on the manifests of all published crates.

use crate::{root, verdict};
use std::collections::BTreeMap;
use std::path::Path;

/// The settings that the workspace gives all its crates.
const INHERITED: [&str; 7] = ["version", "edition", "rust-version", "license", "repository", "readme", "keywords"];
/// What a registry requests; `categories` may differ from crate to crate.
const OWN: [&str; 3] = ["name", "description", "categories"];
/// Manifests for other registries, which have the address of the repository, too.
const ADDRESSED: [&str; 3] =
    ["python/pyproject.toml", "editors/vscode/package.json", "editors/tree-sitter/tree-sitter.json"];

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The lines `key = value` of a section, each on one line.
fn section<'a>(text: &'a str, name: &str) -> BTreeMap<&'a str, &'a str> {
    let lines = text.lines().skip_while(|line| line.trim() != format!("[{name}]")).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once(" = ")).collect()
}

fn unquoted(value: &str) -> &str {
    value.trim_matches('"')
}

/// What a crate's manifest lacks; nothing where it is not uploaded.
fn lacks(manifest: &str, text: &str) -> Vec<String> {
    let package = section(text, "package");
    if package.get("publish") == Some(&"false") {
        return Vec::new();
    }
    let inherited = INHERITED.iter().filter(|key| package.get(format!("{key}.workspace").as_str()) != Some(&"true"));
    let own = OWN
        .iter()
        .filter(|key| !package.contains_key(**key) && !package.contains_key(format!("{key}.workspace").as_str()));
    let inherited = inherited.map(|key| format!("{manifest}: `{key}.workspace = true` is missing"));
    inherited.chain(own.map(|key| format!("{manifest}: `{key}` is missing"))).collect()
}

/// A crate that is uploaded has what a registry requests, and has it from the workspace.
#[test]
fn crates_can_be_published() -> Result<(), String> {
    let workspace = read(&root().join("Cargo.toml"))?;
    let shared = section(&workspace, "workspace.package");
    let mut found = Vec::new();
    for key in INHERITED.iter().chain(&["categories"]).filter(|key| !shared.contains_key(**key)) {
        found.push(format!("Cargo.toml: `{key}` is missing in [workspace.package]"));
    }
    let version = shared.get("version").copied().unwrap_or_default();
    for (name, value) in section(&workspace, "workspace.dependencies") {
        if value.contains("path = ") && !value.contains(&format!("version = {version}")) {
            found.push(format!(
                "Cargo.toml: `{name}` has not the version {version}, which a registry needs beside the path"
            ));
        }
    }
    let members = section(&workspace, "workspace").get("members").copied().unwrap_or_default();
    let members: Vec<&str> = members.trim_matches(['[', ']']).split(", ").map(unquoted).collect();
    assert!(members.len() > 5, "members of the workspace: {members:?}");
    for member in members {
        let manifest = format!("{member}/Cargo.toml");
        found.extend(lacks(&manifest, &read(&root().join(&manifest))?));
    }
    let address = shared.get("repository").copied().map_or("", unquoted);
    for file in ADDRESSED {
        if address.is_empty() || !read(&root().join(file))?.contains(&format!("\"{address}\"")) {
            found.push(format!("{file}: the repository is not `{address}`, as Cargo.toml says"));
        }
    }
    verdict(&found);
    Ok(())
}

#[test]
fn what_a_manifest_lacks() {
    let all: String = INHERITED.iter().map(|key| format!("{key}.workspace = true\n")).collect();
    let rest = "name = \"a\"\ndescription = \"b\"\ncategories.workspace = true\n";
    assert_eq!(lacks("a", &format!("[package]\n{all}{rest}")), [""; 0]);
    assert_eq!(lacks("a", "[package]\nname = \"a\"\npublish = false\n"), [""; 0]);
    let text = format!("[package]\n{}{rest}", all.replace("readme.workspace = true\n", "readme = \"x\"\n"));
    assert_eq!(lacks("a", &text), ["a: `readme.workspace = true` is missing"]);
    // A key of another section is not the package's.
    let text = format!("[package]\n{all}name = \"a\"\ncategories = []\n[lib]\ndescription = \"b\"\n");
    assert_eq!(lacks("a", &text), ["a: `description` is missing"]);
}
