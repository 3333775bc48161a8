#!/usr/bin/env bash
# Builds the wheel of the Python package into target/wheels, with full optimisation (some minutes).
#
#   scripts/build_wheel.sh [further arguments of maturin]
set -euo pipefail
cd "$(dirname "$0")/.."
maturin=1.9.6
venv=${XDG_CACHE_HOME:-$HOME/.cache}/tilec/maturin-$maturin
if ! [ -x "$venv/bin/maturin" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "maturin==$maturin"
fi
"$venv/bin/maturin" build --release --manifest-path python/Cargo.toml --out "${CARGO_TARGET_DIR:-target}/wheels" "$@"
for wheel in "${CARGO_TARGET_DIR:-target}"/wheels/tilec-*.whl; do
    bytes=$(wc -c < "$wheel")
    echo "$wheel: $bytes bytes"
    [ "$bytes" -lt $((15 << 20)) ] || { echo "a wheel of more than 15 MiB" >&2; exit 1; }
done
