#!/usr/bin/env bash
# Runs stream functions between real hosts for longer (tests/live/stress.py): ten thousand connections
# at once, files of a gigabyte, the servers and clients of others, and floods. Arguments are scenes
# (default: all). BRAID=FILE names a built command, SIZE=MB the files, CONNECTIONS=N the connections.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "NOT RUN between real hosts: $*"; exit 0; }
. scripts/namespaces.sh
need h2load nghttp2-client; need lighttpd lighttpd; need vsftpd vsftpd
prepare_namespaces

if [ -z "${BRAID:-}" ]; then
    cargo build --quiet --release --package braid-cli
    BRAID=$(target_folder)/release/braid
fi
exec timeout 3600 python3 -B tests/live/stress.py "$BRAID" "$@"
