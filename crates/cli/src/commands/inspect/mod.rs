//! `braid inspect`: the actions of native functions on packets (NFP §5.4), observed in a run and
//! declared by the functions.

use std::collections::BTreeSet;
use std::path::PathBuf;

use braid_compiler::profile::{Profile, details, of_native, table};
use braid_ir::chain::{Chain, Node};
use braid_ir::engine::{Counters, Engine};
use braid_native::Profile as Seen;
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::engines;
use crate::generated;
use crate::load::{self, Choice};
use crate::native;
use crate::output::{Output, warn};

/// Show the actions of native functions on packets: observed under generated traffic, and declared
/// (NFP §5.4)
#[derive(clap::Args)]
pub struct Args {
    /// The file with the chain
    file: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// The number of packets to generate
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    packets: u32,
}

/// The observed and the declared profile of a native function.
struct Inspected<'a> {
    node: &'a Node,
    observed: Profile,
    declared: Option<Profile>,
    packets: u64,
    problems: Vec<String>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let mut chain = load::program(&args.file)?.chain(&args.choice)?;
    if !chain.nodes.iter().any(|node| node.model.is_native_on_packets()) {
        let why =
            "there is no native function to inspect; `braid actions` shows the actions of models";
        return Err(Failure::input(format!("{}: {why}", args.file.display())));
    }
    native::observe(&mut chain);
    let mut engine = engines::make(engines::REFERENCE, &chain)?;
    generated::drive(&chain, engine.as_mut(), args.packets, |_, _| {});
    let found = inspected(&chain, engine.as_ref());
    let problems: Vec<String> = found.iter().flat_map(|one| one.problems.clone()).collect();
    if output.json {
        let functions: Vec<Value> = found.iter().map(Inspected::json).collect();
        output.value(&json!({ "chain": chain.name, "functions": functions }));
    } else {
        output.text(text(&found));
    }
    problems.iter().for_each(warn);
    Ok(Answer::of(problems.is_empty()))
}

fn inspected<'a>(chain: &'a Chain, engine: &dyn Engine) -> Vec<Inspected<'a>> {
    let (seen, counters) = (engine.observed(), engine.counters());
    let nodes = (0..).zip(&chain.nodes).filter(|(_, node)| node.model.is_native_on_packets());
    let problems = native::problems(chain, engine);
    let one = |(at, node): (u16, &'a Node)| {
        let of_workers = seen.iter().filter(|(number, _)| *number == at);
        let all = of_workers.fold(Seen::default(), |all, (_, one)| all.and(one));
        let mut observed = of_native(&node.name, "observed", &all);
        observed.function = format!("{} (observed)", node.name);
        let dropped = counters.drops.keys().filter(|(number, ..)| *number == at);
        observed.drops = dropped.map(|(.., reason)| reason.clone()).collect();
        let declared = node.model.native.as_ref().and_then(|native| native.profile);
        let tags: BTreeSet<_> = node.model.tags.iter().map(|tag| tag.name.clone()).collect();
        let declared = declared.map(|profile| Profile {
            function: format!("{} (declared)", node.name),
            drops: match profile.drops {
                true => node.model.reasons.iter().cloned().collect(),
                false => BTreeSet::new(),
            },
            events: node.model.events.iter().map(|event| event.name.clone()).collect(),
            reads_tags: tags.clone(),
            writes_tags: tags,
            ..of_native(&node.name, "declared", &profile)
        });
        let problems = problems.iter().filter(|told| told.node == at);
        Inspected {
            node,
            observed,
            declared,
            packets: packets(&counters, at),
            problems: problems.map(|told| told.text.clone()).collect(),
        }
    };
    nodes.map(one).collect()
}

/// The number of packets that entered a function.
fn packets(counters: &Counters, node: u16) -> u64 {
    let of_node = counters.nodes.get(usize::from(node));
    of_node.map_or(0, |node| node.forward.packets + node.backward.packets)
}

fn text(found: &[Inspected<'_>]) -> String {
    let profiles: Vec<Profile> = found
        .iter()
        .flat_map(|one| std::iter::once(one.observed.clone()).chain(one.declared.clone()))
        .collect();
    let mut text = table(&profiles);
    for profile in &profiles {
        text.push('\n');
        text.push_str(&details(profile));
    }
    text.push('\n');
    for one in found {
        let name = &one.node.name;
        let declares = match one.declared {
            Some(_) => "it declares a profile",
            None => "it declares no profile, so analyses assume that it may do everything",
        };
        text.push_str(&format!("{name}: observed on {} packets; {declares}\n", one.packets));
    }
    text
}

impl Inspected<'_> {
    fn json(&self) -> Value {
        let native = self.node.model.native.as_ref();
        json!({
            "function": self.node.name,
            "model": self.node.model.name,
            "library": native.map(|native| &native.reference.library),
            "packets": self.packets,
            "observed": self.observed,
            "declared": self.declared,
            "problems": self.problems,
        })
    }
}
