//! A line with a rule: its header, and what its options make of it.

use super::fault::Fault;
use super::names::Names;
use super::options::Options;
use super::packet;
use crate::headers::{Kind, OfPackets};
use crate::number::Value;
use crate::rule::{Buffer, Header, Rule, Stage, Test, Tested, What};

/// Reads a rule.
pub fn rule(text: &str, names: &Names) -> Result<Rule, Fault> {
    let (head, rest) = match text.find('(') {
        Some(at) => text.split_at_checked(at).unwrap_or((text, "")),
        None => return Err(Fault::wrong("rule", "its options stand in brackets")),
    };
    let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let inner = inner.ok_or_else(|| Fault::wrong("rule", "a `)` ends it"))?;
    let words = words(head);
    let [action, protocol, src, sports, arrow, dst, dports] = words.as_slice() else {
        let form = "ACTION PROTOCOL ADDRESSES PORTS -> ADDRESSES PORTS (OPTIONS)";
        return Err(Fault::wrong("rule", format!("a rule has the form {form}")));
    };
    let is_drop = match *action {
        "alert" => false,
        "drop" | "reject" | "rejectsrc" | "rejectdst" | "rejectboth" => true,
        "pass" | "log" => return Err(Fault::unsupported(action, "this action")),
        _ => return Err(Fault::wrong(action, "an action is alert, drop or reject")),
    };
    let name = *protocol;
    let (protocol, version) = match name {
        "tcp" => (Protocol::Tcp, None),
        "tcp-stream" => (Protocol::Streams, None),
        "tcp-pkt" => (Protocol::Segments, None),
        "http" | "http1" => (Protocol::Http, None),
        "udp" => (Protocol::Udp, None),
        "icmp" => (Protocol::Icmp, None),
        "icmpv4" => (Protocol::Icmp, Some(4)),
        "icmpv6" => (Protocol::Icmp, Some(6)),
        "ip" => (Protocol::Ip, None),
        "ipv4" | "ip4" => (Protocol::Ip, Some(4)),
        "ipv6" | "ip6" => (Protocol::Ip, Some(6)),
        _ => return Err(Fault::unsupported(name, "this protocol")),
    };
    let is_both_ways = match *arrow {
        "->" => false,
        "<>" => true,
        _ => return Err(Fault::unsupported(arrow, "this direction")),
    };
    let header = Header {
        src: names.lists.addresses(src)?.of_version(version),
        sports: names.lists.ports(sports)?,
        dst: names.lists.addresses(dst)?.of_version(version),
        dports: names.lists.ports(dports)?,
        is_both_ways,
    };
    if header.src.is_empty() || header.dst.is_empty() {
        return Err(Fault::wrong(name, "its addresses are of the other version"));
    }
    let begin = text.len() - rest.len() + 1;
    let mut options = Options::read(inner, begin, names)?;
    options.signature.is_drop = is_drop;
    finish(header, options, protocol)
}

/// What a rule is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Tcp,
    /// TCP, but not its packets alone.
    Streams,
    /// The packets of TCP alone.
    Segments,
    Http,
    Udp,
    Icmp,
    Ip,
}

/// Words, in which lists in brackets may have spaces.
fn words(head: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let words = head.split(move |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c.is_whitespace() && depth == 0
    });
    words.filter(|word| !word.is_empty()).collect()
}

/// A rule of its parts.
fn finish(header: Header, options: Options<'_>, protocol: Protocol) -> Result<Rule, Fault> {
    let of_packets = verify(&options, protocol).and_then(|()| packets(&header, &options, protocol));
    let (has_stream, of_packets) =
        of_packets.map_err(|fault| match options.place_of(&fault.name) {
            Some(place) => fault.at(place),
            None => fault,
        })?;
    let Options { signature, tests, from_client, bits, is_silent, threshold, .. } = options;
    let is_established = options.is_established;
    let mut buffers: Vec<Tested> = Vec::new();
    let mut is_monotone = true;
    for (buffer, test, is_plain) in tests {
        is_monotone &= is_plain;
        match buffers.iter_mut().find(|of| of.buffer == buffer) {
            Some(of) => of.tests.push(test),
            None => buffers.push(Tested { buffer, tests: vec![test] }),
        }
    }
    for of in &mut buffers {
        is_monotone &= !link(&mut of.tests);
        known(&of.tests)?;
    }
    let has_buffer = buffers.iter().any(|of| of.buffer != Buffer::Raw);
    let is_message = protocol == Protocol::Http || has_buffer;
    let from_client = side(&buffers, from_client)?;
    let stage = match (is_message, is_monotone) {
        _ if !has_stream => Stage::Packet,
        (false, true) => Stage::Stream,
        (false, false) => Stage::StreamEnd,
        (true, _) if buffers.iter().all(|of| of.buffer.is_of_head()) => Stage::Head,
        (true, _) => Stage::Body,
    };
    Ok(Rule {
        signature,
        header,
        from_client,
        is_established,
        stage,
        of_packets,
        buffers,
        bits,
        is_silent,
        threshold,
    })
}

/// Verifies that options fit together.
fn verify(options: &Options<'_>, protocol: Protocol) -> Result<(), Fault> {
    let Options { signature, is_silent, threshold, .. } = options;
    if signature.sid == 0 {
        return Err(Fault::wrong("sid", "a rule has a sid from 1 on"));
    }
    let why = "packets would be dropped without an alert, by a rule with the action drop or reject";
    if signature.is_drop && *is_silent {
        return Err(Fault::unsupported("noalert", why));
    }
    if signature.is_drop && threshold.is_some_and(|of| of.is_limiting()) {
        return Err(Fault::unsupported("threshold", why));
    }
    let is_tcp = matches!(protocol, Protocol::Tcp | Protocol::Streams | Protocol::Http);
    if options.is_of_stream && !is_tcp {
        return Err(Fault::unsupported("flow", "streams of packets"));
    }
    if protocol == Protocol::Icmp {
        let has_flow = options.from_client.is_some() || options.is_established.is_some();
        if has_flow || !options.bits.is_empty() {
            let name = if has_flow { "flow" } else { "flowbits" };
            return Err(Fault::unsupported(name, "packets of ICMP belong to no flow"));
        }
    }
    let has_buffer = options.tests.iter().any(|(buffer, ..)| *buffer != Buffer::Raw);
    let of_packets = match protocol {
        Protocol::Tcp | Protocol::Streams | Protocol::Http => what_of_packets(options),
        Protocol::Segments => Some("tcp-pkt"),
        Protocol::Udp => Some("udp"),
        Protocol::Icmp => Some("icmp"),
        Protocol::Ip => Some("ip"),
    };
    let has_message = protocol == Protocol::Http || has_buffer;
    let has_stream = protocol == Protocol::Streams || options.is_of_stream;
    match of_packets {
        Some(name) if has_message => Err(Fault::unsupported(name, "buffers of HTTP in packets")),
        Some(name) if has_stream => Err(Fault::unsupported(name, "packets of a stream")),
        _ => Ok(()),
    }
}

/// The name of an option that makes a rule of TCP one about packets.
fn what_of_packets(options: &Options<'_>) -> Option<&'static str> {
    if let Some((number, _)) = options.numbers.first() {
        return Some(packet::name(*number));
    }
    let is_of_packets = options.is_of_packets || options.is_established == Some(false);
    is_of_packets.then_some("flow")
}

/// Whether a rule is about streams or messages, and about which packets it is.
fn packets(
    header: &Header,
    options: &Options<'_>,
    protocol: Protocol,
) -> Result<(bool, OfPackets), Fault> {
    let is_of_packets = what_of_packets(options).is_some();
    let (has_stream, mut kinds) = match protocol {
        Protocol::Tcp if is_of_packets => (false, vec![Kind::Tcp, Kind::Fragment]),
        Protocol::Tcp | Protocol::Streams | Protocol::Http => (true, Vec::new()),
        Protocol::Segments => (false, vec![Kind::Tcp, Kind::Fragment]),
        Protocol::Udp => (false, vec![Kind::Udp, Kind::Fragment]),
        Protocol::Icmp => (false, vec![Kind::Icmp, Kind::Fragment]),
        // Of TCP, what the stream says counts, wherever packets cut it.
        Protocol::Ip if !is_of_packets && !options.tests.is_empty() => {
            (true, vec![Kind::Udp, Kind::Icmp, Kind::Other])
        }
        Protocol::Ip => (false, Kind::ALL.to_vec()),
    };
    let has_flow = options.from_client.is_some() || options.is_established.is_some();
    let needs_flow = has_flow || !options.bits.is_empty() || !header.has_all_ports();
    kinds.retain(|kind| kind.has_flow() || !needs_flow);
    // What a fragment carries is not known before the packet is put together.
    kinds.retain(|kind| *kind != Kind::Fragment || options.tests.is_empty());
    let protocols: &[u8] = match protocol {
        Protocol::Tcp | Protocol::Streams | Protocol::Segments | Protocol::Http => &[6],
        Protocol::Udp => &[17],
        Protocol::Icmp => &[1, 58],
        Protocol::Ip => &[],
    };
    for (number, _) in &options.numbers {
        kinds.retain(|kind| number.is_of(*kind));
        if kinds.is_empty() {
            let why = "no packet has what the rule asks for";
            return Err(Fault::wrong(packet::name(*number), why));
        }
    }
    if kinds.is_empty() && !has_stream {
        return Err(Fault::wrong("ports", "packets of ICMP have no ports"));
    }
    Ok((has_stream, OfPackets { kinds, numbers: options.numbers.clone(), protocols }))
}

/// Notes for each test whether a later one counts from its end. Returns whether that depends on how
/// far a regular expression reaches, which more bytes can change.
fn link(tests: &mut [Test]) -> bool {
    let mut is_fed = false;
    let mut is_open = false;
    for test in tests.iter_mut().rev() {
        if test.has_end() {
            test.feeds = is_fed;
            is_open |= is_fed && matches!(test.what, What::Regex(_));
            is_fed = false;
        }
        is_fed |= test.is_relative;
    }
    is_open
}

/// Verifies that the tests of a buffer use only numbers that were found in the same buffer before.
fn known(tests: &[Test]) -> Result<(), Fault> {
    let mut found = Vec::new();
    for test in tests {
        let (name, used) = match &test.what {
            What::Compare(number, _, value) => ("byte_test", vec![number.at, *value]),
            What::Jump(number, _) => ("byte_jump", vec![number.at]),
            What::Extract(number, ..) => ("byte_extract", vec![number.at]),
            _ => continue,
        };
        let is_known = |value: &Value| match value {
            Value::Fixed(_) => true,
            Value::Found(at) => found.contains(at),
        };
        if !used.iter().all(is_known) {
            return Err(Fault::unsupported(name, "a number from another buffer"));
        }
        if let What::Extract(.., at) = test.what {
            found.push(at);
        }
    }
    Ok(())
}

/// The end whose bytes the rule sees, by its flow and by its buffers.
fn side(buffers: &[Tested], from_client: Option<bool>) -> Result<Option<bool>, Fault> {
    let mut sides = from_client;
    for of in buffers.iter().filter_map(|of| of.buffer.is_of_requests()) {
        if sides.is_some_and(|side| side != of) {
            let why = "buffers of requests together with responses, or with the other direction";
            return Err(Fault::unsupported("flow", why));
        }
        sides = Some(of);
    }
    Ok(sides)
}
