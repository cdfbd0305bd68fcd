//! E06xx: files and importers.

codes! {
    FILE_UNREADABLE = 601, Error, "a file cannot be read",
    "A file that a value names cannot be opened, is too large, or is no text. Paths are relative to the `.braid` file that names them.",
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
    "Every line of a rule file, route table, prefix list or pattern file must be understood: a rule that is silently left out is a hole. The message gives the line and what was expected there; docs/rule-files.md describes the formats.",
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
    "`rules(\"F\")` and `classbench(\"F\", match: pass, default: drop)` give rules, `routes(\"F\")` a route table, `prefixes(\"F\")` a set of addresses, `patterns(\"F\")` patterns. The parameter must be of that type.",
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
    "A `native nf` names the shared library that has its code: a path (with a `/`, or ending in `.so`), relative to the `.braid` file, or a set of functions that comes with Braid, such as \"five\". The message says what the system says.",
    wrong: "native nf monitor() from \"./missing.so\";\nchain c { f = monitor(); path f; }",
    right: "native nf monitor() from \"five\";\nchain c { f = monitor(); path f; }";

    NATIVE_FUNCTION = 605, Error, "a library lacks a native function",
    "The library has a symbol `braid_nf_NAME` for each function of it, which the macro BRAID_NF of braid_nf.h makes. `from \"LIBRARY\" function NAME` names one that has another name there than in this file.",
    wrong: "native nf watcher() from \"five\";\nchain c { f = watcher(); path f; }",
    right: "native nf watcher() from \"five\" function monitor;\nchain c { f = watcher(); path f; }";

    NATIVE_UNFIT = 606, Error, "a native function does not fit",
    "What the library says of the function cannot be used: it was built for another version of braid_nf.h, has no code, or declares what makes no sense.",
    wrong: "native nf monitor() from \"./built_for_another_version.so\";\nchain c { f = monitor(); path f; }",
    right: "native nf monitor() from \"five\";\nchain c { f = monitor(); path f; }";

    NATIVE_REFUSES = 607, Error, "a native function refuses its configuration",
    "A native function is made once when its chain is checked, with the values that the chain gives. It said that it cannot work with them; the message is its own.",
    wrong: "native nf maglev(vip: ip4, servers: backends<ip4>) from \"five\";\nchain c { f = maglev(vip: 203.0.113.1, servers: []); path f; }",
    right: "native nf maglev(vip: ip4, servers: backends<ip4>) from \"five\";\nchain c { f = maglev(vip: 203.0.113.1, servers: [10.0.0.1]); path f; }";
}
