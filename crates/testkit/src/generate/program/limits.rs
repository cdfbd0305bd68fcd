//! Generates chains of functions with several limits on counters: on packets and on bytes, in one
//! slot and in several, under a packet's own key and under other keys, in both directions. Flow
//! records that share an entry exceed their limits in every order.

use super::function;
use super::source::Program;
use crate::generate::Rng;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Whether [`super::any`] makes such a chain from a seed. Traffic for the chain then exchanges
/// packets between a few hosts.
pub(in crate::generate) fn is_drawn(seed: u64) -> bool {
    Rng::new(seed ^ 0x6c69_6d69_7473).one_in(6)
}

/// A counter.
struct Slot {
    name: &'static str,
    ty: &'static str,
    bytes: bool,
}

/// A table of counters: its name, and the notations of an entry in it.
struct Table {
    name: String,
    header: &'static str,
    places: &'static [&'static str],
    slots: Vec<Slot>,
}

impl Table {
    fn draw(rng: &mut Rng, name: String) -> (Self, String) {
        let (key, header, places): (_, _, &[&str]) = *rng.pick(&[
            ("per ip.src", "ip", &["", "[ip.src]", "[ip.dst]"][..]),
            ("per ip.src", "ip", &["", "[ip.dst]"]),
            ("per ip.dst", "ip", &["", "[ip.src]"]),
            ("per biflow", "inet", &[""]),
            ("per biflow", "inet", &[""]),
            ("per flow", "inet", &["", "[reverse]"]),
            ("global", "inet", &[""]),
        ]);
        let mut slots = Vec::new();
        for name in ["x", "y", "z"].into_iter().take(1 + rng.below(5) / 2) {
            let bytes = rng.one_in(2);
            let types = if bytes {
                &["u16", "u32", "u64", "size"][..]
            } else {
                &["u8", "u8", "u32", "u64"]
            };
            slots.push(Slot { name, ty: rng.pick::<&str>(types), bytes });
        }
        let types: Vec<_> =
            slots.iter().map(|slot| format!("{}: {}", slot.name, slot.ty)).collect();
        let zeros: Vec<_> = slots.iter().map(|slot| format!("{}: 0", slot.name)).collect();
        let idle = if rng.one_in(3) { ", idle 400 ms" } else { "" };
        let full = if rng.one_in(3) { ", full evict_oldest" } else { "" };
        let capacity = if rng.one_in(4) { 3 } else { 30 };
        let ends = match key {
            "global" => String::new(),
            _ => format!("{idle}, capacity {capacity}{full}"),
        };
        let (types, zeros) = (types.join(", "), zeros.join(", "));
        let text = format!("state {name}: {{ {types} }} {key} = {{ {zeros} }}{ends};");
        (Self { name, header, places, slots }, text)
    }

    /// A counter of an entry in its written form.
    fn slot(&self, rng: &mut Rng, number: usize) -> (String, &Slot) {
        let slot = &self.slots[number % self.slots.len()];
        (format!("{}{}.{}", self.name, rng.pick(self.places), slot.name), slot)
    }

    fn condition(&self, rng: &mut Rng, number: usize) -> String {
        let (place, slot) = self.slot(rng, number);
        let limit = slot.limit(rng);
        slot.condition(rng, &place, &limit)
    }

    fn count(&self, rng: &mut Rng, number: usize) -> String {
        let (place, slot) = self.slot(rng, number);
        slot.count(rng, &place)
    }
}

impl Slot {
    /// A limit to compare a counter with.
    fn limit(&self, rng: &mut Rng) -> String {
        let limit = match (self.bytes, rng.below(4)) {
            (true, _) => 60 * (1 + rng.below(50)),
            (false, 0) => 1 + rng.below(12),
            (false, 1) if self.ty == "u8" => 1 + rng.below(250),
            (false, _) => 8 + rng.below(40),
        };
        if self.ty == "size" { format!("{limit} B") } else { limit.to_string() }
    }

    /// A condition on a counter.
    fn condition(&self, rng: &mut Rng, place: &str, limit: &str) -> String {
        let op = *rng.pick(&["<", "<", "<=", ">", ">", ">=", "==", "!="]);
        let small = self.ty == "u8";
        match rng.below(8) {
            0 | 1 if !self.bytes && (small || rng.one_in(2)) => {
                format!("wrapping({place} + {}) {op} {limit}", self.step(rng))
            }
            _ => format!("{place} {op} {limit}"),
        }
    }

    /// A statement that counts.
    fn count(&self, rng: &mut Rng, place: &str) -> String {
        let by = match (self.bytes, self.ty) {
            (true, "size") => "pkt.len".to_owned(),
            (true, ty) => format!("{ty}(pkt.len)"),
            (false, _) => self.step(rng).to_string(),
        };
        match rng.below(24) {
            0 | 1 => format!("{place} = 0;"),
            2..5 => format!("{place} = wrapping({place} + {by});"),
            _ => format!("{place} += {by};"),
        }
    }

    /// The step of a packet counter. A small counter soon reaches its largest value.
    fn step(&self, rng: &mut Rng) -> usize {
        match (rng.below(6), self.ty) {
            (0 | 1, "u8") => 30 + rng.below(60),
            (0 | 1, _) => 2 + rng.below(4),
            _ => 1,
        }
    }
}

/// The source of a function with this name.
fn source(rng: &mut Rng, name: &str) -> String {
    let is_plain = rng.one_in(2);
    let count = if is_plain { 1 } else { 1 + rng.below(4) / 3 };
    let (tables, states): (Vec<_>, Vec<_>) =
        (0..count).map(|number| Table::draw(rng, format!("t{number}"))).unzip();
    let mut text = format!("nf {name}() {{\n");
    for state in states {
        let _ = writeln!(text, "  {state}");
    }
    text += "  match {\n";
    let slots: usize = tables.iter().map(|table| table.slots.len()).sum();
    let has = if tables.iter().any(|table| table.header == "ip") { "ip" } else { "inet" };
    // A row that repeats another row's comparison could never match.
    let mut compared = BTreeSet::new();
    for row in 0..(1 + rng.below(3)).max(slots) {
        let (table, number) = (&tables[row % count], row / count);
        let side = *rng.pick(&["", "", "forward and ", "backward and "]);
        let (place, slot) = table.slot(rng, number);
        let limit = slot.limit(rng);
        if !compared.insert((row % count, slot.name, limit.clone())) {
            continue;
        }
        let (mut condition, counted) =
            (slot.condition(rng, &place, &limit), slot.count(rng, &place));
        let other = rng.below(count);
        let (place, slot) = tables[other].slot(rng, row);
        let limit = slot.limit(rng);
        if !is_plain && rng.one_in(3) && compared.insert((other, slot.name, limit.clone())) {
            condition += &format!(" and {}", slot.condition(rng, &place, &limit));
        }
        let body = match is_plain {
            true => format!("{counted} {}", end(rng)),
            false => body(rng, &tables),
        };
        let _ = writeln!(text, "    {side}has {has} and {condition} => {{ {body} }}");
    }
    let all = tables.iter().flat_map(|table| (0..table.slots.len()).map(move |slot| (table, slot)));
    let counts: Vec<_> = all.map(|(table, slot)| table.count(rng, slot)).collect();
    let _ = writeln!(text, "    has {has} => {{ {} output; }}", counts.join(" "));
    text += "    else => output;\n  }\n}\n";
    text
}

/// The statements of a row.
fn body(rng: &mut Rng, tables: &[Table]) -> String {
    let mut all = Vec::new();
    for _ in 0..rng.below(3) {
        let (table, number) = (rng.pick(tables), rng.below(3));
        all.push(table.count(rng, number));
        if rng.one_in(4) {
            let condition = table.condition(rng, number);
            all.push(format!("if {condition} {{ drop \"inside\"; }}"));
        }
    }
    all.push(end(rng).to_owned());
    all.join(" ")
}

fn end(rng: &mut Rng) -> &'static str {
    let ends: [&str; 5] = ["output;", "output;", "output;", "drop \"limit\";", "consume;"];
    ends[rng.below(ends.len())]
}

/// Generates a chain.
pub(super) fn program(rng: &mut Rng) -> Program {
    let mut program = Program::default();
    let mut nodes = String::new();
    let count = 1 + rng.below(6) / 3;
    for number in 0..count {
        let own = function::generate(&mut rng.split(), number, false);
        let node = if number > 0 && own.ports.is_empty() && rng.one_in(4) {
            own.add_to(&mut program.source);
            program.files.extend(own.files);
            let args: Vec<_> = own.args.into_iter().map(|(arg, _)| arg).collect();
            format!("{}({})", own.name, args.join(", "))
        } else if rng.one_in(8) {
            "monitor()".to_owned()
        } else {
            program.source += &source(rng, &format!("limits{number}"));
            format!("limits{number}()")
        };
        let _ = writeln!(nodes, "n{number} = {node};");
    }
    let stops: Vec<_> = (0..count).map(|number| format!("n{number}")).collect();
    let _ = write!(
        program.source,
        "chain limits {{\n\
         interface lan {{ behind 10.0.0.0/8, 2001:db8::/125 }}\n\
         interface wan;\n\
         {nodes}path lan <-> {} <-> wan;\n\
         seed {};\nworkers {};\n}}\n",
        stops.join(" <-> "),
        rng.below(1000),
        1 + rng.below(12) / 11,
    );
    program
}
