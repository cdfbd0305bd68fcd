#!/usr/bin/env bash
# What `make test` runs once everything is installed. Stops at the first kind of check that fails.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

step() { echo "== $*" >&2; }

step formatting
cargo fmt --all --check

step clippy
cargo clippy --workspace --all-targets --features braid-cli/mutants --quiet -- -D warnings

target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
if command -v c++ > /dev/null; then
    step fuzz targets
    # They are a workspace of their own. Here they are only checked: `make fuzz` runs them.
    cargo check --manifest-path fuzz/Cargo.toml --locked --bins --quiet --target-dir "$target"
else
    echo "NOT RUN: fuzz targets need a C++ compiler" >&2
fi

step rustdoc
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --quiet

step building the tests
# The program that they run also serves the next steps, so it is not built twice.
cargo test --workspace --features braid-cli/mutants --no-run --quiet
cargo build --quiet --package braid-load --package braid-preload

step comparison with the kernel
export BRAID=$target/debug/braid
scripts/compare-kernel.sh

step live traffic
scripts/live.sh

step the live bench
LOAD=$target/debug/braid-load timeout 300 scripts/bench-live.sh --smoke > /dev/null

step the demo
# Two requests and two replies on their way, from end to end.
demo=$(scripts/demo.sh)
[ "$(grep -c '^  leaves ' <<< "$demo")" = 4 ] || { echo "$demo"; echo "the demo does not show all ways" >&2; exit 1; }

step tests
cargo test --workspace --no-fail-fast --features braid-cli/mutants

step how threads of stages wait
cargo test --package braid-runtime --features model --lib bell

step packet memory under Miri
scripts/miri.sh

step all engines in a release build
# The check for mutants sees them where they are.
with_mutants=$(cargo test --workspace --features braid-cli/mutants --test mutants --test stages --no-run 2>&1 |
    sed -n 's/.*(\(.*\/deps\/[^)]*\)).*/\1/p')
[ "$(wc -w <<< "$with_mutants")" -ge 3 ] || { echo "cannot find the tests with mutants" >&2; exit 1; }
for program in $with_mutants; do
    found=0
    scripts/check-no-mutants.sh "$program" 2> /dev/null || found=$?
    [ "$found" = 1 ] || { echo "mutants are not seen in $program" >&2; exit 1; }
done
for package in braid-cli braid-testkit; do
    if cargo tree --package "$package" --edges normal --format "{p} [{f}]" | grep -q mutants; then
        echo "$package is built with mutants" >&2
        exit 1
    fi
done
# The same pairs on every run; `make soak` draws fresh ones, and takes the build that users get. This one leaves
# out optimisation across crates, which takes long.
CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 scripts/soak.sh 120 640000000

# What only builds where a system library is.
if [ -e /usr/include/hs/hs.h ]; then
    step tests with Hyperscan
    cargo clippy --package braid-native-five --all-targets --features hyperscan --quiet -- -D warnings
    cargo test --package braid-native-five --features hyperscan --test search
fi
if pkg-config --exists 'libdpdk >= 22.11' 2> /dev/null; then
    step tests with DPDK
    # The whole workspace as above, so that only what depends on the feature is built again.
    features=(--workspace --features braid-cli/mutants,braid-io/dpdk,braid-cli/dpdk)
    cargo clippy "${features[@]}" --all-targets --quiet -- -D warnings
    cargo test "${features[@]}" --test dpdk
    # One at a time: a device in shared memory pauses while another test takes more memory.
    cargo test "${features[@]}" --test devices dpdk -- --test-threads 1
else
    echo "NOT RUN: tests with DPDK need libdpdk-dev and pkg-config" >&2
fi
