//! Tests the actions of records besides the header rewrite.

use crate::{chain, eager, enter, left, same};
use braid_engine::{Compiled, FlowTemplate, Hashing, Options};
use braid_ir::residual::Extent;
use braid_packet::Field;
use braid_testkit::compare::difference;
use braid_testkit::generate::program::any;
use braid_testkit::generate::traffic::recorded;
use braid_testkit::harness::{self, Form};
use braid_testkit::record::{Detail, Stimulus, record};

/// The record templates that generated chains of library functions make.
fn generated_templates() -> impl Iterator<Item = FlowTemplate> {
    let programs = (0..braid_cases::at_least(900).into()).step_by(3).map(|seed| (seed, any(seed)));
    let is_one = |text: &str| {
        let some =
            ["nf stamp", "nf strip", "nf paint", "nf note", "nf tap", "nf wrap", "native nf"];
        some.iter().any(|nf| text.contains(nf))
    };
    programs.filter(move |(_, program)| is_one(&program.source)).flat_map(|(seed, program)| {
        let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("seed {seed}\n{program}\n{errors}"));
        let (stimuli, expected) = recorded(&chain, seed, 150);
        let options = Options { eager: true, ..Options::fused() };
        let mut engine = Compiled::new(chain, Extent::Chain, options).expect("an engine");
        let found = record(&mut engine, &stimuli, Detail::End);
        assert_eq!(difference(&expected, &found), None, "seed {seed}");
        engine.flow_table().expect("flow records").templates
    })
}

#[test]
fn tags_that_functions_change_in_turn_are_changed_once() {
    let chain = chain(
        "nf strip() { match { has vlan => { pop vlan; output; } else => output; } }
         nf stamp(id: u12) { match { has eth => { push vlan(id); output; } else => output; } }
         nf keep() { state n: u32 per ip.src = 0; match { has ip => { n += 1; output; } else => output; } }
         chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           a = stamp(id: 3);
           b = keep();
           c = strip();
           d = strip();
           e = strip();
           f = stamp(id: 4);
           g = keep();
           path lan <-> a <-> b <-> c <-> d <-> e <-> f <-> g <-> wan;
         }",
        &[],
    );
    let packet = |at: u64, tags: &str| enter(at, 0, &format!("{tags}udp 10.0.0.1:1 > 192.0.2.1:2"));
    let all = ["", "vlan 7 / ", "vlan 8 / ", "vlan 7 pcp=3 / vlan 9 / "];
    let stimuli: Vec<Stimulus> =
        (0..40).map(|at| packet(at, all[at as usize % all.len()])).collect();
    let (trace, flows) = same(&chain, &stimuli);
    assert!(left(&trace, Field::VlanId).iter().all(|id| *id == Some(4)));
    assert!(left(&trace, Field::Vlan2Id).iter().all(Option::is_none));
    assert!(flows.hits >= 4 * 8, "{flows:?}");
}

#[test]
fn records_of_generated_chains_have_all_side_effects_and_run_natives() {
    let (mut pushed, mut popped, mut tagged, mut said, mut copied) = (0, 0, 0, 0, 0);
    let (mut native, mut tunnelled) = (0, 0);
    for template in generated_templates() {
        let effects = &template.path.effects;
        pushed += if effects.vlans.got.is_empty() { 0 } else { template.packets };
        popped += if effects.vlans.lost == 0 { 0 } else { template.packets };
        tagged += if effects.tags.is_empty() { 0 } else { template.packets };
        copied += if template.copies.is_empty() { 0 } else { template.packets };
        said += if effects.publications.is_empty() { 0 } else { template.packets };
        tunnelled += if effects.outer.is_empty() { 0 } else { template.packets };
        let runs = template.path.natives().next().is_some();
        native += if runs { template.packets } else { 0 };
    }
    let all = [pushed, popped, tagged, said, copied, native, tunnelled];
    assert!(
        all.iter().zip([20, 5, 20, 50, 20, 40, 40]).all(|(packets, least)| *packets > least),
        "{all:?}"
    );
}

/// Nearly all packets arrive without tags. A record for such packets leaves others to the programs.
#[test]
fn packets_with_tags_do_not_take_records_of_packets_without() {
    let chain = chain(
        "nf gate() {
           tag color: u8;
           match { forward and color == 1 => drop \"one\"; else => { color = 0; output; } }
         }
         chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           path lan <-> gate() <-> monitor() <-> napt(public: 203.0.113.1) <-> wan;
         }",
        &[],
    );
    let mut stimuli: Vec<_> =
        (0..8).map(|at| enter(at, 0, "udp 10.0.0.1:1000 > 10.9.9.9:53 \"text\"")).collect();
    for (at, name, value) in [(4, "color", 1), (6, "color", 2), (7, "other", 1)] {
        let Stimulus::Packet(_, packet) = &mut stimuli[at] else { panic!("only packets") };
        packet.tags.set(name, value);
    }
    let (trace, flows) = same(&chain, &stimuli);
    let gone: Vec<bool> = left(&trace, Field::IpSrc).iter().map(Option::is_none).collect();
    assert_eq!(gone, [false, false, false, false, true, false, false, false]);
    assert_eq!(flows.hits, 4, "{flows:?}");
    let mut engine = eager(&chain, Hashing::Drawn);
    record(&mut engine, &stimuli[..4], Detail::End);
    let table = engine.flow_table().expect("records");
    assert!(table.templates[0].path.effects.tags.is_empty());
}
