#!/usr/bin/env bash
# What `make test` runs once everything is installed. Stops at the first kind of check that fails.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

step() { echo "== $*" >&2; }

step formatting
cargo fmt --all --check

step clippy
cargo clippy --workspace --all-targets --quiet -- -D warnings

step rustdoc
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --quiet

step tests
cargo test --workspace --no-fail-fast
