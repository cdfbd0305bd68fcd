#!/usr/bin/env bash
# Stands between cargo and rustc while scripts/fuzz.sh builds the fuzz targets. It builds what makes
# machine code (Cranelift and its register allocator) without coverage and sanitizer: with them, these
# crates need seconds for a chain, and their coverage hides that of Braid.
set -euo pipefail

case " $* " in
    *" --crate-name cranelift"* | *" --crate-name regalloc2 "*) ;;
    *) exec "$@" ;;
esac
kept=()
for arg in "$@"; do
    case "$arg" in
        -Cpasses=sancov* | -Cllvm-args=-sanitizer* | -Zsanitizer=* | -Cdebug-assertions) ;;
        *) kept+=("$arg") ;;
    esac
done
exec "${kept[@]}"
