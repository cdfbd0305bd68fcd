//! Names from other tools and languages, with the corresponding names of Braid.

/// Fields elsewhere, and in Braid.
const FIELDS: &[(&str, &str)] = &[
    ("ip.saddr", "ip.src"),
    ("ip.daddr", "ip.dst"),
    ("ip.protocol", "ip.proto"),
    ("ip.length", "ip.len"),
    ("ip.ihl", "ip.hlen"),
    ("ip6.saddr", "ip6.src"),
    ("ip6.daddr", "ip6.dst"),
    ("ip6.hlim", "ip6.ttl"),
    ("ip6.hoplimit", "ip6.ttl"),
    ("ip6.nexthdr", "ip6.next"),
    ("tcp.checksum", "l4.checksum"),
    ("tcp.doff", "tcp.hlen"),
    ("tcp.opt.mss", "tcp.mss"),
    ("tcp.opt.wscale", "tcp.wscale"),
    ("tcp.options.mss", "tcp.mss"),
    ("tcp.options.wscale", "tcp.wscale"),
    ("tcp.srcport", "tcp.sport"),
    ("tcp.dstport", "tcp.dport"),
    ("udp.checksum", "l4.checksum"),
    ("udp.length", "udp.len"),
    ("udp.srcport", "udp.sport"),
    ("udp.dstport", "udp.dport"),
];

/// TCP flags. In Braid they are bits of one field.
const TCP_FLAGS: &[&str] = &["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// Statements elsewhere, and in Braid.
const STATEMENTS: &[(&str, &str)] = &[
    ("accept", "output"),
    ("allow", "output"),
    ("pass", "output"),
    ("permit", "output"),
    ("block", "drop"),
    ("deny", "drop"),
    ("discard", "drop"),
    ("reject", "drop"),
];

/// Units elsewhere, and in Braid.
const UNITS: &[(&str, &str)] = &[
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("msec", "ms"),
    ("µs", "us"),
    ("usec", "us"),
    ("minute", "min"),
    ("minutes", "min"),
    ("hour", "h"),
    ("hours", "h"),
    ("day", "d"),
    ("days", "d"),
    ("byte", "B"),
    ("bytes", "B"),
    ("kbyte", "KB"),
    ("kbytes", "KB"),
    ("Mbyte", "MB"),
    ("Mbytes", "MB"),
    ("Gbyte", "GB"),
    ("Gbytes", "GB"),
    ("bit", "bit/s"),
    ("bits", "bit/s"),
    ("bps", "bit/s"),
    ("kbit", "kbit/s"),
    ("kbits", "kbit/s"),
    ("Kbit", "kbit/s"),
    ("kbps", "kbit/s"),
    ("Kbps", "kbit/s"),
    ("Mbit", "Mbit/s"),
    ("Mbits", "Mbit/s"),
    ("Mbps", "Mbit/s"),
    ("Gbit", "Gbit/s"),
    ("Gbits", "Gbit/s"),
    ("Gbps", "Gbit/s"),
];

fn here(table: &[(&str, &'static str)], name: &str) -> Option<String> {
    let found = table.iter().find(|(elsewhere, _)| *elsewhere == name);
    found.map(|(_, own)| format!("did you mean `{own}`?"))
}

/// The help line for a field of another tool.
#[must_use]
pub fn foreign_field(name: &str) -> Option<String> {
    let flag = name.strip_prefix("tcp.").map(|rest| rest.strip_prefix("flags.").unwrap_or(rest));
    // `tcp.ack` is the field with the number, so only `tcp.flags.ack` reaches this line.
    if let Some(flag) = flag.filter(|flag| TCP_FLAGS.contains(flag)) {
        return Some(format!("test a flag with `tcp.flags & {} != 0`", flag.to_uppercase()));
    }
    here(FIELDS, name)
}

/// The help line for a statement of another tool.
#[must_use]
pub fn foreign_statement(word: &str) -> Option<String> {
    here(STATEMENTS, word)
}

/// The help line for a unit of another tool.
#[must_use]
pub fn foreign_unit(unit: &str) -> Option<String> {
    here(UNITS, unit)
}

#[cfg(test)]
mod tests {
    use braid_packet::Field;

    use super::*;
    use crate::parse::words::{RATES, UNITS as OWN_UNITS};

    #[test]
    fn foreign_names_are_unknown_and_lead_to_known_ones() {
        for (elsewhere, own) in FIELDS {
            assert!(Field::by_name(own).is_some(), "{own}");
            assert!(Field::by_name(elsewhere).is_none(), "{elsewhere}");
        }
        let is_unit = |unit: &str| match unit.strip_suffix("/s") {
            Some(rate) => RATES.contains(&rate),
            None => OWN_UNITS.contains(&unit),
        };
        for (elsewhere, own) in UNITS {
            assert!(is_unit(own) && !is_unit(elsewhere), "{elsewhere} {own}");
        }
    }

    #[test]
    fn flag_leads_to_the_field_of_flags() {
        let help = Some("test a flag with `tcp.flags & SYN != 0`".to_owned());
        assert_eq!(foreign_field("tcp.syn"), help);
        assert_eq!(foreign_field("tcp.flags.syn"), help);
        assert_eq!(foreign_field("tcp.synack"), None);
    }
}
