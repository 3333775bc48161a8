#!/usr/bin/env python3
"""Puts the source of the book together for scripts/site.sh: the documents as they are, with links that stay inside of the book.

    scripts/book.py target/site-src

README.md becomes the first page, examples/README.md, CONTRIBUTING.md and CHANGELOG.md pages at the end. A link to another file of the repository becomes one to the
repository on the web. docs/SUMMARY.md is the list of pages; `scripts/gpu/pages_tests.py` holds it to the files.
"""

import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEB = "https://github.com/tilec/tilec/blob/main/"
# Pages from outside of docs/, by their place in the book.
PICTURES = {".svg", ".png"}
OUTSIDE = {"index.md": "README.md", "examples.md": "examples/README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
SETTINGS = """[book]
title = "tilec"
description = "A compiler from a tile language to PTX"
language = "en"
src = "."

[build]
create-missing = false

[output.html]
default-theme = "light"
preferred-dark-theme = "ayu"
no-section-label = true
additional-css = ["wide.css"]
smart-punctuation = false

# Snippets are of the tile language; nothing is to be run as Rust.
[output.html.playground]
runnable = false

[output.html.print]
enable = false
"""
# Programs have lines of up to 120 characters.
STYLE = ":root { --content-max-width: 1050px; }\n"
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)


def listed(summary: str) -> list[str]:
    """The pages of SUMMARY.md."""
    return re.findall(r"\]\(([^)]+\.md)\)", summary)


def pages() -> dict[str, pathlib.Path]:
    """The file of every page, by its place in the book."""
    docs = ROOT / "docs"
    found = {str(path.relative_to(docs)): path for path in sorted(docs.rglob("*.md")) if path.name != "SUMMARY.md"}
    return found | {place: ROOT / name for place, name in OUTSIDE.items()}


def linked(text: str, place: str, source: pathlib.Path, places: dict[pathlib.Path, str]) -> str:
    """The text of a page with its links as they are from its place."""

    def link(match: re.Match[str]) -> str:
        if re.match(r"[a-z]+:", match[2]):
            return match[0]
        target = (source.parent / match[2]).resolve()
        folder = os.path.dirname(place)
        if (page := places.get(target)) is not None:
            to = os.path.relpath(page, folder or ".")
        elif target.suffix in PICTURES and target.is_relative_to(ROOT / "docs"):
            to = os.path.relpath(target.relative_to(ROOT / "docs"), folder or ".")
        elif target.is_dir() and (target / "README.md") in places:
            to = os.path.relpath(places[target / "README.md"], folder or ".")
        else:
            to = WEB + str(target.relative_to(ROOT))
        return f"{match[1]}{to}{match[3] or ''}{match[4]}"

    parts = CODE.split(text)
    return "".join(part if at % 2 else LINK.sub(link, part) for at, part in enumerate(parts))


def stage(folder: pathlib.Path) -> None:
    """Writes book.toml, SUMMARY.md, pages and pictures to `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    docs = ROOT / "docs"
    (folder / "book.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "wide.css").write_text(STYLE, encoding="utf-8")
    summary = (docs / "SUMMARY.md").read_text(encoding="utf-8")
    head, _, rest = summary.partition("\n")
    last = "".join(f"- [{title}]({place})\n" for title, place in [("Examples", "examples.md"), ("Contributing", "contributing.md"), ("Changelog", "changelog.md")])
    # The first page of a folder is its index.html.
    rest = rest.replace("README.md", "index.md")
    (folder / "SUMMARY.md").write_text(f"{head}\n\n[tilec](index.md)\n{rest}{last}", encoding="utf-8")
    found = {place.replace("README.md", "index.md"): path for place, path in pages().items()}
    places = {path.resolve(): place for place, path in found.items()}
    for place, path in found.items():
        to = folder / place
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(linked(path.read_text(encoding="utf-8"), place, path, places), encoding="utf-8")
    for picture in (path for path in docs.rglob("*") if path.suffix in PICTURES):
        shutil.copy(picture, folder / picture.relative_to(docs))


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    stage(pathlib.Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
