#!/usr/bin/env bash
# Runs every capture below a folder through every function: check-captures.sh [DIR], or BRAID_DATA=DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
dir=${1:-${BRAID_DATA:-}}
if [ -z "$dir" ] || [ ! -d "$dir" ]; then
    echo "check-captures: name a folder of captures: make check-captures BRAID_DATA=DIR" >&2
    exit 2
fi
cargo run --quiet --release --package braid-testkit --example check_captures -- "$dir"
