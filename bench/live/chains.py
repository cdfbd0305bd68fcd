"""The same chains of functions in Braid and in nftables.

| length | functions |
|---|---|
| 1 | a stateful firewall |
| 2 | and NAPT |
| 4 | and between them a monitor of flows and a load balancer |
| 10 | and before these two six filters |
"""

from bed import TESTS

LENGTHS = (1, 2, 4, 10)
BACKENDS = ("203.0.113.11", "203.0.113.12")
FILTERS = 6

OPENS = (TESTS / "site.rules").read_text()
FILTER = """drop to any port 23
drop proto tcp to any port 25
drop proto udp to any port 69
drop from 192.0.2.0/24
pass proto tcp
pass proto udp
pass proto icmp
default drop
"""


def braid(length, hosts=True):
    """The chain's file, and the files that it reads. For `hosts`, its interfaces have addresses."""
    functions = [("fw", 'stateful_firewall(ok: rules("opens"))')]
    if length == 10:
        functions += [(f"f{i}", 'ipfilter(filter: rules("filter"))') for i in range(FILTERS)]
    if length >= 4:
        functions += [("count", "monitor()"), balancer()]
    if length >= 2:
        functions.append(("nat", "napt(public: 203.0.113.1)"))
    return chain("bench", functions, hosts)


def balanced():
    """A load balancer whose backends answer to one address."""
    nat = ("nat", "napt(public: 203.0.113.1, idle: 5 s)")
    return chain("balance", [balancer(), nat])


def balanced_by_request():
    """A load balancer that chooses by the path of a connection's first request."""
    servers = ", ".join(f"{{ addr: {host}, port: 80 }}" for host in BACKENDS)
    balance = f"""l7_load_balancer(vip: 198.51.100.10, key: 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c,
    servers: [{servers}], groups: [{{ first: 0, count: 1 }}, {{ first: 1, count: 1 }}],
    rules: {{ regex("^GET /img/") }})"""
    return chain("balance", [("lb", balance), ("nat", "napt(public: 203.0.113.1, idle: 5 s)")])


def proxied(more=""):
    """The load balancer behind a proxy that compresses."""
    library = """native nf http(ports: set<port>, cache: size = 0 B, flows: u32 = 10 k)
  from "relay";
"""
    nat = ("nat", "napt(public: 203.0.113.1, idle: 5 s)")
    proxy = ("web", f"http(ports: {{ 80 }}{more})")
    files = chain("balance", [proxy, balancer(), nat])
    return files | {"balance.braid": library + files["balance.braid"]}


def kept():
    """The same with a cache."""
    return proxied(", cache: 64 MiB")


def balancer():
    return ("lb", f"maglev(vip: 198.51.100.10, backends: [{', '.join(BACKENDS)}])")


def chain(name, functions, hosts=True):
    lan, wan = "address 10.0.0.1/24", "address 203.0.113.1/24; gateway 203.0.113.254"
    text = "\n".join(f"  {name} = {function};" for name, function in functions)
    path = " <-> ".join(["lan", *(name for name, _ in functions), "wan"])
    text = f"""chain {name} {{
  interface lan {{ behind 10.0.0.0/24; {lan if hosts else ""} }}
  interface wan {{ {wan if hosts else ""} }}
{text}
  path {path};
}}
"""
    return {f"{name}.braid": text, "opens": OPENS, "filter": FILTER}


BALANCE = f"""
  chain balance {{
    type nat hook prerouting priority -100;
    ip daddr 198.51.100.10 dnat to jhash ip saddr . th sport mod 2 \\
        map {{ 0 : {BACKENDS[0]}, 1 : {BACKENDS[1]} }}
  }}"""
TRANSLATE = """
  chain translate {
    type nat hook postrouting priority 100;
    oifname "wan0" meta l4proto { tcp, udp, icmp } snat to 203.0.113.1:1024-65535
  }"""
GUARD = """
  chain guard {
    type filter hook forward priority 0; policy drop;
    ct state established,related accept
    iifname "lan0" ct state new jump opens
  }
  chain opens {
    tcp dport { 53, 80, 5000-5999 } tcp flags & (fin|syn|rst|ack) == syn accept
    udp dport { 53, 5000-5999, 33434-33534 } accept
    icmp type echo-request accept
  }"""


def nft(length):
    """The rules of the same functions. The monitor is the kernel's accounting of connections."""
    text = GUARD
    if length >= 2:
        text += TRANSLATE
    if length >= 4:
        text += BALANCE
    if length == 10:
        text += "".join(nft_filter(i) for i in range(FILTERS))
    return f"table ip bench {{{text}\n}}\n"


def nft_balanced():
    return f"table ip bench {{{TRANSLATE}{BALANCE}\n}}\n"


def nft_filter(number):
    return f"""
  chain f{number} {{
    type filter hook forward priority {number + 1}; policy drop;
    th dport 23 drop
    tcp dport 25 drop
    udp dport 69 drop
    ip saddr 192.0.2.0/24 drop
    meta l4proto tcp accept
    meta l4proto udp accept
    meta l4proto icmp accept
  }}"""
