#!/usr/bin/env bash
# Rebuild the PTX of the CUDA kernels that the simulator is tested with, by NVRTC.
#
#   scripts/nvrtc_corpus.sh [NAME ...]     all of sim/tests/data/cuda/*.cu, or those named
#   scripts/nvrtc_corpus.sh --check        rebuild elsewhere; exit status 1 if the tree holds something else
#
# NVRTC and the headers that the kernels include come from PyPI, pinned by version and SHA-256, into the cache of
# scripts/fetch_tools.sh (230 MB). The PTX is stored in the tree, so that nothing but this script needs them.
# A kernel says on a line `// target: sm_80` what it is compiled for; sm_70 otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=${TILEC_TOOLS:-${XDG_CACHE_HOME:-${HOME:?neither TILEC_TOOLS, XDG_CACHE_HOME nor HOME is set}/.cache}/tilec/tools}
python=${PYTHON:-python3}
cache=$tools/nvrtc-12.9

requirements='
nvidia-cuda-nvrtc-cu12==12.9.86 --hash=sha256:210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4
nvidia-cuda-runtime-cu12==12.9.79 --hash=sha256:25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3
nvidia-cuda-nvcc-cu12==12.9.86 --hash=sha256:5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0
nvidia-cuda-cccl-cu12==12.9.27 --hash=sha256:37869e17ce2e1ecec6eddf1927cca0f8c34e64fd848d40453df559091e2d7117
'

if ! printf '%s' "$requirements" | cmp -s - "$cache/stamp"; then
    if [ "$(uname -sm)" != "Linux x86_64" ]; then
        echo "the pinned wheels are for x86_64 Linux, this is $(uname -sm)" >&2
        exit 1
    fi
    echo "fetching NVRTC 12.9 into $cache" >&2
    mkdir -p "$tools"
    stage=$(mktemp -d "$tools/.stage.XXXXXX")
    trap 'rm -rf -- "$stage"' EXIT
    printf '%s' "$requirements" > "$stage/requirements.txt"
    "$python" -m pip download --quiet --timeout 20 --retries 2 --disable-pip-version-check --no-input --no-cache-dir \
        --no-deps --only-binary=:all: --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 \
        --platform manylinux2010_x86_64 --platform manylinux_2_12_x86_64 \
        --require-hashes --requirement "$stage/requirements.txt" --dest "$stage/wheels"
    "$python" scripts/nvrtc_corpus.py unpack "$stage/wheels" "$stage/out"
    printf '%s' "$requirements" > "$stage/out/stamp"
    rm -rf -- "$cache"
    mv -T -- "$stage/out" "$cache"
fi

exec "$python" scripts/nvrtc_corpus.py build "$cache" sim/tests/data/cuda "$@"
