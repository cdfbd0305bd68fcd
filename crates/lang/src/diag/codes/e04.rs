//! E04xx: presence of headers, state and flow of control.

codes! {
    HEADER_MAY_BE_ABSENT = 401, Error, "the header may be absent",
    "A statement uses a field of a header that the packet may not have. Test the header first: in the predicate of the row, with `if has HEADER { … }`, or with a statement before that drops packets without it. A comparison with a field of the header is such a test, too. Predicates themselves need no test: a comparison with an absent field is false.",
    wrong: "nf f() { l4.sport = 80; output; }",
    right: "nf f() { if has l4 { l4.sport = 80; } output; }";

    STATE_MAY_BE_ABSENT = 402, Error, "the state's entry may be absent",
    "A statement reads a state that may have no entry for this packet. Test it with `exists` first, assign it first, or declare it with a default.",
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
    "Every packet must match a row, so the last row must be `else`. No `else` is needed if two of the rows are `forward` and `backward`, because together these match all packets.",
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
    "Rows are tried in order, and the first one that matches is taken. This row never is: rows before it match all its packets, or its own predicate contradicts itself.",
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
    "The statements before this one always end the packet's path, so this one never runs.",
    wrong: "nf f() { drop; output; }",
    right: "nf f() { output; }";

    NO_END = 406, Error, "the packet's way does not end",
    "Every path through a function must end with output, drop, consume, hold or resubmit. So no packet is lost without a trace.",
    wrong: "nf f() { if has ip { output; } }",
    right: r#"nf f() { if has ip { output; } drop "not ip"; }"#;

    NEEDS_ELSE = 407, Error, "this may fail and needs an `else`",
    "This can fail: a pool may be empty, there may be no route, no backend may be up, the payload may be too short, or a packet may have no room for an option. Write `let NAME = … else STATEMENT;` to say what happens then.",
    wrong: "nf f(ports: pool<port>) { if has l4 { let p = take(ports); l4.sport = p; } output; }",
    right: "nf f(ports: pool<port>) { if has l4 { let p = take(ports) else drop; l4.sport = p; } output; }";

    ELSE_CONTINUES = 408, Error, "the `else` of a `let` goes on",
    "After `let NAME = … else STATEMENT;` the name must have a value. So the statement after `else` must end the packet's path.",
    wrong: "nf f(ports: pool<port>) {
  if has l4 { let p = take(ports) else l4.sport = 1; l4.sport = p; }
  output;
}",
    right: "nf f(ports: pool<port>) { if has l4 { let p = take(ports) else drop; l4.sport = p; } output; }";

    NO_PACKET = 409, Error, "there is no packet here",
    "Timers, `on expire` and handlers of events run without a packet. They cannot use fields, output, drop or keys that come from the packet. In `on expire S`, the name `S` is the ending entry, and the fields of its key can be read. In `on EVENT`, `event.NAME` is a field of the event.",
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
    "Braid unrolls loops, and replaces each call of a function of the program by its definition. After that, a function may have at most 65,536 operations and 200 levels of nesting. A match with thousands of rows reaches this limit, too: put its rows into a rule file. Evaluating a constant may follow at most 1,048,576 references to other constants.",
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
    "A `stream nf` works on the bytes of TCP connections. It has blocks `on open`, `on data`, `on data from client`, `on data from server` and `on close`. In `on data`, it reads stream.data, stream.len and stream.offset. It ends with `forward;`, `reset;` or `bypass;`. Handlers of events of types that extend `FLOW` end so, too, or with `resume;`. Of headers, it reads the addresses and ports of the connection. A plain `nf` works on packets. Neither can use what belongs to the other.",
    wrong: "stream nf f() {
  on data { ip.ttl = 3; forward; }
}",
    right: "stream nf f() {
  on data { if stream.len > 1000 { reset; } forward; }
}";

    LIVES_WITH = 412, Error, "`lives with` does not fit",
    "With `lives with STATE`, an entry ends together with an entry of another state. That state must belong to the same function, must not be global, and must not live with this one in turn. Time-outs come from it, so `idle` and `hard` are not allowed here.",
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
    "A global state has one entry, which exists from the start. The default is the value that it starts with.",
    wrong: "nf f() {
  state n: u32 global;
  n += 1; output;
}",
    right: "nf f() {
  state n: u32 global = 0;
  n += 1; output;
}";

    HEADER_CHANGED = 414, Error, "the header as it was on entry is not known",
    "A key that is not written out is read from the packet as it entered the function. After `push` or `pop`, a test can no longer find out whether the entering packet had this header. Test it before.",
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

    HOLDS_NOTHING = 415, Warning, "a header inside of one that holds nothing",
    "A header that a program declares is a tunnel's only if its declaration says so: `holds packet` or `holds frame`. Otherwise nothing is recognised behind it, and tests of headers such as `inner.ip` are false.",
    wrong: "header gtpu after udp when udp.dport == 2152 { flags: u8, kind: u8, length: u16, teid: u32 }
nf f() {
  match {
    has gtpu and inner.ip.ttl == 1 => drop;
    else => output;
  }
}",
    right: "header gtpu after udp when udp.dport == 2152 { flags: u8, kind: u8, length: u16, teid: u32 } holds packet;
nf f() {
  match {
    has gtpu and inner.ip.ttl == 1 => drop;
    else => output;
  }
}";
}
