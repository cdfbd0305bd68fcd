//! E02xx: names.

codes! {
    UNKNOWN_NAME = 201, Error, "unknown name",
    "A value was named that is not declared here: no local, constant, parameter, state or tag of the function has this name. Locals live until the end of the block they stand in.",
    wrong: "nf f(limit: size) { if pkt.len > limt { drop; } output; }",
    right: "nf f(limit: size) { if pkt.len > limit { drop; } output; }";

    UNKNOWN_FIELD = 202, Error, "unknown field",
    "A dotted name is a header field, an attribute of the packet, or a part of a record. This one is none of them. docs/fields.md lists all fields; IPv4 is `ip`, IPv6 `ip6`, either of them `inet`, either of TCP and UDP `l4`.",
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
    "`has`, `push` and `pop` name a header. There is no header of this name, or it cannot be pushed and popped.",
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
    "There is no type of this name. Integers are `u1` to `u128`; the others are bool, ip4, ip6, mac, port, duration, time, size, bitrate, index(LIST), list<T>, set<T>, prefixes, prefixes6, pool<T>, backends<T>, rules, routes, patterns and string.",
    wrong: "nf f(limit: uint) { if pkt.len > limit { drop; } output; }",
    right: "nf f(limit: size) { if pkt.len > limit { drop; } output; }";

    NOT_A_STATE = 205, Error, "not a state",
    "This place needs the name of a state of the function.",
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
    "A function has the ports `left`, `right` and the ports that it declares with `port`; `output back` goes back to where the packet came from.",
    wrong: "nf f() { output monitor; }",
    right: "nf f() {
  port monitor;
  output monitor;
}";

    UNKNOWN_FUNCTION = 207, Error, "unknown function",
    "What is called is neither a function or action of one's own, nor built in, nor an operator. `braid explain` and the manual list the operators.",
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
    "An event type must be declared with `event NAME { … }` in the same file or in one that is used. The root of the hierarchy is `EVENT`.",
    wrong: "event SEEN { proto: u8 }
nf f() { if has inet { emit SEN { proto: inet.proto }; } output; }",
    right: "event SEEN { proto: u8 }
nf f() { if has inet { emit SEEN { proto: inet.proto }; } output; }";

    UNKNOWN_QUEUE = 209, Error, "unknown queue",
    "`hold` needs a queue that the function declares with `queue NAME capacity N;`.",
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
    "Parameters, state, tags, queues, constants, functions and visible locals of a function share one space of names, so that every name means one thing. Ports have their own, and so have the functions, constants and events of a file.",
    wrong: "nf f(limit: size) { let limit = 3 KiB; if pkt.len > limit { drop; } output; }",
    right: "nf f(limit: size) { let most = limit + 3 KiB; if pkt.len > most { drop; } output; }";

    UNUSED_PARAMETER = 211, Error, "unused parameter",
    "A parameter that nothing reads misleads those who set it. Start its name with an underscore to keep it on purpose.",
    wrong: "nf f(limit: size) { output; }",
    right: "nf f(limit: size) { if pkt.len > limit { drop; } output; }";

    UNUSED_STATE = 212, Error, "unused state",
    "This state is declared and never used. Start its name with an underscore to keep it on purpose.",
    wrong: "nf f() {
  state seen: bool per flow = false;
  output;
}",
    right: "nf f() { output; }";

    UNUSED_LOCAL = 213, Error, "unused local",
    "The value of this local is never used. Start its name with an underscore to keep it on purpose.",
    wrong: "nf f() { let limit = 3 KiB; output; }",
    right: "nf f() { let limit = 3 KiB; if pkt.len > limit { drop; } output; }";

    UNUSED_DECLARATION = 214, Error, "unused declaration",
    "A port, tag, queue, constant, function or action of this function is never used. Start its name with an underscore to keep it on purpose.",
    wrong: "nf f() {
  port monitor;
  output;
}",
    right: "nf f() {
  port monitor;
  if has arp { output monitor; }
  output;
}";

    STATE_NEVER_READ = 215, Error, "state is written and never read",
    "Entries of this state are assigned, but nothing asks whether they exist or what they hold. Assignments such as `count += 1` do read. Start the name with an underscore if the state is kept for the operator to look at.",
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

    STATE_NEVER_WRITTEN = 216, Error, "state is read and never written",
    "No statement assigns this state, so it has no entries, or a global one never changes. A parameter or a constant says that better.",
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
    "Functions, actions and constants are expanded where they are used, so none may lead back to itself.",
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
    "`use \"FILE\";` takes the functions, constants and events of another file in. The file must be readable, be text, and not lead back to itself.",
    wrong: r#"use "no such file.braid";
nf f() { output; }"#,
    right: "nf f() { output; }";

    EVENT_CYCLE = 219, Error, "event types extend each other in a circle",
    "Event types form a tree whose root is `EVENT`.",
    wrong: "event A extends B { x: u8 }
event B extends A { y: u8 }
nf f() { output; }",
    right: "event A { x: u8 }
event B extends A { y: u8 }
nf f() { output; }";

    WRONG_NAME = 220, Error, "this name stands for something else",
    "The name is known, but what it stands for does not fit here: such as a queue where a value is needed, or a parameter that is a list where a pool is needed.",
    wrong: "nf f(ports: list<port>) { let p = take(ports) else drop; if has l4 { l4.sport = p; } output; }",
    right: "nf f(ports: pool<port>) { let p = take(ports) else drop; if has l4 { l4.sport = p; } output; }";

    UNKNOWN_MEMBER = 221, Error, "unknown part of a record",
    "The record has no part of this name. Its parts are the ones that the type of the parameter, state or event lists.",
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
}
