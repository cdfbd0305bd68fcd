//! E02xx: names.

codes! {
    UNKNOWN_NAME = 201, Error, "unknown name",
    "Nothing with this name is declared here: no local, constant, parameter, state or tag. A local can be used until the end of the block that declares it.",
    wrong: "nf f(limit: size) { if pkt.len > limt { drop; } output; }",
    right: "nf f(limit: size) { if pkt.len > limit { drop; } output; }";

    UNKNOWN_FIELD = 202, Error, "unknown field",
    "A name with dots must be a header field, an attribute of the packet, or a part of a record. docs/fields.md lists all fields. IPv4 is `ip`, IPv6 is `ip6`, and `inet` is either of them. `l4` is TCP or UDP.",
    wrong: "nf f() {
  match {
    ip.dts == 10.0.0.1 => drop;
    else => output;
  }
}",
    right: "nf f() {
  match {
    ip.dst == 10.0.0.1 => drop;
    else => output;
  }
}";

    UNKNOWN_HEADER = 203, Error, "unknown header",
    "`has`, `push` and `pop` need the name of a header. Either there is no header with this name, or it cannot be pushed and popped.",
    wrong: "nf f() {
  match {
    has ipv4 => output;
    else => drop;
  }
}",
    right: "nf f() {
  match {
    has ip => output;
    else => drop;
  }
}";

    UNKNOWN_TYPE = 204, Error, "unknown type",
    "There is no type with this name. Integers are `u1` to `u128`. The other types are bool, ip4, ip6, mac, port, duration, time, size, bitrate, index(LIST), list<T>, set<T>, prefixes, prefixes6, pool<T>, backends<T>, rules, routes, patterns, hosts and string.",
    wrong: "nf f(limit: uint) { if pkt.len > limit { drop; } output; }",
    right: "nf f(limit: size) { if pkt.len > limit { drop; } output; }";

    NOT_A_STATE = 205, Error, "not a state",
    "Here must be the name of a state that the function declares.",
    wrong: "nf f() {
  state seen: bool per flow = false;
  match {
    exists sen => output;
    has inet => { seen = true; output; }
    else => output;
  }
}",
    right: "nf f() {
  state seen: bool per flow = false;
  match {
    exists seen => output;
    has inet => { seen = true; output; }
    else => output;
  }
}";

    UNKNOWN_PORT = 206, Error, "unknown port",
    "A function has the ports `left` and `right`, and the ports that it declares with `port`. `output back` sends the packet out of the port where it came in.",
    wrong: "nf f() { output monitor; }",
    right: "nf f() {
  port monitor;
  output monitor;
}";

    UNKNOWN_FUNCTION = 207, Error, "unknown function",
    "There is no function, action, built-in function or operator with this name. docs/externs.md lists the operators.",
    wrong: "nf f() {
  match {
    hsh(flow) % 2 == 0 => output;
    else => drop;
  }
}",
    right: "nf f() {
  match {
    hash(flow) % 2 == 0 => output;
    else => drop;
  }
}";

    UNKNOWN_EVENT = 208, Error, "unknown event",
    "Declare an event type with `event NAME { … }`, in the same file or in a file that it uses. The type that all others extend is `EVENT`.",
    wrong: "event SEEN { proto: u8 }
nf f() { if has inet { emit SEN { proto: inet.proto }; } output; }",
    right: "event SEEN { proto: u8 }
nf f() { if has inet { emit SEEN { proto: inet.proto }; } output; }";

    UNKNOWN_QUEUE = 209, Error, "unknown queue",
    "`hold` needs the name of a queue. Declare the queue in the function: `queue NAME capacity N;`.",
    wrong: "nf f() {
  queue later capacity 16;
  if pkt.held { output; }
  hold latr for 1 s else drop;
}",
    right: "nf f() {
  queue later capacity 16;
  if pkt.held { output; }
  hold later for 1 s else drop;
}";

    DUPLICATE_NAME = 210, Error, "duplicate name",
    "A name means one thing. Parameters, state, tags, queues, constants, functions and visible locals of a function must all have different names. A port may have the same name as one of these, and so may a function, constant or event of the file.",
    wrong: "nf f(limit: size) { let limit = 3 KiB; if pkt.len > limit { drop; } output; }",
    right: "nf f(limit: size) { let most = limit + 3 KiB; if pkt.len > most { drop; } output; }";

    UNUSED_PARAMETER = 211, Warning, "unused parameter",
    "Nothing reads this parameter, so a chain that sets it changes nothing. Remove it, or start its name with an underscore to keep it.",
    wrong: "nf f(limit: size) { output; }",
    right: "nf f(limit: size) { if pkt.len > limit { drop; } output; }";

    UNUSED_STATE = 212, Warning, "unused state",
    "This state is declared but never used. Remove it, or start its name with an underscore to keep it.",
    wrong: "nf f() {
  state seen: bool per flow = false;
  output;
}",
    right: "nf f() { output; }";

    UNUSED_LOCAL = 213, Warning, "unused local",
    "The value of this local is never used. Remove it, or start its name with an underscore to keep it.",
    wrong: "nf f() { let limit = 3 KiB; output; }",
    right: "nf f() { let limit = 3 KiB; if pkt.len > limit { drop; } output; }";

    UNUSED_DECLARATION = 214, Warning, "unused declaration",
    "This port, tag, queue, constant, function or action is never used. Remove it, or start its name with an underscore to keep it.",
    wrong: "nf f() {
  port monitor;
  output;
}",
    right: "nf f() {
  port monitor;
  if has arp { output monitor; }
  output;
}";

    STATE_NEVER_READ = 215, Warning, "state is written and never read",
    "The function assigns this state, but never reads its entries or tests whether they exist. An assignment such as `count += 1` counts as a read. If only a person is to look at the state, start its name with an underscore.",
    wrong: "nf f() {
  state last: time per flow;
  if has inet { last = pkt.time; }
  output;
}",
    right: "nf f() {
  state _last: time per flow;
  if has inet { _last = pkt.time; }
  output;
}";

    STATE_NEVER_WRITTEN = 216, Warning, "state is read and never written",
    "No statement assigns this state, so its value never changes, or it never has entries. Use a parameter or a constant instead.",
    wrong: "nf f() {
  state limit: size global = 1500;
  if pkt.len > limit { drop; }
  output;
}",
    right: "nf f() {
  const limit = 1500 B;
  if pkt.len > limit { drop; }
  output;
}";

    RECURSION = 217, Error, "recursion",
    "Braid replaces each call of a function or action, and each use of a constant, by its definition. So a definition must not use itself, directly or through others.",
    wrong: "nf f() {
  fn twice(x: u8) -> u8 = twice(x) * 2;
  if has ip and twice(ip.ttl) > 9 { drop; }
  output;
}",
    right: "nf f() {
  fn twice(x: u8) -> u8 = x * 2;
  if has ip and twice(ip.ttl) > 9 { drop; }
  output;
}";

    USE_FAILED = 218, Error, "a used file cannot be used",
    "`use \"FILE\";` takes in the functions, constants and events of another file. Braid must be able to read that file, and the file must not use this one, directly or through others.",
    wrong: r#"use "no such file.braid";
nf f() { output; }"#,
    right: "nf f() { output; }";

    EVENT_CYCLE = 219, Error, "event types extend each other in a circle",
    "Event types form a tree: each type extends one other, and the tree starts at `EVENT`. These types extend each other.",
    wrong: "event A extends B { x: u8 }
event B extends A { y: u8 }
nf f() { output; }",
    right: "event A { x: u8 }
event B extends A { y: u8 }
nf f() { output; }";

    WRONG_NAME = 220, Error, "this name stands for something else",
    "The name is known, but what it means does not fit here. Examples are a queue where a value is needed, and a list where a pool is needed.",
    wrong: "nf f(ports: list<port>) { let p = take(ports) else drop; if has l4 { l4.sport = p; } output; }",
    right: "nf f(ports: pool<port>) { let p = take(ports) else drop; if has l4 { l4.sport = p; } output; }";

    UNKNOWN_MEMBER = 221, Error, "unknown part of a record",
    "The record has no part with this name. The type of the parameter, state or event lists its parts.",
    wrong: "nf f(hops: list<{ mac: mac }>) {
  match {
    has eth and len(hops) > 0 => { eth.dst = hops[0].addr; output; }
    else => drop;
  }
}",
    right: "nf f(hops: list<{ mac: mac }>) {
  match {
    has eth and len(hops) > 0 => { eth.dst = hops[0].mac; output; }
    else => drop;
  }
}";

    HIDES_BUILT_IN = 222, Warning, "a function with the name of a built-in one",
    "All calls of this name now mean your function. Whoever reads them may take them for calls of the built-in function or of the operator. Another name makes clear which one is meant.",
    wrong: "fn min(a: u8, b: u8) -> u8 = if a < b { a } else { b };
nf f() { if has ip { ip.ttl = min(ip.ttl, 64); } output; }",
    right: "nf f() { if has ip { ip.ttl = min(ip.ttl, 64); } output; }";
}
