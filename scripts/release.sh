#!/usr/bin/env bash
# Builds the files of a release in two folders, and writes them only if both builds have the same bytes.
#
#   scripts/release.sh [--out DIR] [--profile NAME] [--once] [--advisories] [--only STEP ...]
#
#   tilec-VERSION-x86_64-linux.tar.xz          the command, which opens libcuda at run time where there is one; libcuda on the simulator;
#                                              the source with documents and examples, as in each archive
#   tilec-VERSION-x86_64-linux-static.tar.xz   the command without a GPU (feature `cuda` off), statically linked: runs on any Linux
#   tilec-VERSION-aarch64-linux.tar.xz         if Rust's target and a linker for it are installed
#   tilec-VERSION-cp39-abi3-LINUX_x86_64.whl   the Python package, by scripts/build_wheel.sh
#   PACKAGE-VERSION.cdx.json                   bills of materials (CycloneDX): of the command (tilec), the wheel (tilec-python), libcuda on the
#                                              simulator (tilec-libcuda), and each crate for a registry
#   SHA256SUMS
#
# --out         where the files go: a folder that does not exist or is empty; target/release-VERSION without it.
# --profile     `dist` without it; `release` for a rehearsal, which builds in a third of the time.
# --once        skips the second build.
# --advisories  also asks the RustSec database, which needs github.com, and fails if `repository` of Cargo.toml does not answer.
# --only        a rehearsal of one step, or of several:
#                 licences  `cargo deny` over licences, sources and duplicates of dependencies
#                 crates    packs the crates for a registry, builds each from its package, and uploads nothing
#                 bill      the bills of materials
#                 binaries  the command, built twice, packed, started
#                 wheel     the wheel, built twice, installed beside NumPy, run
# `cargo deny` and `cargo cyclonedx` are installed in the cache of tools if their step finds none (some minutes).
# docs/stability.md, "Releases", has the steps before and after.
set -euo pipefail
# The text above, for a wrong argument; read before the folder changes.
usage=$(sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0")
called_from=$PWD
cd "$(dirname "$0")/.."

deny=0.20.2
cyclonedx=0.5.9
version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
out=target/release-$version
profile=dist
twice=1
advisories=()
only=()
while [ $# -gt 0 ]; do
    case $1 in
        --out)
            out=${2:?--out DIR}
            case $out in /*) ;; *) out=$called_from/$out ;; esac
            shift ;;
        --profile) profile=${2:?--profile NAME}; shift ;;
        --once) twice= ;;
        --advisories) advisories=(advisories) ;;
        --only)
            case ${2-} in licences | crates | bill | binaries | wheel) only+=("$2") ;; *) echo "$usage" >&2; exit 2 ;; esac
            shift ;;
        *) echo "$usage" >&2; exit 2 ;;
    esac
    shift
done

fail() {
    echo "release: $1" >&2
    exit 1
}
# step NAME: whether it is asked for.
step() {
    local name
    [ ${#only[@]} -eq 0 ] && return
    for name in "${only[@]}"; do [ "$name" != "$1" ] || return 0; done
    return 1
}
[ -z "$(git status --porcelain)" ] || fail "the tree has changes that are not committed"
# Nothing of a user is deleted, and nothing of an earlier release is shipped again.
if [ -e "$out" ] && [ -n "$(ls -A "$out")" ]; then fail "$out is not empty: name another folder by --out, or remove it"; fi
# A rehearsal needs no heading.
if [ "$profile" = dist ] && [ ${#only[@]} -eq 0 ] && ! grep -q "^## $version" CHANGELOG.md; then fail "CHANGELOG.md has no heading \`## $version\`"; fi
# Archives have the time of the commit, so their bytes do not depend on when they are made.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

scratch=$(mktemp -d)
# Bills of materials are written beside the manifests first: what an interruption leaves would make the tree dirty.
trap 'rm -rf -- "$scratch"; rm -f -- */bill.cdx.json' EXIT

tools=${TILEC_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/tilec/tools}/cargo
tool() {
    if ! [ -x "$tools/bin/cargo-$1" ] || ! "$tools/bin/cargo-$1" "$1" --version 2> /dev/null | grep -qF "$2"; then
        cargo install --quiet --locked --root "$tools" "cargo-$1@$2"
    fi
}

# Paths of this machine are not part of what is built.
remap="--remap-path-prefix=$PWD=/tilec --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"

# build DIR: the binaries, in DIR/bin.
build() {
    local dir=$1 host=x86_64-unknown-linux-gnu arm=aarch64-unknown-linux-gnu
    local cargo=(cargo build --quiet --locked --profile "$profile" -p tilec)
    local driver=(cargo build --quiet --locked --profile "$profile" -p tilec-libcuda)
    # A binary of an earlier version would be shipped with this one.
    rm -rf -- "$dir/bin"
    mkdir -p "$dir/bin"
    RUSTFLAGS=$remap "${cargo[@]}" --target $host --target-dir "$dir"
    cp "$dir/$host/$profile/tilec" "$dir/bin/tilec-$version-x86_64-linux"
    RUSTFLAGS=$remap "${driver[@]}" --target $host --target-dir "$dir"
    mkdir -p "$dir/simulator"
    cp "$dir/$host/$profile/libtilec_libcuda.so" "$dir/simulator/libcuda.so.1"
    RUSTFLAGS="$remap -C target-feature=+crt-static" "${cargo[@]}" \
        --no-default-features --features command --target $host --target-dir "$dir/static"
    cp "$dir/static/$host/$profile/tilec" "$dir/bin/tilec-$version-x86_64-linux-static"
    if [ -d "$(rustc --print target-libdir --target $arm)" ] && command -v aarch64-linux-gnu-gcc > /dev/null; then
        RUSTFLAGS=$remap CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
            "${cargo[@]}" --target $arm --target-dir "$dir"
        cp "$dir/$arm/$profile/tilec" "$dir/bin/tilec-$version-aarch64-linux"
    else
        echo "skipped: aarch64: needs Rust's target $arm and aarch64-linux-gnu-gcc" >&2
    fi
}

# pack DIR: an archive of each binary of DIR/bin, in DIR/pack. The bytes do not depend on the umask, the user, the time or the order of files.
pack() {
    local dir=$1 file name stage
    rm -rf -- "$dir/pack"
    mkdir -p "$dir/pack"
    for file in "$dir"/bin/*; do
        name=$(basename "$file")
        stage=$(mktemp -d -p "$scratch")
        mkdir "$stage/$name"
        cp "$file" "$stage/$name/tilec"
        case $name in *-x86_64-linux) cp -r "$dir/simulator" "$stage/$name/" ;; esac
        # The source too (some MB): links of the documents lead somewhere, and the crates of `examples` build as they are.
        git archive HEAD | tar -xf - -C "$stage/$name"
        tar --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
            -C "$stage" -cf - "$name" | xz -6 -T1 > "$dir/pack/$name.tar.xz"
    done
}

# The command in both builds, and what is shipped of it.
binaries() {
    build target/release-1
    pack target/release-1
    if [ -n "$twice" ]; then
        rm -rf -- target/release-2
        build target/release-2
        pack target/release-2
        diff -r target/release-1/pack target/release-2/pack || fail "two builds differ"
        echo "two builds have the same bytes"
    fi
    # What is shipped starts and compiles, from the archive.
    local file stage
    for file in target/release-1/pack/*-x86_64-linux*.tar.xz; do
        stage=$(mktemp -d -p "$scratch")
        tar -xJf "$file" -C "$stage"
        "$stage"/*/tilec --version | grep -qF "$version" || fail "$(basename "$file"): \`tilec --version\` does not say $version"
        "$stage"/*/tilec "$stage"/*/examples/gemm.tile -o "$stage/gemm.ptx"
    done
    cp target/release-1/pack/*.tar.xz "$out/"
}

# The wheel, in both builds.
wheel() {
    local first=$PWD/target/release-1/wheel second=$PWD/target/release-2/wheel
    RUSTFLAGS=$remap CARGO_TARGET_DIR=$first scripts/build_wheel.sh --profile "$profile" --check --quiet
    if [ -n "$twice" ]; then
        rm -rf -- "$second"
        RUSTFLAGS=$remap CARGO_TARGET_DIR=$second scripts/build_wheel.sh --profile "$profile" --quiet
        diff -r "$first/wheels" "$second/wheels" || fail "two builds of the wheel differ"
        echo "two builds of the wheel have the same bytes"
    fi
    cp "$first"/wheels/*.whl "$out/"
}

# Whether the address that registries will show is there.
address() {
    local repository
    repository=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)
    GIT_TERMINAL_PROMPT=0 timeout 20 git ls-remote --quiet "$repository" HEAD > /dev/null 2>&1 && return
    [ ${#advisories[@]} -eq 0 ] || fail "no repository answers at $repository (\`repository\` in Cargo.toml)"
    echo "unchecked: no repository answers at $repository: do not upload before it does (\`repository\` in Cargo.toml)" >&2
}

# A bill of materials for the command, the wheel, the simulator's driver, and each crate for a registry.
bill() {
    local name=bill.cdx manifest package folder
    # One is written for each crate that the named one needs, too: together for all but tests.
    for folder in driver build libcuda python; do
        "$tools/bin/cargo-cyclonedx" cyclonedx --quiet --manifest-path "$folder/Cargo.toml" --format json --override-filename "$name"
    done
    for manifest in */Cargo.toml; do
        folder=$(dirname "$manifest")
        package=$(sed -n '/^\[package\]/,/^\[[^p]/s/^name = "\(.*\)"$/\1/p' "$manifest")
        case $folder in
            tests | fuzz) rm -f -- "$folder/$name.json" ;;
            *)
                [ -f "$folder/$name.json" ] || fail "there is no bill of materials of $package"
                mv "$folder/$name.json" "$out/$package-$version.cdx.json" ;;
        esac
    done
}

mkdir -p "$out"
if step licences; then tool deny $deny; fi
if step bill; then tool cyclonedx $cyclonedx; fi
if step licences; then "$tools/bin/cargo-deny" check licenses bans sources ${advisories[@]+"${advisories[@]}"}; fi
if step crates; then address; cargo publish --quiet --locked --dry-run --workspace; fi
if step binaries; then binaries; fi
if step wheel; then wheel; fi
if step bill; then bill; fi
[ -z "$(ls -A "$out")" ] || (cd "$out" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
