"""Links between the documents lead to files and headings that there are; part of `python3 -m unittest gpu.tests`."""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import site_links  # noqa: E402

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

    def test_links_of_a_site(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            site = pathlib.Path(folder)
            (site / "a").mkdir()
            (site / "a/index.html").write_text('<p id="p"><a href="../index.html#q">', encoding="utf-8")
            good = '<a href="a/"><a href="a/index.html#p"><a href="#q"><p id="q"><a href="https://x.y"><img src="p.svg"><img src="data:image/png;base64,">'
            (site / "p.svg").touch()
            (site / "index.html").write_text(good, encoding="utf-8")
            self.assertEqual(site_links.wrong(site), [])
            bad = '<a href="b.html">\n<a href="a/index.html#q">\n<img src="https://x.y/z.png">\n<script src="s.js">'
            (site / "index.html").write_text(good + bad, encoding="utf-8")
            found = [line.split(": ", 1) for line in site_links.wrong(site)]
            self.assertEqual([what.split(": ")[1] for _, what in found], ["there is no such file", "there is no such place", "needs a network", "there is no such file"])
