//! Fields read and written in packets of many shapes, with and without facts about their headers.

use crate::host::{Asked, Recorder};
use crate::interp::Interp;
use crate::packets;
use crate::random::{Builder, Random};
use braid_ir::model::{EventArg, EventId, Op, ValueId};
use braid_ir::residual::{HeaderMask, What};
use braid_jit::{Count, Work, compile};
use braid_packet::{Access, FIELDS, Field, HEADERS, Header, Packet};

/// All headers.
const EVERY: u128 = (1 << HEADERS.len()) - 1;

fn present(packet: &Packet) -> Vec<Header> {
    let layout = packet.parse();
    HEADERS.iter().map(|(header, _)| *header).filter(|header| layout.has(*header)).collect()
}

/// The headers that a program knows: all, only the headers that its fields need, or these and some
/// others.
fn knowledge(random: &mut Random, packet: &Packet, needed: u128) -> HeaderMask {
    let have = Header::bits(present(packet));
    let care = match random.below(3) {
        0 => EVERY,
        1 => needed,
        _ => needed | u128::from(random.word()) & EVERY,
    };
    HeaderMask { care, present: have & care }
}

/// Runs a program on a packet as machine code and in the interpreter; `alike` compares their host
/// calls.
fn same(builder: &Builder, packet: &Packet, context: &str) -> Vec<Asked> {
    let code = compile(&builder.residual, &mut |_, _| None).unwrap_or_else(|why| panic!("{why}"));
    let run = |machine: bool| {
        let mut host = Recorder::new(&builder.residual);
        let mut packet = packet.clone();
        let mut layout = packet.parse();
        let mut counts = [Count::default(); 3];
        let ended = {
            let (packet, layout, counts) = (&mut packet, &mut layout, &mut counts[..]);
            if machine {
                code.run(&mut host, Work { packet, layout, now: 99, counts }).unwrap()
            } else {
                let residual = &builder.residual;
                let (host, now, values) = (&mut host, 99, Vec::new());
                Interp { residual, host, packet, layout, now, counts, values, entered: Vec::new() }
                    .run()
            }
        };
        (ended, packet, counts, host.asked)
    };
    let (machine, plain) = (run(true), run(false));
    assert_eq!(machine.0, plain.0, "{context}");
    assert_eq!(machine.2, plain.2, "{context}");
    let bytes =
        |packet: &Packet| packet.data().iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(bytes(&machine.1), bytes(&plain.1), "{context}: {}", bytes(packet));
    // The code calls the host for everything that it cannot do itself. Only events are compared,
    // which show the results.
    let events = |asked: &[Asked]| {
        let is_event = |asked: &&Asked| match asked {
            Asked::Step(block, step, _) => {
                let steps = &builder.residual.blocks[*block as usize].steps;
                matches!(steps[*step as usize].what, What::Op(Op::Emit { .. }))
            }
            _ => false,
        };
        asked.iter().filter(is_event).cloned().collect::<Vec<_>>()
    };
    assert_eq!(events(&machine.3), events(&plain.3), "{context}");
    machine.3
}

fn show(builder: &mut Builder, values: &[ValueId]) {
    let args = values.iter().map(|value| EventArg::Value(*value)).collect();
    builder.op(Op::Emit { event: EventId(0), args });
}

#[test]
fn every_field_of_every_packet_is_read_as_it_is() {
    for (name, packet) in packets::all() {
        let have = present(&packet);
        let shape = HeaderMask { care: EVERY, present: Header::bits(&have) };
        let mut builder = Builder::new(shape, 1);
        let mut values = Vec::new();
        for info in FIELDS.iter().filter(|info| have.contains(&info.header)) {
            let out = builder.value(info.width);
            builder.op(Op::Load { out, field: info.field });
            values.push(out);
        }
        for (header, _) in HEADERS {
            let out = builder.value(1);
            builder.op(Op::Has { out, header: *header });
            values.push(out);
        }
        show(&mut builder, &values);
        same(&builder, &packet, name);
    }
}

#[test]
fn fields_of_packets_at_random_are_read_as_they_are() {
    for seed in braid_cases::seeds(150) {
        let mut random = Random::new(seed);
        let (name, packet) = packets::some(&mut random);
        let have = present(&packet);
        let fields: Vec<Field> = FIELDS
            .iter()
            .filter(|info| have.contains(&info.header) && random.chance(40))
            .map(|info| info.field)
            .collect();
        let needed: Vec<Header> = fields.iter().map(|field| field.info().header).collect();
        let shape = knowledge(&mut random, &packet, Header::bits(&needed));
        let mut builder = Builder::new(shape, 1);
        let mut values = Vec::new();
        for field in fields {
            let out = builder.value(field.info().width);
            builder.op(Op::Load { out, field });
            values.push(out);
        }
        show(&mut builder, &values);
        same(&builder, &packet, &format!("seed {seed}: {name}"));
    }
}

#[test]
fn writes_leave_fields_and_checksums_as_assignments_do() {
    let mut inline = 0;
    for seed in 0..braid_cases::at_least(400).into() {
        let mut random = Random::new(seed);
        let (name, packet) = packets::some(&mut random);
        let have = present(&packet);
        let writable: Vec<Field> = FIELDS
            .iter()
            .filter(|info| have.contains(&info.header) && info.access == Access::Rw)
            .map(|info| info.field)
            .collect();
        let mut fields: Vec<Field> = Vec::new();
        for _ in 0..1 + random.below(4) {
            let Some(field) = (!writable.is_empty()).then(|| random.one_of(&writable)) else {
                break;
            };
            // Fields of one step do not overlap; those of the same name do.
            if !fields.iter().any(|other| overlap(*other, field)) {
                fields.push(field);
            }
        }
        let needed: Vec<Header> = fields.iter().map(|field| field.info().header).collect();
        let shape = knowledge(&mut random, &packet, Header::bits(&needed));
        let mut builder = Builder::new(shape, 1);
        for _ in 0..1 + random.below(2) {
            let mut write = Vec::new();
            for field in &fields {
                let width = field.info().width;
                let value = if random.chance(25) {
                    // The field's old value still makes checksums canonical.
                    let out = builder.value(width);
                    builder.op(Op::Load { out, field: *field });
                    out
                } else {
                    let value = random.value(width);
                    builder.constant(width, value)
                };
                write.push((*field, value));
            }
            builder.push(What::Write(write));
        }
        let names: Vec<_> = fields.iter().map(|field| field.info().name).collect();
        let asked = same(&builder, &packet, &format!("seed {seed}: {name} {names:?} {shape:x?}"));
        inline += usize::from(!fields.is_empty() && asked.is_empty());
    }
    assert!(inline > 200, "{inline} of 400 were machine code");
}

/// Whether two fields share bits. Fields of one header in the same container may.
fn overlap(a: Field, b: Field) -> bool {
    use Field::*;
    let group = |field: Field| match field {
        IpTos | IpDscp | IpEcn => 1,
        L4Sport | TcpSport | UdpSport => 2,
        L4Dport | TcpDport | UdpDport => 3,
        IcmpId | IcmpSeq | IcmpRest => 4,
        Icmp6Id | Icmp6Seq | Icmp6Rest => 5,
        IpTtl | Ip6Ttl | InetTtl => 6,
        other => 100 + other as u32,
    };
    // Distinct parts of one byte may be written together.
    let parts =
        matches!((a, b), (IpDscp, IpEcn) | (IpEcn, IpDscp) | (IcmpId, IcmpSeq) | (IcmpSeq, IcmpId));
    group(a) == group(b) && !parts
}

#[test]
fn common_writes_are_machine_code_also_without_knowing_the_transport() {
    for name in ["tcp", "udp", "icmp", "other", "fragment", "source route", "vlan"] {
        let packet = packets::all().into_iter().find(|one| one.0 == name).unwrap().1;
        let ip4 = 1 << Header::Ip4 as u32;
        let shape = HeaderMask { care: ip4, present: ip4 };
        let mut builder = Builder::new(shape, 1);
        let (ttl, src) = (builder.constant(8, 3), builder.constant(32, 0x0102_0304));
        let dst = builder.constant(32, 0xffff_ffff);
        builder.push(What::Write(vec![(Field::IpTtl, ttl), (Field::IpSrc, src)]));
        builder.push(What::Write(vec![(Field::IpDst, dst)]));
        assert_eq!(same(&builder, &packet, name), [], "{name}");
    }
}

#[test]
fn no_checksum_of_udp_stays_none() {
    let mut packet = packets::all().into_iter().find(|one| one.0 == "udp").unwrap().1;
    packet.data_mut()[40..42].copy_from_slice(&[0, 0]);
    let headers = [Header::Ip4, Header::Udp];
    let shape = HeaderMask { care: Header::bits(headers), present: Header::bits(headers) };
    let mut builder = Builder::new(shape, 1);
    let (src, sport) = (builder.constant(32, 1), builder.constant(16, 2));
    builder.push(What::Write(vec![(Field::IpSrc, src), (Field::UdpSport, sport)]));
    let code = compile(&builder.residual, &mut |_, _| None).unwrap();
    let (mut layout, mut counts) = (packet.parse(), [Count::default(); 3]);
    let mut host = Recorder::new(&builder.residual);
    let work = Work { packet: &mut packet, layout: &mut layout, now: 0, counts: &mut counts };
    code.run(&mut host, work).unwrap();
    assert_eq!(packet.data()[40..42], [0, 0]);
    assert_eq!(packet.data()[34..36], [0, 2]);
}

#[test]
fn udp_checksum_of_zero_is_written_as_ffff() {
    // The new port makes the sum of all covered words 0xffff, so the checksum computes to 0.
    let mut packet = packets::all().into_iter().find(|one| one.0 == "udp").unwrap().1;
    let before = u16::from_be_bytes([packet.data()[40], packet.data()[41]]);
    let headers = [Header::Ip4, Header::Udp];
    let shape = HeaderMask { care: Header::bits(headers), present: Header::bits(headers) };
    let mut builder = Builder::new(shape, 1);
    // The new port is the sum of the old one and the checksum.
    let old = u16::from_be_bytes([packet.data()[34], packet.data()[35]]);
    let sum = u32::from(old) + u32::from(before);
    let port = (sum & 0xffff) + (sum >> 16);
    let sport = builder.constant(16, u128::from(port));
    builder.push(What::Write(vec![(Field::UdpSport, sport)]));
    let code = compile(&builder.residual, &mut |_, _| None).unwrap();
    let (mut layout, mut counts) = (packet.parse(), [Count::default(); 3]);
    let mut host = Recorder::new(&builder.residual);
    let work = Work { packet: &mut packet, layout: &mut layout, now: 0, counts: &mut counts };
    code.run(&mut host, work).unwrap();
    assert_eq!(packet.data()[40..42], [0xff, 0xff]);
}
