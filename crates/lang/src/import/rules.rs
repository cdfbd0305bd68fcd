//! Reads simple rule files, with one rule on each line. The first matching rule decides.
//!
//! A rule is `pass|drop [proto P] [from ADDR [port A[-B]]] [to ADDR [port A[-B]]] [type T [code C]]
//! [flags SYN,!ACK]`. The last line may be `default pass|drop`. `Display` of `braid_ir`'s `Rule`
//! and `RuleSet` prints rules so that they read back unchanged.

use super::addr::{Range, range};
use super::cursor::{Cursor, Word, decimal, hexadecimal, lines};
use super::error::{Collector, Fault, ImportErrors};
use braid_ir::rules::{ANY_PORT, PROTOCOL_NAMES, TCP_FLAG_NAMES};
use braid_ir::value::{MAX_RULES, Rule, RuleAddrs, RuleSet};

/// Reads a rule file. Without a `default` line, packets that match no rule are dropped.
///
/// # Errors
/// All lines that cannot be used.
pub fn rules(text: &str) -> Result<RuleSet, ImportErrors> {
    let mut errors = Collector::default();
    let mut set = RuleSet { rules: Vec::new(), default_pass: false };
    let mut default_line = None;
    for (number, line) in lines(text) {
        let mut cursor = Cursor::new(line);
        let result = match default_line {
            Some(before) => {
                let expected = format!("nothing after the `default` of line {before}");
                Err(cursor.word().fault(expected))
            }
            None if cursor.keyword("default") => {
                default_line = Some(number);
                default(&mut cursor).map(|pass| set.default_pass = pass)
            }
            None if set.rules.len() >= MAX_RULES => {
                Err(cursor.word().fault(format!("at most {MAX_RULES} rules")))
            }
            None => rule(&mut cursor).map(|rule| set.rules.push(Rule { line: number, ..rule })),
        };
        if let Err(fault) = result {
            errors.push(number, line, fault);
        }
    }
    errors.finish(set)
}

/// Reads one rule, as in a control file's `add-rule`. Its line number is 0.
///
/// # Errors
/// The error in the rule, at line 1.
pub fn parse_rule(line: &str) -> Result<Rule, ImportErrors> {
    rule(&mut Cursor::new(line)).map_err(|fault| ImportErrors::of_line(line, fault))
}

fn default(line: &mut Cursor<'_>) -> Result<bool, Fault> {
    let pass = action(line.word(), "`pass` or `drop` after `default`")?;
    line.end("the end of the line after the default")?;
    Ok(pass)
}

fn action(word: Word<'_>, expected: &str) -> Result<bool, Fault> {
    match word.text {
        text if text.eq_ignore_ascii_case("pass") => Ok(true),
        text if text.eq_ignore_ascii_case("drop") => Ok(false),
        _ => Err(word.fault(expected)),
    }
}

fn rule(line: &mut Cursor<'_>) -> Result<Rule, Fault> {
    let pass = action(line.word(), "`pass`, `drop` or `default`")?;
    let mut rule = Rule::any(pass);
    if line.keyword("proto") {
        rule.proto = proto(line.word())?;
    }
    let (mut src, mut dst) = (None, None);
    if line.keyword("from") {
        (src, rule.sport) = side(line)?;
    }
    if line.keyword("to") {
        let at = line.rest();
        (dst, rule.dport) = side(line)?;
        if let (Some(Range::V4(..)), Some(Range::V6(..)))
        | (Some(Range::V6(..)), Some(Range::V4(..))) = (src, dst)
        {
            let word = Word { text: at.text.split_whitespace().next().unwrap_or(""), ..at };
            return Err(word.fault("a destination of the source's IP version"));
        }
    }
    rule.addrs = addrs(src, dst);
    if line.keyword("type") {
        rule.icmp = icmp(line)?;
    }
    if line.keyword("flags") {
        rule.tcp_flags = flags(line.word())?;
    }
    line.end("`proto`, `from`, `to`, `type`, `flags` in this order, each at most once, or the end of the line")?;
    Ok(rule)
}

/// The addresses of a rule. A direction that is not given matches all addresses of the other's
/// version.
fn addrs(src: Option<Range>, dst: Option<Range>) -> Option<RuleAddrs> {
    let (all4, all6) = (Range::V4(0, u32::MAX), Range::V6(0, u128::MAX));
    let all = match (src, dst) {
        (Some(Range::V4(..)), _) | (_, Some(Range::V4(..))) => all4,
        _ => all6,
    };
    match (src.or(dst.map(|_| all))?, dst.unwrap_or(all)) {
        (Range::V4(lo, hi), Range::V4(dst_lo, dst_hi)) => {
            Some(RuleAddrs::V4 { src: (lo, hi), dst: (dst_lo, dst_hi) })
        }
        (Range::V6(lo, hi), Range::V6(dst_lo, dst_hi)) => {
            Some(RuleAddrs::V6 { src: (lo, hi), dst: (dst_lo, dst_hi) })
        }
        _ => None,
    }
}

fn proto(word: Word<'_>) -> Result<(u8, u8), Fault> {
    let named = PROTOCOL_NAMES.iter().find(|(name, _)| word.text.eq_ignore_ascii_case(name));
    if let Some(&(_, number)) = named {
        return Ok((number, 0xff));
    }
    let number = match word.text.split_once('/') {
        Some((value, mask)) => Option::zip(byte(hexadecimal(value)), byte(hexadecimal(mask))),
        None => Option::zip(byte(decimal(word.text)), Some(0xff)),
    };
    let (value, mask) = number
        .ok_or_else(|| word.fault("tcp, udp, icmp, icmp6 or a protocol number from 0 to 255"))?;
    Ok((value & mask, mask))
}

fn byte(number: Option<u32>) -> Option<u8> {
    u8::try_from(number?).ok()
}

/// Reads an address or `any` behind `from` or `to`, with optional ports.
fn side(line: &mut Cursor<'_>) -> Result<(Option<Range>, (u16, u16)), Fault> {
    let addr = if line.keyword("any") { None } else { Some(range(line.word())?) };
    let ports = if line.keyword("port") { ports(line.word())? } else { ANY_PORT };
    Ok((addr, ports))
}

fn ports(word: Word<'_>) -> Result<(u16, u16), Fault> {
    let port = |text| decimal(text).and_then(|number| u16::try_from(number).ok());
    let (lo, hi) = word.text.split_once('-').unwrap_or((word.text, word.text));
    match Option::zip(port(lo), port(hi)) {
        Some((lo, hi)) if lo > hi => Err(word.fault("a port range with its lower end first")),
        Some(ports) => Ok(ports),
        None => Err(word.fault("a port from 0 to 65535 or a range such as 1024-2047")),
    }
}

/// Reads a type behind `type`, with an optional code. The value and mask of both is another form.
fn icmp(line: &mut Cursor<'_>) -> Result<(u16, u16), Fault> {
    let word = line.word();
    if let Some((value, mask)) = word.text.split_once('/') {
        let half = |text| hexadecimal(text).and_then(|number| u16::try_from(number).ok());
        let expected = "a type and code with their mask, such as 0x0800/0xff00";
        let (value, mask) =
            Option::zip(half(value), half(mask)).ok_or_else(|| word.fault(expected))?;
        return Ok((value & mask, mask));
    }
    let number = |word: Word<'_>, what| {
        byte(decimal(word.text)).ok_or_else(|| word.fault(format!("{what} from 0 to 255")))
    };
    let kind = number(word, "an ICMP type")?;
    if line.keyword("code") {
        let code = number(line.word(), "an ICMP code")?;
        return Ok((u16::from_be_bytes([kind, code]), 0xffff));
    }
    Ok((u16::from_be_bytes([kind, 0]), 0xff00))
}

/// Reads `SYN,!ACK`: flags that are set, and flags that are not.
fn flags(word: Word<'_>) -> Result<(u8, u8), Fault> {
    let (mut value, mut mask) = (0, 0);
    let mut at = word.at;
    for text in word.text.split(',') {
        let name = text.strip_prefix('!').unwrap_or(text);
        let part = Word { at, text };
        let found = TCP_FLAG_NAMES.iter().position(|flag| name.eq_ignore_ascii_case(flag));
        let Some(bit) = found else {
            let names = TCP_FLAG_NAMES.join(", ");
            return Err(part.fault(format!("one of {names}, perhaps with `!` before it")));
        };
        let bit = 1_u8 << bit;
        if mask & bit != 0 {
            return Err(part.fault("each flag at most once"));
        }
        mask |= bit;
        if name.len() == text.len() {
            value |= bit;
        }
        at += text.len() + 1;
    }
    Ok((value, mask))
}

#[cfg(test)]
mod tests {
    use super::{parse_rule, rules};
    use braid_ir::value::{Rule, RuleAddrs};

    fn place(line: &str) -> (u32, String) {
        let error = parse_rule(line).expect_err(line).errors.remove(0);
        (error.column, error.found)
    }

    #[test]
    fn full_line_gives_all_conditions() {
        let line =
            "pass proto tcp from 10.0.0.0/8 port 1024-65535 to 192.0.2.1 port 80 flags SYN,!ACK";
        let expected = Rule {
            addrs: Some(RuleAddrs::V4 {
                src: (0x0a00_0000, 0x0aff_ffff),
                dst: (0xc000_0201, 0xc000_0201),
            }),
            proto: (6, 0xff),
            sport: (1024, 65535),
            dport: (80, 80),
            tcp_flags: (0x02, 0x12),
            ..Rule::any(true)
        };
        assert_eq!(parse_rule(line), Ok(expected));
    }

    #[test]
    fn missing_parts_match_anything() {
        assert_eq!(parse_rule("drop # all"), Ok(Rule::any(false)));
        assert_eq!(parse_rule("PASS PROTO 89").map(|r| r.proto), Ok((89, 0xff)));
        let to_only = parse_rule("pass to ::1").map(|r| r.addrs);
        let src = (0, u128::MAX);
        assert_eq!(to_only, Ok(Some(RuleAddrs::V6 { src, dst: (1, 1) })));
        let ports_only = parse_rule("pass from any port 53 to any port 1-2").expect("good");
        assert_eq!(
            (ports_only.addrs, ports_only.sport, ports_only.dport),
            (None, (53, 53), (1, 2))
        );
    }

    #[test]
    fn icmp_type_and_code_are_read() {
        assert_eq!(parse_rule("pass proto icmp type 8").map(|r| r.icmp), Ok((0x0800, 0xff00)));
        assert_eq!(
            parse_rule("pass proto icmp type 3 code 4").map(|r| r.icmp),
            Ok((0x0304, 0xffff))
        );
        assert_eq!(parse_rule("pass type 0x0801/0xff00").map(|r| r.icmp), Ok((0x0800, 0xff00)));
    }

    #[test]
    fn bad_rules_are_errors_at_their_place() {
        assert_eq!(place("permit tcp"), (1, "`permit`".into()));
        assert_eq!(place("pass proto sctp"), (12, "`sctp`".into()));
        assert_eq!(place("pass proto 256"), (12, "`256`".into()));
        assert_eq!(place("pass from 10.0.0.0/8 port 9-1"), (27, "`9-1`".into()));
        assert_eq!(place("pass from 10.0.0.0/8 to ::1 port 2"), (25, "`::1`".into()));
        assert_eq!(place("pass to 10.0.0.1 from 10.0.0.2"), (18, "`from`".into()));
        assert_eq!(place("pass flags SYN,SYN"), (16, "`SYN`".into()));
        assert_eq!(place("pass flags SYN,!"), (16, "`!`".into()));
        assert_eq!(place("pass from"), (10, "the end of the line".into()));
        assert_eq!(place("pass proto icmp type 8 code 256"), (29, "`256`".into()));
        assert_eq!(place(""), (1, "the end of the line".into()));
    }

    #[test]
    fn file_keeps_order_lines_and_default() {
        let set = rules("# head\npass proto udp\n\ndrop\ndefault pass\n").expect("good");
        let lines: Vec<_> = set.rules.iter().map(|r| (r.line, r.pass)).collect();
        assert_eq!((lines, set.default_pass), (vec![(2, true), (4, false)], true));
        assert!(!rules("pass proto udp").expect("good").default_pass);
    }

    #[test]
    fn rules_after_the_default_and_second_defaults_are_errors() {
        let errors = rules("default drop\npass\ndefault pass\n").expect_err("two lines too many");
        let lines: Vec<_> = errors.errors.iter().map(|e| e.line).collect();
        assert_eq!(lines, [2, 3]);
        assert!(errors.errors[0].expected.contains("`default` of line 1"));
    }
}
