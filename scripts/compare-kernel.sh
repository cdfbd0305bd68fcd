#!/usr/bin/env bash
# Compares NAPT, the stateful firewall and the router with the Linux kernel's, in network namespaces:
# tests/kernel/compare.py says how. Says so, and passes, where namespaces or nftables are not to be had.
# BRAID=FILE names a built command. Arguments go to compare.py: --require fails instead, --seed N and --flows N choose the traffic.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/sbin:/sbin"

missing=()
command -v python3 > /dev/null || missing+=(python3)
command -v ip > /dev/null || missing+=(iproute2)
command -v nft > /dev/null || missing+=(nftables)
command -v sysctl > /dev/null || missing+=(procps)
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "compare-kernel: installing with apt-get: ${missing[*]}" >&2
    apt-get update -q > /dev/null && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${missing[@]}" > /dev/null && missing=()
fi
if [ ${#missing[@]} -gt 0 ]; then
    echo "NOT COMPARED with the kernel: install ${missing[*]}"
    case " $* " in *" --require "*) exit 1 ;; *) exit 0 ;; esac
fi

if [ -z "${BRAID:-}" ]; then
    cargo build --quiet --release --package braid-cli
    target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    BRAID=$target/release/braid
fi
exec python3 -B tests/kernel/compare.py "$BRAID" "$@"
