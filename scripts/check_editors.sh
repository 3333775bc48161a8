#!/usr/bin/env bash
# Tests what editors are given: the extension of VS Code, its grammar over every example, and that npm packs it; and the grammar of tree-sitter over every program.
# Skipped, loudly, where npm, PyPI, a C compiler or tilec (TILEC, else that of target/) is not there.
set -eu
cd "$(dirname "$0")/.."
root=$PWD

tree_sitter() (
    version=0.26.1
    skip() { echo "skipped: editors/tree-sitter: $1" >&2; exit 0; }
    command -v gcc >/dev/null || skip "there is no gcc"
    for tilec in "${TILEC:-}" target/release/tilec target/debug/tilec; do
        if [ -n "$tilec" ] && command -v "$tilec" >/dev/null; then break; fi
    done
    tilec=$(command -v "$tilec") || skip "there is no tilec"
    venv=${XDG_CACHE_HOME:-$HOME/.cache}/tilec/tree-sitter-$version
    if ! [ -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import tree_sitter' 2>/dev/null; then
        rm -rf -- "$venv"
        { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check "tree-sitter==$version"; } >/dev/null 2>&1 || {
            rm -rf -- "$venv"
            skip "tree-sitter $version cannot be installed"
        }
    fi
    built=$(mktemp -d)
    trap 'rm -rf -- "$built"' EXIT
    source=editors/tree-sitter/src
    gcc -std=c11 -Wall -Wextra -Werror -shared -fPIC -I "$source" "$source/parser.c" "$source/scanner.c" -o "$built/tile.so"
    "$venv/bin/python" editors/tree-sitter/test/check.py "$built/tile.so" "$(realpath "$tilec")"
)
tree_sitter

cd "$root/editors/vscode"
skip() { echo "skipped: editors/vscode: $1" >&2; exit 0; }
command -v npm >/dev/null || skip "there is no npm"
command -v node >/dev/null || skip "there is no node"
npm install --no-audit --no-fund --silent || skip "npm cannot install what the test needs"
npm test --silent
node --check extension.js
packed=$(npm pack --silent | tail -1)
tar -tzf "$packed" | sort > /dev/null
for file in extension.js package.json language-configuration.json syntaxes/tile.tmLanguage.json; do
    tar -tzf "$packed" | grep -qx "package/$file" || { echo "the package lacks $file" >&2; exit 1; }
done
rm -f "$packed"
echo "editors/vscode: fine"
