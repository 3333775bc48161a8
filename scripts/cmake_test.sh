#!/usr/bin/env bash
# Builds the CMake project of docs/c.md, with a driver that writes down its calls in place of CUDA, and runs it.
#
#   scripts/cmake_test.sh [TILEC]
#
# cmake is that of the machine, or one of a pinned version from PyPI beside the other tools (~/.cache/tilec). Without either it is skipped, loudly.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
tilec=$(realpath "${1:-${TILEC:-${CARGO_TARGET_DIR:-target}/debug/tilec}}")
version=3.31.6
venv=${XDG_CACHE_HOME:-$HOME/.cache}/tilec/cmake-$version
if ! command -v cmake > /dev/null && ! [ -x "$venv/bin/cmake" ]; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check "cmake==$version"; } > /dev/null 2>&1 || rm -rf -- "$venv"
fi
PATH=$PATH:$venv/bin
if ! command -v cmake > /dev/null || ! command -v gcc > /dev/null || ! command -v make > /dev/null; then
    echo "skipped: scripts/cmake_test.sh: there is no cmake, no make, or no gcc"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
awk '/^```cmake$/ {inside = 1; next} /^```$/ {inside = 0} inside' docs/c.md > "$work/CMakeLists.txt"
# The same source for another target of the folder, and for one of another folder, each with a header and a bundle.
cat >> "$work/CMakeLists.txt" <<'CMAKE'
add_executable(second second.c)
tilec_header(second gemm.tile --target sm_80)
tilec_bundle(second gemm.tile --targets sm_80,sm_90a)
target_link_libraries(second PRIVATE ${CUDA_LIBRARY})
add_subdirectory(lib)
CMAKE
mkdir "$work/lib"
cat > "$work/lib/CMakeLists.txt" <<'CMAKE'
add_library(kernels STATIC kernels.c)
tilec_header(kernels ../gemm.tile --target sm_80)
tilec_bundle(kernels ../gemm.tile --target sm_80)
CMAKE
cp examples/gemm.tile "$work/gemm.tile"
printf '#include "gemm.h"\n#include "tilec_bundle.h"\nint of_a_library(void) { return TILEC_SUCCESS; }\n' > "$work/lib/kernels.c"
cat > "$work/main.c" <<'C'
#include "driver.h"
#include "gemm.h"
#include "tilec_bundle.h"
#include <stdio.h>

static const int sizes[] = {8, 8, 8, 4, 4, 4, 4, 4, 8, 8, 8, 0};
const test_entry test_entries[] = {{80, "gemm", sizes}, {0, NULL, NULL}};

static int out_of_a_bundle(void)
{
    tilec_bundle kernels;
    char said[400] = "";
    const int64_t a[] = {512, 256}, b[] = {256, 128}, c[] = {512, 128};
    const tilec_bundle_tensor tensors[] = {
        tilec_bundle_packed("A", "f16", 0x100000, 2, a),
        tilec_bundle_packed("B", "f16", 0x10000000, 2, b),
        tilec_bundle_packed("C", "f32", 0x20000000, 2, c),
    };
    const tilec_bundle_args args = {tensors, 3, NULL, 0, 0, 0, 0, 0};
    int code = tilec_bundle_open(&kernels, "gemm.tilec", said, sizeof said);
    if (code == 0)
        code = tilec_bundle_launch(&kernels, "gemm", NULL, &args, said, sizeof said);
    if (code != 0)
        puts(said);
    return code;
}

int main(void)
{
    gemm_kernels k;
    gemm_args a;
    int code;
    test_cc = 80;
    code = gemm_kernels_load(&k, NULL, 0);
    a = gemm_make(0x100000, 0x10000000, 0x20000000, 512, 256, 128);
    if (code == 0)
        code = gemm_launch(&k, NULL, &a);
    if (code != 0)
        puts(gemm_kernels_message(code));
    return code != 0 ? code : out_of_a_bundle();
}
C
cp "$work/main.c" "$work/second.c"
gcc -c -I "$root/tests/c" "$root/tests/c/driver.c" -o "$work/driver.o"
ar rcs "$work/libcuda.a" "$work/driver.o"
cmake -S "$work" -B "$work/build" -DTILEC="$tilec" -DCUDA_INCLUDE="$root/tests/c" -DCUDA_LIBRARY="$work/libcuda.a" > "$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >> "$work/log" || { cat "$work/log"; exit 1; }
launches=$(cd "$work/build" && ./user | grep '^launch gemm ' | sort | uniq -c | awk '{print $1}')
[ -f "$work/build/lib/gemm.tilec" ] && [ -f "$work/build/lib/libkernels.a" ] || { echo "scripts/cmake_test.sh: a folder below is not built" >&2; exit 1; }
[ "$launches" = 2 ] || { echo "scripts/cmake_test.sh: the header and the bundle launch something else each, or nothing" >&2; exit 1; }
# A source that changes is compiled again, and nothing else is.
cmake --build "$work/build" > "$work/again"
if grep -q Generating "$work/again"; then echo "scripts/cmake_test.sh: what has not changed is made again" >&2; exit 1; fi
touch "$work/gemm.tile"
cmake --build "$work/build" > "$work/again"
grep -q Generating "$work/again" || { echo "scripts/cmake_test.sh: a change is not seen" >&2; exit 1; }
echo "the CMake project of docs/c.md builds and launches"
