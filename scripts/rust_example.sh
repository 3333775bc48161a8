#!/usr/bin/env bash
# Builds and tests the crates of docs/rust.md as a user's crate is built: build script, launchers, the simulator. Clippy sees the
# generated code too. The whole program of the page is taken from the page; `cargo add` of cudarc asks a registry.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir -p "$work/src/bin" "$work/kernels"
# block N: the N-th block of code of the page.
block() { awk -v want="$1" '/^```./ {inside = ++n == want; next} /^```$/ {inside = 0} inside' docs/rust.md; }
block 1 | sed "s|/path/to/tilec|$root|" > "$work/Cargo.toml"
block 2 > "$work/build.rs"
block 3 > "$work/kernels/axpy.tile"
block 4 > "$work/src/main.rs"
block 6 > "$work/src/bin/gpu.rs"
(
    cd "$work"
    export CARGO_TARGET_DIR="$root/examples/rust/target"
    said=$(cargo run --quiet --bin axpy 2> log) || { cat log >&2; exit 1; }
    grep -qxF "    $said" "$root/docs/rust.md" || { echo "the program of docs/rust.md prints: $said" >&2; exit 1; }
    sh -c "$(cd "$root" && block 5)" 2> log || { cat log >&2; exit 1; }
    cargo clippy --quiet --all-targets -- -D warnings
)
cd examples/rust
cargo clippy --quiet --all-targets -- -D warnings
cargo test --quiet
