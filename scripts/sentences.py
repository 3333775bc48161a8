#!/usr/bin/env python3
"""Lists sentences of documents that have more than 25 words (docs/style.md), the longest first.

    scripts/sentences.py [DOCUMENT.md ...]      # without a document: all that `scripts/gpu/pages_tests.py` checks and docs/diagnostics.md, as counts

Code counts as one word, a link as its text. Cells of tables and items of lists are read by themselves. Only `.`, `!` and `?` end a sentence.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 25


def parts(text: str) -> list[str]:
    """Paragraphs, items and cells of a document, without code blocks and headings."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?: {4}|\t).*$", lambda line: line[0] if re.match(r"\s+(?:[*-]|\d+\.) ", line[0]) else "", text, flags=re.MULTILINE)
    found: list[str] = []
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) |\s*\||#)", text):
        if part.lstrip().startswith("|"):
            found.extend(part.split("|"))
        elif not part.startswith("#"):
            found.append(part)
    return found


def long_sentences(text: str) -> list[tuple[int, str]]:
    """The number of words and the text of every sentence beyond the limit."""
    found = []
    for part in parts(text):
        part = re.sub(r"`[^`]*`", "Code", re.sub(r"\]\([^)]*\)", "]", part))
        for sentence in re.split(r"(?<=[.!?])[)*]*\s+(?=[A-Z*\[(\d])", " ".join(part.split())):
            words = re.findall(r"[\w.,/-]*\w", sentence)
            # A list of words of the language is no sentence.
            if len(words) > LIMIT and set(words) != {"Code"}:
                found.append((len(words), sentence))
    return sorted(found, reverse=True)


def main() -> int:
    if paths := [pathlib.Path(name) for name in sys.argv[1:]]:
        for path in paths:
            for words, sentence in long_sentences(path.read_text(encoding="utf-8")):
                print(f"{path}: {words}: {sentence}")
        return 0
    for path in [*sorted(ROOT.glob("*.md")), ROOT / "examples/README.md", ROOT / "python/README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if found := long_sentences(path.read_text(encoding="utf-8")):
            print(f"{len(found):4} {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
