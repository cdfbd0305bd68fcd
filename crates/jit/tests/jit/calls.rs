//! Host calls of programs: lookups, faults, queues, changes of headers, and guard failures.

use crate::host::{Asked, Recorder};
use crate::packets;
use crate::random::{Builder, Random, to};
use braid_ir::engine::Fault;
use braid_ir::model::{
    BinOp, EventArg, EventId, Key, Op, ParamId, QueueId, StateId, TagId, ValueId,
};
use braid_ir::residual::{CounterListId, End, HeaderMask, RuleFields, What};
use braid_ir::rules::RulePacket;
use braid_jit::{Code, Count, Ended, GuardFailure, Resource, Work, compile};
use braid_packet::{Field, Header, Packet};

const ANY: HeaderMask = HeaderMask { care: 0, present: 0 };

pub fn named(name: &str) -> Packet {
    packets::all().into_iter().find(|one| one.0 == name).unwrap().1
}

/// All resources have numbers: tables from 100, rules from 200, and so on.
pub fn numbered(_: u16, resource: Resource) -> Option<u32> {
    Some(match resource {
        Resource::Table(table) => 100 + table.0,
        Resource::Rules(param) => 200 + param.0,
        Resource::Routes(param) => 300 + param.0,
        Resource::List(param) => 400 + param.0,
        Resource::Queue(queue) => 500 + queue.0,
        Resource::Pool(param) => 600 + param.0,
    })
}

pub fn ready(builder: &Builder) -> (Code, Recorder) {
    let code = compile(&builder.residual, &mut numbered).unwrap_or_else(|why| panic!("{why}"));
    (code, Recorder::new(&builder.residual))
}

pub fn run(code: &Code, host: &mut Recorder, packet: &mut Packet) -> (Ended, [Count; 3]) {
    let mut layout = packet.parse();
    let mut counts = [Count::default(); 3];
    let work = Work { packet, layout: &mut layout, now: 5, counts: &mut counts };
    (code.run(host, work).unwrap(), counts)
}

pub fn tag(builder: &mut Builder, number: u32, width: u16) -> ValueId {
    let out = builder.value(width);
    builder.op(Op::LoadTag { out, tag: TagId(number) });
    out
}

pub fn show(builder: &mut Builder, values: &[ValueId]) {
    let args = values.iter().map(|value| EventArg::Value(*value)).collect();
    builder.op(Op::Emit { event: EventId(0), args });
}

/// The values of each event.
pub fn shown(host: &Recorder) -> Vec<Vec<u128>> {
    let mut all = Vec::new();
    for asked in &host.asked {
        let Asked::Step(block, step, args) = asked else { continue };
        let steps = &host.residual.blocks[*block as usize].steps;
        if let Some(What::Op(Op::Emit { .. })) = steps.get(*step as usize).map(|step| &step.what) {
            all.push(args.clone());
        }
    }
    all
}

/// A key as the contract defines it, bit by bit.
pub fn packed(parts: &[(u128, u16)]) -> Vec<u64> {
    let width: usize = parts.iter().map(|(_, width)| usize::from(*width)).sum();
    let mut words = vec![0u64; width.div_ceil(64)];
    let mut at = 0;
    for (value, width) in parts {
        for bit in 0..*width {
            words[at / 64] |= ((value >> bit & 1) as u64) << (at % 64);
            at += 1;
        }
    }
    words
}

#[test]
fn keys_are_packed_from_bit_0_up_without_gaps() {
    for seed in braid_cases::seeds(60) {
        let mut random = Random::new(seed);
        let mut builder = Builder::new(ANY, 1);
        let (mut parts, mut key, mut tags) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..random.below(7) {
            let width = random.one_of(&[1, 3, 8, 16, 32, 48, 63, 64, 65, 128]);
            let value = random.value(width);
            // Constants have fewer bits than their types.
            let part = if random.chance(30) {
                builder.constant(width, value)
            } else {
                tags.push(value);
                tag(&mut builder, tags.len() as u32 - 1, width)
            };
            parts.push((value, width));
            key.push(part);
        }
        let (found, entry) = (builder.value(1), builder.value(64));
        builder.push(What::Find { found, entry, state: StateId(2), key });
        let (code, host) = ready(&builder);
        let mut host = Recorder { tags, ..host };
        run(&code, &mut host, &mut named("udp"));
        assert_eq!(host.asked.last(), Some(&Asked::Find(102, packed(&parts))), "{parts:x?}");
    }
}

#[test]
fn only_functions_that_may_have_been_entered_before_are_entered_by_the_host() {
    let mut builder = Builder::new(ANY, 3);
    let enter = |builder: &mut Builder, block: usize, node: u16| {
        builder.block = block;
        builder.push(What::Enter);
        builder.residual.blocks[block].steps.last_mut().unwrap().site.node = node;
    };
    let cond = tag(&mut builder, 0, 1);
    enter(&mut builder, 0, 0);
    builder.end(End::Branch { cond, yes: to(1, &[]), no: to(2, &[]) });
    enter(&mut builder, 1, 0);
    enter(&mut builder, 1, 1);
    enter(&mut builder, 1, 1);
    builder.end(End::Jump(to(2, &[])));
    enter(&mut builder, 2, 1);
    enter(&mut builder, 2, 2);
    let (code, mut host) = ready(&builder);
    let step = |block, step| Asked::Step(block, step, Vec::new());
    for (way, entered) in [(1, vec![step(1, 0), step(1, 2), step(2, 0)]), (0, vec![step(2, 0)])] {
        host.tags = vec![way];
        host.asked.clear();
        run(&code, &mut host, &mut named("udp"));
        assert_eq!(host.asked[1..], entered);
    }
}

/// A lookup by a tag of 16 bits. If it finds an entry, an event shows the slots. With
/// `call_before_read`, a host call comes between the lookup and the read.
pub fn lookup(call_before_read: bool) -> Builder {
    let mut builder = Builder::new(ANY, 3);
    let key = tag(&mut builder, 0, 16);
    let (found, entry) = (builder.value(1), builder.value(64));
    builder.push(What::Find { found, entry, state: StateId(0), key: vec![key] });
    builder.end(End::Branch { cond: found, yes: to(1, &[]), no: to(2, &[]) });
    builder.block = 1;
    if call_before_read {
        show(&mut builder, &[]);
    }
    let (a, b, c) = (builder.value(8), builder.value(128), builder.value(64));
    builder.push(What::Read { outs: vec![a, b, c], state: StateId(0), entry });
    show(&mut builder, &[a, b, c]);
    builder
}

#[test]
fn assignments_hand_over_keys_and_slots() {
    let mut builder = Builder::new(ANY, 1);
    let narrow = tag(&mut builder, 0, 8);
    let wide = tag(&mut builder, 1, 128);
    let (set, put) = (builder.value(1), builder.value(1));
    let key = || Key::Explicit(vec![narrow, wide]);
    let state = StateId(3);
    builder.op(Op::StateSet { ok: set, state, key: key(), values: vec![wide, narrow] });
    builder.op(Op::StatePut { ok: put, state, key: key(), slot: 9, value: wide });
    show(&mut builder, &[set, put]);
    let (code, mut host) = ready(&builder);
    let value = 6_u128 << 64 | 5;
    host.tags = vec![7, value];
    let words = packed(&[(7, 8), (value, 128)]);
    for (room, entries, faults) in [(true, true, false), (false, true, false), (true, false, true)]
    {
        host.room = room;
        host.entries = entries.then(|| ((0, Vec::new()), (0, Vec::new()))).into_iter().collect();
        host.asked.clear();
        let (ended, counts) = run(&code, &mut host, &mut named("udp"));
        let all: Vec<_> = host.asked.iter().filter(|one| !matches!(one, Asked::Step(..))).collect();
        let slots = vec![5, 6, 7];
        let asked =
            [Asked::Set(103, words.clone(), slots), Asked::Put(103, words.clone(), 9, value)];
        assert_eq!(all, asked.iter().collect::<Vec<_>>());
        if faults {
            let fault = Fault::NoEntry;
            assert_eq!(ended, Ended::Fault { block: 0, step: 3, fault });
            assert_eq!(counts[1].packets, 1);
        } else {
            assert_eq!(ended, Ended::End(0));
            assert_eq!(shown(&host), [[u128::from(room), u128::from(room)]]);
        }
    }
}

#[test]
fn slots_of_a_found_entry_are_at_hand_until_the_next_host_call() {
    for call in [false, true] {
        let builder = lookup(call);
        let (code, mut host) = ready(&builder);
        host.tags = vec![7];
        host.entries.insert((100, vec![7]), (u64::MAX, vec![3, 5, 6, u64::MAX]));
        let (ended, _) = run(&code, &mut host, &mut named("udp"));
        assert_eq!(ended, Ended::End(1));
        assert_eq!(shown(&host).last().unwrap(), &[3, 6 << 64 | 5, u128::from(u64::MAX)]);
        let read_again = host.asked.contains(&Asked::Read(100, u64::MAX));
        assert_eq!(read_again, call);
    }
}

#[test]
fn entry_that_is_not_there_is_not_found() {
    let (code, mut host) = ready(&lookup(false));
    host.tags = vec![8];
    host.entries.insert((100, vec![7]), (0, vec![3, 5, 6, 7]));
    assert_eq!(run(&code, &mut host, &mut named("udp")).0, Ended::End(2));
}

#[test]
fn slots_that_a_host_lacks_are_zeros() {
    for call in [false, true] {
        let (code, mut host) = ready(&lookup(call));
        host.tags = vec![7];
        host.entries.insert((100, vec![7]), (1, vec![3, 5, 6]));
        assert_eq!(run(&code, &mut host, &mut named("udp")).0, Ended::End(1));
        assert_eq!(shown(&host).last().unwrap(), &[0, 0, 0]);
    }
}

#[test]
fn resources_without_number_are_steps() {
    let builder = lookup(false);
    let code = compile(&builder.residual, &mut |_, _| None).unwrap();
    let mut host = Recorder { tags: vec![7], ..Recorder::new(&builder.residual) };
    let (ended, _) = run(&code, &mut host, &mut named("udp"));
    assert!(matches!(ended, Ended::End(1 | 2)));
    assert_eq!(host.asked[1], Asked::Step(0, 1, vec![7]));
}

#[test]
fn rules_see_the_values_that_they_are_given() {
    let mut builder = Builder::new(ANY, 1);
    let widths = [128, 32, 8, 16, 16, 8, 8, 8];
    let values: Vec<ValueId> =
        (0..).zip(widths).map(|(number, width)| tag(&mut builder, number, width)).collect();
    let fields = |ports: bool, flags: bool, icmp: bool| RuleFields {
        version: 6,
        src: values[0],
        dst: values[1],
        proto: values[2],
        ports: ports.then_some((values[3], values[4])),
        tcp_flags: flags.then_some(values[5]),
        icmp: icmp.then_some((values[6], values[7])),
    };
    for (ports, flags, icmp) in [(true, true, false), (false, false, true), (false, false, false)] {
        let (pass, rule) = (builder.value(1), builder.value(32));
        let packet = Some(Box::new(fields(ports, flags, icmp)));
        builder.push(What::Classify { pass, rule, param: ParamId(4), packet });
        builder.push(What::CountRule { param: ParamId(4), rule });
        show(&mut builder, &[pass, rule]);
    }
    let (code, mut host) = ready(&builder);
    host.tags = vec![u128::MAX - 1, 9, 17, 0xffff, 3, 0, 0xff, 5];
    run(&code, &mut host, &mut named("udp"));
    let plain = RulePacket {
        version: 6,
        src: u128::MAX - 1,
        dst: 9,
        proto: 17,
        ports: None,
        tcp_flags: None,
        icmp: None,
    };
    let expected = [
        RulePacket { ports: Some((0xffff, 3)), tcp_flags: Some(0), ..plain },
        RulePacket { icmp: Some((0xff, 5)), ..plain },
        plain,
    ];
    let asked: Vec<_> =
        host.asked.iter().filter(|one| matches!(one, Asked::Classify(..))).collect();
    assert_eq!(
        asked,
        expected.map(|packet| Asked::Classify(204, packet)).iter().collect::<Vec<_>>()
    );
    assert!(host.asked.contains(&Asked::CountRule(204, u32::MAX - 204)));
    assert_eq!(shown(&host), vec![vec![1, u128::from(u32::MAX - 204)]; 3]);
}

#[test]
fn ipv4_rules_are_asked_in_words_and_counted_with_the_packet() {
    let mut builder = Builder::new(ANY, 1);
    let widths = [32, 32, 8, 16, 16, 8, 8, 8];
    let values: Vec<ValueId> =
        (0..).zip(widths).map(|(number, width)| tag(&mut builder, number, width)).collect();
    let fields = |ports: bool, flags: bool, icmp: bool| RuleFields {
        version: 4,
        src: values[0],
        dst: values[1],
        proto: values[2],
        ports: ports.then_some((values[3], values[4])),
        tcp_flags: flags.then_some(values[5]),
        icmp: icmp.then_some((values[6], values[7])),
    };
    let mut rules = Vec::new();
    let kinds = [(true, true, true), (true, false, false), (false, false, true)];
    for (ports, flags, icmp) in kinds {
        let (pass, rule) = (builder.value(1), builder.value(32));
        let packet = Some(Box::new(fields(ports, flags, icmp)));
        builder.push(What::Classify { pass, rule, param: ParamId(4), packet });
        rules.push(rule);
        // The second one is counted for another set, so by a step of its own.
        let param = ParamId(if rules.len() == 2 { 5 } else { 4 });
        builder.push(What::CountRule { param, rule });
        show(&mut builder, &[pass, rule]);
    }
    // Counted once more, by a step of its own.
    builder.push(What::CountRule { param: ParamId(4), rule: rules[0] });
    let (code, mut host) = ready(&builder);
    host.tags = vec![0xffff_ffff, 0x8000_0001, 17, 0xffff, 0x8003, 0, 0xff, 5];
    run(&code, &mut host, &mut named("udp"));
    let plain = RulePacket {
        version: 4,
        src: 0xffff_ffff,
        dst: 0x8000_0001,
        proto: 17,
        ports: Some((0xffff, 0x8003)),
        tcp_flags: Some(0),
        icmp: Some((0xff, 5)),
    };
    let second = RulePacket { tcp_flags: None, icmp: None, ..plain };
    let third = RulePacket { ports: None, tcp_flags: None, ..plain };
    let rule = u32::MAX - 204;
    let expected = [
        Asked::Classify(204, plain),
        Asked::CountRule(204, rule),
        Asked::Classify(204, second),
        Asked::CountRule(205, rule),
        Asked::Classify(204, third),
        Asked::CountRule(204, rule),
        Asked::CountRule(204, rule),
    ];
    let is_rule = |one: &&Asked| matches!(one, Asked::Classify(..) | Asked::CountRule(..));
    let asked: Vec<_> = host.asked.iter().filter(is_rule).collect();
    assert_eq!(asked, expected.iter().collect::<Vec<_>>());
    assert_eq!(shown(&host), vec![vec![1, u128::from(rule)]; 3]);
}

#[test]
fn routes_are_of_the_family_of_the_address() {
    let mut builder = Builder::new(ANY, 1);
    for (number, width) in [(0, 32), (1, 128)] {
        let addr = tag(&mut builder, number, width);
        let (found, hop) = (builder.value(1), builder.value(32));
        builder.op(Op::Route { found, hop, param: ParamId(1), addr });
        show(&mut builder, &[found, hop]);
    }
    let (code, mut host) = ready(&builder);
    host.tags = vec![8, u128::MAX];
    run(&code, &mut host, &mut named("udp"));
    assert!(host.asked.contains(&Asked::Route(301, 8, false)));
    assert!(host.asked.contains(&Asked::Route(301, u128::MAX, true)));
    assert_eq!(shown(&host), [[0, 0], [1, u128::from(u32::MAX - 1)]]);
}

#[test]
fn index_past_the_end_is_a_counted_fault() {
    let mut builder = Builder::new(ANY, 1);
    let (index, out) = (tag(&mut builder, 0, 32), builder.value(48));
    builder.op(Op::ListGet { out, param: ParamId(0), index, column: 2 });
    show(&mut builder, &[out]);
    let (code, mut host) = ready(&builder);
    host.tags = vec![2];
    assert_eq!(run(&code, &mut host, &mut named("udp")).0, Ended::End(0));
    assert_eq!(shown(&host), [[22]]);
    host.tags = vec![3];
    let mut packet = named("udp");
    let bytes = u64::from(packet.wire_len);
    let (ended, counts) = run(&code, &mut host, &mut packet);
    assert_eq!(ended, Ended::Fault { block: 0, step: 1, fault: Fault::Index });
    assert_eq!(counts, [Count::default(), Count { packets: 1, bytes }, Count::default()]);
}

#[test]
fn member_of_a_pool_comes_from_its_own_host_call_unless_it_is_wide() {
    for width in [16, 64, 128] {
        let mut builder = Builder::new(ANY, 1);
        let (ok, out) = (builder.value(1), builder.value(width));
        builder.op(Op::Take { ok, out, pool: ParamId(4) });
        show(&mut builder, &[ok, out]);
        let (code, mut host) = ready(&builder);
        run(&code, &mut host, &mut named("udp"));
        let asked = if width > 64 { Asked::Step(0, 0, vec![]) } else { Asked::Take(604) };
        assert_eq!(host.asked.first(), Some(&asked), "{width}");
        if width == 64 {
            assert_eq!(shown(&host), [[1, 1 << 60 | 7]]);
            host.room = false;
            host.asked.clear();
            run(&code, &mut host, &mut named("udp"));
            assert_eq!(shown(&host), [[0, 0]]);
        }
    }
}

#[test]
fn fault_of_a_step_without_counter_is_not_counted() {
    for index in [false, true] {
        let mut builder = Builder::new(ANY, 1);
        let (a, out) = (tag(&mut builder, 0, 32), builder.value(32));
        builder.op(match index {
            true => Op::ListGet { out, param: ParamId(0), index: a, column: 0 },
            false => Op::Bin { out, op: BinOp::Div, a, b: a },
        });
        builder.residual.blocks[0].steps[1].fault = None;
        let (code, mut host) = ready(&builder);
        host.tags = vec![if index { 9 } else { 0 }];
        let fault = if index { Fault::Index } else { Fault::Division };
        let (ended, counts) = run(&code, &mut host, &mut named("udp"));
        assert_eq!(ended, Ended::Fault { block: 0, step: 1, fault });
        assert_eq!(counts, [Count::default(); 3]);
    }
}

#[test]
fn faults_of_the_host_end_the_program_where_they_happen() {
    let faults = [Fault::Index, Fault::Division, Fault::NoEntry, Fault::Resubmit, Fault::Truncated];
    for fault in faults {
        let mut builder = Builder::new(ANY, 2);
        builder.push(What::Count(CounterListId(2)));
        builder.end(End::Jump(to(1, &[])));
        builder.block = 1;
        show(&mut builder, &[]);
        show(&mut builder, &[]);
        let (code, mut host) = ready(&builder);
        host.faults.insert((1, 1), fault);
        let (ended, counts) = run(&code, &mut host, &mut named("udp"));
        assert_eq!(ended, Ended::Fault { block: 1, step: 1, fault });
        assert_eq!(counts.map(|count| count.packets), [0, 1, 1]);
    }
}

#[test]
fn packet_waits_where_the_queue_has_room_and_goes_on_where_not() {
    for number in [true, false] {
        let mut builder = Builder::new(ANY, 2);
        let delay = tag(&mut builder, 0, 64);
        let (counters, full) = (CounterListId(2), to(1, &[]));
        builder.end(End::Hold { node: 3, queue: QueueId(1), delay, counters, full });
        let code = compile(&builder.residual, &mut |node, resource| {
            assert_eq!((node, resource), (3, Resource::Queue(QueueId(1))));
            number.then_some(9)
        })
        .unwrap();
        let mut host = Recorder { tags: vec![77], ..Recorder::new(&builder.residual) };
        let (ended, counts) = run(&code, &mut host, &mut named("udp"));
        assert_eq!(ended, Ended::Hold { block: 0, delay: 77 });
        assert_eq!(counts.map(|count| count.packets), [0, 0, 1]);
        let asked = if number { Asked::HasRoom(9) } else { Asked::Step(0, 1, vec![77]) };
        assert_eq!(host.asked.last(), Some(&asked));
        host.room = false;
        let (ended, counts) = run(&code, &mut host, &mut named("udp"));
        assert_eq!(ended, Ended::End(1));
        assert_eq!(counts.map(|count| count.packets), [1, 0, 0]);
    }
}

#[test]
fn fields_behind_a_change_of_headers_are_where_they_are_now() {
    let headers = 1 << Header::Ip4 as u32 | 1 << Header::Eth as u32;
    let shape = HeaderMask { care: headers | 1 << Header::Vlan as u32, present: headers };
    let mut builder = Builder::new(shape, 1);
    let ttl = builder.value(8);
    builder.op(Op::Load { out: ttl, field: Field::IpTtl });
    let id = builder.constant(12, 0x123);
    builder.op(Op::PushVlan { id });
    builder.push(What::Parse);
    let (has, tag, source) = (builder.value(1), builder.value(12), builder.value(32));
    builder.op(Op::Has { out: has, header: Header::Vlan });
    builder.op(Op::Load { out: tag, field: Field::VlanId });
    builder.op(Op::Load { out: source, field: Field::IpSrc });
    let less = builder.constant(8, 63);
    builder.push(What::Write(vec![(Field::IpTtl, less)]));
    show(&mut builder, &[ttl, has, tag, source]);
    builder.push(What::Count(CounterListId(2)));
    builder.op(Op::PopVlan);
    builder.push(What::Parse);
    let (code, mut host) = ready(&builder);
    let mut packet = named("udp");
    let before = packet.wire_len;
    let (ended, counts) = run(&code, &mut host, &mut packet);
    assert_eq!(ended, Ended::End(0));
    assert_eq!(shown(&host), [[64, 1, 0x123, 0x0a01_0203]]);
    // Counted with the tag, and without at the end.
    assert_eq!((counts[2].bytes, counts[0].bytes), (u64::from(before) + 4, u64::from(before)));
    let mut expected = named("udp");
    let layout = expected.parse();
    assert!(expected.set(&layout, Field::IpTtl, 63));
    assert_eq!(packet, expected);
}

/// A host that removes the packet in a step that must not.
struct Thief;

impl braid_jit::Host for Thief {
    fn step(&mut self, call: braid_jit::Call<'_>) -> Result<(), Fault> {
        *call.packet = Packet::new(call.packet.link, 0, vec![1, 2, 3]);
        if call.args.is_empty() {
            *call.layout = call.packet.parse();
        }
        Ok(())
    }
    fn find(&mut self, _: u32, _: &[u64]) -> Option<(u64, &[u64])> {
        None
    }
    fn set(&mut self, _: u32, _: &[u64], _: &[u64]) -> bool {
        true
    }

    fn put(&mut self, _: u32, _: &[u64], _: u32, _: u128) -> Result<bool, Fault> {
        Ok(true)
    }

    fn read(&mut self, _: u32, _: u64) -> &[u64] {
        &[]
    }
    fn classify(&mut self, _: u32, _: &RulePacket) -> (bool, u32) {
        (false, 0)
    }
    fn count_rule(&mut self, _: u32, _: u32) {}
    fn route(&mut self, _: u32, _: u128, _: bool) -> Option<u32> {
        None
    }
    fn member(&mut self, _: u32, _: u64, _: u32) -> Option<u128> {
        None
    }
    fn take(&mut self, _: u32) -> Option<u128> {
        None
    }
    fn has_room(&mut self, _: u32) -> bool {
        false
    }
}

#[test]
fn host_that_takes_the_packet_away_ends_the_program() {
    for args in [0, 1] {
        let shape = HeaderMask { care: 1 << Header::Ip4 as u32, present: 1 << Header::Ip4 as u32 };
        let mut builder = Builder::new(shape, 1);
        let constant = builder.constant(8, 1);
        show(&mut builder, &[constant][..args]);
        let out = builder.value(32);
        builder.op(Op::Load { out, field: Field::IpSrc });
        let code = compile(&builder.residual, &mut numbered).unwrap();
        let mut packet = named("udp");
        let (mut layout, mut counts) = (packet.parse(), [Count::default(); 3]);
        let work = Work { packet: &mut packet, layout: &mut layout, now: 0, counts: &mut counts };
        let ended = code.run(&mut Thief, work).unwrap();
        assert_eq!(ended, Ended::Fault { block: 0, step: 1, fault: Fault::Truncated });
    }
}

#[test]
fn packets_that_do_not_fit_are_left_alone() {
    let shape = HeaderMask { care: 1 << Header::Ip4 as u32, present: 1 << Header::Ip4 as u32 };
    let mut builder = Builder::new(shape, 1);
    let ttl = builder.constant(8, 1);
    builder.push(What::Write(vec![(Field::IpTtl, ttl)]));
    let (code, mut host) = ready(&builder);
    let run = |host: &mut Recorder, name: &str, layout_of: &str, counts: usize| {
        let mut packet = named(name);
        let mut layout = named(layout_of).parse();
        let mut counts = vec![Count::default(); counts];
        let work = Work { packet: &mut packet, layout: &mut layout, now: 0, counts: &mut counts };
        (code.run(host, work), packet == named(name))
    };
    assert_eq!(run(&mut host, "tcp6", "tcp6", 3), (Err(GuardFailure::Shape), true));
    assert_eq!(run(&mut host, "other", "tcp", 3), (Err(GuardFailure::Layout), true));
    assert_eq!(run(&mut host, "tcp", "tcp", 2), (Err(GuardFailure::Counts), true));
    assert_eq!(run(&mut host, "tcp", "tcp", 3), (Ok(Ended::End(0)), false));
}
