#!/usr/bin/env bash
# Fails if mutants (deliberate bugs for tests) are compiled into a program: scripts/check-no-mutants.sh PROGRAM...
# A build with mutants has a text that says so for each list of mutants, functions that switch them on, and the
# names that their Debug form prints. Ends with 1 if a program has mutants, and with 2 if the check itself fails.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "check-no-mutants: $*" >&2; exit 2; }

# Every list of mutants in the sources. Each of them has a text that stays in programs.
mapfile -t lists < <(grep -rlE --include='*.rs' '^pub enum [A-Za-z]*Mutant \{' crates/*/src)
names=$(sed -n '/^pub enum [A-Za-z]*Mutant {/,/^}/s/^    \([A-Z][A-Za-z]*\),$/\1/p' "${lists[@]}")
mapfile -t marks < <(sed -n 's/^const MARK: &str = "\(built with mutants of .*\)";$/\1/p' "${lists[@]}")
# Functions that switch mutants on, and a type that only builds with mutants have, in debug information.
others=(with_mutant with_record_mutant with_delivery_mutant with_move_mutant options::Mutant)
[ "$(wc -w <<< "$names")" -gt 90 ] || fail "cannot read the names of mutants"
[ "${#marks[@]}" = "${#lists[@]}" ] || fail "${#lists[@]} lists of mutants have ${#marks[@]} texts"

failed=0
for program in "$@"; do
    [ -x "$program" ] || fail "$program is missing"
    while read -r text; do
        echo "check-no-mutants: $program contains $text" >&2
        failed=1
    done < <(grep -aoF -f <(printf '%s\n' "${marks[@]}" $names "${others[@]}") -- "$program" | sort -u)
done
exit "$failed"
