#!/usr/bin/env bash
# Runs every fuzz target for a time: scripts/fuzz.sh [SECONDS [TARGET...]].
# The first build takes some ten minutes. Seeds come from scripts/fuzz-seeds.sh; what the fuzzer finds
# interesting stays in fuzz/corpus, and what breaks a target in fuzz/artifacts. Ends with one line a
# target: runs, seconds, outcome.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

seconds=${1:-60}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    targets=(language capture packet files ir_text options requests streams signatures state chain engines headers tcp_options pairs relay fragments)
fi

if ! rustup run nightly rustc --version > /dev/null 2>&1; then
    echo "fuzz: installing a nightly Rust with rustup" >&2
    rustup toolchain install nightly --profile minimal \
        || { echo "fuzz: fuzzing needs a nightly Rust: rustup toolchain install nightly" >&2; exit 1; }
fi
if ! cargo fuzz --version > /dev/null 2>&1; then
    echo "fuzz: installing cargo-fuzz" >&2
    cargo install cargo-fuzz --locked \
        || { echo "fuzz: cargo-fuzz is missing: cargo install cargo-fuzz --locked" >&2; exit 1; }
fi
command -v c++ > /dev/null || { echo "fuzz: libFuzzer needs a C++ compiler: apt-get install g++" >&2; exit 1; }

scripts/fuzz-seeds.sh
export RUSTC_WRAPPER="$PWD/scripts/fuzz-rustc.sh"

failed=0
report=()
for target in "${targets[@]}"; do
    cargo +nightly fuzz build "$target"
    log=$(mktemp)
    outcome=clean
    # The seconds that an input may take. A difference between engines is reduced before it is shown.
    case "$target" in
        chain | engines | headers | tcp_options | pairs) timeout=120 ;;
        *) timeout=10 ;;
    esac
    cargo +nightly fuzz run "$target" -- \
        -max_total_time="$seconds" -timeout="$timeout" -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 \
        > "$log" 2>&1 || { outcome=FAILED; failed=1; }
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    took=$(sed -n 's/^Done [0-9]* runs in \([0-9]*\) second.*/\1/p' "$log" | tail -n 1)
    if [ "$outcome" = FAILED ]; then
        tail -n 60 "$log" >&2
    fi
    rm -f "$log"
    report+=("$(printf '%-12s %12s runs %6s s  %s' "$target" "${runs:-0}" "${took:-?}" "$outcome")")
done
printf '%s\n' "${report[@]}"
exit "$failed"
