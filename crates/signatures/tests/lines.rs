//! Lines of rule files: what is read, and what is refused by which name.

use braid_signatures::{Cause, load};

/// The name and the cause of the refusal of a rule with these options.
fn refused(options: &str) -> Option<(String, Cause)> {
    let loaded = load(&format!("alert tcp any any -> any any ({options} sid:1;)"));
    loaded.refused.into_iter().next().map(|refused| (refused.name, refused.cause))
}

#[test]
fn rules_say_who_they_are() {
    let loaded = load(
        r#"
# a comment
config classification: trojan-activity,"A Network, Trojan",1
alert tcp $HOME_NET any -> $EXTERNAL_NET $HTTP_PORTS (msg:"a \"b\"\; c"; flow:established,to_server; content:"x"; fast_pattern:only; reference:url,example.org/a; classtype:trojan-activity; sid:7; rev:3; metadata:a b, c d;)
reject http [10.0.0.0/8, 192.0.2.1] any <> any [80, 8080] (content:"x"; classtype:unknown; gid:2; sid:7;)
drop tcp any any -> any any (content:"x"; classtype:trojan-activity; priority:200; sid:9;)
"#,
    );
    assert_eq!((loaded.refused, loaded.rules), (vec![], 3));
    let said = loaded
        .set
        .iter()
        .map(|of| (of.gid, of.sid, of.rev, of.priority, of.is_drop, of.message.as_str()));
    let wanted =
        [(1, 7, 3, 1, false, "a \"b\"; c"), (2, 7, 0, 3, true, ""), (1, 9, 0, 200, true, "")];
    assert_eq!(said.collect::<Vec<_>>(), wanted);
    // The lines make the same set.
    let again = load(&loaded.set.lines().join("\n"));
    assert_eq!(again.set, loaded.set);
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (options, name) in [
        ("dsize:>5; http.uri; content:\"a\";", "dsize"),
        ("dsize:1-5;", "dsize"),
        ("flow:not_established; http.uri; content:\"a\";", "flow"),
        ("flow:only_stream; flags:S;", "flags"),
        ("fragbits:M+;", "fragbits"),
        ("ipopts:cookie;", "ipopts"),
        ("content:\"a\"; byte_test:1,>,5,0,dce;", "byte_test"),
        ("content:\"a\"; byte_test:5,>,5,0,string;", "byte_test"),
        ("content:\"a\"; byte_jump:1,0,dce;", "byte_jump"),
        ("byte_extract:1,0,len; http.uri; byte_test:1,>,len,0;", "byte_test"),
        ("byte_math:bytes 1, offset 0, oper +, rvalue 1, result x;", "byte_math"),
        ("threshold:type backoff, track by_src, count 1, seconds 60;", "threshold"),
        ("threshold:type limit, track by_flow, count 1, seconds 60;", "threshold"),
        ("byte_extract:1,0,len; content:\"a\"; content:\"b\"; distance:len;", "distance"),
        ("byte_extract:1,0,len; isdataat:len;", "isdataat"),
        ("pcre:\"/a++/\";", "pcre"),
        ("content:\"a\"; depth:5; distance:1;", "distance"),
        ("content:\"a\"; distance:0; depth:5;", "depth"),
        ("content:\"a\"; startswith; depth:5;", "depth"),
        ("http.uri; content:\"a\"; file_data; content:\"b\";", "flow"),
        ("flow:to_client; content:\"a\"; http_uri;", "flow"),
        ("tls.sni; content:\"a\";", "tls.sni"),
        ("to_lowercase; content:\"a\";", "to_lowercase"),
    ] {
        let refused = refused(options);
        assert_eq!(refused, Some((name.to_owned(), Cause::Unsupported)), "{options}");
    }
    for (line, name) in [
        ("alert udp any any -> any any (http.uri; content:\"a\"; sid:1;)", "udp"),
        ("alert udp any any -> any any (flow:only_stream; sid:1;)", "flow"),
        ("alert tls any any -> any any (sid:1;)", "tls"),
        ("alert tcp-pkt any any -> any any (http.uri; content:\"a\"; sid:1;)", "tcp-pkt"),
        ("alert tcp-stream any any -> any any (dsize:1; sid:1;)", "dsize"),
        ("alert http any any -> any any (flags:S; sid:1;)", "flags"),
        ("alert ip any any -> any any (flow:only_stream; sid:1;)", "flow"),
        ("alert icmp any any -> any any (flow:to_server; sid:1;)", "flow"),
        ("alert icmp any any -> any any (flowbits:set,x; sid:1;)", "flowbits"),
        ("pass tcp any any -> any any (sid:1;)", "pass"),
        ("alert tcp any any => any any (sid:1;)", "=>"),
        ("drop tcp any any -> any any (noalert; sid:1;)", "noalert"),
        (
            "drop tcp any any -> any any (threshold:type limit,track by_src,count 1,seconds 1; sid:1;)",
            "threshold",
        ),
    ] {
        let refused = load(line).refused;
        assert_eq!((refused[0].name.as_str(), refused[0].cause), (name, Cause::Unsupported));
    }
}

#[test]
fn wrong_numbers_in_bytes_are_wrong() {
    for (options, name) in [
        ("byte_test:1,>,5;", "byte_test"),
        ("byte_test:1,=>,5,0;", "byte_test"),
        ("byte_test:9,>,5,0;", "byte_test"),
        ("byte_test:0,>,5,0;", "byte_test"),
        ("byte_test:24,>,5,0,string,dec;", "byte_test"),
        ("byte_test:1,>,5,0,dec;", "byte_test"),
        ("byte_test:1,>,-5,0;", "byte_test"),
        ("byte_test:1,>,18446744073709551616,0;", "byte_test"),
        ("byte_test:1,>,5,0,bitmask 0x0;", "byte_test"),
        ("byte_jump:1,0,multiplier 0;", "byte_jump"),
        ("byte_jump:1,0,post_offset 99999999999;", "byte_jump"),
        ("byte_extract:1,0,5;", "byte_extract"),
        ("byte_test:1,>,len,0;", "byte_test"),
        ("byte_test:1,>,5,0,;", "byte_test"),
        ("byte_test:1,>,0x+10,0;", "byte_test"),
        ("byte_test:1,>,0x,0;", "byte_test"),
        ("byte_test:1,>,5,0,bitmask 0x0x0xff;", "byte_test"),
        ("byte_test:1,>,5,0,bitmask +ff;", "byte_test"),
        ("byte_test:1,>,5,0,relative,relative;", "byte_test"),
        ("byte_test:1,>,5,0,big,little;", "byte_test"),
        ("byte_jump:1,0,from_end,from_beginning;", "byte_jump"),
        ("byte_jump:1,0,align,align;", "byte_jump"),
        ("byte_jump:1,0,multiplier 2,multiplier 2;", "byte_jump"),
        ("byte_jump:1,0,post_offset +5;", "byte_jump"),
        ("byte_extract:1,0,a,align;", "byte_extract"),
        ("byte_extract:1,0,a,align 3;", "byte_extract"),
        ("byte_extract:1,0,a,string,hex,dec;", "byte_extract"),
        ("byte_extract:1,0,a; byte_extract:1,1,a;", "byte_extract"),
    ] {
        assert_eq!(refused(options), Some((name.to_owned(), Cause::Wrong)), "{options}");
    }
}

#[test]
fn names_of_bits_are_bounded() {
    let names = |count: usize| (0..count).map(|at| format!("b{at}")).collect::<Vec<_>>().join("|");
    let fits = format!("flowbits:set,x; flowbits:isset,{}; flowbits:noalert;", names(63));
    assert_eq!(refused(&fits), None);
    for options in [
        format!("flowbits:isset,{};", names(65)),
        format!("flowbits:isset,{}; flowbits:isnotset,a|b;", names(63)),
        format!("flowbits:isset,{}; flowbits:set,a;", names(64)),
    ] {
        assert_eq!(refused(&options), Some(("flowbits".to_owned(), Cause::Wrong)), "{options}");
    }
}

/// Options that need a value.
const VALUED: &[&str] = &[
    "msg",
    "sid",
    "classtype",
    "priority",
    "reference",
    "flow",
    "content",
    "pcre",
    "isdataat",
    "byte_test",
    "byte_jump",
    "byte_extract",
    "dsize",
    "flags",
    "itype",
    "ip_proto",
    "urilen",
    "threshold",
    "detection_filter",
    "flowbits",
    "offset",
    "within",
];

#[test]
fn what_is_no_rule_is_wrong() {
    for (options, name) in [
        ("content:abc;", "content"),
        ("content:\"\";", "content"),
        ("content:\"|0|\";", "content"),
        ("nocase;", "nocase"),
        ("content:\"abc\"; depth:2;", "depth"),
        ("content:\"abc\"; offset:-1;", "offset"),
        ("content:\"abc\"; offset:99999999999;", "offset"),
        ("http_uri;", "http_uri"),
        ("http.uri; content:\"a\"; http_uri;", "http_uri"),
        ("pcre:\"abc\";", "pcre"),
        ("pcre:\"/a/UH\";", "pcre"),
        ("flow:to_server,to_client;", "flow"),
        ("threshold:type limit, track by_src, count 1;", "threshold"),
        ("threshold:track by_src, count 1, seconds 1;", "threshold"),
        ("threshold:type limit, track by_me, count 1, seconds 1;", "threshold"),
        ("threshold:type limit, track by_src, count 0, seconds 1;", "threshold"),
        ("threshold:type limit, track by_src, count 1, count 2, seconds 1;", "threshold"),
        ("threshold:type limit, track by_src, count 1, seconds 4294967296;", "threshold"),
        ("detection_filter:type limit, track by_src, count 1, seconds 1;", "detection_filter"),
        (
            "threshold:type both,track by_src,count 1,seconds 1; \
             detection_filter:track by_src,count 1,seconds 1;",
            "detection_filter",
        ),
        ("flow:established,not_established;", "flow"),
        ("flow:established,;", "flow"),
        ("dsize:<0;", "dsize"),
        ("dsize:20<>10;", "dsize"),
        ("urilen:10<>11;", "urilen"),
        ("isdataat:+1;", "isdataat"),
        ("content:\"a\"; offset:+1;", "offset"),
        ("content:\"a\"; content:\"b\"; distance:len;", "distance"),
        ("dsize:a;", "dsize"),
        ("dsize:65536;", "dsize"),
        ("flags:X;", "flags"),
        ("itype:8;", "itype"),
        ("ttl:!>=0;", "ttl"),
        ("sameip:1;", "sameip"),
        ("flowbits:set;", "flowbits"),
        ("flowbits:set,a|b;", "flowbits"),
        ("flowbits:isset,a|;", "flowbits"),
        ("flowbits:noalert,a;", "flowbits"),
        ("flowbits:shine,a;", "flowbits"),
        ("sid:x;", "sid"),
        ("rev:99999999999;", "rev"),
        ("priority:0;", "priority"),
        ("urilen:<0;", "urilen"),
        ("isdataat:x1;", "isdataat"),
        ("isdataat:16777217;", "isdataat"),
        ("isdataat:18446744073709551615,relative;", "isdataat"),
        ("content:\"a\"; offset:0; startswith;", "startswith"),
        ("content:\"a\"; http_uri; http_header;", "http_header"),
    ] {
        let found = refused(options).map(|(name, _)| name);
        assert_eq!(found.as_deref(), Some(name), "{options}");
    }
}

#[test]
fn options_have_a_value_or_none() {
    for name in VALUED {
        for options in [format!("{name};"), format!("{name}:;")] {
            let wanted = Some(((*name).to_owned(), Cause::Wrong));
            assert_eq!(refused(&options), wanted, "{options}");
        }
    }
    for name in ["noalert", "nocase", "endswith", "http_uri", "http.uri", "file_data"] {
        let wanted = Some((name.to_owned(), Cause::Wrong));
        assert_eq!(refused(&format!("content:\"a\"; {name}:1;")), wanted);
    }
}

#[test]
fn options_have_a_name() {
    for option in [":\"/a\";", ":1;", ":;", "::;", " : a;", ":"] {
        let wanted = Some(("option".to_owned(), Cause::Wrong));
        assert_eq!(refused(&format!("content:\"a\"; {option}")), wanted, "{option}");
    }
    let begin = "alert tcp any any -> any any (content:\"a\"; ";
    let refused = &load(&format!("{begin}:\"/a\"; sid:1;)")).refused[0];
    assert_eq!((refused.at, refused.why.as_str()), (begin.len(), "its name is missing"));
}

#[test]
fn what_is_no_line_is_wrong() {
    for (line, name) in [
        ("alert tcp any any -> any any", "rule"),
        ("alert tcp any any -> any any (sid:1;", "rule"),
        ("alert tcp any -> any any (sid:1;)", "rule"),
        ("alert tcp any any -> any any (msg:\"a\";)", "sid"),
        ("alert tcp $NONE any -> any any (sid:1;)", "addresses"),
        ("alert tcp any $NONE -> any any (sid:1;)", "ports"),
        ("alert tcp any 99999 -> any any (sid:1;)", "ports"),
        ("alert icmp any 7 -> any any (sid:1;)", "ports"),
        ("alert udp any any -> any any (flags:S; sid:1;)", "flags"),
        ("alert ip6 10.0.0.1 any -> any any (sid:1;)", "ip6"),
        ("shout tcp any any -> any any (sid:1;)", "shout"),
        ("var X", "var"),
        ("var X [1.2.3.4", "$X"),
        ("config reference: a b", "config"),
        ("config classification: a,b,0", "priority"),
    ] {
        let refused = load(line).refused;
        assert_eq!((refused[0].name.as_str(), refused[0].cause), (name, Cause::Wrong), "{line}");
    }
}

#[test]
fn refusals_have_places_and_leave_the_other_rules() {
    let text = "alert tcp any any -> any any (content:\"a\"; sid:1;)\n\
        \n  alert tcp any any -> any any (content:\"b\";  geoip:5; sid:2;)\n\
        alert tcp any any -> any any (content:\"c\"; sid:1;)\n";
    let loaded = load(text);
    let places = loaded.refused.iter().map(|of| (of.line, of.at, of.name.as_str()));
    assert_eq!(places.collect::<Vec<_>>(), [(3, 46, "geoip"), (4, 0, "sid")]);
    assert_eq!((loaded.rules, loaded.set.len()), (3, 1));
}

#[test]
fn refusals_have_places_behind_a_byte_order_mark() {
    for begin in ["\u{feff}", "\u{feff} ", "\u{feff}\u{feff}\t"] {
        let before = format!("{begin}alert tcp any any -> any any (");
        let refused = load(&format!("{before}geoip:5; sid:1;)")).refused;
        assert_eq!((refused[0].at, refused[0].name.as_str()), (before.len(), "geoip"), "{begin:?}");
    }
}

#[test]
fn refusals_have_the_place_of_their_option() {
    let tests = "content:\"a\"; ".repeat(64);
    for (head, before, option) in [
        ("drop tcp", "msg:\"a\"; ", "noalert;"),
        ("drop tcp", "flowbits:set,a; ", "flowbits:noalert;"),
        ("drop tcp", "", "threshold:type both,track by_src,count 1,seconds 1;"),
        ("alert udp", "content:\"a\"; ", "flow:only_stream;"),
        ("alert tcp", "flow:established; ", "flow:to_server,to_client;"),
        ("alert tcp", "flow:to_server; ", "flow:to_client;"),
        ("alert http", "content:\"a\"; ", "flow:not_established;"),
        ("alert http", "content:\"a\"; ", "flags:S;"),
        ("alert udp", "content:\"a\"; ", "seq:5;"),
        ("alert tcp", tests.as_str(), "isdataat:1;"),
    ] {
        let begin = format!("{head} any any -> any any ({before}");
        let refused = load(&format!("{begin}{option} metadata:a; sid:1;)")).refused;
        assert_eq!(refused[0].at, begin.len(), "{option}");
    }
}
