#!/usr/bin/env bash
# Run every test of the project, fetching the pinned assembler first.
#
#   scripts/test.sh [further arguments of `cargo test`]
#
# A test that cannot run here prints a line `skipped: WHAT: WHY` and passes; all such lines are
# repeated at the end. TILEC_REQUIRE_TOOLS=1 makes a missing assembler a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/fetch_tools.sh

log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
# `pipefail` keeps the status of cargo.
status=0
cargo test --workspace --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
    (cd scripts && TILEC="${CARGO_TARGET_DIR:-$PWD/../target}/debug/tilec" python3 -m unittest gpu.tests) 2>&1 | tee -a "$log" || status=$?
else
    echo "skipped: scripts/gpu/tests.py: there is no Python 3.11" | tee -a "$log"
fi
scripts/python_test.sh 2>&1 | tee -a "$log" || status=$?
scripts/site.sh --test 2>&1 | tee -a "$log" || status=$?
scripts/check_editors.sh 2>&1 | tee -a "$log" || status=$?
scripts/rust_example.sh --quick 2>&1 | tee -a "$log" || status=$?

if [ -x "${CARGO_TARGET_DIR:-target}/debug/tilec" ]; then
    scripts/neovim_test.sh 2>&1 | tee -a "$log" || status=$?
    scripts/browser_test.sh 2>&1 | tee -a "$log" || status=$?
    scripts/cmake_test.sh 2>&1 | tee -a "$log" || status=$?
    scripts/languages_test.sh 2>&1 | tee -a "$log" || status=$?
    TILEC="${CARGO_TARGET_DIR:-target}/debug/tilec" scripts/gpu_allowances.sh --device sim 2>&1 | tee -a "$log" || status=$?
fi

skipped=$(grep -a -o 'skipped: .*' "$log" | sort | uniq -c || true)
if [ -n "$skipped" ]; then
    echo
    echo "****************************************************************************"
    echo "NOT EVERYTHING WAS TESTED. Skipped, with the number of times:"
    echo "$skipped"
    echo "****************************************************************************"
fi
# What failed stands in the middle of a long log: it is printed again here, with what it said.
if [ "$status" -ne 0 ]; then
    echo
    echo "FAILED:"
    grep -a -E '^test .* FAILED|^error: test failed|^(FAIL|ERROR): |panicked at' "$log" || true
    sed -n -e '/^failures:$/,/^test result: /p' -e '/^\(FAIL\|ERROR\): /,/^Ran /p' "$log" | head -n 400
fi
if [ "$status" -eq 0 ]; then echo "tests passed"; else echo "tests FAILED" >&2; fi
exit "$status"
