//! NFP's Table 2 as data, and the statistic that §4.3 draws from it.

use super::action::Action;
use super::depend::{Parallel, Reading, identify};
use braid_ir::service_graph::Part;
use braid_packet::{Field, Header};

/// A line of Table 2.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    /// The function.
    pub name: &'static str,
    /// Its share of the functions in enterprise networks, in per cent. `None` if the table gives no
    /// share. The shares in the table add up to 92.
    pub percent: Option<u64>,
    /// The use of SIP, DIP, SPORT, DPORT and payload: nothing, `R` or `RW`.
    pub uses: [&'static str; 5],
    /// Whether it adds or removes headers.
    pub adds_or_removes: bool,
    /// Whether it drops packets.
    pub drops: bool,
}

const fn line(
    name: &'static str,
    percent: Option<u64>,
    uses: [&'static str; 5],
    adds_or_removes: bool,
    drops: bool,
) -> Line {
    Line { name, percent, uses, adds_or_removes, drops }
}

/// Table 2.
pub const TABLE_2: &[Line] = &[
    line("Firewall", Some(26), ["R", "R", "R", "R", ""], false, true),
    line("NIDS", Some(20), ["R", "R", "R", "R", "R"], false, false),
    line("Gateway", Some(19), ["R", "R", "", "", ""], false, false),
    line("Load Balance", Some(10), ["RW", "RW", "R", "R", ""], false, false),
    line("Caching", Some(10), ["R", "", "R", "", "R"], false, false),
    line("VPN", Some(7), ["R", "R", "", "", "RW"], true, false),
    line("NAT", None, ["RW", "RW", "RW", "RW", ""], false, false),
    line("Proxy", None, ["RW", "RW", "", "", ""], false, false),
    line("Compression", None, ["", "", "", "", "RW"], false, false),
    line("Traffic Shaper", None, ["", "", "", "", ""], false, false),
    line("Monitor", None, ["R", "R", "R", "R", ""], false, false),
];

/// The parts that the columns of Table 2 stand for.
const COLUMNS: [Part; 5] = [
    Part::Field(Field::InetSrc),
    Part::Field(Field::InetDst),
    Part::Field(Field::L4Sport),
    Part::Field(Field::L4Dport),
    Part::Payload,
];

impl Line {
    /// The line's actions. All are of the paper's kinds.
    #[must_use]
    pub fn actions(&self) -> Vec<Action> {
        let mut found = Vec::new();
        for (part, uses) in COLUMNS.iter().zip(self.uses) {
            found.extend(uses.contains('R').then(|| Action::Read(part.clone())));
            found.extend(uses.contains('W').then(|| Action::Write(part.clone())));
        }
        // OpenVPN adds a header. The paper's example of an added header is the authentication
        // header.
        found.extend(self.adds_or_removes.then_some(Action::Add(Header::Ah)));
        found.extend(self.drops.then_some(Action::Drop));
        found
    }
}

/// The statistic of §4.3 over all ordered pairs of two different functions with shares: the
/// percentages of pairs that are parallel without a copy, parallel with a copy, and not parallel.
/// The weight of a pair is the product of its two shares.
#[must_use]
pub fn statistic(reading: Reading) -> [f64; 3] {
    let deployed: Vec<&Line> = TABLE_2.iter().filter(|line| line.percent.is_some()).collect();
    let mut weights = [0_u64; 3];
    for first in &deployed {
        for second in deployed.iter().filter(|second| second.name != first.name) {
            let weight = first.percent.unwrap_or(0) * second.percent.unwrap_or(0);
            weights[match identify(&first.actions(), &second.actions(), reading).parallel {
                Parallel::WithoutCopy => 0,
                Parallel::WithCopy => 1,
                Parallel::No => 2,
            }] += weight;
        }
    }
    let all: u64 = weights.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "the weights are below 10^4")]
    weights.map(|weight| 100.0 * weight as f64 / all as f64)
}
