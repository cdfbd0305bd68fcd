//! Tests that warm engines, and runs over captures with them, do not allocate memory for packets.

use braid_engine::{Compiled, Options};
use braid_io::{CaptureReader, CaptureWriter, PacketSink as _, Precision};
use braid_ir::chain::Chain;
use braid_ir::engine::{Engine as _, Event, Outputs};
use braid_ir::residual::Extent;
use braid_packet::frame::SPREAD_FRAME;
use braid_packet::{BURST, Burst, Packet, Pool};
use braid_runtime::{Input, Run};
use braid_testkit::harness::{self, Form};
use braid_testkit::packet::{tcp, udp};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

thread_local! {
    /// Number of allocations by this thread.
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // When a thread ends, its variables no longer exist.
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
}

/// The system's allocator with a counter.
struct Counting;

// SAFETY: All calls go to the system's allocator unchanged. Counting allocates nothing, because the
// counter needs no code to initialise it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: The caller's promise about the layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: The pointer came from `alloc` or `realloc` above, so from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: As for `dealloc`; the caller's promise about the size is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Discards outputs. Leaving packets stay in their burst.
struct Nothing;

impl Outputs for Nothing {
    fn packet(&mut self, interface: u16, packet: Packet) {
        panic!("{packet:?} left by interface {interface} beside its burst");
    }

    fn event(&mut self, event: Event) {
        panic!("{event:?}");
    }
}

const ROUTES: &str = "10.0.0.0/8 0\n0.0.0.0/0 1\n198.51.100.0/24 2\n198.51.100.64/26 3\n";
const RULES: &str = "pass proto tcp from 10.0.0.0/9 port 1000-1199 to 198.51.100.0/25
pass proto udp to 198.51.100.0/26 port 53
drop proto udp from 10.0.0.7/32
default pass
";

/// A chain between a network on the left and all other networks.
fn chain(nodes: &[String]) -> Chain {
    let names: Vec<_> = (0..nodes.len()).map(|at| format!("n{at}")).collect();
    let named: String =
        nodes.iter().zip(&names).map(|(node, name)| format!("{name} = {node};\n")).collect();
    let source = format!(
        "chain warm {{\ninterface lan {{ behind 10.0.0.0/8 }}\ninterface wan;\n{named}path lan <-> {} <-> wan;\n}}",
        names.join(" <-> ")
    );
    let files = [("routes", ROUTES), ("rules", RULES)];
    let files: BTreeMap<_, _> =
        files.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    harness::compile(&source, &files, Form::AsWritten).unwrap_or_else(|errors| panic!("{errors}"))
}

fn router(number: usize) -> String {
    let hop = |hop: usize| {
        format!(
            "{{ mac: 02:00:00:00:{number:02x}:{hop:02x}, neighbour: 02:00:00:01:00:{hop:02x}, left: {} }}",
            hop == 0
        )
    };
    let hops: Vec<_> = (0..4).map(hop).collect();
    format!(
        "router(table: routes(\"routes\"), hops: [{}], left: 10.0.0.254, right: 192.0.2.254)",
        hops.join(", ")
    )
}

fn napt(number: usize) -> String {
    format!("napt(public: 203.0.113.{})", number + 1)
}

/// Packets of 500 flows in an irregular order.
fn packets(count: u64) -> Vec<Packet> {
    let packet = |number: u64| {
        let flow = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let flow = flow % 500;
        let (host, port) = (1 + flow % 200, 1000 + flow % 190);
        let addresses =
            format!("10.0.0.{host}:{port} > 198.51.100.{}:{}", flow % 120, 53 + flow % 3);
        let spec = if flow.is_multiple_of(3) { tcp(&addresses) } else { udp(&addresses) };
        spec.payload(b"some bytes").at(1_000_000_000 + number * 100)
    };
    (0..count).map(packet).collect()
}

/// Number of allocations for packets that are copied into frames of a pool and processed by an
/// engine in bursts, and the number of packets that left.
fn asked(
    engine: &mut Compiled,
    packets: &[Packet],
    (pool, burst): &mut (Pool, Burst),
) -> (u64, usize) {
    let mut left = 0;
    let before = ASKED.get();
    for part in packets.chunks(BURST) {
        for packet in part {
            let mut frame = pool.take().expect("a frame for each packet of a burst");
            assert!(frame.push(packet.data()));
            burst.push(Packet::in_frame(packet.link, packet.time_ns, frame, packet.wire_len));
        }
        engine.burst(burst, &mut Nothing);
        left += burst.leaving().count();
        burst.recycle(pool);
    }
    (ASKED.get() - before, left)
}

#[test]
fn warm_engines_ask_for_no_memory() {
    let chains = [
        ("a router", chain(&[router(0)])),
        ("ten routers", chain(&(0..10).map(router).collect::<Vec<_>>())),
        ("four NAPTs", chain(&(0..4).map(napt).collect::<Vec<_>>())),
        (
            "firewall, router, NAPT",
            chain(&["stateless_firewall(allow: rules(\"rules\"))".to_owned(), router(0), napt(0)]),
        ),
    ];
    let mut wrong = Vec::new();
    let all = packets(30_000);
    let (first, then) = all.split_at(20_000);
    let mut memory = (Pool::new(BURST as u32, SPREAD_FRAME).unwrap(), Burst::new());
    for (name, chain) in chains {
        let engines = [
            (Extent::Function, Options::default()),
            (Extent::Chain, Options::default()),
            (Extent::Chain, Options::fused()),
        ];
        for (extent, options) in engines {
            let engine = Compiled::new(chain.clone(), extent, options);
            let mut engine = engine.unwrap_or_else(|why| panic!("{name}: {why}"));
            let (cold, _) = asked(&mut engine, first, &mut memory);
            assert!(cold > 0, "{name}: programs were made without memory");
            let (warm, left) = asked(&mut engine, then, &mut memory);
            assert!(left > then.len() / 2, "{name}: only {left} packets left");
            if warm > 0 {
                wrong.push(format!("{name}, {extent:?}: {warm} allocations for {}", then.len()));
            }
            if let Some(flows) = engine.flows() {
                let all = (first.len() + then.len()) as u64;
                assert_eq!(
                    flows.hits + flows.guard_failures + flows.misses,
                    all,
                    "{name}: {flows:?}"
                );
                // Records do not pay if a chain looks up only routes.
                let least = if name.contains("router") && !name.contains("NAPT") {
                    0
                } else {
                    all - 5 * 500
                };
                assert!(flows.hits >= least, "{name}: {flows:?}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn run_over_a_capture_asks_for_as_much_memory_for_many_packets_as_for_few() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = packets(50_000);
    let chain = chain(&(0..4).map(napt).collect::<Vec<_>>());
    let mut engine = Compiled::new(chain.clone(), Extent::Chain, Options::fused()).expect("engine");
    let mut asked = |number: usize, packets: &[Packet]| {
        let path = folder.path().join(format!("{number}.pcap"));
        let mut writer = CaptureWriter::create(&path, Precision::Nano).expect("a file");
        packets.iter().try_for_each(|packet| writer.write_packet(packet)).expect("it is written");
        writer.finish().expect("it is written");
        let source = Box::new(CaptureReader::open(&path).expect("a capture"));
        let before = ASKED.get();
        let run = Run::new(&chain, &mut engine);
        let done = run.input(Input { name: String::new(), interface: None, source }).run();
        let asked = ASKED.get() - before;
        (asked, done.expect("it runs").counters.packets_in)
    };
    let (cold, _) = asked(0, &all[..20_000]);
    let (few, _) = asked(1, &all[20_000..25_000]);
    let (many, count) = asked(2, &all[25_000..]);
    assert_eq!(count, all.len() as u64, "the engine has counted all packets");
    assert!(cold > few && few > 0, "{cold} allocations, then {few}");
    assert_eq!(many, few);
}
