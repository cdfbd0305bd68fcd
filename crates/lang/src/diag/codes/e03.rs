//! E03xx: types.

codes! {
    TYPE_MISMATCH = 301, Error, "types do not match",
    "Everything has a type. A number without a unit takes the type that its place needs; everything else is converted only by a cast such as `u16(x)`, `ip4(x)`. Only `port` and `u16` stand for each other.",
    wrong: "nf f(limit: duration) { if pkt.len > limit { drop; } output; }",
    right: "nf f(limit: size) { if pkt.len > limit { drop; } output; }";

    WIDTH_MISMATCH = 302, Error, "widths do not match",
    "Both sides of an operator, and both sides of an assignment, have the same number of bits. Casts widen with zeros and narrow by stopping at the largest value: `u32(x)`.",
    wrong: "nf f(limit: u32) { if has ip and ip.ttl > limit { drop; } output; }",
    right: "nf f(limit: u32) { if has ip and u32(ip.ttl) > limit { drop; } output; }";

    NUMBER_TOO_LARGE = 303, Error, "number is too large for its type",
    "A number must fit the type that its place needs. A capacity written as a constant is at most 4294967295 entries.",
    wrong: "nf f() {
  match {
    ip.ttl == 256 => drop;
    else => output;
  }
}",
    right: "nf f() {
  match {
    ip.ttl == 255 => drop;
    else => output;
  }
}";

    CONSTANT_OVERFLOW = 304, Error, "constant arithmetic overflows",
    "Arithmetic on constants must not leave the range of its type. At run time arithmetic stops at the ends of the range, except inside `wrapping( … )`.",
    wrong: "nf f() {
  const A = 3 - 5;
  match {
    ip.ttl == A => drop;
    else => output;
  }
}",
    right: "nf f() {
  const A = 5 - 3;
  match {
    ip.ttl == A => drop;
    else => output;
  }
}";

    DIVISION_BY_ZERO = 305, Error, "division by zero",
    "The divisor is 0. (A divisor that may be 0 at run time is allowed: then the packet is dropped at the row `fault`.)",
    wrong: "nf f() {
  match {
    pkt.len % 0 == 1 => drop;
    else => output;
  }
}",
    right: "nf f() {
  match {
    pkt.len % 2 == 1 => drop;
    else => output;
  }
}";

    NEEDS_UNIT = 306, Error, "a number needs a unit",
    "Durations, times and bit rates are not plain numbers: write `30 s`, `10 Mbit/s`. Only 0 goes without a unit. Sizes may go without: they are bytes.",
    wrong: "nf f() {
  state seen: bool per flow = false, idle 30;
  match {
    seen => output;
    has inet => { seen = true; output; }
    else => output;
  }
}",
    right: "nf f() {
  state seen: bool per flow = false, idle 30 s;
  match {
    seen => output;
    has inet => { seen = true; output; }
    else => output;
  }
}";

    NOT_CONSTANT = 307, Error, "not a constant",
    "This value must be known before packets arrive: a constant, or (for limits and times of state, queues and timers) a parameter by itself.",
    wrong: "nf f() {
  state seen: bool per flow = false, capacity pkt.len;
  match {
    seen => output;
    has inet => { seen = true; output; }
    else => output;
  }
}",
    right: "nf f(flows: u32) {
  state seen: bool per flow = false, capacity flows;
  match {
    seen => output;
    has inet => { seen = true; output; }
    else => output;
  }
}";

    READ_ONLY_FIELD = 308, Error, "read-only field",
    "Lengths, protocol numbers and other fields that say how a packet is built cannot be assigned, attributes neither, and checksums follow by themselves.",
    wrong: "nf f() { if has ip { ip.checksum = 0; } output; }",
    right: "nf f() { if has ip { ip.ttl = 64; } output; }";

    BAD_OPERANDS = 309, Error, "the operator is not defined for these",
    "Times can be subtracted from each other and moved by durations; durations, sizes and bit rates can be multiplied and divided by numbers; bitrate * duration is a size. Conditions have no arithmetic.",
    wrong: "nf f() {
  state last: time global = 0;
  last = last + pkt.time; output;
}",
    right: "nf f() {
  state last: time global = 0;
  last = max(last, pkt.time); output;
}";

    NOT_A_CONDITION = 310, Error, "a condition is needed",
    "A predicate is a comparison, a test such as `has`, `exists` or `in`, a value of type bool, or several of these joined by `and`, `or`, `not`. Numbers are not conditions.",
    wrong: "nf f() {
  match {
    tcp.flags & 2 => drop;
    else => output;
  }
}",
    right: "nf f() {
  match {
    tcp.flags & 2 != 0 => drop;
    else => output;
  }
}";

    WRONG_ARGUMENTS = 311, Error, "wrong arguments",
    "The call gives too few or too many arguments, or names one where names are not used.",
    wrong: "nf f() {
  match {
    min(pkt.len) > 100 => drop;
    else => output;
  }
}",
    right: "nf f() {
  match {
    min(pkt.len, 200) > 100 => drop;
    else => output;
  }
}";

    EVENT_FIELDS = 312, Error, "an event's fields do not fit its type",
    "`emit` gives every field of the event type, inherited ones included, once and by name.",
    wrong: "event SEEN { proto: u8, ttl: u8 }
nf f() { if has ip { emit SEEN { proto: ip.proto }; } output; }",
    right: "event SEEN { proto: u8, ttl: u8 }
nf f() { if has ip { emit SEEN { proto: ip.proto, ttl: ip.ttl }; } output; }";

    RECORD_PARTS = 313, Error, "a record's parts do not fit its type",
    "A record is given part by part, each once: `{ addr: ip.src, port: l4.sport }` in any order, or `{ ip.src, l4.sport }` in the order of its type.",
    wrong: "nf f() {
  state first: { ttl: u8, len: size } per flow;
  match {
    exists first => { if first.ttl > 1 and first.len > 1 { drop; } output; }
    has ip => { first = { ttl: ip.ttl }; output; }
    else => output;
  }
}",
    right: "nf f() {
  state first: { ttl: u8, len: size } per flow;
  match {
    exists first => { if first.ttl > 1 and first.len > 1 { drop; } output; }
    has ip => { first = { ttl: ip.ttl, len: pkt.len }; output; }
    else => output;
  }
}";

    ZERO_SETTING = 314, Error, "a limit or period of zero",
    "Tables and queues hold at least one entry; time-outs, ticks and periods are longer than nothing.",
    wrong: "nf f() {
  queue later capacity 0;
  if pkt.held { output; }
  hold later for 1 s else drop;
}",
    right: "nf f() {
  queue later capacity 8;
  if pkt.held { output; }
  hold later for 1 s else drop;
}";

    KEY_PARTS = 315, Error, "the key does not fit the state",
    "A key gives a value for each part that the state's declaration lists. A state per types (`per (ip4, port)`) has no implicit key, so its key is always written; a global state has none.",
    wrong: "nf f() {
  state seen: bool per (ip.src, ip.dst) = false;
  match {
    has ip and seen[ip.src] => output;
    has ip => { seen = true; output; }
    else => output;
  }
}",
    right: "nf f() {
  state seen: bool per (ip.src, ip.dst) = false;
  match {
    has ip and seen[ip.dst, ip.src] => output;
    has ip => { seen = true; output; }
    else => output;
  }
}";

    SPECIAL_KEY = 316, Error, "`quoted` or `reverse` does not fit the state",
    "`[quoted]` is the key of the packet that an ICMP error quotes: for states per flow and per biflow. `[reverse]` exchanges source and destination: for states per flow (in a state per biflow both directions have one key).",
    wrong: "nf f() {
  state seen: bool per ip.src = false;
  match {
    seen[quoted] => output;
    has ip => { seen = true; output; }
    else => output;
  }
}",
    right: "nf f() {
  state seen: bool per biflow = false;
  match {
    seen[quoted] => output;
    has ip => { seen = true; output; }
    else => output;
  }
}";

    LOOP_BOUNDS = 317, Error, "a loop without constant bounds",
    "Loops are unrolled, so both bounds must be constants, and all loops of a function together make at most 1,024 rounds. This keeps the work per packet bounded.",
    wrong: "nf f(n: u8) { if has ip { for i in 0..n { ip.ttl -= i; } } output; }",
    right: "nf f() { if has ip { for i in 0..3 { ip.ttl -= i; } } output; }";

    EMPTY_RANGE = 318, Error, "an empty range",
    "The lower end of a range must not be above the upper one.",
    wrong: "nf f() {
  match {
    l4.dport in 90..80 => drop;
    else => output;
  }
}",
    right: "nf f() {
  match {
    l4.dport in 80..90 => drop;
    else => output;
  }
}";

    EITHER_FAMILY = 319, Error, "an address of either family",
    "`inet.src` and `inet.dst` are 128 bits wide for IPv4 and IPv6 alike, which says nothing of the family. Route tables and prefixes need `ip.dst` or `ip6.dst`.",
    wrong: "nf f(table: routes) {
  match {
    inet.dst in table => output;
    else => drop;
  }
}",
    right: "nf f(table: routes) {
  match {
    ip.dst in table or ip6.dst in table => output;
    else => drop;
  }
}";

    SHAPE_FIELD = 320, Error, "the field is not part of the new packet",
    "`send` builds a packet of a shape: icmp, icmp6, tcp, tcp6, udp, udp6 or arp. Its fields are those of the link, IP and transport header of that shape. Lengths and checksums follow by themselves.",
    wrong: "nf f() {
  match {
    has icmp.echo => { send icmp { tcp.seq = 0; } consume; }
    else => output;
  }
}",
    right: "nf f() {
  match {
    has icmp.echo => {
      send icmp { icmp.id = icmp.id; icmp.seq = icmp.seq; payload = same; }
      consume;
    }
    else => output;
  }
}";

    NOT_ASSIGNABLE = 321, Error, "not assignable",
    "Fields, tags and state are assigned. Parameters, constants, locals and loop variables are not: give a new value a new name with `let`.",
    wrong: "nf f(limit: size) { limit = 3; if pkt.len > limit { drop; } output; }",
    right: "nf f(limit: size) { let more = limit + 3; if pkt.len > more { drop; } output; }";

    UNCLEAR_TYPE = 322, Error, "the type of a number is not clear",
    "A number without a unit takes its type from its place. Here nothing says how wide it is; write a cast such as `u32(5)`.",
    wrong: "nf f() {
  match {
    hash(5) == 0 => drop;
    else => output;
  }
}",
    right: "nf f() {
  match {
    hash(u32(5)) == 0 => drop;
    else => output;
  }
}";

    BAD_TYPE = 323, Error, "this type cannot stand here",
    "State, tags, keys, events, list columns and arguments hold scalars (state and columns also records of scalars). Lists, sets, pools, rules, routes, patterns and backends are parameters only; strings are parameters and fields of events.",
    wrong: "nf f() {
  tag kind: rules;
  kind = 3;
  if kind == 3 { drop; }
  output;
}",
    right: "nf f() {
  tag kind: u8;
  kind = 3;
  if kind == 3 { drop; }
  output;
}";

    NOT_A_VALUE = 324, Error, "not a single value",
    "A prefix, range, set, list or string stands for more than one number or none. Test membership with `in`.",
    wrong: "nf f() {
  match {
    ip.src == 10.0.0.0/8 => drop;
    else => output;
  }
}",
    right: "nf f() {
  match {
    ip.src in 10.0.0.0/8 => drop;
    else => output;
  }
}";

    BAD_PARAMETER_VALUE = 325, Error, "the value does not fit the parameter",
    "The value given for a parameter, or its default, is not of the parameter's type.",
    wrong: r#"nf f(ports: pool<port> = "high") {
  let p = take(ports) else drop;
  if has l4 { l4.sport = p; }
  output;
}"#,
    right: "nf f(ports: pool<port> = 1024..65535) {
  let p = take(ports) else drop;
  if has l4 { l4.sport = p; }
  output;
}";

    BAD_OPTION = 326, Error, "an option that does not fit",
    "Options of a state are idle, hard, tick, capacity, `full refuse` or `full evict_oldest`, `lives with STATE` and sharded, each at most once. A global state has one entry that stays, so it takes none of them but sharded.",
    wrong: "nf f() {
  state seen: bool per flow = false, full drop;
  match {
    seen => output;
    has inet => { seen = true; output; }
    else => output;
  }
}",
    right: "nf f() {
  state seen: bool per flow = false, full refuse;
  match {
    seen => output;
    has inet => { seen = true; output; }
    else => output;
  }
}";
}
