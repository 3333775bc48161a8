#!/usr/bin/env python3
"""Runs the commands of docs/tutorial, docs/passes, docs/why.md and docs/xray.md, and compares what they print and draw with the pages. Makes docs/diagnostics.md of
`tilec explain`.

    scripts/docs_pages.py [--tilec target/release/tilec] [PAGE.md ...]
    scripts/docs_pages.py --bless             # writes programs, pictures and outputs; an output with `...` is edited by hand

A block of language `tile` whose first line is `// NAME.tile` is a program, which also stands in the file NAME.tile beside the page. In a block of language
`console` a line `$ tilec ..` is a command, and the lines after it are what it prints; a line `...` stands for any lines. A command runs in a directory with
the programs of all pages and the examples. An indented line `tilec ..` is a command of which only the end is looked at: it must succeed. A picture (`-o NAME.svg`) must equal the one beside the page. A block `diff FILE.tile OPTIONS .. PASS` has the lines of the program
that the pass removes and adds, and a block `remarks FILE.tile OPTIONS .. PASS` its remarks. The table in docs/passes/README.md is made of `tilec explain`.
"""

import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["docs/tutorial", "docs/passes"]
PAGES = ["docs/why.md", "docs/xray.md"]
BLOCK = re.compile(r"^```(tile|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DIAGNOSTICS = ROOT / "docs/diagnostics.md"
# What codes that begin alike are of.
RANGES = {
    "E01": "Text",
    "E02": "Names and types",
    "E03": "Layouts and verification",
    "E04": "Passes and limits of targets",
    "E05": "Lowering to PTX",
    "E06": "Command, assembler, launch",
    "E07": "Interpreter",
    "E08": "Simulator",
    "W04": "Warnings: passes",
    "W06": "Warnings: command and assembler",
    "W08": "Warnings: simulator",
}
INDENTED = re.compile(r"^    (tilec .*)$", re.MULTILINE)
# Commands that need a GPU, and the others that read what these have written.
OF_A_GPU = re.compile(r"^tilec bench |--measured ")
DIFF = re.compile(r"^```diff (.*)\n((?:.*\n)*?)```$", re.MULTILINE)
REMARKS = re.compile(r"^```remarks (.*)\n((?:.*\n)*?)```$", re.MULTILINE)
PASSES = ROOT / "docs/passes/README.md"
TABLE = re.compile(r"(?<=^<!-- passes -->\n).*?(?=^<!-- end of passes -->$)", re.DOTALL | re.MULTILINE)
LIMIT_S = 300


@dataclass
class Command:
    """A command of a page, and what the page says that it prints."""

    line: int
    words: list[str]
    shown: list[str]


def programs(text: str) -> dict[str, str]:
    """The programs of a page by the name of their file."""
    found = {}
    for language, block in BLOCK.findall(text):
        if language == "tile" and (name := re.match(r"// (\w+\.tile)\n", block)):
            found[name[1]] = block
    return found


def commands(text: str) -> Iterator[Command]:
    """The commands of a page in their order."""
    for match in BLOCK.finditer(text):
        if match[1] != "console":
            continue
        first = text.count("\n", 0, match.start(2)) + 1
        command = None
        for number, line in enumerate(match[2].splitlines(), first):
            if line.startswith("$ "):
                if command:
                    yield command
                command = Command(number, shlex.split(line[2:]), [])
            elif command:
                command.shown.append(line)
        if command:
            yield command


def plain_commands(text: str) -> Iterator[Command]:
    """The commands in indented blocks of a page that need no GPU."""
    for match in INDENTED.finditer(text):
        if not OF_A_GPU.search(match[1]):
            yield Command(text.count("\n", 0, match.start()) + 1, shlex.split(match[1], comments=True), [])


def printed(shown: list[str], lines: list[str]) -> bool:
    """Whether `lines` are those that are shown, where `...` stands for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line.rstrip()) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in lines)) is not None


def run(tilec: str, words: list[str], folder: str) -> tuple[int, list[str]]:
    """The status of a command and the lines that it prints."""
    done = subprocess.run([tilec, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return done.returncode, [line.rstrip() for line in (done.stderr + done.stdout).rstrip().splitlines()]


def changed(tilec: str, words: list[str], folder: str) -> str:
    """The lines that a pass, the last word, removes from a program and adds to it."""
    status, lines = run(tilec, ["tilec", *words[:-1], "--print-after", "all"], folder)
    forms: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("// ---- after "):
            forms[line.split()[-1]] = []
        elif forms:
            forms[list(forms)[-1]].append(line)
    names = list(forms)
    if status != 0 or words[-1] not in names[1:]:
        return "\n".join(lines) + "\n"
    before, after = forms[names[names.index(words[-1]) - 1]], forms[words[-1]]
    found = []
    for line in list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]:
        if not line.startswith("@@"):
            found.append(f"{line}\n")
        elif found:
            found.append(" ...\n")
    return "".join(found)


def remarks(tilec: str, words: list[str], folder: str) -> str:
    """The remarks of a pass, the last word, on a program, with their notes and without the source."""
    status, lines = run(tilec, ["tilec", *words[:-1], "--remarks", "-o", "remarks.ptx"], folder)
    if status != 0:
        return "\n".join(lines) + "\n"
    found, ours = [], False
    for line in lines:
        if re.match(r"\w+\[", line):
            ours = line.startswith(f"remark[{words[-1]}]")
        if ours and re.match(r"remark|\s+= ", line):
            found.append(f"{line}\n" if line.startswith("remark") else f"  {line.strip()}\n")
    return "".join(found)


def table_of_passes(tilec: str) -> str:
    """The table of passes, of what `tilec explain` says of each."""
    _, lines = run(tilec, ["tilec", "explain"], ".")
    rows = []
    for line in lines[lines.index("passes, and the remarks that they make") + 1 :]:
        if not (row := re.match(r"  ([\w-]+)\s+(.*)$", line)):
            break
        rows.append(f"| [`{row[1]}`]({row[1]}.md) | {row[2]} |\n")
    return "".join(["| pass | it |\n", "|---|---|\n", *rows])


def blocks(text: str, tilec: str, folder: str) -> list[tuple[str, str]]:
    """The blocks of a page that show a pass, with what they must be."""
    found = []
    for kind, pattern, made in (("diff", DIFF, changed), ("remarks", REMARKS, remarks)):
        for block in pattern.finditer(text):
            found.append((block[0], f"```{kind} {block[1]}\n{made(tilec, shlex.split(block[1]), folder)}```"))
    return found


def check(path: pathlib.Path, tilec: str, bless: bool = False) -> list[str]:
    """What is wrong with a page."""
    text = path.read_text(encoding="utf-8")
    wrong = []

    def same(name: str, made: str) -> None:
        beside = path.parent / name
        if bless:
            beside.write_text(made, encoding="utf-8")
        elif not beside.exists() or beside.read_text(encoding="utf-8") != made:
            wrong.append(f"{beside}: not what {path.name} says; --bless writes it")

    for name, program in programs(text).items():
        same(name, program)
    with tempfile.TemporaryDirectory() as folder:
        for other in pages():
            for name, program in programs(other.read_text(encoding="utf-8")).items():
                (pathlib.Path(folder) / name).write_text(program, encoding="utf-8")
        (pathlib.Path(folder) / "examples").symlink_to(ROOT / "examples")
        for command in plain_commands(text):
            status, lines = run(tilec, command.words, folder)
            if status != 0:
                wrong.append(f"{path}:{command.line}: `{shlex.join(command.words)}` ends with {status} and prints\n" + "\n".join(lines))
        for command in commands(text):
            if command.words[0] != "tilec":
                wrong.append(f"{path}:{command.line}: only `tilec` is run here")
                continue
            status, lines = run(tilec, command.words, folder)
            fails = any(line.startswith("error[") for line in command.shown)
            if fails != (status != 0) or not printed(command.shown, lines):
                if bless and "..." not in command.shown:
                    whole = text.splitlines()
                    at = command.line
                    old = "\n".join([*whole[at - 1 : at + len(command.shown)], ""])
                    text = text.replace(old, "\n".join([whole[at - 1], *lines, ""]), 1)
                else:
                    wrong.append(f"{path}:{command.line}: `{shlex.join(command.words)}` ends with {status} and prints\n" + "\n".join(lines))
            for picture in (word for word in command.words if re.fullmatch(r"\w+\.svg", word)):
                made = pathlib.Path(folder) / picture
                same(picture, made.read_text(encoding="utf-8") if made.exists() else "")
        for block, now in blocks(text, tilec, folder):
            if bless:
                text = text.replace(block, now)
            elif block != now:
                wrong.append(f"{path}: not what the pass does and says:\n{now}")
    if path.resolve() == PASSES:
        table = table_of_passes(tilec)
        if bless:
            text = TABLE.sub(lambda _: table, text)
        elif TABLE.findall(text) != [table]:
            wrong.append(f"{path}: the table is not what `tilec explain` prints; --bless writes it")
    if bless:
        path.write_text(text, encoding="utf-8")
    return wrong


def check_all(paths: list[pathlib.Path], tilec: str, bless: bool = False) -> list[str]:
    """What is wrong with pages, several at a time."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return [line for wrong in pool.map(lambda path: check(path, tilec, bless), paths) for line in wrong]


def pages() -> list[pathlib.Path]:
    """All pages with commands."""
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.md"))] + [ROOT / page for page in PAGES]


def diagnostics(tilec: str) -> str:
    """The page of all diagnostics."""
    _, lines = run(tilec, ["tilec", "explain"], ".")
    codes = [line.split()[0] for line in lines if re.match(r"  [EW]\d{4}  ", line)]
    codes.sort(key=lambda code: code[0])
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        texts = list(pool.map(lambda code: run(tilec, ["tilec", "explain", code], ".")[1], codes))
    page = [
        "# Diagnostics",
        "",
        "Every error and warning of `tilec` by its code, with an example: what `tilec explain CODE` prints. `scripts/docs_pages.py --bless` writes this page, and a test compares it.",
        "A code never changes its meaning ([versions](stability.md)).",
    ]
    group = ""
    for code, text in zip(codes, texts, strict=True):
        if code[:3] != group:
            group = code[:3]
            page += ["", f"## {RANGES[group]}"]
        page += ["", f"### {text[0]}", *text[1:]]
    return "\n".join([*page, ""])


def check_diagnostics(tilec: str, bless: bool = False) -> list[str]:
    """What is wrong with the page of diagnostics."""
    made = diagnostics(tilec)
    if bless:
        DIAGNOSTICS.write_text(made, encoding="utf-8")
    elif DIAGNOSTICS.read_text(encoding="utf-8") != made:
        return [f"{DIAGNOSTICS}: not what `tilec explain` prints; --bless writes it"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    parser.add_argument("--tilec", default=str(ROOT / "target/release/tilec"))
    parser.add_argument("--bless", action="store_true")
    args = parser.parse_args()
    tilec = str(pathlib.Path(args.tilec).resolve())
    wrong = check_all(args.pages or pages(), tilec, args.bless)
    if not args.pages:
        wrong += check_diagnostics(tilec, args.bless)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
