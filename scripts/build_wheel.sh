#!/usr/bin/env bash
# Builds the wheel of the Python package into target/wheels, with full optimisation (many minutes).
#
#   scripts/build_wheel.sh [--quick | --profile NAME] [--check] [further arguments of maturin]
#
#   --quick           with the profile `release`: most of the speed in less time
#   --profile NAME    with another profile of Cargo.toml
#   --check           installs the wheel into an empty environment with NumPy, compiles a kernel there and runs it
set -euo pipefail
cd "$(dirname "$0")/.."
maturin=1.9.6
numpy=2.2.6
profile=dist
check=
rest=()
while [ $# -gt 0 ]; do
    case $1 in
        --quick) profile=release ;;
        --profile) profile=${2:?--profile NAME}; shift ;;
        --check) check=1 ;;
        *) rest+=("$1") ;;
    esac
    shift
done
venv=${XDG_CACHE_HOME:-$HOME/.cache}/tilec/maturin-$maturin
if ! [ -x "$venv/bin/maturin" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "maturin==$maturin"
fi
out=$(realpath -m "${CARGO_TARGET_DIR:-target}/wheels")
rm -f -- "$out"/tilec-*.whl
"$venv/bin/maturin" build --profile "$profile" --manifest-path python/Cargo.toml --out "$out" "${rest[@]}"
for wheel in "$out"/tilec-*.whl; do
    bytes=$(wc -c < "$wheel")
    echo "$wheel: $bytes bytes"
    [ "$bytes" -lt $((15 << 20)) ] || { echo "a wheel of more than 15 MiB" >&2; exit 1; }
done
# One library for every Python, with its licences, and a page that stands outside of the repository.
python3 - "$out"/tilec-*.whl << 'PYTHON'
import email
import re
import sys
import zipfile

for path in sys.argv[1:]:
    wheel = zipfile.ZipFile(path)
    names = wheel.namelist()
    metadata = email.message_from_bytes(wheel.read(next(name for name in names if name.endswith(".dist-info/METADATA"))))
    relative = re.findall(r"\]\((?!https:)[^)]*\)", metadata.get_payload())
    licences = sorted(name.rsplit("/", 1)[1] for name in names if "/licenses/" in name)
    wrong = [
        f"{what}: {found}"
        for what, found, expected in (
            ("libraries", [name for name in names if name.endswith(".so")], ["tilec/_tilec.abi3.so"]),
            ("licences", licences, ["LICENSE-APACHE", "LICENSE-MIT"]),
            ("License-Expression", metadata["License-Expression"], "MIT OR Apache-2.0"),
            ("links of the page", relative, []),
            ("tests", [name for name in names if "test" in name], []),
        )
        if found != expected
    ]
    if wrong:
        sys.exit("\n".join(wrong))
PYTHON
[ -n "$check" ] || exit 0
clean=$(mktemp -d)
trap 'rm -rf -- "$clean"' EXIT
python3 -m venv "$clean/venv"
"$clean/venv/bin/pip" install --quiet --disable-pip-version-check "numpy==$numpy" "$out"/tilec-*.whl
cp examples/gemm.tile "$clean/"
# Beside nothing of this repository.
(cd "$clean" && env -u PYTHONPATH venv/bin/python - << 'PYTHON')
import numpy as np
import tilec

gemm = tilec.compile("gemm.tile", target="sm_80", BM=64, BN=64)
a, b, c = np.ones((40, 24), np.float16), np.ones((24, 72), np.float16), np.zeros((40, 72), np.float32)
gemm(a, b, c, alpha=2.0)
assert (c == 48).all()
print(f"tilec {tilec.__version__} of {tilec.__file__} runs {gemm}")
PYTHON
