"""Links between the documents lead to files and headings that there are; part of `python3 -m unittest gpu.tests`."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchors(text: str) -> set[str]:
    """The headings of a document as GitHub names them."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken(path: pathlib.Path) -> list[str]:
    """Links of one document that lead nowhere."""
    found = []
    for link in LINK.findall(CODE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        if not target.exists():
            found.append(f"{path.relative_to(ROOT)}: {link}")
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            found.append(f"{path.relative_to(ROOT)}: {link}: no such heading")
    return found


class Links(unittest.TestCase):
    def test_links_lead_somewhere(self) -> None:
        documents = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "examples/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        self.assertEqual([link for path in documents for link in broken(path)], [])

    def test_headings(self) -> None:
        self.assertEqual(anchors("# A `b` c\n\n## 8-bit floats, and (more)\n\ntext # no\n"), {"a-b-c", "8-bit-floats-and-more"})
