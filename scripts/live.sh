#!/usr/bin/env bash
# Runs Braid between real hosts in network namespaces (tests/live/live.py). Says so, and passes, where
# namespaces are not to be had. BRAID=FILE names a built command; arguments are engines (default: all).
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"

skip() { echo "NOT RUN between real hosts: $*"; exit 0; }

[ "$(id -u)" = 0 ] || skip "this needs root"
missing=()
need() { command -v "$1" > /dev/null || missing+=("$2"); }
need python3 python3; need ip iproute2; need sysctl procps; need ethtool ethtool
need curl curl; need ping iputils-ping; need iperf3 iperf3; need wrk wrk; need nginx nginx-light
need nft nftables; need dig bind9-dnsutils; need dnsmasq dnsmasq-base
need traceroute traceroute; need tracepath iputils-tracepath
if [ ${#missing[@]} -gt 0 ] && command -v apt-get > /dev/null; then
    echo "live: installing with apt-get: ${missing[*]}" >&2
    apt-get update -q > /dev/null && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${missing[@]}" > /dev/null && missing=()
fi
[ ${#missing[@]} = 0 ] || skip "install ${missing[*]}"
trial=braid-trial-$$
ip netns add "$trial" 2> /dev/null || skip "no network namespaces can be made here"
works=yes
ip -n "$trial" link add braid-a type veth peer name braid-b 2> /dev/null || works=
ip netns del "$trial"
[ -n "$works" ] || skip "no veth devices can be made here"

if [ -z "${BRAID:-}" ]; then
    cargo build --quiet --release --package braid-cli
    target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    BRAID=$target/release/braid
fi
timeout 400 python3 -B tests/live/live.py "$BRAID" "$@"
exec timeout $((600 + ${TIME:-20})) python3 -B tests/live/operate.py "$BRAID" "${TIME:-20}"
