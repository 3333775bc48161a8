#!/usr/bin/env python3
"""Checks a site that scripts/site.sh built: every link to a page, a place in a page, a picture, a style or a script of the site leads somewhere, and a page needs no network.

    scripts/site_links.py target/site

Prints what is wrong, a line each; the status is 1 then.
"""

import html.parser
import pathlib
import sys
import urllib.parse

# Attributes that a browser follows by itself, or when the reader asks.
FOLLOWED = {("img", "src"), ("script", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}


class Page(html.parser.HTMLParser):
    """The links of a page, and the places that others may link to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[int, str, bool]] = []
        """Line, address, and whether the page needs it to be drawn."""
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: "list[tuple[str, str | None]]") -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value or "")
            elif value and ((tag, name) in FOLLOWED or (tag, name) == ("a", "href")):
                self.links.append((self.getpos()[0], value, tag != "a"))


def wrong(site: pathlib.Path) -> list[str]:
    """What is wrong with the pages of a site."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: no pages"]
    for path, page in pages.items():
        # The page for addresses that do not exist is shown in any folder.
        if path.name == "404.html":
            continue
        for line, address, needed in page.links:
            where = f"{path.relative_to(site.resolve())}:{line}: {address}"
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc:
                if needed and parts.scheme != "data":
                    found.append(f"{where}: needs a network")
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                found.append(f"{where}: there is no such file")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].places:
                found.append(f"{where}: there is no such place")
    return found


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = wrong(pathlib.Path(sys.argv[1]))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
