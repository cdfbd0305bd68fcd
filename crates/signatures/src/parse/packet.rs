//! Options about the headers of packets.

use super::digits::number;
use super::fault::Fault;
use crate::headers::Number;
use braid_intervals::IntervalSet;

/// The options that ask for a number, the number, and the largest value that it can have.
const NUMBERS: &[(&str, Number, u32)] = &[
    ("dsize", Number::Length, u16::MAX as u32),
    ("seq", Number::Seq, u32::MAX),
    ("ack", Number::Ack, u32::MAX),
    ("window", Number::Window, u16::MAX as u32),
    ("itype", Number::IcmpType, u8::MAX as u32),
    ("icode", Number::IcmpCode, u8::MAX as u32),
    ("icmp_id", Number::IcmpId, u16::MAX as u32),
    ("icmp_seq", Number::IcmpSeq, u16::MAX as u32),
    ("ttl", Number::Ttl, u8::MAX as u32),
    ("tos", Number::Tos, u8::MAX as u32),
    ("id", Number::Id, u16::MAX as u32),
    ("ip_proto", Number::Protocol, u8::MAX as u32),
    ("fragoffset", Number::FragmentOffset, (1 << 13) - 1),
];

/// The flags of IPv4 by their letters.
const FRAGMENT_BITS: &[(char, u8)] = &[('R', 4), ('D', 2), ('M', 1)];

/// The names of options of IPv4, and their types.
const OPTIONS: &[(&str, u8)] = &[
    ("eol", 0),
    ("nop", 1),
    ("rr", 7),
    ("qs", 25),
    ("ts", 68),
    ("sec", 130),
    ("lsrr", 131),
    ("esec", 133),
    ("cipso", 134),
    ("satid", 136),
    ("ssrr", 137),
    ("rtralt", 148),
];

/// The names of protocols that `ip_proto` knows.
const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-icmp", 58),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("sctp", 132),
];

/// The flags of TCP by their letters. `1` and `2` are what older rules call the upper two.
const FLAGS: &[(char, u8)] = &[
    ('F', 0x01),
    ('S', 0x02),
    ('R', 0x04),
    ('P', 0x08),
    ('A', 0x10),
    ('U', 0x20),
    ('E', 0x40),
    ('2', 0x40),
    ('C', 0x80),
    ('1', 0x80),
];

/// Whether the option with this name is about packets, and has a value.
pub fn has_value(name: &str) -> bool {
    matches!(name, "flags" | "tcp.flags" | "fragbits" | "ipopts")
        || NUMBERS.iter().any(|(of, ..)| *of == name)
}

/// The name of the option that asks for a number.
pub fn name(number: Number) -> &'static str {
    let named = NUMBERS.iter().find(|(_, of, _)| *of == number);
    match (named, number) {
        (Some((name, ..)), _) => name,
        (None, Number::Flags) => "flags",
        (None, Number::FragmentBits) => "fragbits",
        (None, Number::HasOption(_)) => "ipopts",
        (None, _) => "sameip",
    }
}

/// What an option about packets asks for. `None` if it is no such option.
pub fn read(name: &str, value: Option<&str>) -> Option<Result<(Number, IntervalSet), Fault>> {
    match (name, value) {
        ("flags" | "tcp.flags", Some(value)) => {
            Some(flags(value).map(|values| (Number::Flags, values)))
        }
        ("fragbits", Some(value)) => {
            Some(fragment_bits(value).map(|values| (Number::FragmentBits, values)))
        }
        ("ipopts", Some(value)) => {
            Some(option(value).map(|of| (Number::HasOption(of), IntervalSet::new([(1, 1)]))))
        }
        ("sameip", None) => Some(Ok((Number::HasSameEnds, IntervalSet::new([(1, 1)])))),
        (name, Some(value)) => {
            let (_, number, largest) = NUMBERS.iter().find(|(of, ..)| *of == name)?;
            Some(values(name, value, *largest).map(|values| (*number, values)))
        }
        _ => None,
    }
}

/// The values of `10`, `!10`, `<10`, `>10`, `<=10`, `>=10` or `10<>20`, up to the largest one. Both
/// ends of a range are outside of it.
fn values(name: &str, text: &str, largest: u32) -> Result<IntervalSet, Fault> {
    let (is_negated, text) = match text.strip_prefix('!') {
        Some(text) => (true, text.trim()),
        None => (false, text),
    };
    let at = |text: &str| -> Result<u32, Fault> {
        let text = text.trim();
        let named = PROTOCOLS.iter().find(|(of, _)| of.eq_ignore_ascii_case(text));
        let value = match named.filter(|_| name == "ip_proto") {
            Some((_, protocol)) => u32::from(*protocol),
            None => number(name, text)?,
        };
        let why = || Fault::wrong(name, format!("`{text}` is larger than {largest}"));
        if value <= largest { Ok(value) } else { Err(why()) }
    };
    let none = || Fault::wrong(name, "no number is so");
    let (least, most) = if let Some((least, most)) = text.split_once("<>") {
        let above = at(least)?.checked_add(1).ok_or_else(none)?;
        (above, at(most)?.checked_sub(1).ok_or_else(none)?)
    } else if let Some(most) = text.strip_prefix("<=") {
        (0, at(most)?)
    } else if let Some(least) = text.strip_prefix(">=") {
        (at(least)?, largest)
    } else if let Some(most) = text.strip_prefix('<') {
        (0, at(most)?.checked_sub(1).ok_or_else(none)?)
    } else if let Some(least) = text.strip_prefix('>') {
        (at(least)?.checked_add(1).ok_or_else(none)?, largest)
    } else if text.contains('-') && name != "ip_proto" {
        // Its ends belong to it in some versions of Suricata, and in others they do not.
        return Err(Fault::unsupported(name, "a range with `-`; write `LEAST<>MOST`"));
    } else {
        (at(text)?, at(text)?)
    };
    if least > most {
        return Err(none());
    }
    let values = IntervalSet::new([(least.into(), most.into())]);
    let values = if is_negated { values.complement(largest.into()) } else { values };
    if values.is_empty() { Err(none()) } else { Ok(values) }
}

/// The values of the flags that `[*|+|!]FLAGS[,IGNORED]` accepts.
fn flags(text: &str) -> Result<IntervalSet, Fault> {
    let (text, ignored) = text.split_once(',').unwrap_or((text, ""));
    let text = text.trim();
    let is_mark = |c: char| matches!(c, '*' | '+' | '!');
    let (mark, letters) = match (text.chars().next(), text.chars().next_back()) {
        (Some(mark), _) if is_mark(mark) => (Some(mark), text.get(1..)),
        (_, Some(mark)) if is_mark(mark) => (Some(mark), text.get(..text.len() - 1)),
        _ => (None, Some(text)),
    };
    let letters = letters.unwrap_or_default().trim();
    let wanted = if letters == "0" { 0 } else { mask(letters)? };
    let ignored = if ignored.is_empty() { 0 } else { mask(ignored.trim())? };
    let accepts = |flags: &u8| {
        let counted = flags & !ignored;
        match mark {
            Some('*') => counted & wanted != 0,
            Some('+') => counted & wanted == wanted,
            Some('!') if wanted == 0 => *flags != 0,
            Some(_) => counted & wanted != wanted,
            None if wanted == 0 => *flags == 0,
            None => counted == wanted,
        }
    };
    let values = (0..=u8::MAX).filter(accepts).map(|flags| (u128::from(flags), u128::from(flags)));
    let values = IntervalSet::new(values);
    let none = || Fault::wrong("flags", "no flags are so");
    if values.is_empty() { Err(none()) } else { Ok(values) }
}

/// The values of the flags that `[*|+|!]BITS` accepts. `+` asks for another one beside them.
fn fragment_bits(text: &str) -> Result<IntervalSet, Fault> {
    let text = text.trim();
    let (mark, letters) = match text.chars().next() {
        Some(mark @ ('*' | '+' | '!')) => (Some(mark), text.get(1..).unwrap_or_default().trim()),
        _ => (None, text),
    };
    if letters.ends_with(['*', '+', '!']) {
        return Err(Fault::unsupported("fragbits", "a mark behind the bits; write it in front"));
    }
    if letters.is_empty() {
        return Err(Fault::wrong("fragbits", "a bit is missing"));
    }
    let why = |c: char| Fault::wrong("fragbits", format!("`{c}` is no bit"));
    let wanted = letters.chars().try_fold(0, |mask, c| {
        let bit = FRAGMENT_BITS.iter().find(|(letter, _)| letter.eq_ignore_ascii_case(&c));
        bit.map(|(_, bit)| mask | bit).ok_or_else(|| why(c))
    })?;
    let accepts = |bits: &u8| match mark {
        Some('*') => bits & wanted != 0,
        Some('+') => bits & wanted == wanted && *bits != wanted,
        Some(_) => bits & wanted != wanted,
        None => *bits == wanted,
    };
    let values = (0..8_u8).filter(accepts).map(|bits| (u128::from(bits), u128::from(bits)));
    let values = IntervalSet::new(values);
    let none = || Fault::wrong("fragbits", "no bits are so");
    if values.is_empty() { Err(none()) } else { Ok(values) }
}

/// The type of an option of IPv4 by its name. `None` for any.
fn option(text: &str) -> Result<Option<u8>, Fault> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("any") {
        return Ok(None);
    }
    let named = OPTIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    let unknown = || Fault::unsupported("ipopts", format!("the option `{text}`"));
    named.map(|(_, kind)| Some(*kind)).ok_or_else(unknown)
}

/// The bits of flags by their letters. There is at least one.
fn mask(letters: &str) -> Result<u8, Fault> {
    let why = |c: char| Fault::wrong("flags", format!("`{c}` is no flag"));
    if letters.is_empty() {
        return Err(Fault::wrong("flags", "a flag is missing"));
    }
    letters.chars().try_fold(0, |mask, c| {
        let flag = FLAGS.iter().find(|(letter, _)| letter.eq_ignore_ascii_case(&c));
        flag.map(|(_, bit)| mask | bit).ok_or_else(|| why(c))
    })
}

#[cfg(test)]
mod tests {
    use super::{flags, fragment_bits, option, values};

    const FIN: u128 = 1;
    const SYN: u128 = 2;
    const ACK: u128 = 16;
    const ECE: u128 = 64;
    const CWR: u128 = 128;

    #[test]
    fn flags_are_exact_unless_a_mark_says_otherwise() {
        let all = [0, FIN, SYN, SYN | ACK, SYN | ECE | CWR, ACK];
        let accepted = |text: &str| {
            let values = flags(text).expect("flags");
            all.map(|flags| u8::from(values.contains(flags)))
        };
        assert_eq!(accepted("S"), [0, 0, 1, 0, 0, 0]);
        assert_eq!(accepted("S,12"), [0, 0, 1, 0, 1, 0]);
        assert_eq!(accepted(" S , CE"), [0, 0, 1, 0, 1, 0]);
        assert_eq!(accepted("+S"), [0, 0, 1, 1, 1, 0]);
        assert_eq!(accepted("S+"), [0, 0, 1, 1, 1, 0]);
        assert_eq!(accepted("*SA"), [0, 0, 1, 1, 1, 1]);
        assert_eq!(accepted("!SA"), [1, 1, 1, 0, 1, 1]);
        assert_eq!(accepted("0"), [1, 0, 0, 0, 0, 0]);
        assert_eq!(accepted("!0"), [0, 1, 1, 1, 1, 1]);
        for wrong in ["", "+", "X", "S,", "S,X", "*0", "S0"] {
            // `S,` ignores nothing, as if there were no comma.
            assert_eq!(flags(wrong).is_ok(), wrong == "S,", "{wrong}");
        }
    }

    #[test]
    fn numbers_have_ranges_within_their_bounds() {
        let accepted = |text: &str| {
            let values = values("ttl", text, 255).expect("values");
            [0, 1, 9, 10, 11, 255].map(|value| u8::from(values.contains(value)))
        };
        assert_eq!(accepted("10"), [0, 0, 0, 1, 0, 0]);
        assert_eq!(accepted("!10"), [1, 1, 1, 0, 1, 1]);
        assert_eq!(accepted("<10"), [1, 1, 1, 0, 0, 0]);
        assert_eq!(accepted("<=10"), [1, 1, 1, 1, 0, 0]);
        assert_eq!(accepted("> 10"), [0, 0, 0, 0, 1, 1]);
        assert_eq!(accepted(">=10"), [0, 0, 0, 1, 1, 1]);
        assert_eq!(accepted("9<>11"), [0, 0, 0, 1, 0, 0]);
        assert_eq!(accepted("!9<>11"), [1, 1, 1, 0, 1, 1]);
        for wrong in ["", "256", "-1", "<0", ">255", "5<>5", "9<>10", "1-5", "x", "!>=0", "tcp"] {
            assert!(values("ttl", wrong, 255).is_err(), "{wrong}");
        }
        let tcp = values("ip_proto", "TCP", 255).expect("a protocol");
        assert_eq!(tcp.intervals(), [(6, 6)]);
    }
    #[test]
    fn bits_of_fragments_and_options_are_read() {
        let accepted = |text: &str| {
            let values = fragment_bits(text).expect("bits");
            (0..8).filter(|bits| values.contains(*bits)).collect::<Vec<_>>()
        };
        assert_eq!(accepted("M"), [1]);
        assert_eq!(accepted("md"), [3]);
        assert_eq!(accepted("+D"), [3, 6, 7]);
        assert_eq!(accepted("* MR"), [1, 3, 4, 5, 6, 7]);
        assert_eq!(accepted("!D"), [0, 1, 4, 5]);
        assert_eq!(accepted("!DM"), [0, 1, 2, 4, 5, 6]);
        for wrong in ["", "!", "G", "M+", "+MDR", "M D"] {
            assert!(fragment_bits(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            ["any", "LSRR", "nop"].map(|name| option(name).ok()),
            [Some(None), Some(Some(131)), Some(Some(1)),]
        );
        assert!(option("cookie").is_err());
    }
}
