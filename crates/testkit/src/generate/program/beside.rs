//! Small functions that stand between others in chains of library functions: they change tags of packets that are
//! else left alone, so that this happens often, and together with all that others do.

use crate::generate::Rng;

const STAMP: &str = "nf stamp(id: u12) {
  match { has eth and not has vlan2 => { push vlan(id); output; } else => output; }
}
";

const STRIP: &str = "nf strip() {
  match { has vlan => { pop vlan; output; } else => output; }
}
";

const SWAP: &str = "nf swap(id: u12, pcp: u3) {
  match {
    has vlan => { pop vlan; push vlan(id); if has vlan { vlan.pcp = pcp; } output; }
    else => output;
  }
}
";

const DEEPER: &str = "nf deeper() {
  match {
    has vlan and vlan.pcp < 4 and not has vlan2 => {
      let id = vlan.id;
      vlan.id = 9;
      push vlan(id);
      output;
    }
    vlan2.id == 9 => { pop vlan; vlan.id = 10; output; }
    else => output;
  }
}
";

const ZONE: &str = "nf zone() {
  state seen: u12 per ip.dst = 3, capacity 20;
  match {
    has ip and has vlan and not has vlan2 => { seen = vlan.id; pop vlan; output; }
    has ip and has eth and not has vlan => { push vlan(seen); output; }
    else => output;
  }
}
";

/// A function with its arguments, and its source.
pub(super) fn one(rng: &mut Rng) -> (String, &'static str) {
    let id = 1 + rng.below(12);
    match rng.below(6) {
        0 | 1 => (format!("stamp(id: {id})"), STAMP),
        2 => ("strip()".to_owned(), STRIP),
        3 => (format!("swap(id: {id}, pcp: {})", rng.below(8)), SWAP),
        4 => ("deeper()".to_owned(), DEEPER),
        _ => ("zone()".to_owned(), ZONE),
    }
}
