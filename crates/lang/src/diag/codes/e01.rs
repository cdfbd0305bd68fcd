//! E01xx: lexer and parser.

codes! {
    UNEXPECTED_TOKEN = 101, Error, "unexpected token",
    "The parser met something that cannot stand at this place. The message says what could. Often a bracket is not closed, or a word is missing, a little before the place that is shown.",
    wrong: "nf f() { drop denied; }",
    right: "nf f() { drop \"denied\"; }";

    MISSING_SEMICOLON = 102, Error, "missing semicolon",
    "Every statement and declaration that does not end in a block ends in `;`. The place shown is the end of the one that lacks it.",
    wrong: "nf f() {
  ip.ttl -= 1
  output;
}",
    right: "nf f() {
  if not has ip { drop \"not IPv4\"; }
  ip.ttl -= 1;
  output;
}";

    UNCLOSED_BRACKET = 103, Error, "unclosed bracket",
    "A `{`, `(`, `[` or `<` has no partner before the end of what surrounds it. The second place shown is the bracket that is still open.",
    wrong: "nf f() {
  if has ip { output;
  drop;
",
    right: "nf f() {
  if has ip { output; }
  drop;
}";

    UNEXPECTED_CHARACTER = 104, Error, "unexpected character",
    "A character that starts no token of the language. Names are made of ASCII letters, digits and `_`; any character may stand in strings and comments.",
    wrong: "# a note
nf f() { output; }",
    right: "// a note
nf f() { output; }";

    UNTERMINATED_STRING = 105, Error, "string without end",
    "A string ends on the line where it starts. A line break inside is written `\\n`, a quotation mark `\\\"`.",
    wrong: "nf f() { drop \"denied; }",
    right: "nf f() { drop \"denied\"; }";

    UNTERMINATED_COMMENT = 106, Error, "comment without end",
    "A comment that starts with `/*` goes on to the first `*/`; comments do not nest. `//` makes a comment to the end of the line.",
    wrong: "nf f() { output; } /* passes everything",
    right: "nf f() { output; } /* passes everything */";

    BAD_ESCAPE = 107, Error, "unknown escape in a string",
    "After a backslash only these may stand: `\\\"` `\\\\` `\\n` `\\r` `\\t` `\\0`, `\\x00` to `\\x7f`, and `\\u{…}` with the hexadecimal number of a character.",
    wrong: r#"nf f() { drop "no \way"; }"#,
    right: r#"nf f() { drop "no \\way"; }"#;

    NUMBER_TOO_WIDE = 108, Error, "number too large",
    "Numbers are unsigned and have at most 128 bits.",
    wrong: "const N = 0x1_0000_0000_0000_0000_0000_0000_0000_0000;
nf f() { if pkt.len < N { output; } else { drop; } }",
    right: "const N = 1500;
nf f() { if pkt.len < N { output; } else { drop; } }";

    BAD_NUMBER = 109, Error, "malformed number",
    "Numbers are whole: decimal (`1_000`), hexadecimal (`0x1f`) or binary (`0b101`). For a fraction use a smaller unit: `1500 ms` instead of one and a half seconds, `500 kbit/s` instead of half a megabit.",
    wrong: "nf f(idle: duration = 1.5 s) {
  state seen: bool per flow = false, idle idle;
  if seen { output; }
  seen = true;
  output;
}",
    right: "nf f(idle: duration = 1500 ms) {
  state seen: bool per flow = false, idle idle;
  match {
    seen => output;
    has l4 => { seen = true; output; }
    else => drop;
  }
}";

    UNKNOWN_UNIT = 110, Error, "unknown unit",
    "A word after a number is its unit. Times: ns us ms s min h d. Sizes: B KB MB GB KiB MiB GiB. Counts: k M G Ki Mi Gi. Rates: bit/s kbit/s Mbit/s Gbit/s B/s KB/s MB/s GB/s. Upper and lower case matter: `MB` is a million bytes, `k` a thousand.",
    wrong: "const T = 5 sec;
nf f() { output; }",
    right: "const T = 5 s;
nf f() { output; }";

    BAD_ADDRESS = 111, Error, "malformed address",
    "An IPv4 address is four numbers from 0 to 255 with dots between and no leading zeros. An IPv6 address is eight groups of up to four hexadecimal digits with colons between; `::` once stands for groups of zeros. A MAC address is six pairs of hexadecimal digits with colons between.",
    wrong: "const A = 10.0.0.256;
nf f() { output; }",
    right: "const A = 10.0.0.255;
nf f() { output; }";

    BAD_PREFIX = 112, Error, "malformed prefix",
    "The length of an IPv4 prefix goes from 0 to 32, that of an IPv6 prefix to 128. All bits beyond the length are zero: `10.0.0.1/8` could mean the address or the network, so Braid asks which.",
    wrong: "nf f() {
  match { ip.src in 10.0.0.1/8 => output; else => drop; }
}",
    right: "nf f() {
  match { ip.src in 10.0.0.0/8 => output; else => drop; }
}";

    KEYWORD_AS_NAME = 113, Error, "keyword as a name",
    "These words start statements or stand in expressions and cannot be names: action and const consume delete drop else emit exists false fn for has hold if in let match matches mirror not or output pop push resubmit send true. After a dot, and as the name of a field of a record or of an argument, they may stand.",
    wrong: "nf f(drop: bool) { output; }",
    right: "nf f(dropping: bool) {
  match { dropping => drop; else => output; }
}";

    CHAINED_COMPARISON = 114, Error, "comparisons in a row",
    "`a < b < c` has no meaning: a comparison gives true or false, which has no order. Use a range, or join two comparisons with `and`.",
    wrong: "nf f() {
  match { 64 <= pkt.len < 128 => drop; else => output; }
}",
    right: "nf f() {
  match { pkt.len in 64..127 => drop; else => output; }
}";

    ASSIGN_IN_CONDITION = 115, Error, "assignment in an expression",
    "`=` assigns and is a statement; equality is `==`.",
    wrong: "nf f() {
  match { ip.ttl = 1 => drop; else => output; }
}",
    right: "nf f() {
  match { ip.ttl == 1 => drop; else => output; }
}";

    USELESS_STATEMENT = 116, Error, "expression without effect",
    "A statement does something: it assigns, calls an action, outputs or drops. An expression alone computes a value that nobody sees. Often `==` stands where `=` was meant.",
    wrong: "nf f() {
  tcp.dport == 80;
  output;
}",
    right: "nf f() {
  if has tcp { tcp.dport = 80; }
  output;
}";

    EXTRA_SEMICOLON = 117, Error, "semicolon too many",
    "A block, a `match` and whatever else ends in `}` takes no `;` after it, and there is no empty statement.",
    wrong: "nf f() {
  if has ip { output; };
  drop;
}",
    right: "nf f() {
  if has ip { output; }
  drop;
}";

    TOO_DEEP = 118, Error, "nested too deeply",
    "Blocks, brackets, operators and types nest at most 128 deep; each operator of a row such as `a + b + c` counts too. The limit keeps hostile input from exhausting memory. Give parts names with `let`, `const` or `fn`, or use a set: `x in {1, 2, 3}`.",
    wrong: "const N = ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))));
nf f() { output; }",
    right: "const N = 1;
nf f() { output; }";

    FILE_TOO_LARGE = 119, Error, "file too large",
    "A `.braid` file has at most 4 MiB. Long lists belong into files of their own, which a chain names: `rules(\"…\")`, `routes(\"…\")`, `prefixes(\"…\")`, `patterns(\"…\")`.",
    wrong: "// imagine 4 MiB of addresses here",
    right: "nf f(bad: prefixes) { match { ip.src in bad => drop; else => output; } }";

    NOT_UTF8 = 120, Error, "file is not UTF-8 text",
    "A `.braid` file is UTF-8 text. The place shown is the first byte that is not. Captures and compressed files are no `.braid` files.",
    wrong: "// imagine the byte 0xff here",
    right: "nf f() { output; }";

    UNKNOWN_ITEM = 121, Error, "unknown declaration",
    "At the top of a file stand `use`, `const`, `event`, `fn`, `action`, `nf`, `stream nf` and `chain`. In a chain stand `interface`, `path`, `link`, `policy`, `malformed`, `seed`, `workers` and instances such as `nat = napt(…);`.",
    wrong: "function f() { output; }",
    right: "nf f() { output; }";

    STATE_WITHOUT_KEY = 122, Error, "state without a key",
    "A state says what it has an entry for: `per flow` (the 5-tuple), `per biflow` (both directions together), `per (FIELD, …)`, or `global` for one entry in all.",
    wrong: "nf f() {
  state count: u64 = 0;
  count += 1;
  output;
}",
    right: "nf f() {
  state count: u64 global = 0;
  count += 1;
  output;
}";

    UNKNOWN_STATE_OPTION = 123, Error, "unknown option of a state",
    "The options of a state, with commas between: `idle TIME`, `hard TIME`, `tick TIME`, `capacity NUMBER`, `full refuse` or `full evict_oldest`, `lives with STATE`, `sharded`.",
    wrong: "nf f() {
  state seen: bool per flow = false, timeout 30 s;
  match { seen => output; else => drop; }
}",
    right: "nf f() {
  state seen: bool per flow = false, idle 30 s;
  match {
    seen => output;
    has l4 => { seen = true; output; }
    else => drop;
  }
}";

    UNKNOWN_POLICY_RULE = 124, Error, "unknown policy rule",
    "A policy is made of `Order(a, before, b);`, `Priority(a > b);` and `Position(a, first);` or `Position(a, last);`.",
    wrong: "nf pass() { output; }
chain c {
  a = pass();
  path a;
  policy { Place(a, first); }
}",
    right: "nf pass() { output; }
chain c {
  a = pass();
  path a;
  policy { Position(a, first); }
}";

    NEGATIVE_NUMBER = 125, Error, "negative number",
    "All numbers are unsigned. Subtract instead of adding a negative number; a subtraction that would go below zero gives zero, unless `wrapping(…)` is said.",
    wrong: "const N = -1;
nf f() { output; }",
    right: "const N = 1;
nf f() { output; }";

    NEEDS_PARENTHESES = 126, Error, "operators that need parentheses",
    "Some operators do not mix without parentheses, because readers disagree about what they mean: `not` on the right of another operator, and a range of ranges.",
    wrong: "nf f() {
  match { forward == not backward => output; else => drop; }
}",
    right: "nf f() {
  match { forward == (not backward) => output; else => drop; }
}";

    PAYLOAD_TWICE = 127, Error, "payload given twice",
    "A new packet has one payload: a part of the packet that it is about (`payload = quote(N);`), that packet's own payload (`payload = same;`), or none.",
    wrong: "nf f() {
  if has ip {
    send udp { udp.dport = 9; payload = same; payload = quote(64); }
  }
  output;
}",
    right: "nf f() {
  if has ip and has udp {
    send udp { udp.dport = 9; payload = same; }
  }
  output;
}";
}
