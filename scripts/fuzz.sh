#!/usr/bin/env bash
# Coverage-guided fuzzing of one entry: ptx_parse, ptx_execute, tile_parse, compile or contract.
#
#   scripts/fuzz.sh ENTRY [SECONDS] [arguments of libFuzzer]
#
# Builds with a stable toolchain: libFuzzer's instrumentation, without sanitizers (the project has no `unsafe` where these
# entries go). `cargo +nightly fuzz run ENTRY` does the same with them. Inputs are kept in fuzz/corpus/ENTRY, which starts from
# programs of the repository; an input that crashes is left in fuzz/artifacts/ENTRY. Status 0: nothing was found.
set -euo pipefail
cd "$(dirname "$0")/.."
entry=${1:?which entry?}
seconds=${2:-60}
shift $(($# > 2 ? 2 : $#))

corpus=fuzz/corpus/$entry
mkdir -p "$corpus" "fuzz/artifacts/$entry"
seed() { # FILE: the bytes that choose options go in front
    local name
    name=$corpus/$(echo "$1" | tr '/' '_')
    case $entry in
        ptx_execute | compile) { printf '\0\0'; cat "$1"; } > "$name" ;;
        *) cp "$1" "$name" ;;
    esac
}
case $entry in
    ptx_*) for file in sim/tests/data/*.ptx sim/tests/data/cuda/*.ptx; do seed "$file"; done ;;
    tile_parse | compile) for file in examples/*.tile docs/sketches/*.tile tests/files/*/*.tile; do seed "$file"; done ;;
    contract) for file in tests/files/cli/launch.tile; do sed -n 's|^// ||p' "$file" > "$corpus/launch"; done ;;
    *) echo "no such entry: $entry" >&2; exit 2 ;;
esac
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing"
target=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS=$flags cargo build --release --manifest-path fuzz/Cargo.toml --target "$target" --bin "$entry"
exec "${CARGO_TARGET_DIR:-fuzz/target}/$target/release/$entry" "$corpus" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
    -max_len=65536 -artifact_prefix="fuzz/artifacts/$entry/" "$@"
