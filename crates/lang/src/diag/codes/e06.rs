//! E06xx: files and importers.

codes! {
    FILE_UNREADABLE = 601, Error, "a file cannot be read",
    "Braid cannot open this file, or it is too large, or it is not text. The path is relative to the `.braid` file that names it.",
    wrong: r#"nf f(ok: rules) {
  match {
    packet in ok => output;
    else => drop;
  }
}
chain c {
  a = f(ok: rules("missing.rules"));
  path a;
}"#,
    right: r#"nf f(ok: rules) {
  match {
    packet in ok => output;
    else => drop;
  }
}
chain c {
  a = f(ok: rules("a.rules"));
  path a;
}
=== a.rules ===
pass proto tcp
default drop"#;

    FILE_CONTENT = 602, Error, "a line of a file cannot be used",
    "Braid does not understand a line of a rule file, route table, prefix list, pattern file or list of strings. It skips no line, because a rule that is missing without notice is a security hole. The message shows the line and what was expected there. docs/rule-files.md describes the formats.",
    wrong: r#"nf f(ok: rules) {
  match {
    packet in ok => output;
    else => drop;
  }
}
chain c {
  a = f(ok: rules("a.rules"));
  path a;
}
=== a.rules ===
allow tcp"#,
    right: r#"nf f(ok: rules) {
  match {
    packet in ok => output;
    else => drop;
  }
}
chain c {
  a = f(ok: rules("a.rules"));
  path a;
}
=== a.rules ===
pass proto tcp"#;

    FILE_VALUE = 603, Error, "a file's kind does not fit",
    "The file's contents and the parameter must have the same type. `rules(\"F\")` and `classbench(\"F\", match: pass, default: drop)` give rules, `routes(\"F\")` gives a route table, `prefixes(\"F\")` gives a set of addresses, `patterns(\"F\")` gives patterns, `signatures(\"F\")` gives signatures, `strings(\"F\")` gives a set of strings, and `hosts(\"F\")` gives host names.",
    wrong: r#"nf f(ok: rules) {
  match {
    packet in ok => output;
    else => drop;
  }
}
chain c {
  a = f(ok: routes("a.rules"));
  path a;
}
=== a.rules ===
pass proto tcp"#,
    right: r#"nf f(ok: rules) {
  match {
    packet in ok => output;
    else => drop;
  }
}
chain c {
  a = f(ok: rules("a.rules"));
  path a;
}
=== a.rules ===
pass proto tcp"#;

    NATIVE_LIBRARY = 604, Error, "a native function's library cannot be loaded",
    "A `native nf` names the shared library with its code. This is a path with a `/` or with the ending `.so`, relative to the `.braid` file, or a set of functions that comes with Braid, such as \"five\". The message ends with the system's own reason.",
    wrong: "native nf monitor() from \"./missing.so\";\nchain c { f = monitor(); path f; }",
    right: "native nf monitor() from \"five\";\nchain c { f = monitor(); path f; }";

    NATIVE_FUNCTION = 605, Error, "a library lacks a native function",
    "The library has no function with this name. A library makes each function known by a symbol `braid_nf_NAME`; the macro BRAID_NF of braid_nf.h makes this symbol. If the function has another name in the library, write `from \"LIBRARY\" function NAME`.",
    wrong: "native nf watcher() from \"five\";\nchain c { f = watcher(); path f; }",
    right: "native nf watcher() from \"five\" function monitor;\nchain c { f = watcher(); path f; }";

    NATIVE_UNFIT = 606, Error, "a native function does not fit",
    "Braid cannot use the function that the library offers. It was built for another version of braid_nf.h, it has no code, or its declaration contradicts itself.",
    wrong: "native nf monitor() from \"./built_for_another_version.so\";\nchain c { f = monitor(); path f; }",
    right: "native nf monitor() from \"five\";\nchain c { f = monitor(); path f; }";

    NATIVE_REFUSES = 607, Error, "a native function refuses its configuration",
    "When Braid checks a chain, it starts each native function once with the values that the chain gives. This function reported that it cannot work with them. The message is the function's own.",
    wrong: "native nf maglev(vip: ip4, servers: backends<ip4>) from \"five\";\nchain c { f = maglev(vip: 203.0.113.1, servers: []); path f; }",
    right: "native nf maglev(vip: ip4, servers: backends<ip4>) from \"five\";\nchain c { f = maglev(vip: 203.0.113.1, servers: [10.0.0.1]); path f; }";

    FILE_LEFT_OUT = 608, Warning, "rules of a file are left out",
    "The file has rules that need something that Braid does not have, and `unsupported: skip` leaves them out. The message counts them by what they need. The other rules count. docs/rule-files.md lists what is supported.",
    wrong: r#"event SEEN { sid: u32 }
stream nf f(bad: signatures) {
  on alert { emit SEEN { sid: alert.sid }; }
}
chain c {
  a = f(bad: signatures("a.rules", unsupported: skip));
  path a;
}
=== a.rules ===
alert tcp any any -> any any (content:"cmd.exe"; sid:1;)
alert dns any any -> any any (content:"cmd.exe"; sid:2;)"#,
    right: r#"event SEEN { sid: u32 }
stream nf f(bad: signatures) {
  on alert { emit SEEN { sid: alert.sid }; }
}
chain c {
  a = f(bad: signatures("a.rules"));
  path a;
}
=== a.rules ===
alert tcp any any -> any any (content:"cmd.exe"; sid:1;)"#;
}
