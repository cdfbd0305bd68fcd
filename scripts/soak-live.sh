#!/usr/bin/env bash
# Operates Braid between real hosts for a long time, at a low rate: reloads, links that flap, requests
# (tests/live/operate.py): scripts/soak-live.sh [SECONDS [KIND [WORKERS]]]. KIND is af_packet, xdp or tap.
# Without KIND and WORKERS, one kind after the other runs, with one worker and with two. BRAID=FILE names
# a built command.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "NOT RUN between real hosts: $*"; exit 0; }
. scripts/namespaces.sh
need iperf3 iperf3; need dnsmasq dnsmasq-base
prepare_namespaces

if [ -z "${BRAID:-}" ]; then
    cargo build --quiet --release --package braid-cli
    BRAID=$(target_folder)/release/braid
fi
for kind in ${2:-af_packet xdp tap}; do
    for workers in ${3:-1 2}; do
        python3 -B tests/live/operate.py "$BRAID" soak "$kind" "$workers" "${1:-600}"
    done
done
