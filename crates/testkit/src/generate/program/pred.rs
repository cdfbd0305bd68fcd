//! Generates predicates of rows. Each predicate has an *anchor* that no other row of its match
//! covers: a range of a field that only this row names, or a test that only this row makes.

use super::expr::Exprs;
use super::pieces::{ParamKind, Per, Pieces, Scope};
use super::types::{BOOL, addresses, literal, of_field, prefix4, readable};
use crate::generate::Rng;
use braid_ir::model::Kind;
use braid_packet::{Field, Header};
use std::collections::{BTreeMap, BTreeSet};

/// The test for packets that come back from a queue.
pub(super) const HELD: &str = "pkt.held";

/// Combinations of headers that occur in packets.
const PROFILES: &[&[Header]] = &[
    &[],
    &[Header::Eth],
    &[Header::Vlan],
    &[Header::Inet],
    &[Header::Ip4],
    &[Header::Ip6],
    &[Header::L4],
    &[Header::Ip4, Header::L4],
    &[Header::Ip4, Header::Tcp],
    &[Header::Ip4, Header::Tcp],
    &[Header::Ip6, Header::Tcp],
    &[Header::Ip4, Header::Udp],
    &[Header::Udp],
    &[Header::IcmpEcho],
    &[Header::Icmp6Echo],
    &[Header::Quoted4],
];

/// The predicates of one match.
#[derive(Clone, Debug, Default)]
pub(super) struct Anchors {
    /// For each field, the next value that no row names yet.
    next: BTreeMap<Field, u128>,
    /// The next packet length that no row names yet.
    length: u32,
}

/// A predicate and the scope behind it.
pub(super) struct Pred {
    /// Its written form.
    pub(super) text: String,
    /// The scope where it holds.
    pub(super) scope: Scope,
}

/// Makes a predicate that contains this test (or one of its own) and tests for certain headers.
pub(super) fn row(
    rng: &mut Rng,
    pieces: &Pieces,
    scope: &Scope,
    anchors: &mut Anchors,
    wanted: Option<(String, Vec<Header>)>,
) -> Option<Pred> {
    let mut atoms = Vec::new();
    let profile: &[Header] = match wanted {
        Some(_) => &[],
        None => PROFILES[rng.below(PROFILES.len())],
    };
    let mut inner = scope.clone();
    let tests = wanted.is_some();
    // The row for packets from a queue must match all of them, because each packet has to leave at
    // some time.
    let alone = matches!(&wanted, Some((test, _)) if test == HELD);
    if let Some((test, mut headers)) = wanted {
        if headers.is_empty() && !alone {
            headers.push(*rng.pick(&[Header::Inet, Header::Eth, Header::Ip4]));
        }
        if !test.is_empty() {
            atoms.push(test);
        }
        for header in headers {
            inner = inner.with(&[header]);
            atoms.push(format!("has {}", header.name()));
        }
    }
    // In nested rows some headers are known already. Further ones would contradict them.
    if scope.headers.len() <= 1 {
        for header in profile {
            inner = inner.with(&[*header]);
            atoms.push(format!("has {}", header.name()));
        }
    }
    match anchor(rng, &mut inner, anchors) {
        _ if alone => {}
        Some(anchored) => atoms.push(anchored),
        None if tests => {
            // No other predicate compares the length by itself.
            let start = anchors.length;
            anchors.length += 150;
            atoms.push(format!("pkt.len in {start}..{}", start + 149));
        }
        None => return None,
    }
    if !alone && rng.one_in(2) {
        atoms.extend(soft(rng, pieces, &inner));
        // A second test of the same field could contradict the first test.
        if rng.one_in(3) {
            atoms.extend(state_test(rng, pieces, &inner));
        }
    }
    if rng.one_in(5) && !alone {
        atoms.push(if rng.one_in(2) { "forward" } else { "backward" }.to_owned());
    }
    atoms.extend(side(rng, pieces).filter(|_| !alone));
    // The row must not contain the negation of its own test.
    if let Some(test) = atoms.first().cloned().filter(|_| tests) {
        atoms.retain(|atom| *atom != format!("(not {test})"));
    }
    let mut seen = BTreeSet::new();
    atoms.retain(|atom| seen.insert(atom.clone()));
    if rng.one_in(3) {
        atoms.reverse();
    }
    Some(Pred { text: atoms.join(" and "), scope: inner })
}

/// Fields that distinguish rows. Traffic has many values of them.
const ANCHORS: &[Field] = &[
    Field::EthSrc,
    Field::EthDst,
    Field::VlanId,
    Field::IpSrc,
    Field::IpDst,
    Field::IpTtl,
    Field::IpTos,
    Field::IpId,
    Field::Ip6Src,
    Field::Ip6Dst,
    Field::Ip6Ttl,
    Field::InetSrc,
    Field::InetProto,
    Field::InetTtl,
    Field::InetSport,
    Field::InetDport,
    Field::L4Sport,
    Field::L4Dport,
    Field::TcpFlags,
    Field::TcpWindow,
    Field::IcmpId,
    Field::IcmpSeq,
    Field::Icmp6Id,
    Field::QuotedIpSrc,
    Field::QuotedProto,
];

/// A range of a field that only this row names.
fn anchor(rng: &mut Rng, scope: &mut Scope, anchors: &mut Anchors) -> Option<String> {
    let fields: Vec<Field> = readable(&scope.headers)
        .filter(|field| ANCHORS.contains(field) && !scope.compared.contains(field))
        .collect();
    if fields.is_empty() {
        return None;
    }
    let field = *rng.pick(&fields);
    let ty = of_field(field);
    let base = match ty.kind {
        Kind::Ip4 | Kind::Addr => 0x0a00_0000,
        Kind::Ip6 => 0x2001_0db8 << 96,
        Kind::Mac => 0x0200_0000_0000,
        _ => 0,
    };
    let first = anchors.next.get(&field).copied();
    let start = base + first.unwrap_or(1);
    let reach = match (ty.kind, ty.width) {
        (Kind::Ip4 | Kind::Ip6 | Kind::Addr | Kind::Mac, _) => 4,
        (_, 8) => 40,
        _ => 12_000,
    };
    let span = if rng.one_in(4) { 0 } else { u128::from(rng.range(0, reach)) };
    let end = start + span;
    if end + 1 >= ty.max() {
        return None;
    }
    anchors.next.insert(field, end + 1 - base + u128::from(rng.range(0, 2)));
    scope.compared.push(field);
    let name = field.info().name;
    let show = |value| ty.kind.show(value);
    Some(match rng.below(4) {
        _ if start == end => format!("{name} == {}", show(start)),
        0 => format!("{name} in {{ {}, {} }}", show(start), show(end)),
        // No row has named a lower value yet, so this row may take all of them.
        1 if first.is_none() && base == 0 => format!("{name} < {}", show(end + 1)),
        _ => format!("{name} in {}..{}", show(start), show(end)),
    })
}

/// A test of the side that the packet came from, in some rows.
fn side(rng: &Rng, pieces: &Pieces) -> Option<String> {
    // These draws change no others.
    let mut own = Rng::new(rng.clone().bits() ^ 0x7369_6465);
    if !pieces.has_sides || pieces.ports.is_empty() || !own.one_in(3) {
        return None;
    }
    let not = if own.one_in(3) { "not " } else { "" };
    let declared = pieces.ports.iter().map(String::as_str);
    let sides: Vec<_> = declared.chain(["left", "right"]).collect();
    Some(format!("({not}from {})", own.pick(&sides)))
}

/// A test that makes a row match less often. It uses no field that distinguishes rows.
fn soft(rng: &mut Rng, pieces: &Pieces, scope: &Scope) -> Option<String> {
    let fields: Vec<Field> = readable(&scope.headers)
        .filter(|field| !ANCHORS.contains(field) && of_field(*field) != BOOL)
        .collect();
    match rng.below(7) {
        0 => Some(Exprs { rng, pieces, scope }.condition()).filter(|text| {
            fields.iter().any(|field| text.split(' ').next() == Some(field.info().name))
        }),
        1 => {
            let field = fields.get(rng.below(fields.len()))?;
            let ty = of_field(*field);
            let value = literal(rng, ty);
            Some(format!("(not {} == {value})", field.info().name))
        }
        2 => {
            let tcp = Exprs { rng, pieces, scope }.condition();
            let length = 60 + rng.below(400);
            Some(format!("({tcp} or pkt.len > {length})"))
        }
        3 => state_test(rng, pieces, scope),
        4 => param_test(rng, pieces, scope),
        5 if scope.has(&[Header::Inet]) && rng.one_in(2) => {
            Some(format!("(not inet.dst in {})", addresses(rng)))
        }
        5 if scope.has(&[Header::Ip4]) => {
            let side = *rng.pick(&["ip.src", "ip.dst"]);
            Some(format!("(not {side} in {})", prefix4(rng)))
        }
        _ => {
            let (mask, value) = (rng.range(1, 15), rng.range(0, 1));
            let wide = |field: &&Field| {
                of_field(**field).kind == Kind::Uint && of_field(**field).width >= 8
            };
            let field = fields.iter().find(wide)?;
            let value = if value == 0 { 0 } else { mask };
            Some(format!("({} & {mask}) != {value}", field.info().name))
        }
    }
}

fn state_test(rng: &mut Rng, pieces: &Pieces, scope: &Scope) -> Option<String> {
    let number = rng.below(pieces.states.len());
    let state = pieces.states.get(number)?;
    if scope.exists.contains(&number) || scope.assigned.contains(&number) {
        return None;
    }
    if matches!(state.per, Per::Types(_)) || !scope.has(&state.per.needs()) {
        return None;
    }
    match state.scalar() {
        Some(ty) if ty == BOOL && state.default => Some(state.name.clone()),
        _ if state.per != Per::Global => Some(format!("(not exists {})", state.name)),
        _ => None,
    }
}

fn param_test(rng: &mut Rng, pieces: &Pieces, scope: &Scope) -> Option<String> {
    let param = pieces.params.get(rng.below(pieces.params.len()))?;
    let test = match param.kind {
        ParamKind::Rules if scope.has(&[Header::Inet]) => format!("packet in {}", param.name),
        ParamKind::Patterns => format!("payload matches {}", param.name),
        ParamKind::List | ParamKind::Backends if scope.has(&[Header::Inet]) && rng.one_in(2) => {
            format!("inet.dst in {}", param.name)
        }
        ParamKind::Routes if scope.has(&[Header::Inet]) && rng.one_in(2) => {
            format!("inet.dst in {}", param.name)
        }
        ParamKind::List | ParamKind::Backends if scope.has(&[Header::Ip4]) => {
            format!("ip.dst in {}", param.name)
        }
        ParamKind::Routes if scope.has(&[Header::Ip6]) => format!("ip6.dst in {}", param.name),
        _ => return None,
    };
    Some(if rng.one_in(3) { format!("(not {test})") } else { test })
}
