//! Hints to the host before a run.

use crate::calls::{lookup, named, numbered, packed, ready, show};
use crate::host::{Asked, Recorder};
use crate::random::{Builder, to};
use braid_ir::model::{Op, ParamId, StateId};
use braid_ir::residual::{End, HeaderMask, RuleFields, What};
use braid_ir::rules::RulePacket;
use braid_jit::{AddressGroups, Code, Resource, Resources, compile_with};
use braid_packet::{Field, Header};

#[test]
fn prefetch_tells_the_key_of_the_first_lookup() {
    let present = 1 << Header::Ip4 as u32 | 1 << Header::L4 as u32;
    let mut builder = Builder::new(HeaderMask { care: present, present }, 2);
    let (src, port) = (builder.value(32), builder.value(16));
    builder.op(Op::Load { out: src, field: Field::IpSrc });
    builder.op(Op::Load { out: port, field: Field::L4Dport });
    let wide = builder.value(128);
    builder.op(Op::Resize { out: wide, a: src });
    show(&mut builder, &[src]);
    builder.end(End::Jump(to(1, &[])));
    builder.block = 1;
    let (found, entry) = (builder.value(1), builder.value(64));
    builder.push(What::Find { found, entry, state: StateId(1), key: vec![wide, port] });
    let (code, mut host) = ready(&builder);
    let mut packet = named("udp");
    let mut layout = packet.parse();
    code.prefetcher(&mut host).unwrap().prefetch(&mut packet, &mut layout, 0);
    let key = packed(&[(0x0a01_0203, 128), (53, 16)]);
    assert_eq!(host.asked, [Asked::Prefetch(101, key)]);
    // Not for packets of another shape.
    let (mut packet, mut host) = (named("tcp6"), Recorder::new(&builder.residual));
    let mut layout = packet.parse();
    code.prefetcher(&mut host).unwrap().prefetch(&mut packet, &mut layout, 0);
    assert_eq!(host.asked, []);
}

/// Resources that want hints about classification and have no address groups.
struct Curious;

impl Resources for Curious {
    fn number(&mut self, node: u16, resource: Resource) -> Option<u32> {
        numbered(node, resource)
    }

    fn address_groups(&mut self, _: &[(u16, ParamId)], _: bool) -> Option<AddressGroups> {
        None
    }

    fn list(&self, _: u16, _: ParamId) -> Option<&[Vec<u128>]> {
        None
    }

    fn prefetches_rules(&mut self, _: u16, param: ParamId) -> bool {
        param == ParamId(4)
    }
}

#[test]
fn prefetch_tells_what_a_curious_host_will_be_asked_about() {
    let present = 1 << Header::Ip4 as u32 | 1 << Header::L4 as u32;
    let mut builder = Builder::new(HeaderMask { care: present, present }, 2);
    let fields = [Field::IpSrc, Field::IpDst, Field::L4Sport, Field::L4Dport];
    let [src, dst, sport, dport] = fields.map(|field| {
        let out = builder.value(field.info().width);
        builder.op(Op::Load { out, field });
        out
    });
    let proto = builder.value(8);
    builder.op(Op::Const { out: proto, value: 17 });
    for param in [3, 4] {
        let ports = Some((sport, dport));
        let packet = RuleFields { version: 4, src, dst, proto, ports, tcp_flags: None, icmp: None };
        let packet = Some(Box::new(packet));
        let (pass, rule) = (builder.value(1), builder.value(32));
        builder.push(What::Classify { pass, rule, param: ParamId(param), packet });
    }
    let (found, entry) = (builder.value(1), builder.value(64));
    builder.push(What::Find { found, entry, state: StateId(1), key: vec![dst, dport] });
    let told = |code: &Code| {
        let (mut packet, mut host) = (named("udp"), Recorder::new(&builder.residual));
        let mut layout = packet.parse();
        code.prefetcher(&mut host).unwrap().prefetch(&mut packet, &mut layout, 0);
        host.asked
    };
    let packet = RulePacket {
        version: 4,
        src: 0x0a01_0203,
        dst: 0xc633_6407,
        proto: 17,
        ports: Some((4321, 53)),
        tcp_flags: None,
        icmp: None,
    };
    let key = Asked::Prefetch(101, packed(&[(packet.dst, 32), (53, 16)]));
    let curious = compile_with(&builder.residual, &mut Curious).unwrap();
    assert_eq!(told(&curious), [Asked::PrefetchRules(204, packet), key.clone()]);
    let (other, _) = ready(&builder);
    assert_eq!(told(&other), [key]);
}

#[test]
fn prefetch_keeps_silent_about_keys_that_depend_on_the_host() {
    let builder = lookup(false);
    let (code, mut host) = ready(&builder);
    let mut packet = named("udp");
    let mut layout = packet.parse();
    code.prefetcher(&mut host).unwrap().prefetch(&mut packet, &mut layout, 0);
    assert_eq!(host.asked, []);
}
