#!/usr/bin/env bash
# Compares NAPT, the stateful firewall and the router with the Linux kernel's, in network namespaces:
# tests/kernel/compare.py says how. Says so, and passes, where namespaces or nftables are not to be had.
# BRAID=FILE names a built command. Arguments go to compare.py: --require fails instead, --seed N and --flows N choose the traffic.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/namespaces.sh
need python3 python3; need ip iproute2; need nft nftables; need sysctl procps
if [ ${#missing[@]} -gt 0 ] && ! install "${missing[@]}"; then
    echo "NOT COMPARED with the kernel: install ${missing[*]}"
    case " $* " in *" --require "*) exit 1 ;; *) exit 0 ;; esac
fi

if [ -z "${BRAID:-}" ]; then
    cargo build --quiet --release --package braid-cli
    BRAID=$(target_folder)/release/braid
fi
exec python3 -B tests/kernel/compare.py "$BRAID" "$@"
