//! Long chains: programs grow with the number of functions, not with the number of paths through
//! them. On every path a field is read at most once and written at most once.

use super::common::presence;
use braid_compiler::synth::residual;
use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::model::Op;
use braid_ir::residual::{Block, End, Extent, Fate, Point, Residual, What};
use braid_packet::{Field, Header};
use braid_testkit::harness::{Form, compile};
use std::collections::BTreeMap;

fn chain(function: &str, count: usize) -> Chain {
    let mut source =
        "chain c {\n  interface lan { behind 10.0.0.0/8 }\n  interface wan;\n".to_owned();
    for number in 0..count {
        source += &format!("  a{number} = {};\n", function.replace('#', &(number + 1).to_string()));
    }
    let names: Vec<String> = (0..count).map(|number| format!("a{number}")).collect();
    source += &format!("  path lan <-> {} <-> wan;\n}}\n", names.join(" <-> "));
    let files = BTreeMap::from([("t.routes".to_owned(), "0.0.0.0/0 1\n10.0.0.0/8 0\n".to_owned())]);
    compile(&source, &files, Form::AsWritten).unwrap_or_else(|errors| panic!("{errors}"))
}

const ROUTER: &str = "router(table: routes(\"t.routes\"), hops: [
    { mac: 02:00:00:00:00:01, neighbour: 02:00:00:00:01:01, left: true },
    { mac: 02:00:00:00:00:02, neighbour: 02:00:00:00:02:01, left: false },
  ], left: 10.0.0.#, right: 192.0.2.1)";
const NAPT: &str = "napt(public: 192.0.2.#)";

fn program(chain: &Chain) -> Residual {
    let graph = Graph::new(chain).expect("a graph");
    let point = Point { node: 0, backward: false, held: false };
    let shape = presence(&[Header::Eth, Header::Ip4, Header::Udp]);
    residual(chain, &graph, point, shape, Extent::Chain)
}

fn steps(program: &Residual) -> usize {
    program.blocks.iter().map(|block| block.steps.len()).sum()
}

#[test]
fn programs_grow_with_the_number_of_functions() {
    for function in [ROUTER, NAPT] {
        let [five, ten, twenty] = [5, 10, 20].map(|count| program(&chain(function, count)));
        for size in [|program: &Residual| program.blocks.len(), steps] {
            let (first, second) = (size(&ten) - size(&five), size(&twenty) - size(&ten));
            // Ten more functions cost about twice as much as five more.
            assert!(second <= 2 * first + 2, "{function}: {first} and {second}");
        }
    }
}

/// A value that is computed from two uses of the value before has more paths to its origin than any
/// time suffices for.
#[test]
fn values_that_share_operands_take_no_longer() {
    let round = "h = wrapping(h * 2654435761) ^ (h >> 15);\n";
    let source = format!(
        "nf mix() {{ match {{
           has ip => {{
             let mut h = u32(ip.src);
             {}
             if h == 0 {{ drop; }}
             ip.id = u16(h & 0xffff);
             output;
           }}
           else => output;
         }} }}
         chain c {{ path in <-> mix() <-> out; }}",
        round.repeat(64)
    );
    let chain = compile(&source, &BTreeMap::new(), Form::AsWritten);
    let chain = chain.unwrap_or_else(|errors| panic!("{errors}"));
    let rounds = steps(&program(&chain));
    assert!((64 * 3..64 * 5).contains(&rounds), "{rounds} steps");
}

/// For each field, the maximum number of steps for it on a path.
fn most(program: &Residual, of: impl Fn(&What) -> Vec<Field>) -> BTreeMap<Field, usize> {
    let mut before: Vec<BTreeMap<Field, usize>> = vec![BTreeMap::new(); program.blocks.len()];
    let mut most = BTreeMap::new();
    for (at, block) in program.blocks.iter().enumerate() {
        let mut here = std::mem::take(&mut before[at]);
        for field in block.steps.iter().flat_map(|step| of(&step.what)) {
            *here.entry(field).or_default() += 1;
        }
        for target in block.end.targets() {
            let there = &mut before[target.block.index()];
            for (field, count) in &here {
                let known = there.entry(*field).or_default();
                *known = (*known).max(*count);
            }
        }
        for (field, count) in here {
            let known = most.entry(field).or_insert(0);
            *known = count.max(*known);
        }
    }
    most
}

#[test]
fn every_field_is_read_and_written_at_most_once_in_a_way() {
    for function in [ROUTER, NAPT] {
        let program = program(&chain(function, 10));
        let reads = most(&program, |what| match what {
            What::Op(Op::Load { field, .. }) => vec![*field],
            _ => Vec::new(),
        });
        assert!(reads.contains_key(&Field::IpDst), "{function}");
        assert!(reads.values().all(|count| *count == 1), "{function}: {reads:?}");
        let writes = most(&program, |what| match what {
            What::Write(fields) => fields.iter().map(|(field, _)| *field).collect(),
            _ => Vec::new(),
        });
        assert!(!writes.is_empty(), "{function}");
        assert!(writes.values().all(|count| *count == 1), "{function}: {writes:?}");
    }
}

/// The block in which packets leave after all functions.
fn last_leave(program: &Residual) -> &Block {
    let leaves = program.blocks.iter().filter(|block| match &block.end {
        End::Exit(exit) => exit.fate == Fate::Leave { interface: 1 },
        _ => false,
    });
    leaves.max_by_key(|block| block.steps.len()).expect("packets leave")
}

#[test]
fn ten_decrements_are_one_subtraction() {
    let program = program(&chain(ROUTER, 10));
    let block = last_leave(&program);
    let subtractions = block.steps.iter().filter(|step| {
        matches!(step.what, What::Op(Op::Bin { op: braid_ir::model::BinOp::SubWrap, .. }))
    });
    assert_eq!(subtractions.count(), 1);
    let ten = |what: &What| matches!(what, What::Op(Op::Const { value: 10, .. }));
    assert!(block.steps.iter().any(|step| ten(&step.what)));
}
