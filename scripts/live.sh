#!/usr/bin/env bash
# Runs Braid between real hosts in network namespaces (tests/live/live.py). Says so, and passes, where
# namespaces are not to be had. BRAID=FILE names a built command; arguments are engines (default: all).
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"

skip() { echo "NOT RUN between real hosts: $*"; exit 0; }

[ "$(id -u)" = 0 ] || skip "this needs root"
for tool in python3 ip sysctl; do
    command -v "$tool" > /dev/null || skip "install $tool"
done
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
exec timeout 400 python3 -B tests/live/live.py "$BRAID" "$@"
