#!/usr/bin/env bash
# Tests the extension of VS Code: its grammar over every example, and that npm packs it. Skipped, loudly, where npm or its registry is not there.
set -eu
cd "$(dirname "$0")/../editors/vscode"
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
