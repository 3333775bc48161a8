#!/usr/bin/env bash
# Build a page of `tilec xray` for every example, and a list of them.
#
#   scripts/xray_examples.sh FOLDER [tilec]     the command; by default target/debug/tilec
#
# A page is for sm_90a; of a program that is not compiled for that, for sm_80 or sm_70. What no target compiles is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:?usage: scripts/xray_examples.sh FOLDER [tilec]}
tilec=${2:-${CARGO_TARGET_DIR:-target}/debug/tilec}
[ -x "$tilec" ] || { echo "$tilec is not there: cargo build -p tilec" >&2; exit 1; }
mkdir -p "$out"
failed=0
{
    echo '<!DOCTYPE html><meta charset="utf-8"><title>Examples</title><h1>Examples</h1><ul>'
    for file in examples/*.tile; do
        name=$(basename "$file" .tile)
        made=
        for target in sm_90a sm_80 sm_70; do
            if "$tilec" xray "$file" --target "$target" -o "$out/$name.html" 2> "$out/$name.log"; then
                made=$target
                break
            fi
        done
        if [ -z "$made" ]; then
            echo "$file has no page:" >&2
            cat "$out/$name.log" >&2
            failed=1
        else
            echo "<li><a href=\"$name.html\">$name</a> for $made</li>"
        fi
        rm -f "$out/$name.log"
    done
    echo '</ul>'
} > "$out/index.html"
echo "$(find "$out" -name '*.html' ! -name index.html | wc -l) pages in $out"
exit $failed
