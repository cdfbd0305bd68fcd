//! Flow records as text: each record template, followed by its records.

use std::fmt::Write as _;

use braid_engine::{Change, Dependency, FlowRecord, FlowTemplate, Missing, Part, Splice, Update};
use braid_ir::model::{Kind, Word};
use braid_ir::show::show_all;
use braid_packet::{Field, ether_type};

use super::described::{
    Described, Listing, PathEnd, PathPart, Shown, VlanTag, payload_word, pushes, shape,
};
use super::fields::{self, Named, named};
use crate::commands::names::Names;
use crate::table::count;

/// Formats the flow table.
pub fn text(table: &Listing<'_>, shown: Shown) -> String {
    let names = table.names;
    let mut text = summary(table);
    let most = match shown {
        Shown::Templates => 0,
        Shown::Records(most) => most,
    };
    let mut told = 0;
    for template in &table.templates {
        let number = template.template.number;
        let own = table.records.iter().filter(|record| record.template == number);
        let own: Vec<_> = own.take(most - told).collect();
        if matches!(shown, Shown::Records(_)) && own.is_empty() {
            continue;
        }
        text.push('\n');
        names.template(&mut text, template);
        told += own.len();
        own.iter().for_each(|record| names.record(&mut text, table, record));
    }
    if matches!(shown, Shown::Records(_)) && told < table.records.len() {
        let _ = writeln!(text, "\nand {} more records", count((table.records.len() - told) as u64));
    }
    text
}

/// How packets were processed, and what happened to records.
fn summary(table: &Listing<'_>) -> String {
    let (flows, records) = (table.flows, table.flows.records);
    let templates = table.templates.len() as u64;
    let rest = match flows.rest_hits {
        0 => String::new(),
        hits => format!("; {} further records behind functions on their paths", count(hits)),
    };
    let part = match flows.part_hits {
        0 => String::new(),
        hits => format!("; {} records were for a part of a path", count(hits)),
    };
    format!(
        "packets: {} hits, {} guard failures, {} misses{rest}{part}\n\
         records: {} now, {} made, {} of them by scripts, {} renewed, {} ended, {} refused, \
         {} contended; {}\n",
        count(flows.hits),
        count(flows.guard_failures),
        count(flows.misses),
        count(records.made - records.ended),
        count(records.made),
        count(flows.scripted),
        count(flows.renewed),
        count(records.ended),
        count(records.refused),
        count(records.contended),
        match templates {
            1 => "1 template".into(),
            _ => format!("{} templates", count(templates)),
        },
    )
}

impl Names<'_> {
    fn template(self, text: &mut String, described: &Described<'_>) {
        let (template, path) = (described.template, &described.template.path);
        let _ = writeln!(
            text,
            "template {}: {}{}, {}, {} bytes",
            template.number,
            many(template.records, "record"),
            if template.is_outdated { " (outdated)" } else { "" },
            many(template.packets, "packet"),
            count(template.bytes)
        );
        let way = if template.point.backward { "backward" } else { "forward" };
        let (at, shape) = (self.name(template.point.node), shape(template));
        let program = template.program.map(|number| format!("program {number}, "));
        let program = program.unwrap_or_default();
        let _ = writeln!(text, "  enters {at} {way}: {program}{shape}");
        described.parts.iter().for_each(|part| self.part(text, template, part));
        let batches: Vec<String> =
            described.batches.iter().map(|group| self.group(group)).collect();
        if described.batches.iter().any(|group| group.len() > 1) {
            let at_once = batches.join(", then those of ");
            let _ = writeln!(text, "  at the same time could run the state functions of {at_once}");
        }
        for (field, value) in fields::link(path) {
            let _ = writeln!(text, "  if {field} == {value}");
        }
        for condition in &described.conditions {
            let _ = writeln!(text, "  if {condition}");
        }
        for basis in &path.bases {
            let name = format!("{}.{}", self.name(basis.node), self.param(basis.node, basis.param));
            let _ = match basis.part {
                Part::Whole => writeln!(text, "  depends on {name}"),
                Part::Members => writeln!(text, "  depends on {name}: the set of backends"),
                Part::Backend(number) => writeln!(text, "  depends on {name}: number {number}"),
            };
        }
        changes(text, described);
        for copy in &template.copies {
            let _ = writeln!(text, "  a copy leaves by {}", self.interface(*copy));
        }
        let _ = writeln!(text, "  {}", self.end(&described.end));
    }

    fn part(self, text: &mut String, template: &FlowTemplate, part: &PathPart<'_>) {
        let way = if part.backward { "backward" } else { "forward" };
        let _ = writeln!(text, "  {} ({}) {way}", self.name(part.node), self.model(part.node));
        for row in &part.rows {
            let (label, of) = self.row(part.node, *row);
            let colon = if of.is_empty() { "" } else { ": " };
            let _ = writeln!(text, "    row {label}{colon}{of}");
        }
        for event in &part.events {
            let _ = writeln!(text, "    publishes {event}");
        }
        if let Some(payload) = part.state {
            let _ = writeln!(text, "    its state functions {} the payload", payload_word(payload));
        }
        let guards = part.native.as_ref().map_or(0, |native| native.guards as u64);
        if guards > 0 {
            let _ = writeln!(text, "    evaluates {} after each packet", many(guards, "guard"));
        }
        for (_, param, rule) in template.path.rules.iter().filter(|(node, ..)| *node == part.node) {
            let _ = writeln!(text, "    {} decides by rule {rule}", self.param(part.node, *param));
        }
    }

    /// `one and two`
    fn group(self, group: &[u16]) -> String {
        group.iter().map(|node| self.name(*node)).collect::<Vec<_>>().join(" and ")
    }

    fn end(self, end: &PathEnd<'_>) -> String {
        match end {
            PathEnd::Leave(interface) => format!("leaves by {}", self.interface(*interface)),
            PathEnd::Drop(node, row, reason) => {
                let row = self.row(*node, *row).0;
                format!("dropped by {}, row {row}: {reason}", self.name(*node))
            }
            PathEnd::Consume(node) => format!("taken by {}", self.name(*node)),
            PathEnd::Onward(node) => format!("goes on at {}", self.name(*node)),
        }
    }

    fn record(self, text: &mut String, table: &Listing<'_>, record: &FlowRecord) {
        let _ = writeln!(text, "  {}", flow(&table.key(record)));
        let taken = match record.seen_ns {
            Some(at) => format!("last at {}.{:09}", at / 1_000_000_000, at % 1_000_000_000),
            None => "not taken yet".into(),
        };
        let (packets, bytes) = (many(record.packets, "packet"), count(record.bytes));
        let _ = writeln!(text, "    {packets}, {bytes} bytes, {taken}");
        let set = |(field, value): Named| format!("{field} = {value}");
        let mut writes: Vec<String> = table.assigned(record).map(named).map(set).collect();
        let add = |(field, amount): &(Field, u32)| format!("{} + {amount}", field.info().name);
        writes.extend(record.adds.iter().map(add));
        for (sum, name) in record.sums.iter().zip(["IPv4", "transport"]) {
            if let Some(sum) = sum {
                writes.push(format!("{name} checksum + {sum:#06x}"));
            }
        }
        if !writes.is_empty() {
            let _ = writeln!(text, "    writes {}", writes.join(", "));
        }
        record.depends_on.iter().for_each(|one| self.depends_on(text, one));
        for Missing { node, table, key, .. } in &record.absent {
            let _ = writeln!(text, "    depends on no {}.{table}{}", self.name(*node), place(key));
        }
    }

    /// `depends on nat.map[10.0.0.1, 53]: port = 1024; packets + 1`
    fn depends_on(self, text: &mut String, one: &Dependency) {
        let entry = &one.entry;
        let _ = write!(
            text,
            "    depends on {}.{}{}",
            self.name(entry.node),
            entry.table,
            place(&entry.key)
        );
        let slots = entry.slots.iter().enumerate();
        let read = slots.filter(|(slot, _)| one.reads >> (*slot).min(63) & 1 == 1);
        let read = read.map(|(_, (name, kind, value))| match name.as_str() {
            "" => format!("= {}", kind.show(*value)),
            name => format!("{name} = {}", kind.show(*value)),
        });
        let changed = one.updates.iter().map(|Update { slot, change }| {
            let name = self.slot(entry.node, &entry.table, *slot);
            let how = match change {
                Change::Time => "= time".to_owned(),
                Change::Add { packets, bytes: 0, .. } => format!("+ {packets}"),
                Change::Add { packets: 0, bytes: 1, .. } => "+ bytes".to_owned(),
                Change::Add { packets: 0, bytes, .. } => format!("+ {bytes} * bytes"),
                Change::Add { packets, bytes: 1, .. } => format!("+ bytes {packets:+}"),
                Change::Add { packets, bytes, .. } => format!("+ {bytes} * bytes {packets:+}"),
            };
            let how = format!("{how}{}", bounds(one, *slot));
            if name.is_empty() { how } else { format!("{name} {how}") }
        });
        let all: Vec<String> = read.chain(changed).collect();
        let _ = match all.is_empty() {
            true => writeln!(text),
            false => writeln!(text, ": {}", all.join(", ")),
        };
    }
}

/// Tags, bytes and outer headers that packets get and lose, and what the records write.
fn changes(text: &mut String, described: &Described<'_>) {
    let path = &described.template.path;
    let effects = &path.effects;
    if let Some(bytes) = path.lost_headers() {
        let _ = writeln!(text, "  takes out {} of outer headers", many(bytes as u64, "byte"));
    }
    if effects.vlans.lost > 0 {
        let _ = writeln!(text, "  pops {}", many(effects.vlans.lost as u64, "VLAN tag"));
    }
    let pushes: Vec<String> = pushes(described.template).map(tag).collect();
    if !pushes.is_empty() {
        let _ = writeln!(text, "  pushes {}", pushes.join(", "));
    }
    for (tag, value) in &effects.tags {
        let _ = writeln!(text, "  tag {tag} = {value}");
    }
    let writes = described.writes.iter().map(|(field, _)| field.info().name.to_owned());
    let adds = path.rewrites().flat_map(|rewrite| rewrite.adds.iter());
    let adds = adds.map(|add| format!("{} + an amount", add.field.info().name));
    let ttl = path.ttl();
    let ttl = (ttl > 0).then(|| format!("ip.ttl - {ttl}"));
    let writes: Vec<String> = writes.chain(adds).chain(ttl).collect();
    if !writes.is_empty() {
        let _ = writeln!(text, "  writes {}", writes.join(", "));
    }
    for splice in &effects.splices {
        let _ = match splice {
            Splice::In { at, bytes } => writeln!(text, "  puts in at byte {at}: {}", hex(bytes)),
            Splice::Out { at, len } => writeln!(text, "  takes out bytes {at}..{}", at + len),
        };
    }
    for outer in &effects.outer {
        let _ = writeln!(text, "  puts into {}", outer.names());
    }
}

/// `de ad be ef`
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// The bounds of a slot within which the packets count.
fn bounds(one: &Dependency, slot: u32) -> String {
    let Some(bound) = one.bounds.iter().find(|bound| bound.slot == slot) else {
        return String::new();
    };
    let kind = one.entry.slots.get(slot as usize).map(|(_, kind, _)| *kind);
    let show = |value| kind.map_or_else(String::new, |kind| kind.show(value));
    match (bound.least, bound.most) {
        (0, most) => format!(" up to {}", show(most)),
        (least, Word::MAX) => format!(" from {}", show(least)),
        (least, most) => format!(" from {} up to {}", show(least), show(most)),
    }
}

/// `1 record`, `1,234 records`
fn many(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `vlan 5 pcp 1`
fn tag(VlanTag { tpid, id, pcp, dei }: VlanTag) -> String {
    let mut text = format!("vlan {id}");
    if tpid != ether_type::VLAN {
        let _ = write!(text, " tpid {tpid:#06x}");
    }
    if pcp > 0 {
        let _ = write!(text, " pcp {pcp}");
    }
    if dei { text + " dei" } else { text }
}

/// `[10.0.0.1, 53]`
fn place(key: &[(Kind, Word)]) -> String {
    let parts = show_all(key);
    if parts.is_empty() { String::new() } else { format!("[{}]", parts.join(", ")) }
}

/// `udp 10.0.0.1:1234 > 8.8.8.8:53`, with stars for parts that are not in the key.
fn flow(key: &[Named]) -> String {
    let get = |name: &str| {
        let found = key.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    };
    let mut text = match get("ip.proto") {
        Some("1") => "icmp".to_owned(),
        Some("6") => "tcp".to_owned(),
        Some("17") => "udp".to_owned(),
        Some(proto) => format!("proto {proto}"),
        None => "ip".to_owned(),
    };
    let end = |addr: &str, port: &str| {
        let addr = get(addr).unwrap_or("*");
        get(port).map_or_else(|| addr.to_owned(), |port| format!("{addr}:{port}"))
    };
    let _ = write!(text, " {} > {}", end("ip.src", "l4.sport"), end("ip.dst", "l4.dport"));
    let told = ["ip.proto", "ip.src", "ip.dst", "l4.sport", "l4.dport"];
    for (field, value) in key.iter().filter(|(field, _)| !told.contains(&field.as_str())) {
        let _ = write!(text, ", {field} {value}");
    }
    text
}
