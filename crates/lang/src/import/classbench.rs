//! Reads ClassBench filter sets (Taylor, Turner: ClassBench, INFOCOM'05), with or without the last
//! column.
//!
//! A line is `@SRC/LEN  DST/LEN  LO : HI  LO : HI  PROTO/MASK  [EXTRA/MASK]`. The files have no
//! action column. EXTRA is a 16-bit word of the upper-layer header. For TCP its high half is the
//! flag byte, and for ICMP it is type and code. `docs/rule-files.md` lists the decisions where the
//! format is silent.

use super::addr::{Prefix, Range, prefix};
use super::cursor::{Cursor, Word, each_line, hexadecimal};
use super::error::{Fault, ImportErrors};
use braid_ir::value::{MAX_RULES, Rule, RuleAddrs, RuleSet};
use braid_packet::proto::{ICMP, ICMP6, TCP};

/// Reads a filter set. Packets that match a rule pass if `match_pass`, others if `default_pass`.
///
/// # Errors
/// All lines that cannot be used.
pub fn classbench(
    text: &str,
    match_pass: bool,
    default_pass: bool,
) -> Result<RuleSet, ImportErrors> {
    let mut rules = Vec::new();
    let errors = each_line(text, |number, line| {
        if rules.len() >= MAX_RULES {
            return Err(line.rest().fault(format!("at most {MAX_RULES} rules")));
        }
        rules.push(Rule { pass: match_pass, line: number, ..filter(line)? });
        Ok(())
    });
    errors.finish(RuleSet { rules, default_pass })
}

fn filter(line: &mut Cursor<'_>) -> Result<Rule, Fault> {
    line.character('@', "`@` and a source prefix, as each line of a ClassBench filter set")?;
    let addrs = addrs(line)?;
    let sport = ports(line, "source")?;
    let dport = ports(line, "destination")?;
    let proto = proto(line)?;
    let rule = Rule { addrs: Some(addrs), proto, sport, dport, ..Rule::any(false) };
    let rest = line.rest();
    if rest.text.is_empty() {
        return Ok(rule);
    }
    let extra = extra(line, rule)?;
    line.end("the end of the line")?;
    Ok(extra)
}

fn addrs(line: &mut Cursor<'_>) -> Result<RuleAddrs, Fault> {
    let src = with_length(line.word())?;
    let word = line.word();
    match (src, with_length(word)?) {
        (Range::V4(lo, hi), Range::V4(dst_lo, dst_hi)) => {
            Ok(RuleAddrs::V4 { src: (lo, hi), dst: (dst_lo, dst_hi) })
        }
        (Range::V6(lo, hi), Range::V6(dst_lo, dst_hi)) => {
            Ok(RuleAddrs::V6 { src: (lo, hi), dst: (dst_lo, dst_hi) })
        }
        _ => Err(word.fault("a destination of the source's IP version")),
    }
}

fn with_length(word: Word<'_>) -> Result<Range, Fault> {
    let found = prefix(word)?;
    if word.text.contains('/') {
        return Ok(Prefix::range(found));
    }
    Err(word.fault("a prefix with its length, such as 10.0.0.0/8"))
}

fn ports(line: &mut Cursor<'_>, which: &str) -> Result<(u16, u16), Fault> {
    let word = line.rest();
    let lo = port(line, which)?;
    line.character(':', "`:` between the ends of a port range")?;
    let hi = port(line, which)?;
    if lo > hi {
        return Err(word.fault("a port range with its lower end first"));
    }
    Ok((lo, hi))
}

fn port(line: &mut Cursor<'_>, which: &str) -> Result<u16, Fault> {
    let word = line.until(|c| c == ':' || c.is_whitespace());
    let number = word.number(&format!("a {which} port"), u16::MAX.into())?;
    Ok(u16::try_from(number).unwrap_or(u16::MAX))
}

fn proto(line: &mut Cursor<'_>) -> Result<(u8, u8), Fault> {
    let word = line.word();
    let halves = value_and_mask(word.text)
        .and_then(|(value, mask)| Some((u8::try_from(value).ok()?, u8::try_from(mask).ok()?)));
    let (value, mask) =
        halves.ok_or_else(|| word.fault("a protocol and its mask, such as 0x06/0xFF"))?;
    Ok((value & mask, mask))
}

/// Reads the last column. Its meaning depends on the protocol.
fn extra(line: &mut Cursor<'_>, rule: Rule) -> Result<Rule, Fault> {
    let word = line.word();
    let halves = value_and_mask(word.text)
        .and_then(|(value, mask)| Some((u16::try_from(value).ok()?, u16::try_from(mask).ok()?)));
    let (value, mask) =
        halves.ok_or_else(|| word.fault("flags and their mask, such as 0x0200/0x1200"))?;
    let value = value & mask;
    match rule.proto {
        _ if mask == 0 => Ok(rule),
        (ICMP | ICMP6, 0xff) => Ok(Rule { icmp: (value, mask), ..rule }),
        (TCP, 0xff) | (_, 0) => match (value.to_be_bytes(), mask.to_be_bytes()) {
            ([flags, _], [flags_mask, 0]) => Ok(Rule { tcp_flags: (flags, flags_mask), ..rule }),
            _ => Err(word.fault("a mask whose low half is 0: TCP flags are the high half")),
        },
        _ => Err(word.fault(
            "a mask of 0x0000: only TCP has flags, only ICMP and ICMPv6 have a type and a code",
        )),
    }
}

fn value_and_mask(text: &str) -> Option<(u32, u32)> {
    let (value, mask) = text.split_once('/')?;
    Some((hexadecimal(value)?, hexadecimal(mask)?))
}

#[cfg(test)]
mod tests {
    use super::classbench;
    use braid_ir::rules::ANY_PORT;
    use braid_ir::value::{Rule, RuleAddrs};

    fn one(line: &str) -> Rule {
        let set = classbench(line, true, false).expect("a good line");
        set.rules.into_iter().next().expect("one rule")
    }

    fn error(line: &str) -> (u32, String, String) {
        let errors = classbench(line, true, false).expect_err("a bad line").errors;
        let error = errors.into_iter().next().expect("at least one");
        (error.column, error.expected, error.found)
    }

    #[test]
    fn line_with_flags_gives_all_conditions() {
        let line = "@10.1.2.3/8\t192.0.2.1/32\t0 : 65535\t80 : 81\t0x06/0xFF\t0x0200/0x1200\t";
        let expected = Rule {
            addrs: Some(RuleAddrs::V4 {
                src: (0x0a00_0000, 0x0aff_ffff),
                dst: (0xc000_0201, 0xc000_0201),
            }),
            proto: (6, 0xff),
            sport: ANY_PORT,
            dport: (80, 81),
            tcp_flags: (0x02, 0x12),
            icmp: (0, 0),
            pass: true,
            line: 1,
        };
        assert_eq!(one(line), expected);
    }

    #[test]
    fn line_without_flags_and_with_tight_colons_is_read() {
        let rule = one("@0.0.0.0/0 0.0.0.0/0 1:2 3:3 0x11/0xFF");
        assert_eq!((rule.sport, rule.dport, rule.proto), ((1, 2), (3, 3), (17, 0xff)));
        assert_eq!(rule.tcp_flags, (0, 0));
    }

    #[test]
    fn last_column_of_icmp_is_type_and_code() {
        let prefix = "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x01/0xFF ";
        assert_eq!(one(&format!("{prefix}0x0800/0xff00")).icmp, (0x0800, 0xff00));
        assert_eq!(one(&format!("{prefix}0x0303/0xffff")).icmp, (0x0303, 0xffff));
        assert_eq!(one(&format!("{prefix}0x0303/0xff00")).icmp, (0x0300, 0xff00));
        assert_eq!(one(&format!("{prefix}0x0303/0xff00")).tcp_flags, (0, 0));
    }

    #[test]
    fn last_column_of_any_protocol_is_tcp_flags() {
        let line = "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00 0x0200/0x0200";
        assert_eq!((one(line).proto, one(line).tcp_flags), ((0, 0), (2, 2)));
    }

    #[test]
    fn last_column_of_other_protocols_must_be_empty() {
        let line = "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x11/0xFF 0x0200/0x0200";
        assert_eq!(error(line).0, 52);
        assert_eq!(one(&line.replace("0x0200/0x0200", "0x0200/0x0000")).tcp_flags, (0, 0));
        assert!(
            error(&line.replace("0x11", "0x06").replace("/0x0200", "/0x0202"))
                .1
                .contains("low half")
        );
    }

    #[test]
    fn version_6_prefixes_are_read() {
        let rule = one("@2001:db8::/32 ::/0 0 : 65535 0 : 65535 0x00/0x00");
        let low = 0x2001_0db8_u128 << 96;
        let src = (low, low | u128::MAX >> 32);
        assert_eq!(rule.addrs, Some(RuleAddrs::V6 { src, dst: (0, u128::MAX) }));
    }

    #[test]
    fn errors_have_column_expectation_and_finding() {
        let (column, expected, found) = error("@10.0.0.0/8 10.0.0.0/40 1 : 2 1 : 2 0x06/0xFF");
        assert_eq!((column, found.as_str()), (22, "`40`"));
        assert_eq!(expected, "a prefix length from 0 to 32");
        let (column, _, found) = error("@10.0.0.0/8 10.0.0.0/8 9 : 2 1 : 2 0x06/0xFF");
        assert_eq!((column, found.as_str()), (24, "`9 : 2 1 : 2 0x06/0xFF`"));
        assert_eq!(error("-scale").0, 1);
        assert_eq!(error("@10.0.0.0/8 ::/0 1 : 2 1 : 2 0x06/0xFF").0, 13);
        assert_eq!(error("@10.0.0.0 10.0.0.0/8 1 : 2 1 : 2 0x06/0xFF").0, 2);
        assert_eq!(error("@10.0.0.0/8 10.0.0.0/8 1 : 2").2, "the end of the line");
        assert_eq!(error("@10.0.0.0/8 10.0.0.0/8 1 : 2 1 : 70000 0x06/0xFF").2, "`70000`");
        assert_eq!(error("@10.0.0.0/8 10.0.0.0/8 1 : 2 1 : 2 0x106/0xFF").0, 36);
    }

    #[test]
    fn errors_past_the_limit_are_counted() {
        let text = "bad\n".repeat(25);
        let errors = classbench(&text, true, false).expect_err("25 bad lines");
        assert_eq!((errors.errors.len(), errors.more), (20, 5));
        assert!(errors.to_string().ends_with("and 5 more"));
        assert_eq!(errors.errors.last().map(|e| e.line), Some(20));
    }
}
