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
}
