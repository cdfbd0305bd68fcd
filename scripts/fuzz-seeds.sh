#!/usr/bin/env bash
# Makes small seeds for the fuzz targets from files of the repository. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

for target in language capture packet files ir_text options requests streams signatures state chain engines headers tcp_options pairs relay fragments; do
    mkdir -p "fuzz/corpus/$target"
done

# Sources: models, examples, chains of the tests.
for file in crates/nfs/*/model.braid examples/*.braid crates/testkit/chains/*.braid; do
    name=$(echo "$file" | tr '/' '_')
    cp "$file" "fuzz/corpus/language/$name"
done

# Captures that are small.
for file in examples/captures/*.pcap examples/captures/*.pcap.gz examples/captures/*.pcapng; do
    if [ -f "$file" ] && [ "$(wc -c < "$file")" -le 65536 ]; then
        cp "$file" "fuzz/corpus/capture/"
    fi
done
# An empty pcap file, a pcapng section header, and one packet.
printf '\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x01\x00\x00\x00' \
    > fuzz/corpus/capture/empty.pcap
printf '\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x08\x00\x00\x00abcd' \
    > fuzz/corpus/capture/one.pcap
printf '\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x1c\x00\x00\x00' \
    > fuzz/corpus/capture/empty.pcapng

# Files: the first byte picks the importer.
seed() { printf "$1" > "fuzz/corpus/files/$2"; cat >> "fuzz/corpus/files/$2"; }
for file in crates/testkit/chains/*.rules; do
    seed '\x00' "rules_$(basename "$file")" < "$file"
done
echo '@10.0.0.0/8	192.0.2.0/24	0 : 65535	80 : 80	0x06/0xFF	0x0200/0x1200' | seed '\x01' classbench
seed '\x02' routes < crates/testkit/chains/routes.txt
printf '10.0.0.0/8\n192.0.2.1\n' | seed '\x03' prefixes4
printf '2001:db8::/32\n::1\n' | seed '\x04' prefixes6
seed '\x05' patterns < crates/testkit/chains/signatures.txt
printf 'vlan 5 / tcp 10.0.0.1:1 > 10.0.0.2:2 S mss=9 ttl=3 "a\\x00" snap=40' | seed '\x06' packet_text

# Packets: link, extra wire length, field, value; then the bytes of UDP over IPv4 over Ethernet.
udp='\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00\x45\x00\x00\x1e\x00\x00\x00\x00\x40\x11\x60\xbf\x0a\x00\x00\x01\x08\x08\x08\x08\x04\xd2\x00\x35\x00\x0a\x78\x59hi'
printf '\x00\x00\x20\x05'"$udp" > fuzz/corpus/packet/udp
printf '\x00\x09\x60\xff\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x81\x00\x00\x07\x86\xdd\x60' > fuzz/corpus/packet/vlan6

# Chains: a chain, then interface, time, template.
for chain in 0 1 2 3 4; do
    printf '\\x%02x' "$chain" | xargs -0 printf > "fuzz/corpus/chain/$chain"
    printf '\x00\x00\x00\x01\x03\x01\x00\x01\x02\x01\x00\x05\x01\x02\x05\x00\x01\x84\x10\x20\x30\x40' \
        >> "fuzz/corpus/chain/$chain"
done

# Single chains: interface, time, template; and an engine at the end.
for template in 0 1 5 9 10 11 12; do
    for engine in 0 1 2 3 4 5; do
        for target in headers tcp_options; do
            seed="fuzz/corpus/$target/$template$engine"
            printf '\xe0\x01' > "$seed"
            printf '\\x%02x' "$template" | xargs -0 printf >> "$seed"
            printf '\x01\x03' >> "$seed"
            printf '\\x%02x' "$template" | xargs -0 printf >> "$seed"
            printf '\\x%02x' "$engine" | xargs -0 printf >> "$seed"
        done
    done
done

# The same for each engine, which the last byte picks; the high bits of an interface let its packet come again.
for chain in 0 1 2 3 4; do
    for engine in 0 1 2 3 4 5; do
        printf '\\x%02x' "$chain" | xargs -0 printf > "fuzz/corpus/engines/$chain$engine"
        printf '\xe0\x00\x00\xe1\x03\x01\xe0\x01\x02\xe1\x00\x05\xe1\x02\x05\xe0\x01\x00' \
            >> "fuzz/corpus/engines/$chain$engine"
        printf '\\x%02x' "$engine" | xargs -0 printf >> "fuzz/corpus/engines/$chain$engine"
    done
done

# Proxies: function, then segments: what, flags, offsets of both numbers, length of the payload. A SYN, its answer, its
# acknowledgement, a request and a response.
request='GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n'
response='HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n'
for kind in 0 1 3 5 7; do
    printf '\\x%02x' "$kind" | xargs -0 printf > "fuzz/corpus/relay/$kind"
    printf '\x22\x02\x00\x00\x00\x23\x12\x00\x00\x00\x20\x10\x00\x00\x00\x20\x10\x00\x00\x32'"$request"'\x10\x00\x00\x00\x00\x21\x10\x00\x00\x6e'"$response"'\x22\x11\x00\x00\x00\x23\x11\x00\x00\x00\x05\xff\x00\x00\x00' \
        >> "fuzz/corpus/relay/$kind"
done

# Fragments: what, the place with a bit for the last one, the length. Two datagrams of two fragments, the second one in
# the other order; one with an overlap; one behind a new instance.
part='\x08ABCDEFGH'
printf '\x00\x00'"$part"'\x00\x41'"$part"'\x01\x41'"$part"'\x01\x00'"$part" > fuzz/corpus/fragments/both
printf '\x20\x00'"$part"'\x20\x41'"$part"'\x22\x00\x10ABCDEFGHIJKLMNOP\x22\x01'"$part" > fuzz/corpus/fragments/overlap
printf '\x00\x00'"$part"'\xf0\x00\x00\x00\x41'"$part" > fuzz/corpus/fragments/saved

# Seeds of pairs.
for seed in 0 1 2 3 4 5; do
    printf '\\x%02x' "$seed" | xargs -0 printf > "fuzz/corpus/pairs/$seed"
    printf '\0\0\0\0\0\0\0' >> "fuzz/corpus/pairs/$seed"
done

# Options: devices and faults.
options() { printf '%s' "$1" > "fuzz/corpus/options/$2"; }
options af_packet:eth0 packet; options xdp:eth0 xdp; options tap:tap0 tap
options memory memory; options memory:a.pcap capture; options replay:a.pcap,speed=0.5 replay
options 'loss=1%,duplicate=0.5%,reorder=2%,corrupt=0.01%,time=20ms,seed=7' faults
options truncate=0.0001%,delay=100%,stall=0% more_faults

# Requests: one JSON object a line.
requests() { printf '%s\n' "${@:2}" > "fuzz/corpus/requests/$1"; }
requests look '{"do":"status"}' '{"do":"counters","text":true}' '{"do":"counters"}'
requests state '{"do":"state","function":"nat","table":"map","contains":"10.0","from":1,"limit":2}'
requests flows '{"do":"flows","worker":1,"from":0,"limit":5,"contains":"a","text":false}'
requests change '{"do":"change","change":"all.rate = 1 Mbit/s"}'
requests events '{"do":"events"}'
requests capture '{"do":"capture","interface":"wan","way":"out","filter":"has udp","count":3}'
requests trace '{"do":"trace","filter":"has udp","count":2,"most_entries":10,"text":true}'
requests reload '{"do":"reload","plan":true}' '{"do":"reload"}'
requests drain '{"do":"drain","within_ms":5}'
requests stop '{"do":"stop"}'

# States: a chain, whether its state follows or changes of it, changes of a byte.
for chain in 0 1 2 3 4 5; do
    printf '\\x%02x' "$chain" | xargs -0 printf > "fuzz/corpus/state/$chain"
    printf '\x00\x40\x00\x01\x20\x01\xff' >> "fuzz/corpus/state/$chain"
done

# Segments: a policy; then end, flags, numbers, length, and more. A handshake, and bytes with a gap.
for policy in 0 1 2 3; do
    printf '\\x%02x' "$policy" | xargs -0 printf > "fuzz/corpus/streams/$policy"
    printf '\x00\x02\x10\x00\x00\x02\x01\x12\x20\x11\x00\x02\x00\x10\x11\x21\x05\x02\x00\x10\x1a\x21\x04\x02\x00\x11\x16\x21\x02\x02' \
        >> "fuzz/corpus/streams/$policy"
done

# Signatures, a zero byte, and parts behind their lengths: of the client, of the server, and so on.
signatures() { printf '%s\n\0'"$2" "$3" > "fuzz/corpus/signatures/$1"; }
signatures http '\x16GET /a HTTP/1.1\r\n\r\n' 'alert http any any -> any any (http.uri; content:"/a"; sid:1;)'
signatures bits '\x03abc\x01b' 'alert tcp any any -> any any (content:"a"; flowbits:set,x; sid:1;)
alert tcp any any -> any any (content:"b"; flowbits:isset,x; flowbits:unset,x; sid:2;)'
signatures numbers '\x05\x01\x02abc' 'alert udp any any -> any any (byte_jump:1,0; content:"b"; distance:0; dsize:>2; sid:1;)
alert tcp any any -> any any (byte_extract:1,0,n; byte_test:1,>,n,1; threshold:type both,track by_src,count 1,seconds 9; sid:2;)'

# The IR's text form: what the compiler prints for small models.
for file in crates/lang/tests/lower/*.ir; do
    if [ -f "$file" ]; then
        cp "$file" "fuzz/corpus/ir_text/"
    fi
done
