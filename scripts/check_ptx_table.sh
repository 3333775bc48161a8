#!/usr/bin/env bash
# Has ptxas judge the PTX instruction table, row by row.
#
# Each row, with each count of columns that it may have, must assemble at the .version and .target the table claims,
# and fail one version lower and one target lower (where such a version knows the target at all).
#
#     TILEC_PTXAS=/path/to/ptxas scripts/check_ptx_table.sh        (ptxas 12.9: the last that knows sm_70)
set -euo pipefail
cd "$(dirname "$0")/.."

ptxas=${TILEC_PTXAS:-ptxas}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TILEC_DUMP_TABLE="$work/table" cargo test --quiet -p tilec-ptx every_row_prints > /dev/null
awk -v dir="$work" '/^\/\/ == /{file = dir "/" $3 ".ptx"} {print > file}' "$work/table"

versions=(6.0 6.1 6.2 6.3 6.4 6.5 7.0 7.1 7.2 7.3 7.4 7.5 7.6 7.7 7.8 8.0 8.1 8.2 8.3 8.4 8.5 8.6 8.7 8.8)
targets=(sm_70 sm_72 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a)

# The entry before $1 in the rest of the arguments; empty for the first.
before() {
    local wanted=$1 previous=""
    shift
    for entry in "$@"; do
        [ "$entry" = "$wanted" ] && break
        previous=$entry
    done
    echo "$previous"
}

# assembles FILE VERSION TARGET
assembles() {
    sed -e "s/^\.version .*/.version $2/" -e "s/^\.target .*/.target $3/" "$1" > "$work/try"
    "$ptxas" -arch="$3" -o /dev/null "$work/try" > "$work/log" 2>&1
}

failures=0
complain() {
    echo "$*"
    failures=$((failures + 1))
}

rows=0
for file in "$work"/*.ptx; do
    read -r _ _ row version target < "$file"
    rows=$((rows + 1))
    assembles "$file" "$version" "$target" || complain "$row: refused at $version $target: $(head -3 "$work/log")"
    lower=$(before "$version" "${versions[@]}")
    if [ -n "$lower" ] && assembles "$file" "$lower" "$target"; then
        complain "$row: $lower is enough on $target, the table says $version"
    fi
    lower=$(before "$target" "${targets[@]}")
    if [ -n "$lower" ] && assembles "$file" "$version" "$lower"; then
        complain "$row: $lower is enough at $version, the table says $target"
    fi
done
echo "$rows modules, $failures wrong"
[ "$failures" -eq 0 ]
