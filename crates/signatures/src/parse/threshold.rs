//! `threshold` and `detection_filter`.

use super::digits::number;
use super::fault::Fault;
use crate::threshold::{Kind, Threshold, Track};

/// `threshold: type TYPE, track BY, count N, seconds N`, or the same without a type for a
/// `detection_filter`. The parts come in any order.
pub fn read(name: &str, value: &str) -> Result<Threshold, Fault> {
    let is_filter = name == "detection_filter";
    let mut kind = is_filter.then_some(Kind::Filter);
    let (mut track, mut count, mut seconds) = (None, None, None);
    for part in value.split(',').map(str::trim) {
        let (key, of) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
        let of = of.trim();
        let is_again = match key {
            "type" if !is_filter => kind.replace(read_kind(name, of)?).is_some(),
            "track" => track.replace(read_track(name, of)?).is_some(),
            "count" => count.replace(number(name, of)?).is_some(),
            "seconds" => seconds.replace(number(name, of)?).is_some(),
            _ => return Err(Fault::wrong(name, format!("`{key}` is no part of it"))),
        };
        if is_again {
            return Err(Fault::wrong(name, format!("`{key}` comes twice")));
        }
    }
    let missing = |key: &str| Fault::wrong(name, format!("`{key}` is missing"));
    let threshold = Threshold {
        kind: kind.ok_or_else(|| missing("type"))?,
        track: track.ok_or_else(|| missing("track"))?,
        count: count.ok_or_else(|| missing("count"))?,
        seconds: seconds.ok_or_else(|| missing("seconds"))?,
    };
    match threshold.count == 0 || threshold.seconds == 0 {
        true => Err(Fault::wrong(name, "count and seconds are from 1 on")),
        false => Ok(threshold),
    }
}

fn read_kind(name: &str, text: &str) -> Result<Kind, Fault> {
    match text {
        "limit" => Ok(Kind::Limit),
        "threshold" => Ok(Kind::Threshold),
        "both" => Ok(Kind::Both),
        "backoff" => Err(Fault::unsupported(name, "the type `backoff`")),
        _ => Err(Fault::wrong(name, "a type is limit, threshold or both")),
    }
}

fn read_track(name: &str, text: &str) -> Result<Track, Fault> {
    match text {
        "by_src" => Ok(Track::Source),
        "by_dst" => Ok(Track::Destination),
        "by_both" => Ok(Track::Pair),
        "by_rule" => Ok(Track::Rule),
        "by_flow" => Err(Fault::unsupported(name, "`by_flow`")),
        _ => Err(Fault::wrong(name, "it tracks by_src, by_dst, by_both or by_rule")),
    }
}
