#!/usr/bin/env bash
# Draws docs/xray.png, the picture of the README: the page of its kernel for sm_90a, with the product chosen.
#
#   scripts/readme_picture.sh [tilec]     the command; by default target/debug/tilec
#
# Needs Debian's chromium (or $TILEC_BROWSER), as scripts/browser_test.sh does. Look at the picture before it is committed.
set -euo pipefail
cd "$(dirname "$0")/.."
tilec=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/tilec}")
browser=${TILEC_BROWSER:-$(command -v chromium || command -v google-chrome)}
dir=$(mktemp -d)
trap 'rm -rf -- "$dir"' EXIT
sed -n '/^```tile$/,/^```$/{/^```/d;p}' README.md > "$dir/gemm.tile"
line=$(grep -n 'mma(' "$dir/gemm.tile" | cut -d: -f1)
(cd "$dir" && "$tilec" xray gemm.tile --target sm_90a --for M=N=K=8192 -o page.html)
"$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --user-data-dir="$dir/profile" --window-size=1440,720 --virtual-time-budget=5000 \
    --screenshot="$PWD/docs/xray.png" "file://$dir/page.html#source:$line" > /dev/null 2>&1
ls -l docs/xray.png
