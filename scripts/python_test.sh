#!/usr/bin/env bash
# Tests the Python package on the simulator: builds the extension with the settings of tests, and runs python/tests.
#
#   scripts/python_test.sh
#
# NumPy, JAX and PyTorch, of pinned versions, are installed into a virtual environment beside the other tools (~/.cache/tilec). PyTorch for the CPU alone
# is taken where pip finds it; the wheel of PyPI brings the libraries of CUDA, 2.6 GB, and is taken in CI (CI=true) or with TILEC_TEST_TORCH=1.
# Where there is no Python 3.10, or one of them cannot be installed, the tests that need it are skipped, loudly.
set -euo pipefail
cd "$(dirname "$0")/.."
numpy=2.2.6
jax=0.6.2
torch=2.13.0
venv=${XDG_CACHE_HOME:-$HOME/.cache}/tilec/python-numpy-$numpy

skip() {
    echo "skipped: scripts/python_test.sh: $1"
    exit 0
}
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2> /dev/null || skip "there is no Python 3.10"
if ! [ -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import numpy' 2> /dev/null; then
    rm -rf -- "$venv"
    # The environment may see packages of the machine, PyTorch among them.
    python3 -m venv --system-site-packages "$venv" > /dev/null 2>&1 || skip "python3 -m venv does not work"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "numpy==$numpy" > /dev/null 2>&1 || {
        rm -rf -- "$venv"
        skip "NumPy $numpy cannot be installed"
    }
fi
has_jax() { "$venv/bin/python" -c "import jax, sys; sys.exit(jax.__version__ != '$jax')" 2> /dev/null; }
has_jax || timeout 300 "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 "jax==$jax" "jaxlib==$jax" "numpy==$numpy" > /dev/null 2>&1 || true
has_torch() { "$venv/bin/python" -c 'import torch' 2> /dev/null; }
if ! has_torch; then
    pip=("$venv/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check --retries 1 "numpy==$numpy")
    no_torch="there is no PyTorch for the CPU; TILEC_TEST_TORCH=1 installs the wheel of PyPI, 2.6 GB"
    # The free space, in GiB, of the disk that takes it.
    free=$(($(df -Pk "$venv" | awk 'NR == 2 {print $4}') >> 20))
    if ! timeout 300 "${pip[@]}" "torch==$torch+cpu" > /dev/null 2>&1 && [ "${CI:-}" = true -o "${TILEC_TEST_TORCH:-}" = 1 ]; then
        no_torch="PyTorch $torch cannot be installed"
        if [ "$free" -lt 12 ]; then
            no_torch="PyTorch takes 12 GiB while it is installed, and $free are free"
        elif ! timeout 900 "${pip[@]}" "torch==$torch" > /dev/null 2>&1; then
            # What a time-out leaves is not whole.
            "$venv/bin/pip" uninstall --yes --quiet torch > /dev/null 2>&1 || true
        fi
    fi
fi
# The profile of tests: the crates of the compiler are those that `cargo test` builds.
cargo build -q --profile test -p tilec-python
package=$(mktemp -d)
trap 'rm -rf -- "$package"' EXIT
mkdir "$package/tilec"
cp python/tilec/*.py "$package/tilec/"
library=${CARGO_TARGET_DIR:-target}/debug/lib_tilec.so
[ -e "$library" ] || library=${CARGO_TARGET_DIR:-target}/debug/lib_tilec.dylib
cp "$library" "$package/tilec/_tilec.abi3.so"
export PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1
"$venv/bin/python" -m unittest -q python/tests/test_numpy.py python/tests/test_kernels.py python/tests/test_command.py python/tests/test_bundle.py python/tests/test_programs.py
# Launches on a device that is none: a driver that writes its calls down.
if command -v gcc > /dev/null; then
    gcc -shared -fPIC -O2 -Wall -Wextra -o "$package/libcuda.so.1" tests/c/libcuda.c
    LD_LIBRARY_PATH=$package TEST_CALLS=$package/calls "$venv/bin/python" -m unittest -q python/tests/test_driver.py
else
    echo "skipped: python/tests/test_driver.py: there is no gcc"
fi
if has_torch; then
    "$venv/bin/python" -m unittest -q python/tests/test_torch.py
else
    echo "skipped: python/tests/test_torch.py: $no_torch"
fi
# JAX on the CPU, and its calls on a device that is none.
if has_jax; then
    "$venv/bin/python" -m unittest -q python/tests/test_jax.py
    if command -v gcc > /dev/null; then
        include=$("$venv/bin/python" -c 'import jax; print(jax.ffi.include_dir())')
        gcc -shared -fPIC -O2 -Wall -Wextra "-I$include" -o "$package/xla_calls.so" tests/c/xla_calls.c
        LD_LIBRARY_PATH=$package TEST_CALLS=$package/xla TEST_XLA=$package/xla_calls.so \
            "$venv/bin/python" -m unittest -q python/tests/test_jax_driver.py
    else
        echo "skipped: python/tests/test_jax_driver.py: there is no gcc"
    fi
else
    echo "skipped: python/tests/test_jax.py and test_jax_driver.py: JAX $jax cannot be installed"
fi
