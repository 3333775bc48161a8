#!/usr/bin/env bash
# Open pages of `tilec xray` in a browser: every room, every kind of link, search and keys, and no word on the console.
#
#   scripts/browser_test.sh [--bless] [tilec]     the command; by default target/debug/tilec
#
# Pictures are compared with those of scripts/browser/reference, and --bless stores them anew: look at them before they are committed.
#
# The browser is $TILEC_BROWSER, else Debian's chromium (`apt-get install chromium`); puppeteer-core, which drives it, is
# fetched from npm into a cache outside the tree, as scripts/fetch_tools.sh does. Without node, the browser or the network
# the test is skipped, loudly, with status 0. What pages took to open is printed, and is no condition.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --bless ]; then
    export TILEC_BLESS=1
    shift
else
    unset TILEC_BLESS
fi
tilec=${1:-${CARGO_TARGET_DIR:-target}/debug/tilec}
cache=${TILEC_BROWSER_CACHE:-${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}/tilec/browser}
driver=puppeteer-core@24.10.0

skip() {
    echo "skipped: browser test: $1"
    exit 0
}

command -v node > /dev/null && command -v npm > /dev/null || skip "there is no node and npm"
find_browser() { command -v chromium || command -v google-chrome || true; }
browser=${TILEC_BROWSER:-$(find_browser)}
if [ -z "$browser" ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    (timeout 300 apt-get update -qq && timeout 600 apt-get install -qq -y --no-install-recommends chromium) > /dev/null 2>&1 || true
    browser=$(find_browser)
fi
[ -n "$browser" ] || skip "there is no chromium (apt-get install chromium)"
if [ "$(cat "$cache/stamp" 2> /dev/null)" != "$driver" ]; then
    mkdir -p "$cache"
    npm install --silent --no-fund --no-audit --prefix "$cache" "$driver" > /dev/null 2>&1 || skip "npm cannot fetch $driver"
    printf '%s\n' "$driver" > "$cache/stamp"
fi
[ -x "$tilec" ] || { echo "$tilec is not there: cargo build -p tilec" >&2; exit 1; }

pages=$(mktemp -d)
trap 'rm -rf -- "$pages"' EXIT
for row in gemm:sm_90a gemm:sm_80 softmax:sm_70 gemm_softmax:sm_90a; do
    "$tilec" xray "examples/${row%%:*}.tile" --target "${row##*:}" -o "$pages/${row%%:*}-${row##*:}.html"
done
# Registers that the assembler spills, and a contract that does not hold.
"$tilec" xray scripts/browser/spilled.tile --target sm_80 -o "$pages/spilled-sm_80.html"
# Two variants, with a measurement beside what is predicted.
printf '%s' '{"schema": "tilec.bench/1", "entry": "gemm", "machine": {"name": "a card"}, "variants": [{"label": "one", "target": "sm_80"}], "problems": [{"args": {"M": 4096, "N": 4096, "K": 4096}, "rows": [{"variant": 0, "us": [700.0]}]}]}' > "$pages/measured.json"
"$tilec" xray examples/gemm.tile --target sm_80 M=N=K=4096 --compare target=sm_90a,STAGES=2 --measured "$pages/measured.json" -o "$pages/gemm-beside.html"
# Pictures that are compared: of programs whose values are all given, so that what the model would choose is not what is compared.
mkdir "$pages/compared"
"$tilec" xray examples/gemm.tile --target sm_90a -D BM=128,BN=128,BK=64,WM=64,WN=128,KW=1,STAGES=4,RASTER=8 M=4096 N=4096 K=4096 -o "$pages/compared/gemm-sm_90a.html"
"$tilec" xray examples/gemm.tile --target sm_80 -D BM=128,BN=128,BK=32,WM=64,WN=64,KW=1,STAGES=3,RASTER=8 M=4096 N=4096 K=4096 -o "$pages/compared/gemm-sm_80.html"
TILEC_BROWSER=$browser TILEC_BROWSER_CACHE=$cache node scripts/browser/pages.mjs "$pages"
