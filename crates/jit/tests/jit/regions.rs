//! Lookups of the same address: the outcome of an address group is determined once, and is the same
//! each time.

use crate::calls::{named, numbered, run, show, tag};
use crate::host::{Asked, Recorder};
use crate::interp::Interp;
use crate::random::{Builder, Random, to};
use braid_ir::engine::Fault;
use braid_ir::model::{BinOp, CmpOp, Op, ParamId, SetRef, ValueId, Word};
use braid_ir::residual::{End, HeaderMask, What};
use braid_ir::show::max_of;
use braid_ir::value::IntervalSet;
use braid_jit::{
    AddressGroups, Code, Count, Ended, Index, Resource, Resources, Search, compile_with,
};
use braid_packet::{Field, Header, Packet};
use std::sync::Arc;

const ANY: HeaderMask = HeaderMask { care: 0, present: 0 };
const MEMBERS: usize = 3;

/// Route tables in which the lowest two bits of an address decide; lists of three members.
struct Means {
    by_index: bool,
    list: Vec<Vec<Word>>,
    asked: Vec<Vec<(u16, ParamId)>>,
}

impl Means {
    fn new(by_index: bool) -> Self {
        let list = (0..MEMBERS as u128).map(|n| vec![n * 10, n * 10 + 1, n << 100 | 7]).collect();
        Means { by_index, list, asked: Vec::new() }
    }
}

impl Resources for Means {
    fn number(&mut self, node: u16, resource: Resource) -> Option<u32> {
        numbered(node, resource)
    }

    fn address_groups(&mut self, tables: &[(u16, ParamId)], wide: bool) -> Option<AddressGroups> {
        self.asked.push(tables.to_vec());
        if !self.by_index || wide {
            return Some(AddressGroups { count: 4, search: Search::Host(9) });
        }
        let runs: Vec<(u32, u32)> = (0..64).map(|n| (n, n & 3)).collect();
        let index = Index::new(&runs, 4, usize::MAX).unwrap();
        Some(AddressGroups { count: 4, search: Search::Index(Arc::new(index)) })
    }

    fn list(&self, _: u16, param: ParamId) -> Option<&[Vec<Word>]> {
        (param.0 == 5).then_some(&self.list)
    }
}

fn routed(builder: &mut Builder, param: u32, addr: ValueId) -> (ValueId, ValueId) {
    let (found, hop) = (builder.value(1), builder.value(32));
    builder.op(Op::Route { found, hop, param: ParamId(param), addr });
    (found, hop)
}

fn member(builder: &mut Builder, index: ValueId, column: u32, width: u16) -> ValueId {
    let out = builder.value(width);
    builder.op(Op::ListGet { out, param: ParamId(5), index, column });
    out
}

fn bin(builder: &mut Builder, op: BinOp, a: ValueId, b: ValueId, width: u16) -> ValueId {
    let out = builder.value(width);
    builder.op(Op::Bin { out, op, a, b });
    out
}

/// Looks up an address from a tag in two tables, and reads the list member at the hop minus `less`.
/// An event shows the results together with another tag.
///
/// ```text
/// b0: route -> b1 / b3     b1: member, route -> b2 / b4(member)
/// b2: member (wide), show  b3: show                 b4: show
/// ```
fn two_tables(width: u16, less: u128) -> Builder {
    let mut builder = Builder::new(ANY, 5);
    let (addr, other) = (tag(&mut builder, 0, width), tag(&mut builder, 1, 16));
    let (found, hop) = routed(&mut builder, 0, addr);
    builder.end(End::Branch { cond: found, yes: to(1, &[]), no: to(3, &[]) });
    builder.block = 1;
    let less = builder.constant(32, less);
    let index = bin(&mut builder, BinOp::SubWrap, hop, less, 32);
    let first = member(&mut builder, index, 1, 48);
    let (again, _) = routed(&mut builder, 1, addr);
    let given = builder.param(4, 48);
    builder.end(End::Branch { cond: again, yes: to(2, &[]), no: to(4, &[first]) });
    builder.block = 2;
    let second = member(&mut builder, index, 2, 128);
    let constant = builder.constant(8, 77);
    show(&mut builder, &[first, second, other, constant, hop]);
    builder.block = 3;
    show(&mut builder, &[found, other]);
    builder.block = 4;
    show(&mut builder, &[given, other]);
    builder
}

struct Ready {
    code: Code,
    host: Recorder,
}

impl Ready {
    fn new(builder: &Builder, by_index: bool) -> Self {
        let code = compile_with(&builder.residual, &mut Means::new(by_index));
        let code = code.unwrap_or_else(|why| panic!("{why}"));
        Ready { code, host: Recorder::new(&builder.residual) }
    }

    /// How a packet with these tags ended, and the calls of the host.
    fn run(&mut self, tags: &[u128]) -> (Ended, Vec<Asked>) {
        self.host.tags = tags.to_vec();
        self.host.asked.clear();
        let (ended, _) = run(&self.code, &mut self.host, &mut named("udp"));
        (ended, self.host.asked.clone())
    }
}

/// The calls for route tables.
fn routes(asked: &[Asked]) -> usize {
    asked.iter().filter(|one| matches!(one, Asked::Route(..))).count()
}

/// The values of the last event.
fn shown(asked: &[Asked]) -> Vec<u128> {
    match asked.last() {
        Some(Asked::Step(_, _, args)) => args.clone(),
        other => panic!("{other:?}"),
    }
}

// The host has a route for odd addresses, with hop 2^32 - 2.
const HOP: u128 = 0xffff_fffe;

#[test]
fn second_packet_of_an_address_group_looks_nothing_up() {
    for (width, by_index) in [(32, true), (32, false), (128, false)] {
        let mut ready = Ready::new(&two_tables(width, HOP - 2), by_index);
        for (addr, other) in [(1, 5), (1, 6), (5, 7), (3, 8), (3, 9)] {
            let (ended, asked) = ready.run(&[addr, other]);
            assert_eq!(ended, Ended::End(2));
            assert_eq!(shown(&asked), [21, 2 << 100 | 7, other, 77, HOP], "{addr} {other}");
            // Address groups 1 and 3 are new to packets one and four.
            let expected = if [5, 8].contains(&other) { 2 } else { 0 };
            assert_eq!(routes(&asked), expected, "{addr} {other}");
            let searches =
                asked.iter().filter(|one| matches!(one, Asked::AddressGroup(..))).count();
            assert_eq!(searches, usize::from(!by_index), "{addr} {other}");
        }
    }
}

#[test]
fn each_exit_has_values_of_its_own() {
    for by_index in [true, false] {
        let mut ready = Ready::new(&two_tables(32, HOP - 1), by_index);
        // The second table has no route for 3 and the like.
        ready.host.no_route = vec![(301, 3)];
        for round in 0..3 {
            let (ended, asked) = ready.run(&[2, round]);
            assert_eq!((ended, shown(&asked)), (Ended::End(3), vec![0, round]));
            let (ended, asked) = ready.run(&[3, round]);
            assert_eq!((ended, shown(&asked)), (Ended::End(4), vec![11, round]));
            let (ended, asked) = ready.run(&[1, round]);
            assert_eq!(ended, Ended::End(2));
            assert_eq!(shown(&asked), [11, 1 << 100 | 7, round, 77, HOP]);
            assert_eq!(routes(&asked), if round == 0 { 2 } else { 0 });
        }
    }
}

#[test]
fn faults_are_never_on_record() {
    // The member's number is 3, past the end.
    let mut ready = Ready::new(&two_tables(32, HOP - MEMBERS as u128), true);
    for other in 0..3 {
        let (ended, asked) = ready.run(&[1, other]);
        assert_eq!(ended, Ended::Fault { block: 1, step: 2, fault: Fault::Index });
        assert_eq!(routes(&asked), 1);
        let (ended, _) = ready.run(&[2, other]);
        assert_eq!(ended, Ended::End(3));
    }
}

#[test]
fn addresses_without_a_group_are_looked_up_each_time() {
    let mut ready = Ready::new(&two_tables(32, HOP), false);
    ready.host.classless = true;
    for other in 0..3 {
        let (ended, asked) = ready.run(&[1, other]);
        assert_eq!((ended, routes(&asked)), (Ended::End(2), 2));
        assert_eq!(shown(&asked), [1, 7, other, 77, HOP]);
        let (ended, asked) = ready.run(&[2, other]);
        assert_eq!((ended, routes(&asked)), (Ended::End(3), 1));
    }
}

#[test]
fn tables_of_one_address_are_searched_once_a_packet() {
    // An event between the lookups ends the region.
    let mut builder = Builder::new(ANY, 1);
    let addr = tag(&mut builder, 0, 32);
    for param in [4, 1, 4] {
        let (found, _) = routed(&mut builder, param, addr);
        show(&mut builder, &[found]);
    }
    let mut means = Means::new(false);
    let code = compile_with(&builder.residual, &mut means).unwrap();
    assert_eq!(means.asked, [vec![(0, ParamId(1)), (0, ParamId(4))]]);
    let mut host = Recorder { tags: vec![6], ..Recorder::new(&builder.residual) };
    for lookups in [3, 0, 0] {
        host.asked.clear();
        run(&code, &mut host, &mut named("udp"));
        let searches =
            host.asked.iter().filter(|one| matches!(one, Asked::AddressGroup(9, 6))).count();
        assert_eq!((searches, routes(&host.asked)), (1, lookups));
    }
}

#[test]
fn another_address_is_another_group() {
    let mut builder = Builder::new(ANY, 1);
    let (a, b) = (tag(&mut builder, 0, 32), tag(&mut builder, 1, 32));
    let (first, _) = routed(&mut builder, 0, a);
    let (second, _) = routed(&mut builder, 0, b);
    let (third, _) = routed(&mut builder, 0, a);
    show(&mut builder, &[first, second, third]);
    let mut ready = Ready::new(&builder, true);
    for (a, b) in [(1, 2), (2, 1), (1, 1), (2, 2), (1, 2), (2, 1), (1, 1), (2, 2)] {
        let (_, asked) = ready.run(&[a, b]);
        assert_eq!(shown(&asked), [a & 1, b & 1, a & 1]);
    }
}

#[test]
fn members_of_a_list_that_stays_are_read_without_the_host() {
    let mut builder = Builder::new(ANY, 1);
    let index = tag(&mut builder, 0, 64);
    let narrow = member(&mut builder, index, 1, 48);
    let wide = member(&mut builder, index, 2, 128);
    show(&mut builder, &[narrow, wide]);
    let mut ready = Ready::new(&builder, true);
    for index in 0..MEMBERS as u128 {
        let (_, asked) = ready.run(&[index]);
        assert_eq!(shown(&asked), [index * 10 + 1, index << 100 | 7]);
        assert_eq!(asked.len(), 2);
    }
    for index in [MEMBERS as u128, max_of(64), 1 << 61] {
        let (ended, _) = ready.run(&[index]);
        assert_eq!(ended, Ended::Fault { block: 0, step: 1, fault: Fault::Index });
    }
}

/// Fields from which the programs of [`in_fields`] take their values, in the order of the tags.
const FIELDS: [Field; 4] = [Field::IpDst, Field::IpSrc, Field::IpId, Field::IpLen];

/// The sources and sinks of random programs: tags and events, which belong to the host, or fields,
/// which do not.
fn taken(builder: &mut Builder, number: usize, width: u16, in_fields: bool) -> ValueId {
    if !in_fields {
        return tag(builder, number as u32, width);
    }
    let field = FIELDS[number];
    let out = builder.value(field.info().width);
    builder.op(Op::Load { out, field });
    let wide = builder.value(32);
    builder.op(Op::Resize { out: wide, a: out });
    wide
}

/// Programs of random steps over two addresses and two other values, in random graphs.
fn random_program(random: &mut Random, in_fields: bool) -> Builder {
    let blocks = 2 + random.below(7);
    let shape = HeaderMask { care: 1 << Header::Ip4 as u32, present: 1 << Header::Ip4 as u32 };
    let mut builder = Builder::new(if in_fields { shape } else { ANY }, blocks);
    let wide = if !in_fields && random.chance(20) { 128 } else { 32 };
    let addrs = [(0, 32), (1, wide)].map(|(n, width)| taken(&mut builder, n, width, in_fields));
    // Blocks may use their parameter.
    let mut known: Vec<Vec<ValueId>> = vec![Vec::new(); blocks];
    known[0] = [2, 3].map(|n| taken(&mut builder, n, 32, in_fields)).to_vec();
    let mut ways = vec![0; blocks];
    ways[0] = 1;
    for at in 0..blocks {
        builder.block = at;
        if ways[at] == 0 {
            continue;
        }
        let mut values = std::mem::take(&mut known[at]);
        for _ in 0..random.below(6) {
            random_step(random, &mut builder, &mut values, addrs, in_fields);
        }
        let later: Vec<usize> = (at + 1..blocks).collect();
        if later.is_empty() || random.chance(20) {
            continue;
        }
        let next = [random.one_of(&later), random.one_of(&later)];
        let mut target = |builder: &mut Builder, next: usize| {
            ways[next] += 1;
            if ways[next] == 1 {
                let param = builder.param(next, 32);
                known[next].push(param);
            }
            to(next, &[random_value(random, &values)])
        };
        let (yes, no) = (target(&mut builder, next[0]), target(&mut builder, next[1]));
        if random.chance(20) {
            // The other block has its parameter, too.
            builder.end(End::Jump(yes));
            continue;
        }
        let cond = random_test(random, &mut builder, &values, 3);
        builder.end(End::Branch { cond, yes, no });
    }
    builder
}

fn random_value(random: &mut Random, values: &[ValueId]) -> ValueId {
    values[random.below(values.len())]
}

/// A condition with `layers` layers.
fn random_test(
    random: &mut Random,
    builder: &mut Builder,
    values: &[ValueId],
    layers: u32,
) -> ValueId {
    let out = builder.value(1);
    let (a, b) = (random_value(random, values), random_value(random, values));
    let mut inner = |builder: &mut Builder| random_test(random, builder, values, layers - 1);
    let op = if layers == 0 { 3 } else { (a.0 + b.0) % 5 };
    let op = match op {
        0 => Op::Bin { out, op: BinOp::And, a: inner(builder), b: inner(builder) },
        1 => Op::Bin { out, op: BinOp::Or, a: inner(builder), b: inner(builder) },
        2 => Op::Not { out, a: inner(builder) },
        3 => Op::Cmp { out, op: random.one_of(&[CmpOp::Lt, CmpOp::Eq, CmpOp::Ge]), a, b },
        _ => {
            let low = [(0, 0), (2, 3), (5, 5), (7, 0xffff_0000)];
            let high = [(1, max_of(32)), (0, 0)];
            let all = if random.chance(50) { &low[..] } else { &high[..] };
            Op::InSet { out, a, set: SetRef::Const(IntervalSet::new(all.to_vec())) }
        }
    };
    builder.op(op);
    out
}

fn random_step(
    random: &mut Random,
    builder: &mut Builder,
    values: &mut Vec<ValueId>,
    addrs: [ValueId; 2],
    in_fields: bool,
) {
    let (a, b) = (random_value(random, values), random_value(random, values));
    match random.below(9) {
        0..3 => {
            let addr = addrs[usize::from(random.chance(25))];
            let (found, hop) = routed(builder, random.below(4) as u32, addr);
            let zero = builder.constant(32, HOP - random.below(4) as u128);
            let out = builder.value(32);
            builder.op(Op::Bin { out, op: BinOp::SubWrap, a: hop, b: zero });
            let chosen = builder.value(32);
            builder.op(Op::Select { out: chosen, cond: found, a: out, b });
            values.extend([out, chosen]);
        }
        3 => values.push(member(builder, a, 0, 32)),
        4 => {
            let op = random.one_of(&[BinOp::AddWrap, BinOp::Xor, BinOp::Div, BinOp::Min]);
            values.push(bin(builder, op, a, b, 32));
        }
        5 => {
            let is_in = random_test(random, builder, values, 1);
            let out = builder.value(32);
            builder.op(Op::Resize { out, a: is_in });
            values.push(out);
        }
        6 => values.push(builder.constant(32, random.below(4) as u128)),
        _ if in_fields && random.chance(85) => {
            builder.push(What::Write(vec![(Field::IpSrc, a), (Field::IpDst, b)]));
        }
        _ => show(builder, &[a, b]),
    }
}

#[test]
fn random_programs_do_the_same_for_each_packet_of_an_address_group() {
    for seed in braid_cases::seeds(600) {
        let mut random = Random::new(seed);
        let in_fields = seed % 2 == 0;
        let builder = random_program(&mut random, in_fields);
        let mut ready = Ready::new(&builder, random.chance(70));
        ready.host.no_route = vec![(301, 3), (302, 1), (302, 2)];
        for packet in 0..24 {
            let mut fresh = named("udp");
            let layout = fresh.parse();
            let values: Vec<u128> = (0..4).map(|_| random.below(6) as u128).collect();
            for (field, value) in FIELDS.iter().zip(&values).take(3) {
                assert!(fresh.set(&layout, *field, *value));
            }
            ready.host.tags = values;
            ready.host.asked.clear();
            let made = seen(&builder, &ready.host, fresh.clone(), |packet, host| {
                host.asked.clear();
                run(&ready.code, host, packet)
            });
            let expected = seen(&builder, &ready.host, fresh, |packet, host| {
                host.lists = Means::new(true).list;
                host.routes_by_step = true;
                by_steps(&builder, packet, host)
            });
            assert_eq!(made, expected, "seed {seed}, packet {packet}");
        }
    }
}

/// The observable result of a run.
type Seen = ((Ended, [Count; 3]), Vec<Asked>, Packet);

fn seen(
    builder: &Builder,
    like: &Recorder,
    mut packet: Packet,
    run: impl FnOnce(&mut Packet, &mut Recorder) -> (Ended, [Count; 3]),
) -> Seen {
    let mut host = Recorder::new(&builder.residual);
    host.tags.clone_from(&like.tags);
    host.no_route.clone_from(&like.no_route);
    let ended = run(&mut packet, &mut host);
    (ended, host.asked.into_iter().filter(|one| is_event(builder, one)).collect(), packet)
}

fn is_event(builder: &Builder, asked: &Asked) -> bool {
    let Asked::Step(block, step, _) = asked else { return false };
    let steps = &builder.residual.blocks[*block as usize].steps;
    matches!(steps[*step as usize].what, What::Op(Op::Emit { .. }))
}

/// By the interpreter.
fn by_steps(builder: &Builder, packet: &mut Packet, host: &mut Recorder) -> (Ended, [Count; 3]) {
    let mut layout = packet.parse();
    let mut counts = [Count::default(); 3];
    let ended = Interp {
        residual: &builder.residual,
        host,
        packet,
        layout: &mut layout,
        now: 5,
        counts: &mut counts,
        values: Vec::new(),
        entered: Vec::new(),
    }
    .run();
    (ended, counts)
}

/// ```text
/// b0: load, (ttl in a set) and (tos in a set) -> b1 / b2     b1: route -> b3 / b4
/// b2: show     b3: member, write     b4: show
/// ```
fn main_path() -> Builder {
    let shape = HeaderMask { care: 1 << Header::Ip4 as u32, present: 1 << Header::Ip4 as u32 };
    let mut builder = Builder::new(shape, 5);
    let load = |builder: &mut Builder, field: Field| {
        let out = builder.value(field.info().width);
        builder.op(Op::Load { out, field });
        out
    };
    let (addr, ttl) = (load(&mut builder, Field::IpDst), load(&mut builder, Field::IpTtl));
    let tos = load(&mut builder, Field::IpTos);
    let within = |builder: &mut Builder, a: ValueId, set: &[(u128, u128)]| {
        let out = builder.value(1);
        let set = SetRef::Const(IntervalSet::new(set.to_vec()));
        builder.op(Op::InSet { out, a, set });
        out
    };
    let a = within(&mut builder, ttl, &[(3, 90), (100, 255)]);
    let b = within(&mut builder, tos, &[(0, 7)]);
    let cond = bin(&mut builder, BinOp::And, a, b, 1);
    builder.end(End::Branch { cond, yes: to(1, &[]), no: to(2, &[]) });
    builder.block = 1;
    let (found, hop) = routed(&mut builder, 0, addr);
    builder.end(End::Branch { cond: found, yes: to(3, &[]), no: to(4, &[]) });
    builder.block = 2;
    show(&mut builder, &[ttl]);
    builder.block = 3;
    let less = builder.constant(32, HOP - 2);
    let index = bin(&mut builder, BinOp::SubWrap, hop, less, 32);
    let wide = member(&mut builder, index, 1, 48);
    let new = builder.value(32);
    builder.op(Op::Resize { out: new, a: wide });
    builder.push(What::Write(vec![(Field::IpSrc, new), (Field::IpTtl, tos)]));
    builder.block = 4;
    show(&mut builder, &[found]);
    builder
}

#[test]
fn packet_that_leaves_the_main_path_early_runs_the_whole_program() {
    let builder = main_path();
    let mut ready = Ready::new(&builder, true);
    // Two packets of each address group; before and between them, some packets that leave the main
    // path.
    let packets = [(1, 9, 3), (2, 9, 3), (1, 95, 3), (1, 9, 8), (1, 2, 3), (1, 100, 0), (2, 3, 7)];
    let ends = [3, 4, 2, 2, 2, 3, 4];
    let lookups = [1, 1, 0, 0, 0, 0, 0];
    for ((of, end), routes_asked) in packets.into_iter().zip(ends).zip(lookups) {
        let mut packet = named("udp");
        let layout = packet.parse();
        for (field, value) in [(Field::IpDst, of.0), (Field::IpTtl, of.1), (Field::IpTos, of.2)] {
            assert!(packet.set(&layout, field, value));
        }
        ready.host.asked.clear();
        let (ended, counts) = run(&ready.code, &mut ready.host, &mut packet);
        assert_eq!(ended, Ended::End(end), "{of:?}");
        assert_eq!(counts[0].packets, 1, "{of:?}");
        assert_eq!(routes(&ready.host.asked), routes_asked, "{of:?}");
        if end == 3 {
            let now = |field| packet.get(&layout, field).unwrap();
            assert_eq!((now(Field::IpSrc), now(Field::IpTtl)), (21, of.2), "{of:?}");
        }
    }
}
