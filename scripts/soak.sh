#!/usr/bin/env bash
# Compares all engines on generated pairs of fresh seeds for a time: scripts/soak.sh [SECONDS [FIRST_SEED [KIND]]].
# It runs what users get: the release profile, without mutants; a check says so. Pairs that differ are kept in
# crates/testkit/found, where `cargo test -p braid-testkit --test found` picks them up.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
cargo build --release --quiet --package braid-testkit --bin soak
scripts/check-no-mutants.sh "$target/release/soak"
exec "$target/release/soak" "${1:-60}" "${@:2}"
