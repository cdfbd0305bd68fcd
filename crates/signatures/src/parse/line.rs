//! A line with a rule: its header, and what its options make of it.

use super::fault::Fault;
use super::names::Names;
use super::options::Options;
use crate::limits::MAX_TESTS;
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
    let is_http = match *protocol {
        "tcp" | "tcp-stream" => false,
        "http" | "http1" => true,
        _ => return Err(Fault::unsupported(protocol, "this protocol")),
    };
    let is_both_ways = match *arrow {
        "->" => false,
        "<>" => true,
        _ => return Err(Fault::unsupported(arrow, "this direction")),
    };
    let header = Header {
        src: names.lists.addresses(src)?,
        sports: names.lists.ports(sports)?,
        dst: names.lists.addresses(dst)?,
        dports: names.lists.ports(dports)?,
        is_both_ways,
    };
    let begin = text.len() - rest.len() + 1;
    let mut options = Options::read(inner, begin, names)?;
    options.signature.is_drop = is_drop;
    finish(header, options, is_http)
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
fn finish(header: Header, options: Options, is_http: bool) -> Result<Rule, Fault> {
    let Options { signature, tests, from_client, .. } = options;
    if signature.sid == 0 {
        return Err(Fault::wrong("sid", "a rule has a sid from 1 on"));
    }
    if tests.len() > MAX_TESTS {
        return Err(Fault::wrong("content", format!("a rule has at most {MAX_TESTS} tests")));
    }
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
    }
    let is_message = is_http || buffers.iter().any(|of| of.buffer != Buffer::Raw);
    let from_client = side(&buffers, from_client)?;
    let stage = match (is_message, is_monotone) {
        (false, true) => Stage::Stream,
        (false, false) => Stage::StreamEnd,
        (true, _) if buffers.iter().all(|of| of.buffer.is_of_head()) => Stage::Head,
        (true, _) => Stage::Body,
    };
    Ok(Rule { signature, header, from_client, stage, buffers })
}

/// Notes for each test whether a later one counts from its end. Returns whether that depends on how
/// far a regular expression reaches, which more bytes can change.
fn link(tests: &mut [Test]) -> bool {
    let mut is_fed = false;
    let mut is_open = false;
    for test in tests.iter_mut().rev() {
        if !test.is_negated && matches!(test.what, What::Content(_) | What::Regex(_)) {
            test.feeds = is_fed;
            is_open |= is_fed && matches!(test.what, What::Regex(_));
            is_fed = false;
        }
        is_fed |= test.is_relative;
    }
    is_open
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
