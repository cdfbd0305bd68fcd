//! Tests that the comparison of engines finds each kind of difference and shrinks the sequence.

use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_testkit::compare::{MismatchKind, compare};
use braid_testkit::generate::traffic::stimuli;
use braid_testkit::harness::{self, Form};
use braid_testkit::packet::{packet, udp};
use braid_testkit::record::Stimulus;
use braid_testkit::wrong::{ALL, Sabotaged, Wrong};
use std::collections::BTreeMap;

const SOURCE: &str = "
event SEEN extends EVENT { length: size, number: u32 }
nf watch() {
  state flows: u32 per biflow = 0, idle 10 s, capacity 50, full evict_oldest;
  match {
    l4.dport in 1..20 => drop \"low port\";
    has inet => {
      flows += 1;
      emit SEEN { length: pkt.len, number: flows };
      output;
    }
    else => output;
  }
}
chain c {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  w = watch();
  path lan <-> w <-> wan;
}
";

fn chain() -> Chain {
    harness::compile(SOURCE, &BTreeMap::new(), Form::AsWritten).expect("compiles")
}

fn reference(chain: &Chain) -> Box<dyn Engine> {
    harness::reference(chain)
}

/// Twelve packets: some dropped, one malformed, in both directions.
fn packets() -> Vec<Stimulus> {
    let mut stimuli = Vec::new();
    for i in 0..10_u16 {
        let text = format!("10.0.0.{}:{} > 9.9.9.9:{} \"x\"", i + 1, 1000 + i, 18 + i);
        stimuli.push(Stimulus::Packet(i % 2, udp(&text).at(u64::from(i) * 1_000)));
    }
    stimuli.push(Stimulus::Packet(0, packet("ip 10.0.0.1 > 9.9.9.9 ihl=3").at(20_000)));
    stimuli.push(Stimulus::Packet(0, packet("arp request 10.0.0.1 > 10.0.0.2").at(21_000)));
    stimuli
}

#[test]
fn reference_equals_itself() {
    let chain = chain();
    compare(&chain, &reference, &reference, &packets()).expect("equal");
    compare(&chain, &reference, &reference, &stimuli(&chain, 5, 500)).expect("equal");
}

#[test]
fn each_kind_of_difference_is_seen() {
    let chain = chain();
    for &wrong in ALL {
        let broken = |chain: &Chain| -> Box<dyn Engine> {
            Box::new(Sabotaged::new(harness::reference(chain), wrong))
        };
        let report = compare(&chain, &reference, &broken, &packets()).expect_err("they differ");
        let kind = match wrong {
            Wrong::Bit => MismatchKind::Bytes,
            Wrong::Swallow | Wrong::Twice => MismatchKind::Outputs,
            Wrong::Interface => MismatchKind::Interface,
            Wrong::Time => MismatchKind::Attributes,
            Wrong::EventField | Wrong::EventLost => MismatchKind::Events,
            Wrong::Row => MismatchKind::Drops,
            Wrong::Reason => MismatchKind::Lost,
            Wrong::Bytes => MismatchKind::Counters,
            Wrong::LastSeen | Wrong::Forgotten => MismatchKind::State,
            Wrong::Panic => MismatchKind::Panic,
        };
        assert_eq!(report.mismatch.kind, kind, "{wrong:?}: {report}");
        // A wrong packet needs three leaving packets, a wrong drop needs one dropped packet, and so
        // on.
        let needed = match wrong {
            Wrong::EventField | Wrong::EventLost => 2,
            Wrong::Row | Wrong::Reason | Wrong::LastSeen | Wrong::Forgotten => 1,
            Wrong::Bytes => 0,
            _ => 3,
        };
        assert_eq!(report.stimuli.len(), needed, "{wrong:?}: {report}");
    }
}

#[test]
fn report_reads_as_a_case() {
    let chain = chain();
    let broken = |chain: &Chain| -> Box<dyn Engine> {
        Box::new(Sabotaged::new(harness::reference(chain), Wrong::Reason))
    };
    let report = compare(&chain, &reference, &broken, &packets()).expect_err("they differ");
    let text = report.to_string();
    // A header of three words has no readable form.
    let line = "20000ns lan: eth 02:00:00:00:00:01 > 02:00:00:00:00:02 type=2048 hex=43";
    assert!(text.contains(line), "{text}");
}
