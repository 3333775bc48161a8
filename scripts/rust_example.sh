#!/usr/bin/env bash
# Builds and tests the crates of docs/rust.md as a user's crate is built: build script, launchers, the simulator. Clippy sees the
# generated code too. The whole program of the page is taken from the page, with its command that adds cudarc.
#
#   scripts/rust_example.sh [--quick]
#
#   --quick   compiles the compiler without optimisation, which takes less time than the kernels then lose
#
# Dependencies have the versions of Cargo.lock. The crates are built in a folder outside of the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
case ${1-} in
    "") ;;
    --quick) export CARGO_PROFILE_DEV_BUILD_OVERRIDE_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 ;;
    *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
fail() { echo "scripts/rust_example.sh: $1" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")/examples
export CARGO_TARGET_DIR
page=$work/page
mkdir -p "$page/src/bin" "$page/kernels"
# block N: the N-th block of code of the page.
block() { awk -v want="$1" '/^```./ {inside = ++n == want; next} /^```$/ {inside = 0} inside' docs/rust.md; }
block 1 | sed "s|/path/to/tilec|$root|" > "$page/Cargo.toml"
block 2 > "$page/build.rs"
block 3 > "$page/kernels/axpy.tile"
block 4 > "$page/src/main.rs"
added=$(block 5)
block 6 > "$page/src/bin/gpu.rs"
grep -q CudaContext "$page/src/bin/gpu.rs" || fail "block 6 of docs/rust.md is not the program for a GPU"
cp Cargo.lock "$page/"
cp -r examples/rust "$work/example"
rm -rf -- "$work/example/target"
sed -i "s|\"../../|\"$root/|" "$work/example/Cargo.toml"
cp Cargo.lock "$work/example/"
# clippy where it is installed.
lint=(clippy --quiet --all-targets -- -D warnings)
cargo clippy --version > /dev/null 2>&1 || lint=(check --quiet --all-targets)
(
    cd "$page"
    said=$(cargo run --quiet --bin axpy 2> log) || { cat log >&2; exit 1; }
    grep -qxF "    $said" "$root/docs/rust.md" || fail "the program of docs/rust.md prints: $said"
    sh -c "$added" 2> log || sh -c "$added --offline" 2>> log || { cat log >&2; exit 1; }
    cargo "${lint[@]}"
    # What the page's program takes is what tilec-launch is compiled with.
    version() { awk '/^name = "cudarc"$/ {getline; print}' "$1"; }
    [ "$(version Cargo.lock)" = "$(version "$root/Cargo.lock")" ] || fail "cudarc of docs/rust.md has $(version Cargo.lock), not $(version "$root/Cargo.lock")"
)
cd "$work/example"
cargo "${lint[@]}"
cargo test --quiet
echo "the crates of docs/rust.md build and run"
