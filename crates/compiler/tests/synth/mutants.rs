//! Each mutant changes some program, so the checks for wrong programs have one to find.

use super::common::{presence, router, row};
use braid_compiler::synth::{SYNTH_MUTANTS, SynthMutant, residual, residual_with_mutant};
use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::residual::{Extent, Point};
use braid_packet::Header::{Eth, Icmp, Ip4, Tcp, Udp};
use braid_testkit::generate::program::program;
use braid_testkit::harness::{Form, compile};

/// Reads the checksum, writes to the payload, and reads the checksum again.
const CHECKSUM: &str = "
nf write() {
  match {
    has udp and l4.checksum > 7 => {
      u8 at payload = 1 else drop;
      if l4.checksum > 8 { drop; }
      output;
    }
    else => output;
  }
}
chain c {
  w = write();
  interface lan;
  interface wan;
  path lan <-> w <-> wan;
}";

/// Adds TCP options, reads a length, and removes an option that the packet may have twice.
const OPTIONS: &str = "
nf options() {
  match {
    has ip and has tcp => {
      push tcp.mss(5) else drop;
      if has tcp.mss and ip.len > 50 { drop; }
      pop tcp.mss;
      if has tcp.mss { drop; }
      output;
    }
    else => output;
  }
}
chain c {
  o = options();
  interface lan;
  interface wan;
  path lan <-> o <-> wan;
}";

/// Two instances of a function handle an event, may fault, and publish an event for a third
/// function.
const EVENTS: &str = "
event SEEN extends EVENT { src: ip4, ttl: u8 }
event AGAIN extends EVENT { src: ip4 }
nf source() {
  match {
    has ip => { emit SEEN { src: ip.src, ttl: ip.ttl }; output; }
    else => output;
  }
}
nf gate() {
  state limit: u8 per (ip4) = 0;
  on SEEN {
    emit AGAIN { src: event.src };
    limit[event.src] = 100 / event.ttl;
  }
  match {
    has ip and limit[ip.src] > 3 => drop;
    else => output;
  }
}
nf last() {
  state seen: u8 per (ip4) = 0;
  on AGAIN { seen[event.src] += 1; }
  match {
    has ip and seen[ip.src] > 3 => drop;
    else => output;
  }
}
chain c {
  interface lan;
  interface wan;
  path lan <-> source() <-> gate() <-> gate() <-> last() <-> wan;
}";

/// Keeps only the mutants that do not change a chain's program.
fn sift(chain: &Chain, shape: u128, unseen: &mut Vec<SynthMutant>) {
    let graph = Graph::new(chain).expect("a graph");
    let point = Point { node: 0, backward: false, held: false };
    let right = residual(chain, &graph, point, shape, Extent::Chain);
    unseen.retain(|bug| {
        residual_with_mutant(chain, &graph, point, shape, Extent::Chain, *bug) == right
    });
}

#[test]
fn each_bug_makes_some_program_another() {
    let shapes = [presence(&[Eth, Ip4, Udp]), presence(&[Ip4, Tcp]), presence(&[Eth, Icmp])];
    let mut unseen = SYNTH_MUTANTS.to_vec();
    let router = router();
    sift(&row(&[&router, &router], &[]), presence(&[Ip4]), &mut unseen);
    // Generated functions seldom read a checksum on both sides of a write to the payload.
    let chain = compile(CHECKSUM, &Default::default(), Form::AsWritten).expect("compiles");
    sift(&chain, shapes[0], &mut unseen);
    let chain = compile(OPTIONS, &Default::default(), Form::AsWritten).expect("compiles");
    sift(&chain, shapes[1], &mut unseen);
    let chain = compile(EVENTS, &Default::default(), Form::AsWritten).expect("compiles");
    sift(&chain, shapes[1], &mut unseen);
    for seed in 0..braid_cases::at_least(200).into() {
        let source = program(seed);
        let chain = compile(&source.source, &source.files, Form::AsWritten).expect("compiles");
        for shape in shapes {
            sift(&chain, shape, &mut unseen);
        }
        if unseen.is_empty() {
            return;
        }
    }
    panic!("{unseen:?} change nothing");
}
