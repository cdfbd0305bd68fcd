//! E07xx: control files.

codes! {
    CONTROL_LINE = 701, Error, "a control line that cannot be read",
    "A line of a control file is `TIME set FUNCTION.PARAM VALUE`, `TIME add-rule FUNCTION.PARAM [at N] RULE`, `TIME remove-rule FUNCTION.PARAM N`, or `TIME backend FUNCTION.PARAM up|down|add|remove VALUE…`. `#` starts a comment.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 put f.most 9000 B",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.most 9000 B";

    CONTROL_TIME = 702, Error, "a control line's time",
    "The time is in seconds, with up to nine decimals. `1700000000.5` counts from the epoch, and `+0.25` from the first packet of the run.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n1s set f.most 9000 B",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.most 9000 B";

    CONTROL_UNKNOWN_FUNCTION = 703, Error, "unknown function in a control file",
    "The name before the dot must be an instance of the chain that runs.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set g.most 9000 B",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.most 9000 B";

    CONTROL_UNKNOWN_PARAMETER = 704, Error, "unknown parameter in a control file",
    "The name after the dot must be a parameter of the function.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.mots 9000 B",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.most 9000 B";

    CONTROL_KIND = 705, Error, "a change that the parameter does not have",
    "This parameter cannot change in this way. `set` works for every parameter, `add-rule` and `remove-rule` for parameters of type `rules`, and `backend` for parameters of type `backends`.",
    wrong: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 remove-rule f.most 0",
    right: "nf limit(most: size) { match { pkt.len <= most => output; else => drop; } }\nchain c { f = limit(most: 1500 B); path f; }\n=== changes.control ===\n+1 set f.most 9000 B";

    CONTROL_VALUE = 706, Error, "a control line's value",
    "Rules are written as in a rule file. They are numbered from 0, as in `rule(packet, RULES)` and in the counters. A backend is named by the value in its first column. A new backend needs a value for each column.",
    wrong: "nf spread(servers: backends<ip4>) { match { has ip => { let b = maglev(servers, hash(ip.src)) else drop; ip.dst = servers[b]; output; } else => drop; } }\nchain c { f = spread(servers: [10.0.0.1]); path f; }\n=== changes.control ===\n+1 backend f.servers down 10.0.0.1 80",
    right: "nf spread(servers: backends<ip4>) { match { has ip => { let b = maglev(servers, hash(ip.src)) else drop; ip.dst = servers[b]; output; } else => drop; } }\nchain c { f = spread(servers: [10.0.0.1]); path f; }\n=== changes.control ===\n+1 backend f.servers down 10.0.0.1";

    CONTROL_PLACE = 707, Error, "a rule or backend that is not there at that time",
    "Braid follows the rules and backends of a parameter through the lines, in the order of their times. A line may remove a rule that is there at its time, and change or remove a backend that is there. `at N` is the number of a rule, or of the place behind the last one. A new backend has a value in its first column that no other backend has.",
    wrong: "nf gate(ok: rules) { match { packet in ok => output; else => drop; } }\nchain c { f = gate(ok: rules(\"ok.rules\")); path f; }\n=== ok.rules ===\npass proto tcp\n=== changes.control ===\n+1 remove-rule f.ok 1",
    right: "nf gate(ok: rules) { match { packet in ok => output; else => drop; } }\nchain c { f = gate(ok: rules(\"ok.rules\")); path f; }\n=== ok.rules ===\npass proto tcp\n=== changes.control ===\n+1 remove-rule f.ok 0";
}
