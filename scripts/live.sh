#!/usr/bin/env bash
# Runs Braid between real hosts in network namespaces (tests/live/live.py). Says so, and passes, where
# namespaces are not to be had. BRAID=FILE names a built command; arguments are engines and scenes
# (default: all).
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "NOT RUN between real hosts: $*"; exit 0; }
. scripts/namespaces.sh
need ping iputils-ping; need iperf3 iperf3; need dig bind9-dnsutils; need dnsmasq dnsmasq-base
need traceroute traceroute; need tracepath iputils-tracepath
need busybox busybox; need openssl openssl; need scapy3 python3-scapy; need lighttpd lighttpd
need vsftpd vsftpd
prepare_namespaces

if [ -z "${BRAID:-}" ]; then
    cargo build --quiet --release --package braid-cli --package braid-preload
    BRAID=$(target_folder)/release/braid
fi
timeout 1200 python3 -B tests/live/live.py "$BRAID" "$@"
exec timeout $((600 + ${TIME:-20})) python3 -B tests/live/operate.py "$BRAID" "${TIME:-20}"
