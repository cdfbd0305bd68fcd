//! E01xx: lexer and parser.

codes! {
    UNEXPECTED_TOKEN = 101, Error, "unexpected token",
    "This word or symbol cannot be here. The message says what can. Often the mistake is a little before the place that the message shows: a bracket is not closed, or a word is missing.",
    wrong: "nf f() { drop denied; }",
    right: "nf f() { drop \"denied\"; }";

    MISSING_SEMICOLON = 102, Error, "missing semicolon",
    "A statement or declaration ends with `;`, unless it ends with a block. The message shows where the `;` is missing.",
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
    "A `{`, `(`, `[` or `<` is not closed before the block or file around it ends. The message shows the open bracket, and the place where the closing bracket is missing.",
    wrong: "nf f() {
  if has ip { output;
  drop;
",
    right: "nf f() {
  if has ip { output; }
  drop;
}";

    UNEXPECTED_CHARACTER = 104, Error, "unexpected character",
    "The language does not use this character. Names consist of ASCII letters, digits and `_`. Strings and comments may contain any character.",
    wrong: "# a note
nf f() { output; }",
    right: "// a note
nf f() { output; }";

    UNTERMINATED_STRING = 105, Error, "string without end",
    "A string must end on the line where it starts. Write a line break as `\\n` and a quotation mark as `\\\"`.",
    wrong: "nf f() { drop \"denied; }",
    right: "nf f() { drop \"denied\"; }";

    UNTERMINATED_COMMENT = 106, Error, "comment without end",
    "A comment that starts with `/*` ends at the first `*/`, so comments do not nest. A comment that starts with `//` ends at the end of the line.",
    wrong: "nf f() { output; } /* passes everything",
    right: "nf f() { output; } /* passes everything */";

    BAD_ESCAPE = 107, Error, "unknown escape in a string",
    "After a backslash, only these are allowed: `\\\"` `\\\\` `\\n` `\\r` `\\t` `\\0`, `\\x00` to `\\x7f`, and `\\u{…}` with the hexadecimal number of a character.",
    wrong: r#"nf f() { drop "no \way"; }"#,
    right: r#"nf f() { drop "no \\way"; }"#;

    NUMBER_TOO_WIDE = 108, Error, "number too large",
    "Numbers are unsigned and have at most 128 bits.",
    wrong: "const N = 0x1_0000_0000_0000_0000_0000_0000_0000_0000;
nf f() { if pkt.len < N { output; } else { drop; } }",
    right: "const N = 1500;
nf f() { if pkt.len < N { output; } else { drop; } }";

    BAD_NUMBER = 109, Error, "malformed number",
    "Numbers are whole: decimal (`1_000`), hexadecimal (`0x1f`) or binary (`0b101`). For a fraction, use a smaller unit: `1500 ms` for one and a half seconds, `500 kbit/s` for half a megabit per second.",
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
    "A word after a number is its unit. Times: ns us ms s min h d. Sizes: B KB MB GB KiB MiB GiB. Counts: k M G Ki Mi Gi. Rates: bit/s kbit/s Mbit/s Gbit/s B/s KB/s MB/s GB/s. Upper and lower case matter: `MB` is a million bytes, and `k` is a thousand.",
    wrong: "const T = 5 sec;
nf f() { output; }",
    right: "const T = 5 s;
nf f() { output; }";

    BAD_ADDRESS = 111, Error, "malformed address",
    "An IPv4 address has four numbers from 0 to 255 with dots between them, and no leading zeros. An IPv6 address has eight groups of up to four hexadecimal digits with colons between them. One `::` may replace groups of zeros. A MAC address has six pairs of hexadecimal digits with colons between them.",
    wrong: "const A = 10.0.0.256;
nf f() { output; }",
    right: "const A = 10.0.0.255;
nf f() { output; }";

    BAD_PREFIX = 112, Error, "malformed prefix",
    "The length of an IPv4 prefix is at most 32, and of an IPv6 prefix at most 128. All bits beyond the length must be zero, because `10.0.0.1/8` could mean one address or a whole network. For the network write `10.0.0.0/8`, for the address write `10.0.0.1`.",
    wrong: "nf f() {
  match { ip.src in 10.0.0.1/8 => output; else => drop; }
}",
    right: "nf f() {
  match { ip.src in 10.0.0.0/8 => output; else => drop; }
}";

    KEYWORD_AS_NAME = 113, Error, "keyword as a name",
    "These words are keywords and cannot be names: action and const consume delete drop else emit exists false fn for has hold if in let match matches mirror not or output pop push resubmit send true. A keyword is allowed after a dot, and as the name of an argument or of a field of a record.",
    wrong: "nf f(drop: bool) { output; }",
    right: "nf f(dropping: bool) {
  match { dropping => drop; else => output; }
}";

    CHAINED_COMPARISON = 114, Error, "comparisons in a row",
    "`a < b < c` has no meaning, because `a < b` is true or false and cannot be compared with `c`. Use a range, or join two comparisons with `and`.",
    wrong: "nf f() {
  match { 64 <= pkt.len < 128 => drop; else => output; }
}",
    right: "nf f() {
  match { pkt.len in 64..127 => drop; else => output; }
}";

    ASSIGN_IN_CONDITION = 115, Error, "assignment in an expression",
    "`=` assigns a value, and only a statement can do that. To compare, write `==`.",
    wrong: "nf f() {
  match { ip.ttl = 1 => drop; else => output; }
}",
    right: "nf f() {
  match { ip.ttl == 1 => drop; else => output; }
}";

    USELESS_STATEMENT = 116, Error, "expression without effect",
    "A statement must do something: assign, call an action, output or drop. An expression alone computes a value that nothing uses. A common cause is `==` where `=` was meant.",
    wrong: "nf f() {
  tcp.dport == 80;
  output;
}",
    right: "nf f() {
  if has tcp { tcp.dport = 80; }
  output;
}";

    EXTRA_SEMICOLON = 117, Error, "semicolon too many",
    "What ends in `}`, such as a block or a `match`, takes no `;` after it. There is no empty statement.",
    wrong: "nf f() {
  if has ip { output; };
  drop;
}",
    right: "nf f() {
  if has ip { output; }
  drop;
}";

    TOO_DEEP = 118, Error, "nested too deeply",
    "Blocks, brackets, operators and types may nest at most 128 levels deep. In a sum such as `a + b + c`, each operator is one level. The limit protects against input that would exhaust the memory. Give parts names with `let`, `const` or `fn`, or use a set: `x in {1, 2, 3}`.",
    wrong: "const N = ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))));
nf f() { output; }",
    right: "const N = 1;
nf f() { output; }";

    FILE_TOO_LARGE = 119, Error, "file too large",
    "A `.braid` file may have at most 4 MiB. Put long lists into files of their own, and name them in the chain: `rules(\"…\")`, `routes(\"…\")`, `prefixes(\"…\")`, `patterns(\"…\")`, `strings(\"…\")`, `hosts(\"…\")`.",
    wrong: "// imagine 4 MiB of addresses here",
    right: "nf f(bad: prefixes) { match { ip.src in bad => drop; else => output; } }";

    NOT_UTF8 = 120, Error, "file is not UTF-8 text",
    "A `.braid` file must be UTF-8 text. The message shows the first byte that is not. A capture file, for example, is not a `.braid` file.",
    wrong: "// imagine the byte 0xff here",
    right: "nf f() { output; }";

    UNKNOWN_ITEM = 121, Error, "unknown declaration",
    "A file contains `use`, `const`, `event`, `fn`, `action`, `nf`, `stream nf`, `native nf` and `chain`. A chain contains `interface`, `path`, `link`, `policy`, `malformed`, `seed`, `workers`, and instances such as `nat = napt(…);`.",
    wrong: "function f() { output; }",
    right: "nf f() { output; }";

    STATE_WITHOUT_KEY = 122, Error, "state without a key",
    "The declaration of a state must say what has an entry of its own: `per flow` (each 5-tuple), `per biflow` (each 5-tuple, both directions together), `per (FIELD, …)` (each combination of these fields), or `global` (one entry for all packets).",
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
    "The options of a state are `idle TIME`, `hard TIME`, `tick TIME`, `capacity NUMBER`, `full refuse` or `full evict_oldest`, `lives with STATE`, `sharded`, and `portions (PARAMETER, …)`. Write commas between them.",
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
    "The rules of a policy are `Order(a, before, b);`, `Priority(a > b);`, `Position(a, first);` and `Position(a, last);`.",
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
    "All numbers are unsigned. Write a subtraction instead. A subtraction that would go below zero gives zero, except inside `wrapping(…)`.",
    wrong: "const N = -1;
nf f() { output; }",
    right: "const N = 1;
nf f() { output; }";

    NEEDS_PARENTHESES = 126, Error, "operators that need parentheses",
    "Two cases need parentheses, because readers disagree about what they mean without: `not` on the right of another operator, and a range of ranges.",
    wrong: "nf f() {
  match { forward == not backward => output; else => drop; }
}",
    right: "nf f() {
  match { forward == (not backward) => output; else => drop; }
}";

    PAYLOAD_TWICE = 127, Error, "payload given twice",
    "A new packet has one payload: a part of the packet that it answers (`payload = quote(N);`), that packet's whole payload (`payload = same;`), or none.",
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
