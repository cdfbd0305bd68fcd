//! Rules from the configuration, tried in order.

use braid_native::{Host, PacketRef};
use braid_packet::{Field, Header};

/// A rule: ranges, and values under masks.
struct Rule {
    version: u128,
    src: (u128, u128),
    dst: (u128, u128),
    proto: (u128, u128),
    sport: (u128, u128),
    dport: (u128, u128),
    flags: (u128, u128),
    icmp: (u128, u128),
    pass: bool,
}

/// A rule set. The first rule that matches decides; without one, the default.
pub struct Rules {
    rules: Vec<Rule>,
    default_pass: bool,
}

const ANY_PORT: (u128, u128) = (0, 65_535);

fn within(value: u128, (low, high): (u128, u128)) -> bool {
    (low..=high).contains(&value)
}

fn masked(value: Option<u128>, (wanted, mask): (u128, u128)) -> bool {
    mask == 0 || value.is_some_and(|value| value & mask == wanted & mask)
}

impl Rules {
    /// The rules of a parameter: a row for each rule, then a row with the default.
    pub fn new(host: &Host<'_>, parameter: &str) -> Result<Self, String> {
        let mut rows = host.config_rows::<16>(parameter);
        let default = rows.pop().ok_or_else(|| format!("it needs a rule set `{parameter}`"))?;
        let rule = |row: [u128; 16]| Rule {
            version: row[0],
            src: (row[1], row[2]),
            dst: (row[3], row[4]),
            proto: (row[5], row[6]),
            sport: (row[7], row[8]),
            dport: (row[9], row[10]),
            flags: (row[11], row[12]),
            icmp: (row[13], row[14]),
            pass: row[15] == 1,
        };
        Ok(Self { rules: rows.into_iter().map(rule).collect(), default_pass: default[0] == 1 })
    }

    /// Whether a packet passes. A packet that is not IP does not.
    pub fn pass<T: braid_native::Function>(&self, packet: &PacketRef<'_, T>) -> bool {
        let Some(version) = packet.get(Field::InetVersion) else { return false };
        let number = |field| packet.get(field).unwrap_or(0);
        let (src, dst) = (number(Field::InetSrc), number(Field::InetDst));
        let proto = Some(number(Field::InetProto));
        let ports = packet.get(Field::L4Sport).zip(packet.get(Field::L4Dport));
        let port = |wanted, value: Option<u128>| {
            wanted == ANY_PORT || value.is_some_and(|value| within(value, wanted))
        };
        let flags = packet.get(Field::TcpFlags);
        let icmp = match packet.has(Header::Icmp6) {
            true => packet.get(Field::Icmp6Type).zip(packet.get(Field::Icmp6Code)),
            false => packet.get(Field::IcmpType).zip(packet.get(Field::IcmpCode)),
        };
        let icmp = icmp.map(|(kind, code)| kind << 8 | code);
        let matches = |rule: &&Rule| {
            (rule.version == 0 || rule.version == version)
                && within(src, rule.src)
                && within(dst, rule.dst)
                && masked(proto, rule.proto)
                && port(rule.sport, ports.map(|ports| ports.0))
                && port(rule.dport, ports.map(|ports| ports.1))
                && masked(flags, rule.flags)
                && masked(icmp, rule.icmp)
        };
        self.rules.iter().find(matches).map_or(self.default_pass, |rule| rule.pass)
    }

    /// Whether all packets of a TCP or UDP flow get the same answer, because no rule looks at
    /// flags.
    pub fn is_by_flow(&self) -> bool {
        self.rules.iter().all(|rule| rule.flags.1 == 0)
    }
}
