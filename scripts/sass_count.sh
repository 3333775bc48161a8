#!/usr/bin/env bash
# Count the instructions in the main loop of a PTX file, after fetching the pinned assembler.
#
#   scripts/sass_count.sh FILE.ptx [sm_70]
#
# Uses the fetched tools only, so that counts compare from machine to machine.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tools=${TILEC_TOOLS:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/tilec/tools}
file=${1:?usage: scripts/sass_count.sh FILE.ptx [sm_70]}
arch=${2:-$(sed -n 's/^[[:space:]]*\.target[[:space:]]*\([a-z0-9_]*\).*/\1/p' "$file" | head -n 1)}

"$root/scripts/fetch_tools.sh" >&2
case $arch in
    sm_7[02]) export TILEC_PTXAS="$tools/ptxas-12.9/ptxas" TILEC_NVDISASM="$tools/nvdisasm-12/nvdisasm" ;;
    *) export TILEC_PTXAS="$tools/ptxas-13/ptxas" TILEC_NVDISASM="$tools/nvdisasm-13/nvdisasm" ;;
esac
exec cargo run --quiet --release --manifest-path "$root/Cargo.toml" -p tilec --example sass_count -- "$(realpath "$file")" "$arch"
