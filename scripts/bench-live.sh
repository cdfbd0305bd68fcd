#!/usr/bin/env bash
# Measures Braid against other programs between network namespaces (bench/live/bench.py). Says so, and
# passes, where namespaces are not to be had. BRAID=FILE and LOAD=FILE name built commands; arguments go
# to bench.py: --smoke only shows that it works. Writes target/bench-live.json and target/bench-live.md.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"

skip() { echo "NOT MEASURED between namespaces: $*"; exit 0; }

[ "$(id -u)" = 0 ] || skip "this needs root"
missing=()
need() { command -v "$1" > /dev/null || missing+=("$2"); }
need python3 python3; need ip iproute2; need sysctl procps; need ethtool ethtool; need nft nftables
need taskset util-linux; need curl curl; need wrk wrk; need nginx nginx-light
install() {
    echo "bench-live: installing with apt-get: $*" >&2
    apt-get update -q > /dev/null && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "$@" > /dev/null
}
if [ ${#missing[@]} -gt 0 ] && command -v apt-get > /dev/null; then
    install "${missing[@]}" && missing=()
fi
[ ${#missing[@]} = 0 ] || skip "install ${missing[*]}"
# Peers are absent from the report where they cannot be installed.
need haproxy haproxy; need dpdk-testpmd dpdk-dev; need xdp-bench xdp-tools
case " $* " in *" --smoke "*) missing=() ;; esac
if [ ${#missing[@]} -gt 0 ] && command -v apt-get > /dev/null; then
    for package in "${missing[@]}"; do install "$package" || true; done
fi
trial=braid-trial-$$
ip netns add "$trial" 2> /dev/null || skip "no network namespaces can be made here"
works=yes
ip -n "$trial" link add braid-a type veth peer name braid-b 2> /dev/null || works=
ip netns del "$trial"
[ -n "$works" ] || skip "no veth devices can be made here"

target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
if [ -z "${BRAID:-}" ] || [ -z "${LOAD:-}" ]; then
    cargo build --quiet --release --package braid-cli --package braid-load
    BRAID=${BRAID:-$target/release/braid} LOAD=${LOAD:-$target/release/braid-load}
fi
exec python3 -B bench/live/bench.py "$BRAID" "$LOAD" --json "$target/bench-live.json" \
    --markdown "$target/bench-live.md" "$@"
