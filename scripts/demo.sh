#!/usr/bin/env bash
# Builds Braid and runs a chain of four functions over the bundled capture: what each function did,
# what happens to a request and to its reply, and what to try next. Writes out/demo.pcap.
# BRAID=FILE names a built command.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

chain=examples/demo.braid
capture=examples/captures/domain-client.pcap.gz
out=out/demo.pcap
braid=${BRAID:-${CARGO_TARGET_DIR:-target}/release/braid}

if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
title() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }

if [ -z "${BRAID:-}" ]; then
    echo "demo: building $braid; the first time takes about ten minutes on two cores" >&2
    quiet=()
    [ -t 2 ] || quiet=(--quiet) # a progress bar needs a terminal
    cargo build --release --package braid-cli "${quiet[@]}"
fi

title "The chain ($chain)"
sed -n 's|^//   *\(lan .*\)|  \1|p' "$chain"

mkdir -p "$(dirname "$out")"
title "The capture ($capture) through it"
"$braid" run "$chain" --in "$capture" --follow --out "$out"

# walk CHAIN PACKET: where the packet came along, and what it looked like there, from its trace.
walk() {
    "$braid" trace "$1" --in "$capture" --packet "$2" --follow | awk '
        /^packet /    { place = "enters " $NF; next }
        /^leaves by / { place = "leaves " $NF; next }
        /^[^ ]/       { place = "  " $1; next }
        place != ""   { sub(/^ +/, ""); printf "  %-14s %s\n", place, $0; place = "" }'
}

# The last thing that the interface-less chain shows is the packet as it was captured.
captured() { walk examples/pass_through.braid "$1" | sed -n '$s/^  leaves out/  captured  /p'; }

# Two Kerberos connections of the capture: numbers of a request and of its reply.
for pair in "307 309" "327 331"; do
    read -r request reply <<< "$pair"
    title "A Kerberos request (packet $request) on its way, and its reply (packet $reply)"
    captured "$request"
    walk "$chain" "$request"
    echo
    captured "$reply"
    walk "$chain" "$reply"
done
cat << END

The chain's servers are not in the capture, so --follow lets each captured reply enter as the answer
to what its request left as; the chain translates it back to what was captured.

${bold}What left the chain${plain} is in $out. Look at it:
  wireshark $out                  # or: tshark -nr $out, tcpdump -nr $out
  $braid diff $capture $out --limit 3

${bold}What to try next${plain}
  # every step of a packet
  $braid trace $chain --in $capture --follow --packet $reply
  # what each function reads, writes, adds and drops
  $braid actions $chain
  # all functions of the library; one of them
  $braid nfs
  $braid nfs napt
  # let NetBIOS broadcasts out: the firewall drops 144 packets fewer (git checkout examples undoes it)
  sed -i 's/^default drop/pass proto udp to 192.168.122.255 port 137-138\n&/' examples/rules/office.rules && make demo
  # a function of your own, in ten minutes: docs/tutorial.md
END
