//! E05xx: chains.

codes! {
    CHAIN_UNKNOWN_FUNCTION = 501, Error, "unknown function",
    "There is no function with this name: not in the file, not in the files that it uses, and not in the library. `braid nfs` lists the library.",
    wrong: "nf pass_on() { output; }\nchain c { f = pas_on(); path in <-> f <-> out; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); path in <-> f <-> out; }";

    CHAIN_UNKNOWN_END = 502, Error, "unknown name in a path or link",
    "A path or link connects interfaces, instances that the chain declares (`fw = stateful_firewall(…);`), and functions written in place with their arguments (`monitor()`). A chain that declares no interface has the interfaces `in` and `out`.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); path in <-> g <-> out; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); path in <-> f <-> out; }";

    CHAIN_DUPLICATE_NAME = 503, Error, "a name declared twice in a chain",
    "The interfaces and instances of a chain must all have different names, because paths use the names of both.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); f = pass_on(); path in <-> f <-> out; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path in <-> f <-> g <-> out; }";

    CHAIN_UNKNOWN_ARGUMENT = 504, Error, "unknown parameter",
    "The function has no parameter with this name. The first line of the function lists its parameters.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(mots: 1500 B); }",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(most: 1500 B); }";

    CHAIN_MISSING_ARGUMENT = 505, Error, "missing argument",
    "This parameter has no default, so a chain that uses the function must give its value.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(); }",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(most: 1500 B); }";

    CHAIN_DUPLICATE_ARGUMENT = 506, Error, "argument given twice",
    "A parameter can be given only once. Arguments without names come first and are for the parameters in order.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(most: 1500 B, most: 9000 B); }",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(most: 1500 B); }";

    CHAIN_TOO_MANY_ARGUMENTS = 507, Error, "argument out of place",
    "Arguments without names must come before those with names, and are for the parameters in order. There cannot be more arguments than parameters.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(1500 B, 9000 B); }",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(1500 B); }";

    CHAIN_UNKNOWN_PORT = 508, Error, "unknown port",
    "Every function has the ports `left` and `right`, and the ports that it declares, such as `port dmz;`. Interfaces have no ports.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); path in <-> f; link f.rihgt <-> out; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); path in <-> f; link f.right <-> out; }";

    PORT_INSIDE_PATH = 509, Error, "port inside a path",
    "In the middle of a path, packets enter a function on one side and leave on the other. So only the first and the last function of a path can have a port. A `link` can name a port at both ends.",
    wrong: "nf tap() { port copy; mirror copy; output; }\nchain c { interface a; interface b; t = tap(); path a <-> t.copy <-> b; }",
    right: "nf tap() { port copy; mirror copy; output; }\nchain c { interface a; interface b; interface log; t = tap(); path a <-> t <-> b; link t.copy -> log; }";

    LINKED_TWICE = 510, Error, "a source linked twice",
    "Packets that leave an interface or a port can go to only one place. To send packets to several places, give the function more ports: `output a, b;` or `mirror a;`.",
    wrong: "nf pass_on() { output; }\nchain c { interface a; interface b; interface d; f = pass_on(); path a <-> f <-> b; link f.right -> d; }",
    right: "nf tap() { port copy; mirror copy; output; }\nchain c { interface a; interface b; interface d; f = tap(); path a <-> f <-> b; link f.copy -> d; }";

    UNLINKED_PORT = 511, Error, "an unlinked port",
    "The function can send packets to this port, but nothing is linked to it. The message says which direction the packets come from. Link the port to a function or an interface. If the packets should end there, drop them in the function.",
    wrong: "nf tap() { port copy; mirror copy; output; }\nchain c { f = tap(); path in <-> f <-> out; }",
    right: "nf tap() { port copy; mirror copy; output; }\nchain c { interface a; interface b; interface log; f = tap(); path a <-> f <-> b; link f.copy -> log; }";

    CHAIN_LOOP = 512, Error, "a loop",
    "A packet that goes on in its direction must never come to the same function again. The two directions of `<->` are not a loop.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path in -> f -> g -> f; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path in -> f -> g -> out; }";

    UNREACHABLE_FUNCTION = 513, Error, "a function that no packet reaches",
    "The chain declares this function, but no link leads to it from an interface. Put it on a path, or remove it.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path in <-> f <-> out; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path in <-> f <-> g <-> out; }";

    UNLINKED_INTERFACE = 514, Error, "an interface without a link",
    "No path or link names this interface. So packets that come in there cannot go anywhere, and no packet leaves there. Link it, or remove it.",
    wrong: "nf pass_on() { output; }\nchain c { interface a; interface b; interface d; path a <-> pass_on() <-> b; }",
    right: "nf pass_on() { output; }\nchain c { interface a; interface b; path a <-> pass_on() <-> b; }";

    PREFIX_OVERLAP = 515, Error, "prefixes behind two interfaces",
    "When Braid reads a capture, it uses these prefixes to find out at which interface a packet came in. So an address can be behind only one interface.",
    wrong: "chain c { interface a { behind 10.0.0.0/8; } interface b { behind 10.1.0.0/16; } path a <-> b; }",
    right: "chain c { interface a { behind 10.0.0.0/16; } interface b { behind 10.1.0.0/16; } path a <-> b; }";

    NOT_A_PREFIX = 516, Error, "neither prefix nor address",
    "`behind` takes prefixes, such as `10.0.0.0/8` or `fd00::/8`, and addresses.",
    wrong: "chain c { interface a { behind 10; } interface b; path a <-> b; }",
    right: "chain c { interface a { behind 10.0.0.0/8; } interface b; path a <-> b; }";

    NO_PATH = 517, Error, "a chain without a path",
    "A chain needs a path or a link. Without one, packets that come in cannot go anywhere. `path in <-> out;` passes everything on.",
    wrong: "chain c { }",
    right: "chain c { path in <-> out; }";

    BAD_SETTING = 519, Error, "a setting that cannot be",
    "The settings of a chain are `malformed drop;` or `malformed pass;`, `seed N;`, and `workers N;` with 1 to 1024 workers. Each may be given once.",
    wrong: "chain c { path in <-> out; workers 0; }",
    right: "chain c { path in <-> out; workers 2; }";

    CHAIN_TOO_LARGE = 520, Error, "a chain beyond the limits",
    "A chain may have at most 1,024 functions, 256 interfaces, 4,096 links and 4,096 policy rules. A link in both directions counts twice.",
    wrong: "chain c { /* 257 interfaces */ }",
    right: "chain c { path in <-> out; }";

    CHAIN_NOT_DIVISIBLE = 521, Error, "a chain that workers cannot share",
    "The chain asks for several workers, but no steering lets workers share nothing: packets that use the same entry of a state table would go to different workers. The message names the tables. `braid check` finds this, also for chains without `workers` if you give it `--workers N`. Remove `workers` or the function. If the function compares amounts with limits, its table may say `portions (LIMIT)`.",
    wrong: "nf two() { state s: u8 per ip.src = 0; state d: u8 per ip.dst = 0; match { has ip and s == d => { s = 1; d = 2; output; } else => output; } }\nchain c { path two(); workers 2; }",
    right: "nf one() { state s: u8 per ip.src = 0; match { has ip and s == 0 => { s = 1; output; } else => drop; } }\nchain c { path one(); workers 2; }";

    BAD_INTERFACE = 522, Error, "an interface that cannot be",
    "The parts of an interface are `behind`, `address` (addresses of hosts, each with the length of its prefix, as in `10.0.0.1/24`), `gateway` (at most one address for each IP version, in a prefix of `address`), `mac` (the address of one host) and `too_long` (`icmp`, `fragment` or `drop`; `icmp` needs an address). Each may be given once. Two interfaces have no address in common.",
    wrong: "chain c { interface a { address 10.0.0.0/24; gateway 10.1.0.1; } interface b; path a <-> b; }",
    right: "chain c { interface a { address 10.0.0.1/24; gateway 10.0.0.254; } interface b; path a <-> b; }";

    SUBSCRIPTION_CIRCLE = 523, Error, "events that go round in a circle",
    "The handlers of an event run while its publisher is still at work. Here, one of these handlers publishes another event, and in the end an event is for a function that is at work already. An entry that ends because a handler makes a new one counts, too. Let one of the functions not publish its event, or not take it.",
    wrong: "event A extends EVENT {}\nevent B extends EVENT {}\nnf f() { on A { emit B; } output; }\nnf g() { on B { emit A; } output; }\nchain c { path f() <-> g(); }",
    right: "event A extends EVENT {}\nevent B extends EVENT {}\nnf f() { on A { emit B; } output; }\nnf g() { emit A; output; }\nchain c { path f() <-> g(); }";

    EVENT_TYPES_DIFFER = 524, Error, "two functions declare an event differently",
    "Functions of the library have event types of their own. A function that takes their events declares the type again, with the same parent and the same fields of the same types. This also holds for the events that native functions declare. The message names the functions of the chain.",
    wrong: "chain c { /* functions with `event SCAN extends EVENT { src: ip4 }` and `event SCAN extends EVENT { src: u128 }` */ }",
    right: "event SCAN extends EVENT { src: u128 }\nnf f() { emit SCAN { src: 1 }; output; }\nnf g() { state seen: bool per (u128) = false; on SCAN { seen[event.src] = true; } if seen[1] { drop; } output; }\nchain c { path f() <-> g(); }";

    SUBSCRIPTION_IDLE = 525, Warning, "a handler to which no event comes",
    "No other function of the chain publishes events of this type or of types that extend it, or the function has handlers of nearer types, which take all of them. Events that a function publishes itself do not come to its own handlers, and native functions publish no events for handlers.",
    wrong: "event A extends EVENT {}\nnf f() { state n: u32 global = 0; on A { n += 1; } if n > 3 { drop; } output; }\nchain c { path f(); }",
    right: "event A extends EVENT {}\nnf f() { state n: u32 global = 0; on A { n += 1; } if n > 3 { drop; } output; }\nnf g() { emit A; output; }\nchain c { path g() <-> f(); }";
}
