//! E07xx: control files.

codes! {
    CONTROL_LINE = 701, Error, "a control line that cannot be read",
    "A line of a control file is `TIME set FUNCTION.PARAM VALUE`, `TIME add-rule FUNCTION.PARAM [at N] RULE`, `TIME remove-rule FUNCTION.PARAM N`, or `TIME backend FUNCTION.PARAM up|down|add|remove VALUE…`. `#` starts a comment.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 put f.most 9000 B",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.most 9000 B";

    CONTROL_TIME = 702, Error, "a control line's time",
    "The time is in seconds with up to nine decimals: since the epoch (`1700000000.5`), or with `+` since the first packet of the run (`+0.25`).",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n1s set f.most 9000 B",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.most 9000 B";

    CONTROL_UNKNOWN_FUNCTION = 703, Error, "unknown function in a control file",
    "The part before the dot is the name of an instance of the chain that runs.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set g.most 9000 B",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.most 9000 B";

    CONTROL_UNKNOWN_PARAMETER = 704, Error, "unknown parameter in a control file",
    "The part after the dot is a parameter of the function.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.mots 9000 B",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.most 9000 B";

    CONTROL_KIND = 705, Error, "a change that the parameter does not have",
    "`set` gives any parameter a new value. `add-rule` and `remove-rule` are for parameters of type `rules`, `backend` for those of type `backends`.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 remove-rule f.most 0",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.most 9000 B";

    CONTROL_VALUE = 706, Error, "a control line's value",
    "Rules are written as in a rule file and numbered from 0, as `rule(packet, RULES)` and the counters number them. A backend is named by the value in its first column; a new one takes a value for each column.",
    wrong: "nf spread(servers: backends<ip4>) { match { has ip => { let b = maglev(servers, hash(ip.src)) else drop; ip.dst = servers[b]; output; } else => drop; } }\nchain c { f = spread(servers: [10.0.0.1]); path f; }\n=== changes.control ===\n+1 backend f.servers down 10.0.0.1 80",
    right: "nf spread(servers: backends<ip4>) { match { has ip => { let b = maglev(servers, hash(ip.src)) else drop; ip.dst = servers[b]; output; } else => drop; } }\nchain c { f = spread(servers: [10.0.0.1]); path f; }\n=== changes.control ===\n+1 backend f.servers down 10.0.0.1";
}
