#!/usr/bin/env bash
# Measures Braid against other programs between network namespaces (bench/live/bench.py). Says so, and
# passes, where namespaces are not to be had. BRAID=FILE and LOAD=FILE name built commands; arguments go
# to bench.py: --smoke only shows that it works. Writes target/bench-live.json and target/bench-live.md.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "NOT MEASURED between namespaces: $*"; exit 0; }
. scripts/namespaces.sh
need taskset util-linux
prepare_namespaces
# Peers are absent from the report where they cannot be installed.
case " $* " in
    *" --smoke "*) ;;
    *) need haproxy haproxy; need dpdk-testpmd dpdk-dev; need xdp-bench xdp-tools ;;
esac
for package in "${missing[@]}"; do install "$package" || true; done

target=$(target_folder)
if [ -z "${BRAID:-}" ] || [ -z "${LOAD:-}" ]; then
    cargo build --quiet --release --package braid-cli --package braid-load
    BRAID=${BRAID:-$target/release/braid} LOAD=${LOAD:-$target/release/braid-load}
fi
exec python3 -B bench/live/bench.py "$BRAID" "$LOAD" --json "$target/bench-live.json" \
    --markdown "$target/bench-live.md" "$@"
