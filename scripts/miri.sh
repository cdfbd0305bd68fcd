#!/usr/bin/env bash
# Runs the tests of packet memory under Miri, which finds undefined behaviour of unsafe code: uses of memory
# that has been freed, data races, wrong pointers. Other unsafe code calls the kernel, machine code or
# libraries, where Miri cannot follow. Says so, and passes, where Miri cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

has_miri() { cargo +nightly miri --version > /dev/null 2>&1; }
if ! has_miri; then
    echo "miri: installing a nightly Rust with Miri by rustup" >&2
    rustup toolchain install nightly --profile minimal --component miri,rust-src >&2 || true
    has_miri || { echo "NOT RUN under Miri: rustup toolchain install nightly --component miri,rust-src"; exit 0; }
fi
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
CARGO_TARGET_DIR=$target/miri exec cargo +nightly miri test --quiet --package braid-packet --lib -- \
    frame::
