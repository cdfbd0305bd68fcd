//! Checks a whole chain: all programs for all points that packets reach. Also checks that the
//! programs' header shapes cover all packets without overlap.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Op, PortId, RIGHT};
use braid_ir::residual::{End, Exit, Fate, HeaderMask, Point, Residual, What};
use braid_packet::Header;

use crate::check::{Found, Verdict, check};
use crate::headers;
use crate::parallel::in_order;
use crate::solver::Solver;

/// Gives the residual program for a point and for the headers of a packet at that point.
pub type Programs<'a> = dyn FnMut(Point, u128) -> Residual + 'a;

/// One program and its result.
#[derive(Clone, Debug)]
pub struct Case {
    /// The point where its packets are.
    pub point: Point,
    /// The header shape of its packets.
    pub shape: HeaderMask,
    /// The headers of the packet that the program was made for.
    pub presence: u128,
    /// The result.
    pub found: Found,
}

/// The results of a chain.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The result of each program.
    pub cases: Vec<Case>,
    /// Shapes that overlap, or that do not fit the packets that they were made for.
    pub shapes: Vec<String>,
    /// Parts of the chain that the check does not cover.
    pub not_covered: BTreeSet<String>,
    /// Time taken in milliseconds.
    pub millis: u128,
}

/// The overall result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overall {
    /// Every program does what the chain does.
    Proven,
    /// At least one program does not.
    Refuted,
    /// No difference was found, but not all programs are proven.
    Unknown,
}

impl Report {
    /// The overall result.
    #[must_use]
    pub fn overall(&self) -> Overall {
        let is = |wanted: fn(&Verdict) -> bool| {
            self.cases.iter().any(|case| wanted(&case.found.verdict))
        };
        if is(|verdict| matches!(verdict, Verdict::Refuted(_))) || !self.shapes.is_empty() {
            Overall::Refuted
        } else if is(|verdict| matches!(verdict, Verdict::Unknown(_))) || self.cases.is_empty() {
            Overall::Unknown
        } else {
            Overall::Proven
        }
    }
}

/// Checks all programs of a chain, on all cores. `each` receives every result in the order of the
/// programs, and decides whether to continue.
pub fn verify(
    chain: &Chain,
    graph: &Graph,
    programs: &mut Programs<'_>,
    solver: &Solver,
    each: &mut dyn FnMut(&Case) -> bool,
) -> Report {
    let start = Instant::now();
    let mut report = Report::default();
    let jobs = jobs(chain, graph, programs, &mut report);
    let check = |job: &Job| check(chain, graph, &job.residual, solver);
    in_order(&jobs, &check, &mut |job, found| {
        let shape = job.residual.shape;
        let case = Case { point: job.point, shape, presence: job.presence, found };
        let go_on = each(&case);
        report.cases.push(case);
        go_on
    });
    report.millis = start.elapsed().as_millis();
    report
}

/// A program to check.
struct Job {
    /// The point where its packets are.
    point: Point,
    /// The headers of the packet that the program was made for.
    presence: u128,
    residual: Residual,
}

/// All programs of a chain, for all points that packets reach.
fn jobs(
    chain: &Chain,
    graph: &Graph,
    programs: &mut Programs<'_>,
    report: &mut Report,
) -> Vec<Job> {
    let mut jobs = Vec::new();
    let sets = headers::all();
    let mut points: VecDeque<Point> = entries(chain, graph).into();
    let mut seen: BTreeSet<Point> = points.iter().copied().collect();
    while let Some(point) = points.pop_front() {
        if let Some(why) = without_programs(chain, graph, point) {
            report.not_covered.insert(why);
            points.extend(behind(chain, graph, point.node).filter(|next| seen.insert(*next)));
            continue;
        }
        let mut shapes: Vec<HeaderMask> = Vec::new();
        for presence in &sets {
            if shapes.iter().any(|shape| shape.fits(*presence)) {
                continue;
            }
            if graph.goes_to_stack(point.node, *presence) {
                let name = &chain.nodes[usize::from(point.node)].name;
                let which = graph.stacked(point.node).contains(&Header::Udp);
                let which = if which { "TCP and UDP" } else { "TCP" };
                report
                    .not_covered
                    .insert(format!("{which} packets go to the stack of {name} as they are"));
                continue;
            }
            let residual = programs(point, *presence);
            check_shape(chain, point, *presence, &residual, &sets, &mut shapes, &mut report.shapes);
            for next in reached(chain, graph, &residual, &mut report.not_covered) {
                if seen.insert(next) {
                    points.push_back(next);
                }
            }
            jobs.push(Job { point, presence: *presence, residual });
        }
    }
    jobs
}

/// The points where packets may continue behind functions without programs.
fn behind(chain: &Chain, graph: &Graph, node: u16) -> impl Iterator<Item = Point> {
    graph.group(node).iter().flat_map(move |node| {
        let ports = (0..).zip(&chain.nodes[usize::from(*node)].model.ports);
        ports.filter_map(move |(port, _)| graph.next(*node, PortId(port)).and_then(point))
    })
}

/// Why no programs run at a point, if none do.
fn without_programs(chain: &Chain, graph: &Graph, point: Point) -> Option<String> {
    let name = |node: &u16| chain.nodes[usize::from(*node)].name.as_str();
    let group = graph.group(point.node);
    if group.len() > 1 {
        let names: Vec<&str> = group.iter().map(name).collect();
        return Some(format!(
            "functions under Priority, and those between them ({}), run as the reference engine \
             runs them",
            names.join(", ")
        ));
    }
    let name = name(&point.node);
    (!graph.has_programs(point.node)).then(|| format!("native functions ({name}) run as they are"))
}

/// The points where packets enter the chain's functions.
#[must_use]
pub fn entries(chain: &Chain, graph: &Graph) -> Vec<Point> {
    let interfaces = (0..).zip(&chain.interfaces).map(|(number, _)| number);
    let sinks = interfaces.filter_map(|interface| graph.entry(interface));
    let mut found: Vec<_> = sinks.filter_map(point).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn point(sink: Sink) -> Option<Point> {
    match sink {
        Sink::Port(node, at) => Some(Point { node, backward: at == RIGHT, held: false }),
        Sink::Interface(_) => None,
    }
}

fn check_shape(
    chain: &Chain,
    point: Point,
    presence: u128,
    residual: &Residual,
    sets: &[u128],
    shapes: &mut Vec<HeaderMask>,
    wrong: &mut Vec<String>,
) {
    let at = point_text(chain, point);
    if residual.point != point || !residual.shape.fits(presence) {
        wrong.push(format!("at {at}: the program for headers {presence:#x} is for other packets"));
    }
    let overlaps = sets
        .iter()
        .any(|set| residual.shape.fits(*set) && shapes.iter().any(|shape| shape.fits(*set)));
    if overlaps {
        wrong.push(format!("at {at}: the shape of headers {presence:#x} overlaps another"));
    }
    shapes.push(residual.shape);
}

/// The points where packets continue after the program ends.
fn reached(
    chain: &Chain,
    graph: &Graph,
    residual: &Residual,
    not_covered: &mut BTreeSet<String>,
) -> Vec<Point> {
    let mut found = Vec::new();
    let name = |node: u16| &chain.nodes[usize::from(node)].name;
    for block in &residual.blocks {
        match &block.end {
            End::Exit(Exit { fate: Fate::Go(next), .. }) => found.push(*next),
            End::Exit(Exit { fate: Fate::Output { node, ports }, .. }) => {
                for dest in ports {
                    // The packet has the direction of its last visit. Both directions are followed.
                    for backward in [false, true] {
                        found.extend(graph.next(*node, port(*dest, backward)).and_then(point));
                    }
                }
            }
            End::Hold { node, .. } => {
                for backward in [false, true] {
                    found.push(Point { node: *node, backward, held: true });
                }
            }
            End::Exit(Exit { fate: Fate::Resubmit { node }, .. }) => {
                not_covered.insert(format!(
                    "{} runs anew on resubmitted packets: that run is not looked at",
                    name(*node)
                ));
            }
            _ => {}
        }
        for step in &block.steps {
            if let What::Op(Op::Create { .. } | Op::Mirror { .. }) = step.what {
                not_covered.insert(format!(
                    "packets that {} sends: shown to be made from equal packets and values at \
                     equal moments; their bytes are not",
                    name(step.site.node)
                ));
            }
        }
    }
    found
}

/// A point as readable text.
#[must_use]
pub fn point_text(chain: &Chain, point: Point) -> String {
    let name = &chain.nodes[usize::from(point.node)].name;
    let direction = if point.backward { "backward" } else { "forward" };
    let held = if point.held { ", from a queue" } else { "" };
    format!("{name}, {direction}{held}")
}

/// A header shape as readable text: present headers by name, absent ones with `!`.
#[must_use]
pub fn shape_text(shape: HeaderMask) -> String {
    let known = braid_packet::HEADERS.iter().filter_map(|(header, name)| {
        let there = shape.has(*header)?;
        Some(if there { (*name).to_owned() } else { format!("!{name}") })
    });
    let words: Vec<_> = known.collect();
    if words.is_empty() { "any packet".to_owned() } else { words.join(" ") }
}
