//! E03xx: types.

codes! {
    TYPE_MISMATCH = 301, Error, "types do not match",
    "Every value has a type. A number without a unit takes the type that its place needs. Any other value must be converted with a cast, such as `u16(x)` or `ip4(x)`. Only `port` and `u16` need no cast between them.",
    wrong: "nf f(limit: duration) { if pkt.len > limit { drop; } output; }",
    right: "nf f(limit: size) { if pkt.len > limit { drop; } output; }";

    WIDTH_MISMATCH = 302, Error, "widths do not match",
    "Both sides of an operator or an assignment must have the same number of bits. A cast such as `u32(x)` changes the number of bits. If the value is too large for the new width, the cast gives the largest value that fits.",
    wrong: "nf f(limit: u32) { if has ip and ip.ttl > limit { drop; } output; }",
    right: "nf f(limit: u32) { if has ip and u32(ip.ttl) > limit { drop; } output; }";

    NUMBER_TOO_LARGE = 303, Error, "number is too large for its type",
    "The number must fit the type that its place needs. A constant capacity may be at most 4294967295 entries.",
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
    "The result of constant arithmetic must fit its type. At run time, a result that would not fit becomes the smallest or largest value of the type, except inside `wrapping( … )`.",
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
    "The divisor is 0. A divisor that becomes 0 at run time is no error here: the packet is then dropped, and counted at the row `fault`.",
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
    "Durations, times and bit rates need a unit: write `30 s` or `10 Mbit/s`. Only 0 needs none. A size without a unit is in bytes.",
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
    "This value must be known before packets arrive, so it must be a constant. For the limits and times of states, queues and timers, it may also be a parameter.",
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
    "This field cannot be assigned. Lengths, protocol numbers and similar fields describe how the packet is built, and attributes describe how it arrived. Braid updates checksums itself.",
    wrong: "nf f() { if has ip { ip.checksum = 0; } output; }",
    right: "nf f() { if has ip { ip.ttl = 64; } output; }";

    BAD_OPERANDS = 309, Error, "the operator is not defined for these",
    "The operator does not work on values of these types. Two times can be subtracted, and a duration can be added to a time or subtracted from it. Durations, sizes and bit rates can be multiplied and divided by numbers. A bit rate times a duration is a size. Conditions have no arithmetic.",
    wrong: "nf f() {
  state last: time global = 0;
  last = last + pkt.time; output;
}",
    right: "nf f() {
  state last: time global = 0;
  last = max(last, pkt.time); output;
}";

    NOT_A_CONDITION = 310, Error, "a condition is needed",
    "A condition is a comparison, a test such as `has`, `exists` or `in`, or a value of type bool. Conditions can be joined with `and`, `or` and `not`. A number is not a condition: compare it, such as `x != 0`.",
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
    "The call has too many or too few arguments, or it names an argument of a function that takes no names.",
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
    "`emit` must give each field of the event type once, by name. The fields include those of the types that it extends.",
    wrong: "event SEEN { proto: u8, ttl: u8 }
nf f() { if has ip { emit SEEN { proto: ip.proto }; } output; }",
    right: "event SEEN { proto: u8, ttl: u8 }
nf f() { if has ip { emit SEEN { proto: ip.proto, ttl: ip.ttl }; } output; }";

    RECORD_PARTS = 313, Error, "a record's parts do not fit its type",
    "Give each part of a record once: in any order with names, as in `{ addr: ip.src, port: l4.sport }`, or in the order of the type without names, as in `{ ip.src, l4.sport }`.",
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

    ZERO_SETTING = 314, Error, "a limit of zero, or a period that is too short",
    "A table or queue must have room for at least one entry. Time-outs and ticks must be longer than 0. The period of a timer is at least 1 us: after a gap, one packet may let 10,000 missed timers fire.",
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
    "A key must give a value for each part that the state's declaration lists. A state that is declared with types (`per (ip4, port)`) needs a key at each use. A global state takes no key.",
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
    "`[quoted]` is the key of the packet that an ICMP error quotes. It works for states `per flow` and `per biflow`. `[reverse]` exchanges source and destination. It works for states `per flow`; in a state `per biflow` both directions have the same key anyway.",
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
    "Braid unrolls loops, so that the work for each packet is bounded. Both bounds of a loop must be constants, and all loops of a function together may have at most 1,024 rounds.",
    wrong: "nf f(n: u8) { if has ip { for i in 0..n { ip.ttl -= i; } } output; }",
    right: "nf f() { if has ip { for i in 0..3 { ip.ttl -= i; } } output; }";

    EMPTY_RANGE = 318, Error, "an empty range",
    "The lower end of the range is above the upper end. Exchange them.",
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

    EITHER_FAMILY = 319, Error, "an address of both IP versions",
    "An `addr` is an IPv4 or an IPv6 address. An IPv6 address of ::/96 counts as the IPv4 address in its low 32 bits, so write IPv4 addresses as such. A range has addresses of one version.",
    wrong: "nf f() {
  match {
    inet.dst == ::10.0.0.1 => output;
    else => drop;
  }
}",
    right: "nf f() {
  match {
    inet.dst == 10.0.0.1 => output;
    else => drop;
  }
}";

    SHAPE_FIELD = 320, Error, "the field is not part of the new packet",
    "`send` builds a packet of one of these kinds: icmp, icmp6, tcp, tcp6, udp, udp6 or arp. Only fields of that packet's link, IP and transport headers can be set. Braid sets lengths and checksums itself.",
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
    "Only fields, tags and state can be assigned. Parameters, constants, locals and loop variables keep their value. For a new value, declare a new name with `let`.",
    wrong: "nf f(limit: size) { limit = 3; if pkt.len > limit { drop; } output; }",
    right: "nf f(limit: size) { let more = limit + 3; if pkt.len > more { drop; } output; }";

    UNCLEAR_TYPE = 322, Error, "the type of a number is not clear",
    "A number without a unit takes its type from its place, but here the place does not say how wide the number is. Write a cast, such as `u32(5)`.",
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
    "This type is not allowed here. State, tags, keys, fields of events, columns of lists and arguments hold single values. State and columns may also hold records of single values. Lists, sets, pools, rules, routes, patterns, hosts and backends can only be parameters. Strings can only be parameters and fields of events.",
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
    "A single value is needed here. A prefix, range, set or list has many values, and a string is not a number. To test membership, use `in`.",
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
    "The value of a parameter, or its default, does not have the type of the parameter.",
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
    "The options of a state are `idle`, `hard`, `tick`, `capacity`, `full refuse` or `full evict_oldest`, `lives with STATE`, `sharded`, and `portions (PARAMETER, …)`, each at most once. The parameters of `portions` are numbers, sizes or rates. A global state has one entry that never ends, so it can only be `sharded` or in `portions`.",
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

    ROUNDED_SUM = 327, Warning, "a sum that loses parts of bytes",
    "A rate times a duration is a size in whole bytes, rounded down. If packets follow each other closely, each of these sizes is 0, and a sum of them never grows: the limit lets nothing through. Count in parts of bytes instead: bits × nanoseconds a second, where a byte is 8,000,000,000.",
    wrong: "nf f(rate: bitrate = 1 Mbit/s) {
  state bucket: { credit: size, since: time } per ip.src;
  match {
    exists bucket => {
      bucket.credit = bucket.credit + rate * (pkt.time - bucket.since);
      bucket.since = pkt.time;
      if bucket.credit < pkt.len { drop; }
      output;
    }
    has ip => { bucket = { credit: 1500 B, since: pkt.time }; output; }
    else => output;
  }
}",
    right: "nf f(rate: bitrate = 1 Mbit/s) {
  const BYTE = 8_000_000_000;
  state bucket: { credit: u128, since: time } per ip.src;
  match {
    exists bucket => {
      bucket.credit = bucket.credit + u128(rate) * u128(pkt.time - bucket.since);
      bucket.since = pkt.time;
      if bucket.credit < u128(pkt.len) * BYTE { drop; }
      output;
    }
    has ip => { bucket = { credit: 1500 * BYTE, since: pkt.time }; output; }
    else => output;
  }
}";

    STREAM_PATTERN = 328, Error, "a pattern that needs bytes which have not come",
    "A stream function searches bytes as they come. `$`, `\\z`, `\\b` and the like say something about the bytes behind a match, which come later or never. `^` and `\\A` stand for the start of the stream. Other patterns of the set may stay.",
    wrong: "stream nf f(bad: patterns) { on data { if stream.data matches bad { reset; } } }
chain c { path f(bad: { regex(\"[.]php$\") }); }",
    right: "stream nf f(bad: patterns) { on data { if stream.data matches bad { reset; } } }
chain c { path f(bad: { regex(\"[.]php[ ?]\") }); }";

    DIFFERENCE_AS_RANGE = 329, Error, "a difference where a range belongs",
    "A range of numbers or addresses is written with two dots: `1978..2000`. `2000-1978` is the number 22. If you mean a difference, give it a name with `const`.",
    wrong: "nf f() { match { tcp.dport in 2000-1978 => drop; else => output; } }
chain c { path f(); }",
    right: "nf f() { match { tcp.dport in 1978..2000 => drop; else => output; } }
chain c { path f(); }";

    DUPLICATE_BACKEND = 330, Warning, "two backends with one name",
    "A backend is named by the value in its first column. Control lines and `braid ctl` change one backend with this name, and no other one.",
    wrong: "nf f(servers: backends<ip4>) { match { has ip => { let b = pick(servers, hash(ip.src)) else drop; ip.dst = servers[b]; output; } else => drop; } }
chain c { path f(servers: [10.0.0.1, 10.0.0.1]); }",
    right: "nf f(servers: backends<ip4>) { match { has ip => { let b = pick(servers, hash(ip.src)) else drop; ip.dst = servers[b]; output; } else => drop; } }
chain c { path f(servers: [10.0.0.1, 10.0.0.2]); }";
}
