//! How long compiling and running take:
//! `cargo test --release -p braid-jit -- --ignored --nocapture speed`.

use crate::packets;
use crate::random::{Builder, to};
use braid_compiler::synth::residual;
use braid_ir::chain::Sink;
use braid_ir::engine::Fault;
use braid_ir::graph::Graph;
use braid_ir::model::{BinOp, CmpOp, Op, ParamId, RIGHT, StateId, ValueId};
use braid_ir::residual::{CounterListId, End, Extent, HeaderMask, Point, RuleFields, What};
use braid_ir::rules::RulePacket;
use braid_jit::{Call, Code, Count, Ended, Host, Resource, Work, compile};
use braid_packet::{Field, Header, Packet};
use std::hint::black_box;
use std::time::Instant;

/// Runs between two readings of the clock: few, so that some samples are not interrupted.
const ROUNDS: usize = 1_000;
const SAMPLES: usize = 500;

/// A host that costs next to nothing.
struct Cheap {
    slots: [u64; 4],
}

impl Host for Cheap {
    fn step(&mut self, _: Call<'_>) -> Result<(), Fault> {
        Ok(())
    }
    fn find(&mut self, _: u32, key: &[u64]) -> Option<(u64, &[u64])> {
        black_box(key);
        Some((1, &self.slots))
    }
    fn set(&mut self, _: u32, _: &[u64], _: &[u64]) -> bool {
        true
    }

    fn put(&mut self, _: u32, _: &[u64], _: u32, _: u128) -> Result<bool, Fault> {
        Ok(true)
    }

    fn read(&mut self, _: u32, _: u64) -> &[u64] {
        &self.slots
    }
    fn classify(&mut self, _: u32, packet: &RulePacket) -> (bool, u32) {
        (packet.version == 4, 0)
    }
    fn count_rule(&mut self, _: u32, _: u32) {}
    fn route(&mut self, _: u32, addr: u128, _: bool) -> Option<u32> {
        Some(addr as u32)
    }
    fn member(&mut self, _: u32, _: u64, _: u32) -> Option<u128> {
        Some(1)
    }
    fn take(&mut self, _: u32) -> Option<u128> {
        Some(1)
    }
    fn has_room(&mut self, _: u32) -> bool {
        true
    }
}

fn tcp4() -> Builder {
    let present = 1 << Header::Ip4 as u32 | 1 << Header::Tcp as u32;
    Builder::new(HeaderMask { care: present, present }, 1)
}

fn load(builder: &mut Builder, field: Field) -> ValueId {
    let out = builder.value(field.info().width);
    builder.op(Op::Load { out, field });
    out
}

fn block(builder: &mut Builder) -> usize {
    let end = builder.residual.blocks[0].clone();
    builder.residual.blocks.push(braid_ir::residual::Block {
        params: Vec::new(),
        steps: Vec::new(),
        end: match end.end {
            End::Exit(exit) => End::Exit(exit),
            _ => End::Exit(exit()),
        },
    });
    builder.residual.blocks.len() - 1
}

fn exit() -> braid_ir::residual::Exit {
    let node = 0;
    let (row, reason) = (braid_ir::model::RowId(0), braid_ir::model::ReasonId(0));
    let fate = braid_ir::residual::Fate::Drop { node, row, reason };
    braid_ir::residual::Exit { counters: CounterListId(0), fate }
}

/// Continues in a new block if the condition holds, and ends otherwise.
fn go_on_if(builder: &mut Builder, cond: ValueId) {
    let (yes, no) = (block(builder), block(builder));
    builder.end(End::Branch { cond, yes: to(yes, &[]), no: to(no, &[]) });
    builder.block = yes;
}

/// A row of routers as one program: one test of the TTL, one route each, one write.
fn routers(count: u32) -> Builder {
    let mut builder = tcp4();
    let (ttl, dst) = (load(&mut builder, Field::IpTtl), load(&mut builder, Field::IpDst));
    let (limit, cond) = (builder.constant(8, u128::from(count)), builder.value(1));
    builder.op(Op::Cmp { out: cond, op: CmpOp::Gt, a: ttl, b: limit });
    go_on_if(&mut builder, cond);
    for number in 0..count {
        let (found, hop) = (builder.value(1), builder.value(32));
        builder.op(Op::Route { found, hop, param: ParamId(number), addr: dst });
        go_on_if(&mut builder, found);
    }
    // Not decremented, so that the same packet can run again and again.
    let (one, other) = (builder.constant(8, 1), builder.value(8));
    builder.op(Op::Bin { out: other, op: BinOp::Xor, a: ttl, b: one });
    builder.push(What::Write(vec![(Field::IpTtl, other)]));
    builder
}

/// A firewall and a row of address translators. Each translator reads the fields that the one
/// before it wrote.
fn translators(count: u32) -> Builder {
    let mut builder = tcp4();
    let (mut src, mut sport) =
        (load(&mut builder, Field::IpSrc), load(&mut builder, Field::L4Sport));
    let (dst, dport) = (load(&mut builder, Field::IpDst), load(&mut builder, Field::L4Dport));
    let (proto, ttl) = (load(&mut builder, Field::IpProto), load(&mut builder, Field::IpTtl));
    let (pass, rule) = (builder.value(1), builder.value(32));
    let (ports, tcp_flags, icmp) = (Some((sport, dport)), None, None);
    let packet = RuleFields { version: 4, src, dst, proto, ports, tcp_flags, icmp };
    let packet = Some(Box::new(packet));
    builder.push(What::Classify { pass, rule, param: ParamId(0), packet });
    go_on_if(&mut builder, pass);
    for number in 0..count {
        let (found, entry) = (builder.value(1), builder.value(64));
        let key = vec![proto, src, sport];
        builder.push(What::Find { found, entry, state: StateId(number), key });
        go_on_if(&mut builder, found);
        let (addr, port) = (builder.value(32), builder.value(16));
        let outs = vec![addr, port];
        builder.push(What::Read { outs, state: StateId(number), entry });
        (src, sport) = (addr, port);
    }
    let (some, less) = (builder.constant(8, u128::from(count)), builder.value(8));
    builder.op(Op::Bin { out: less, op: BinOp::SubSat, a: ttl, b: some });
    let fields = vec![(Field::IpTtl, less), (Field::IpSrc, src), (Field::L4Sport, sport)];
    builder.push(What::Write(fields));
    builder
}

fn time(mut what: impl FnMut()) -> f64 {
    let sample = || {
        let start = Instant::now();
        what();
        start.elapsed().as_secs_f64()
    };
    std::iter::repeat_with(sample).take(SAMPLES).fold(f64::MAX, f64::min)
}

fn numbered(_: u16, resource: Resource) -> Option<u32> {
    match resource {
        Resource::Table(table) => Some(table.0),
        Resource::Rules(param)
        | Resource::Routes(param)
        | Resource::List(param)
        | Resource::Pool(param) => Some(param.0),
        Resource::Queue(queue) => Some(queue.0),
    }
}

fn run_time(code: &Code, packet: &mut Packet) -> f64 {
    let mut layout = packet.parse();
    let mut counts = [Count::default(); 3];
    let mut host = Cheap { slots: [9; 4] };
    let mut ends = 0;
    let each = time(|| {
        for _ in 0..ROUNDS {
            let work = Work { packet, layout: &mut layout, now: 0, counts: &mut counts };
            match code.run(&mut host, work) {
                Ok(Ended::End(block)) => ends += u64::from(block),
                other => panic!("{other:?}"),
            }
        }
    });
    black_box(ends);
    each * 1e9 / ROUNDS as f64
}

#[test]
#[ignore = "prints times"]
fn speed_of_compiling_and_running() {
    let plain = || packets::all().into_iter().find(|one| one.0 == "tcp without options").unwrap().1;
    let empty = ("nothing", tcp4());
    let programs = [
        empty,
        ("1 router", routers(1)),
        ("10 routers", routers(10)),
        ("firewall and 1 translator", translators(1)),
        ("firewall and 3 translators", translators(3)),
        ("firewall and 10 translators", translators(10)),
    ];
    for (name, builder) in programs {
        let mut code = None;
        let mut best = f64::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            code = Some(compile(&builder.residual, &mut numbered).unwrap());
            best = best.min(start.elapsed().as_secs_f64() * 1e3);
        }
        let each = run_time(&code.unwrap(), &mut plain());
        let blocks = builder.residual.blocks.len();
        println!("{name}: {blocks} blocks, compiled in {best:.2} ms, run in {each:.1} ns");
    }
}

#[test]
#[ignore = "prints times"]
fn speed_of_compiling_chains() {
    let packet = packets::all().into_iter().find(|one| one.0 == "tcp without options").unwrap().1;
    let presence = packet.parse().presence();
    for (name, chain) in crate::chains::all() {
        let graph = Graph::new(&chain).unwrap();
        let Some(Sink::Port(node, port)) = graph.entry(0) else { continue };
        let point = Point { node, backward: port == RIGHT, held: false };
        let start = Instant::now();
        let residual = residual(&chain, &graph, point, presence, Extent::Chain);
        let put_together = start.elapsed().as_secs_f64() * 1e3;
        let start = Instant::now();
        compile(&residual, &mut numbered).unwrap();
        let compiled = start.elapsed().as_secs_f64() * 1e3;
        let steps: usize = residual.blocks.iter().map(|block| block.steps.len()).sum();
        println!(
            "{name}: {} functions, {} blocks, {steps} steps: put together in {put_together:.1} ms, \
             compiled in {compiled:.1} ms",
            chain.nodes.len(),
            residual.blocks.len(),
        );
    }
}
