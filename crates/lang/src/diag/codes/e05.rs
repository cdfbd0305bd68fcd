//! E05xx: chains.

codes! {
    CHAIN_UNKNOWN_FUNCTION = 501, Error, "unknown function",
    "An instance names a function that is neither in the file, nor in a file that it uses, nor in the library. `braid nfs` lists the library.",
    wrong: "nf pass_on() { output; }\nchain c { f = pas_on(); path in <-> f <-> out; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); path in <-> f <-> out; }";

    CHAIN_UNKNOWN_END = 502, Error, "unknown name in a path or link",
    "The ends of paths and links are interfaces, instances declared in the chain (`fw = stateful_firewall(…);`), or functions in place with their arguments (`monitor()`). A chain that declares no interface has `in` and `out`.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); path in <-> g <-> out; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); path in <-> f <-> out; }";

    CHAIN_DUPLICATE_NAME = 503, Error, "a name declared twice in a chain",
    "Interfaces and instances of a chain share one space of names, because paths name either.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); f = pass_on(); path in <-> f <-> out; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path in <-> f <-> g <-> out; }";

    CHAIN_UNKNOWN_ARGUMENT = 504, Error, "unknown parameter",
    "An argument names a parameter that the function does not have. The head of the function lists its parameters.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(mots: 1500 B); }",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(most: 1500 B); }";

    CHAIN_MISSING_ARGUMENT = 505, Error, "missing argument",
    "A parameter without a default needs an argument wherever the function is used in a chain.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(); }",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(most: 1500 B); }";

    CHAIN_DUPLICATE_ARGUMENT = 506, Error, "argument given twice",
    "Each parameter takes one argument. Arguments without a name come first and stand for the parameters in order.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(most: 1500 B, most: 9000 B); }",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(most: 1500 B); }";

    CHAIN_TOO_MANY_ARGUMENTS = 507, Error, "argument out of place",
    "Arguments without a name come before those with one and stand for the parameters in order; there cannot be more of them than parameters.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(1500 B, 9000 B); }",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { path limit(1500 B); }";

    CHAIN_UNKNOWN_PORT = 508, Error, "unknown port",
    "Every function has the ports `left` and `right`; others are declared in it (`port dmz;`). Interfaces have no ports.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); path in <-> f; link f.rihgt <-> out; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); path in <-> f; link f.right <-> out; }";

    PORT_INSIDE_PATH = 509, Error, "port inside a path",
    "Inside a path, packets enter a function on one side and leave on the other, so a port can be named at the ends of the path only. A `link` names a port at both of its ends.",
    wrong: "nf tap() { port copy; mirror copy; output; }\nchain c { interface a; interface b; t = tap(); path a <-> t.copy <-> b; }",
    right: "nf tap() { port copy; mirror copy; output; }\nchain c { interface a; interface b; interface log; t = tap(); path a <-> t <-> b; link t.copy -> log; }";

    LINKED_TWICE = 510, Error, "a source linked twice",
    "A packet that leaves an interface or a port goes to one place. A function that sends a packet to several places says so with further ports: `output a, b;` or `mirror a;`.",
    wrong: "nf pass_on() { output; }\nchain c { interface a; interface b; interface d; f = pass_on(); path a <-> f <-> b; link f.right -> d; }",
    right: "nf tap() { port copy; mirror copy; output; }\nchain c { interface a; interface b; interface d; f = tap(); path a <-> f <-> b; link f.copy -> d; }";

    UNLINKED_PORT = 511, Error, "an unlinked port",
    "A packet can reach the function in the direction that the message names, and a row can then send it to this port, which leads nowhere. Link the port to a function or an interface; for packets that shall end there, have the function drop them.",
    wrong: "nf tap() { port copy; mirror copy; output; }\nchain c { f = tap(); path in <-> f <-> out; }",
    right: "nf tap() { port copy; mirror copy; output; }\nchain c { interface a; interface b; interface log; f = tap(); path a <-> f <-> b; link f.copy -> log; }";

    CHAIN_LOOP = 512, Error, "a loop",
    "A chain is a graph without cycles: a packet that goes on in its direction never comes to the same function again. The two directions of `<->` are no loop.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path in -> f -> g -> f; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path in -> f -> g -> out; }";

    UNREACHABLE_FUNCTION = 513, Error, "a function that no packet reaches",
    "The function is in the chain, but no link leads from an interface to it. Put it on a path or remove it.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path in <-> f <-> out; }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path in <-> f <-> g <-> out; }";

    UNLINKED_INTERFACE = 514, Error, "an interface without a link",
    "No path or link names the interface: packets that come in there could go nowhere, and none could leave. Link it or remove it.",
    wrong: "nf pass_on() { output; }\nchain c { interface a; interface b; interface d; path a <-> pass_on() <-> b; }",
    right: "nf pass_on() { output; }\nchain c { interface a; interface b; path a <-> pass_on() <-> b; }";

    PREFIX_OVERLAP = 515, Error, "prefixes behind two interfaces",
    "The prefixes behind interfaces tell at which one a packet of a capture came in, so an address can be behind one interface only.",
    wrong: "chain c { interface a { behind 10.0.0.0/8; } interface b { behind 10.1.0.0/16; } path a <-> b; }",
    right: "chain c { interface a { behind 10.0.0.0/16; } interface b { behind 10.1.0.0/16; } path a <-> b; }";

    NOT_A_PREFIX = 516, Error, "neither prefix nor address",
    "`behind` lists prefixes (`10.0.0.0/8`, `fd00::/8`) and addresses.",
    wrong: "chain c { interface a { behind 10; } interface b; path a <-> b; }",
    right: "chain c { interface a { behind 10.0.0.0/8; } interface b; path a <-> b; }";

    NO_PATH = 517, Error, "a chain without a path",
    "A chain needs at least one path or link, or packets that come in could go nowhere. `path in <-> out;` passes everything on.",
    wrong: "chain c { }",
    right: "chain c { path in <-> out; }";

    CHAIN_STREAM_FUNCTION = 518, Error, "a stream function in a chain",
    "Stream functions see bytes of TCP streams instead of packets. They are checked, but this version does not run them yet.",
    wrong: "stream nf s() { on data { forward; } }\nchain c { path s(); }",
    right: "nf s() { output; }\nchain c { path s(); }";

    BAD_SETTING = 519, Error, "a setting that cannot be",
    "The settings of a chain are `malformed drop;` or `malformed pass;`, `seed N;` and `workers N;` (1 to 1024), each at most once.",
    wrong: "chain c { path in <-> out; workers 0; }",
    right: "chain c { path in <-> out; workers 2; }";

    CHAIN_TOO_LARGE = 520, Error, "a chain beyond the limits",
    "A chain has at most 1,024 functions, 256 interfaces, 4,096 links (each direction counted) and 4,096 policy rules.",
    wrong: "chain c { /* 257 interfaces */ }",
    right: "chain c { path in <-> out; }";
}
