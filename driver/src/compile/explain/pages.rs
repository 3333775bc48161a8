//! What the pages of passes say, for `tilec explain`. The pages of the documentation are their only source.

use super::glossary::unlinked;

/// `docs/passes`.
const PAGES: &[(&str, &str)] = &[
    ("flatten-loops", include_str!("passes/flatten-loops.md")),
    ("align-rows", include_str!("passes/align-rows.md")),
    ("choose", include_str!("passes/choose.md")),
    ("specialize", include_str!("passes/specialize.md")),
    ("select-mma", include_str!("passes/select-mma.md")),
    ("stage-stores", include_str!("passes/stage-stores.md")),
    ("assign-layouts", include_str!("passes/assign-layouts.md")),
    ("defer-reductions", include_str!("passes/defer-reductions.md")),
    ("vectorize", include_str!("passes/vectorize.md")),
    ("swizzle", include_str!("passes/swizzle.md")),
    ("schedule-loops", include_str!("passes/schedule-loops.md")),
    ("pipeline", include_str!("passes/pipeline.md")),
    ("residue", include_str!("passes/residue.md")),
    ("expand", include_str!("passes/expand.md")),
    ("skip-scaling", include_str!("passes/skip-scaling.md")),
    ("predicate", include_str!("passes/predicate.md")),
    ("schedule", include_str!("passes/schedule.md")),
    ("reuse-loads", include_str!("passes/reuse-loads.md")),
    ("overlap-launches", include_str!("passes/overlap-launches.md")),
    ("contract", include_str!("passes/contract.md")),
    ("hand-over", include_str!("passes/hand-over.md")),
    ("place-shared", include_str!("passes/place-shared.md")),
    ("barriers", include_str!("passes/barriers.md")),
];

/// The sections that `explain` shows.
const SHOWN: &[&str] = &["Decides", "Remarks", "Decide otherwise"];

/// Sections of the page of a pass, each with its heading, in their order.
pub(super) fn of(pass: &str) -> Vec<(&'static str, String)> {
    let Some((_, page)) = PAGES.iter().find(|(name, _)| *name == pass) else { return Vec::new() };
    let sections = page.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    let own = sections.filter(|(title, _)| SHOWN.contains(title));
    own.map(|(title, text)| (title, unlinked(&text.trim().replace("**", ""), "docs/passes"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pass has a page, in the order of the table, and the page has every section.
    #[test]
    fn every_pass_has_a_page_with_all_sections() {
        let names: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, tilec_passes::PASSES.iter().map(|p| p.name).collect::<Vec<_>>());
        for name in names {
            let own = of(name);
            assert_eq!(own.iter().map(|(title, _)| *title).collect::<Vec<_>>(), SHOWN, "{name}");
            for (title, text) in own {
                assert!(text.len() > 20 && !text.contains("](") && !text.contains("**"), "{name}: {title}: {text}");
            }
        }
    }

    #[test]
    fn links_become_places_in_the_documentation() {
        let remarks =
            |pass| of(pass).into_iter().find(|(title, _)| *title == "Remarks").map_or(String::new(), |(_, t)| t);
        assert!(
            remarks("pipeline").contains("W0408: docs/diagnostics.md#warnings-passes warns"),
            "{}",
            remarks("pipeline")
        );
        let decides = of("choose").remove(0).1;
        assert!(decides.contains("The model: docs/notes/model.md describes"), "{decides}");
    }
}
