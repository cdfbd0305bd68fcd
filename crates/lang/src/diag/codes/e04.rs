//! E04xx: presence of headers, state and flow of control.

codes! {
    HEADER_MAY_BE_ABSENT = 401, Error, "the header may be absent",
    "A statement uses a field of a header that the packet may lack. Test it first: in the row's predicate (a comparison with a field of the header is a test too), with `if has HEADER { … }`, or by dropping packets without it before. In a predicate itself no test is needed: what compares an absent field is false.",
    wrong: "nf f() { l4.sport = 80; output; }",
    right: "nf f() { if has l4 { l4.sport = 80; } output; }";

    STATE_MAY_BE_ABSENT = 402, Error, "the state's entry may be absent",
    "A statement reads a state without a default, and nothing says that there is an entry. Test it with `exists` first, assign it first, or give the state a default.",
    wrong: "nf f() {
  state mark: u8 per flow;
  match {
    has ip => { ip.ttl = mark; mark = 3; output; }
    else => output;
  }
}",
    right: "nf f() {
  state mark: u8 per flow;
  match {
    has ip and exists mark => { ip.ttl = mark; output; }
    has ip => { mark = 3; output; }
    else => output;
  }
}";

    MISSING_ELSE = 403, Error, "a match without `else`",
    "Every packet must match a row, so the last row is `else`, unless rows `forward` and `backward` cover all packets.",
    wrong: "nf f() {
  match {
    has tcp => output;
  }
}",
    right: "nf f() {
  match {
    has tcp => output;
    else => drop;
  }
}";

    UNREACHABLE_ROW = 404, Error, "the row can never match",
    "Rows are tried in order. Every packet that this row would match is taken by rows before it, or its predicate contradicts itself.",
    wrong: "nf f() {
  match {
    l4.dport in 1..1023 => drop;
    l4.dport == 80 => output;
    else => output;
  }
}",
    right: "nf f() {
  match {
    l4.dport == 80 => output;
    l4.dport in 1..1023 => drop;
    else => output;
  }
}";

    UNREACHABLE_STATEMENT = 405, Error, "the statement is never reached",
    "What stands before always ends the packet's way.",
    wrong: "nf f() { drop; output; }",
    right: "nf f() { output; }";

    NO_END = 406, Error, "the packet's way does not end",
    "Every way through a function ends in output, drop, consume, hold or resubmit, so that no packet is lost silently.",
    wrong: "nf f() { if has ip { output; } }",
    right: r#"nf f() { if has ip { output; } drop "not ip"; }"#;

    NEEDS_ELSE = 407, Error, "this may fail and needs an `else`",
    "A pool may be empty, a route may lack, no backend may be up. `let NAME = … else STATEMENT;` says what happens then.",
    wrong: "nf f(ports: pool<port>) { if has l4 { let p = take(ports); l4.sport = p; } output; }",
    right: "nf f(ports: pool<port>) { if has l4 { let p = take(ports) else drop; l4.sport = p; } output; }";

    ELSE_CONTINUES = 408, Error, "the `else` of a `let` goes on",
    "Behind `let NAME = … else STATEMENT;` the name must have a value, so the statement must end the packet's way.",
    wrong: "nf f(ports: pool<port>) {
  if has l4 { let p = take(ports) else l4.sport = 1; l4.sport = p; }
  output;
}",
    right: "nf f(ports: pool<port>) { if has l4 { let p = take(ports) else drop; l4.sport = p; } output; }";

    NO_PACKET = 409, Error, "there is no packet here",
    "Timers and `on expire` run without a packet: fields, output, drop and implicit keys have no meaning there. In `on expire S` the state's name gives the ending entry, and the fields of its key give the key.",
    wrong: "nf f() {
  state n: size global = 0;
  every 1 s { n = pkt.len; }
  if n > 3 { drop; }
  output;
}",
    right: "nf f() {
  state n: size global = 0;
  every 1 s { n = 0; }
  n += pkt.len;
  if n > 3 { drop; }
  output;
}";

    TOO_LARGE = 410, Error, "the function is too large",
    "Loops are unrolled and functions of one's own are expanded where they are called. The result is limited to 65,536 operations, and nesting to 200 levels.",
    wrong: "nf f() {
  fn a(x: u8) -> u8 = x ^ x << 1 ^ x >> 1 ^ x << 2;
  fn b(x: u8) -> u8 = a(a(a(a(x))));
  if has ip { for i in 0..1000 { ip.ttl = b(b(ip.ttl)); } }
  output;
}",
    right: "nf f() {
  fn a(x: u8) -> u8 = x ^ x << 1 ^ x >> 1 ^ x << 2;
  fn b(x: u8) -> u8 = a(a(a(a(x))));
  if has ip { for i in 0..3 { ip.ttl = b(b(ip.ttl)); } }
  output;
}";

    MIXED_STREAM = 411, Error, "packet and stream operators mixed",
    "A `stream nf` sees the bytes of a TCP stream, in `on open`, `on data` and `on close`, with stream.data, stream.len and stream.offset, and ends with forward, close or reset. A plain `nf` sees packets. Neither has the operators of the other (NFD §III).",
    wrong: "stream nf f() {
  on data { ip.ttl = 3; forward; }
}",
    right: "stream nf f() {
  on data { if stream.len > 1000 { close; } forward; }
}";

    LIVES_WITH = 412, Error, "`lives with` does not fit",
    "A state lives with another state of the function that is not global; the relation has no circles. It takes its time-outs from there, so it has no idle or hard of its own.",
    wrong: "nf f() {
  state a: bool per flow = false, lives with b;
  state b: bool per flow = false, lives with a;
  if a and b { drop; }
  if has inet { a = true; b = true; }
  output;
}",
    right: "nf f() {
  state a: bool per flow = false;
  state b: bool per flow = false, lives with a;
  if a and b { drop; }
  if has inet { a = true; b = true; }
  output;
}";

    NEEDS_DEFAULT = 413, Error, "a global state needs a default",
    "A global state has one entry, from the start on; its default is the value that it starts with.",
    wrong: "nf f() {
  state n: u32 global;
  n += 1; output;
}",
    right: "nf f() {
  state n: u32 global = 0;
  n += 1; output;
}";

    HEADER_CHANGED = 414, Error, "the header as it was on entry is not known",
    "Implicit keys are read from the packet as it entered the function. After `push` or `pop`, a test can no longer say whether the entering packet had this header; test it before.",
    wrong: "nf f() {
  state n: u32 per vlan.id = 0;
  if has eth { push vlan(3); n += 1; }
  output;
}",
    right: "nf f() {
  state n: u32 per vlan.id = 0;
  if has vlan { push vlan(3); n += 1; }
  output;
}";
}
