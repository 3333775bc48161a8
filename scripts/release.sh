#!/usr/bin/env bash
# Build what a release ships, twice, and write it to a directory only if both builds are the same bytes.
#
#   scripts/release.sh [--out DIR] [--once] [--advisories]
#
#   tilec-VERSION-x86_64-linux.tar.xz          the command; it opens libcuda at run time where there is one
#   tilec-VERSION-x86_64-linux-static.tar.xz   the command without a GPU (feature `cuda` off), statically linked: runs on any Linux
#   tilec-VERSION-aarch64-linux.tar.xz         where Rust's target and a linker for it are installed
#   tilec-VERSION.cdx.json                     bill of materials (CycloneDX)
#   SHA256SUMS
#
# --once skips the second build. --advisories also asks the RustSec database, which needs github.com.
# `cargo deny` and `cargo cyclonedx` are installed in the cache of tools when they are missing (some minutes).
set -euo pipefail
cd "$(dirname "$0")/.."

deny=0.20.2
cyclonedx=0.5.9
out=target/release-files
twice=1
advisories=
while [ $# -gt 0 ]; do
    case $1 in
        --out) out=${2:?--out DIR}; shift ;;
        --once) twice= ;;
        --advisories) advisories=advisories ;;
        *) sed -n '2,15p' "$0" | cut -c3- >&2; exit 2 ;;
    esac
    shift
done

if [ -n "$(git status --porcelain)" ]; then
    echo "release: the tree has changes that are not committed" >&2
    exit 1
fi
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
# Archives have the time of the commit, so that they are the same whenever they are made.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

tools=${TILEC_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/tilec/tools}/cargo
tool() {
    if ! [ -x "$tools/bin/cargo-$1" ] || ! "$tools/bin/cargo-$1" "$1" --version 2> /dev/null | grep -qF "$2"; then
        cargo install --quiet --locked --root "$tools" "cargo-$1@$2"
    fi
}
tool deny $deny
tool cyclonedx $cyclonedx
# shellcheck disable=SC2086 # Empty: not an argument.
"$tools/bin/cargo-deny" check licenses bans sources $advisories

# build DIR: the binaries, in DIR/bin. Paths of this machine are not part of them.
build() {
    local dir=$1 host=x86_64-unknown-linux-gnu arm=aarch64-unknown-linux-gnu
    local remap="--remap-path-prefix=$PWD=/tilec --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    mkdir -p "$dir/bin"
    RUSTFLAGS=$remap cargo build --quiet --locked --profile dist -p tilec --target $host --target-dir "$dir"
    cp "$dir/$host/dist/tilec" "$dir/bin/tilec-$version-x86_64-linux"
    RUSTFLAGS="$remap -C target-feature=+crt-static" cargo build --quiet --locked --profile dist -p tilec \
        --no-default-features --target $host --target-dir "$dir/static"
    cp "$dir/static/$host/dist/tilec" "$dir/bin/tilec-$version-x86_64-linux-static"
    if [ -d "$(rustc --print target-libdir --target $arm)" ] && command -v aarch64-linux-gnu-gcc > /dev/null; then
        RUSTFLAGS=$remap CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
            cargo build --quiet --locked --profile dist -p tilec --target $arm --target-dir "$dir"
        cp "$dir/$arm/dist/tilec" "$dir/bin/tilec-$version-aarch64-linux"
    else
        echo "skipped: aarch64: needs Rust's target $arm and aarch64-linux-gnu-gcc" >&2
    fi
}

build target/release-1
if [ -n "$twice" ]; then
    rm -rf target/release-2
    build target/release-2
    for file in target/release-1/bin/*; do
        cmp "$file" "target/release-2/bin/$(basename "$file")"
    done
    echo "two builds are the same bytes"
fi

rm -rf "$out"
mkdir -p "$out"
for file in target/release-1/bin/*; do
    name=$(basename "$file")
    stage=$(mktemp -d)
    mkdir "$stage/$name"
    cp "$file" "$stage/$name/tilec"
    cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$stage/$name"
    cp -R examples "$stage/$name"
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$stage" -cJf "$out/$name.tar.xz" "$name"
    rm -rf -- "$stage"
done
"$tools/bin/cargo-cyclonedx" cyclonedx --quiet --manifest-path driver/Cargo.toml --format json --override-filename "tilec-$version.cdx"
mv "driver/tilec-$version.cdx.json" "$out/"
find . -name "tilec-$version.cdx.json" -not -path './target/*' -delete
# What is shipped starts, and compiles.
for name in "$out"/tilec-*-x86_64-linux*.tar.xz; do
    stage=$(mktemp -d)
    tar -xJf "$name" -C "$stage"
    "$stage"/*/tilec "$stage"/*/examples/gemm.tile -o "$stage/gemm.ptx"
    rm -rf -- "$stage"
done
(cd "$out" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
