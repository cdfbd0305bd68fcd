//! Generates functions that count packets and bytes up to a threshold within reach of traffic.
//! Beyond it they act differently.

use crate::generate::Rng;

/// The source of a function with this name.
pub(super) fn function(rng: &mut Rng, name: &str) -> String {
    let key = *rng.pick(&["flow", "flow", "biflow", "ip.src"]);
    let has = if key == "ip.src" { "ip" } else { "inet" };
    let slot = *rng.pick(&["packets", "packets", "bytes"]);
    let ty = match slot {
        "packets" => *rng.pick(&["u8", "u32", "u64"]),
        _ => *rng.pick(&["u16", "u64"]),
    };
    let (most, by) = match slot {
        "packets" => (2 + rng.below(30), (1 + rng.below(8) / 5).to_string()),
        _ => (100 + rng.below(3000), format!("{ty}(pkt.len)")),
    };
    let op = *rng.pick(&[">", ">=", "==", "<", "<=", "!="]);
    let add = match rng.one_in(4) {
        true => format!("seen.{slot} = wrapping(seen.{slot} + {by});"),
        false => format!("seen.{slot} += {by};"),
    };
    let check = |rng: &mut Rng| {
        let then = match rng.below(5) {
            0 => format!("seen.{slot} = {};", rng.below(3)),
            1 => "if not seen.told { seen.told = true; drop \"told\"; }".to_owned(),
            2 => "seen.last = u64(pkt.len);".to_owned(),
            _ => "drop \"enough\";".to_owned(),
        };
        format!("if seen.{slot} {op} {most} {{ {then} }}")
    };
    let body = match rng.below(4) {
        0 => format!("{} {add}", check(rng)),
        1 => format!("{add} {} {add}", check(rng)),
        2 => format!("{} {add} {}", check(rng), check(rng)),
        _ => format!("{add} {}", check(rng)),
    };
    let reset = match (key, rng.below(3)) {
        ("ip.src", 0) => format!(
            "backward and exists seen[ip.dst] and pkt.len > 100 => {{ seen[ip.dst].{slot} = 1; output; }}\n    "
        ),
        _ => String::new(),
    };
    let idle = if rng.one_in(3) { ", idle 400 ms" } else { "" };
    format!(
        "nf {name}() {{
  state seen: {{ {slot}: {ty}, told: bool, last: u64 }} per {key} = {{ {slot}: 0, told: false, last: 0 }}{idle}, capacity 30;
  match {{
    {reset}has {has} => {{ {body} output; }}
    else => output;
  }}
}}
"
    )
}
