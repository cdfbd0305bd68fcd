#!/usr/bin/env bash
# Fails if mutants (deliberate bugs for tests) are compiled into a program: scripts/check-no-mutants.sh PROGRAM...
# A build with mutants has functions that switch them on, and the names that their Debug form prints.
set -euo pipefail
cd "$(dirname "$0")/.."

# The names as the sources list them.
names=$(sed -n 's/^    [A-Za-z]*::\([A-Za-z]*\),$/\1/p' \
    crates/{flowcache/src,state/src,compiler/src/symbolic}/mutants.rs)
[ "$(wc -w <<< "$names")" -gt 50 ] || { echo "check-no-mutants: cannot read the names of mutants" >&2; exit 1; }

failed=0
for program in "$@"; do
    [ -x "$program" ] || { echo "check-no-mutants: $program is missing" >&2; exit 1; }
    for name in $names with_mutant with_record_mutant with_move_mutant; do
        if grep -qaF -- "$name" "$program"; then
            echo "check-no-mutants: $program contains $name" >&2
            failed=1
        fi
    done
done
exit "$failed"
