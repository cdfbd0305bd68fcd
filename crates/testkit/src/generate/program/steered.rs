//! Adds functions whose events steer stream functions, and stream functions that obey them: they
//! reset the flow that an event names, leave it out, or take its events again.

use super::text::Text;
use crate::generate::Rng;

/// What an event of the type `STEER` asks for, by number.
const KINDS: usize = 4;

/// The functions of a chain that steer and are steered. Every third chain has some.
pub(super) struct Steering {
    rng: Rng,
    /// Whether connections have state in common.
    is_wide: bool,
    is_on: bool,
    /// How many functions publish, and how many obey.
    counts: [usize; 2],
}

impl Steering {
    /// For the chain of a seed. Declares the event types.
    pub(super) fn new(seed: u64, is_wide: bool, text: &mut Text) -> Self {
        let mut rng = Rng::new(seed ^ 0x7374_6565_7265);
        let is_on = rng.one_in(3);
        if is_on {
            text.line("event STEER extends FLOW { what: u8 }");
            text.line("event STEER_MORE extends STEER { more: u16 }");
        }
        Self { rng, is_wide, is_on, counts: [0; 2] }
    }

    /// Adds some functions at this place of the path.
    pub(super) fn add(&mut self, place: usize, text: &mut Text, path: &mut Vec<String>) {
        if !self.is_on {
            return;
        }
        if self.rng.one_in(2) || place == 0 {
            self.publisher(text, path);
        }
        for _ in 0..self.rng.below(3) {
            self.taker(text, path);
        }
    }

    /// Makes sure that somebody obeys.
    pub(super) fn finish(&mut self, text: &mut Text, path: &mut Vec<String>) {
        if self.is_on && self.counts[1] == 0 {
            self.taker(text, path);
        }
        if self.is_on && self.rng.one_in(3) {
            self.publisher(text, path);
        }
    }

    /// A packet function or a stream function that publishes.
    fn publisher(&mut self, text: &mut Text, path: &mut Vec<String>) {
        let number = self.counts[0];
        self.counts[0] += 1;
        let (every, first) = (self.rng.range(3, 9), self.rng.below(3));
        // Sometimes a flow that hardly ever exists.
        let other = match self.rng.below(8) {
            0 => ", src: inet.dst",
            1 => ", version: 6",
            2 => ", proto: 17",
            _ => "",
        };
        let what = format!("u8(n % {KINDS})");
        let emit = match self.rng.below(3) {
            0 => format!("emit STEER_MORE {{ what: {what}, more: inet.sport{other} }};"),
            _ => format!("emit STEER {{ what: {what}{other} }};"),
        };
        let emit = format!("if n % {every} == {first} {{ {emit} }}");
        match self.rng.below(4) {
            0 => {
                text.line(&format!("stream nf tells{number}() {{"));
                text.line("state n: u32 per biflow = 0;");
                text.line(&format!("on data {{ n += 1; {emit} }}"));
                text.line("}");
            }
            // It names the flow of the packet before.
            1 if self.is_wide => {
                text.line(&format!("nf tells{number}() {{"));
                text.line("state n: u32 global = 0;");
                text.line(
                    "state last: { v: u8, s: addr, d: addr, p: u8, sp: port, dp: port } global = \
                     { v: 0, s: 0.0.0.0, d: 0.0.0.0, p: 0, sp: 0, dp: 0 };",
                );
                text.line("match { has l4 => { n = wrapping(n + 1);");
                text.line(&format!(
                    "if n % {every} == {first} {{ emit STEER {{ version: last.v, src: last.s, dst: \
                     last.d, proto: last.p, sport: last.sp, dport: last.dp, what: {what} }}; }}"
                ));
                text.line(
                    "last = { v: inet.version, s: inet.src, d: inet.dst, p: inet.proto, sp: \
                     inet.sport, dp: inet.dport };",
                );
                text.line("output; } else => output; } }");
            }
            _ => {
                let per = *self.rng.pick(&["flow", "biflow"]);
                text.line(&format!("nf tells{number}() {{"));
                text.line(&format!("state n: u32 per {per} = 0;"));
                text.line(&format!(
                    "match {{ has l4 => {{ n += 1; {emit} output; }} else => output; }} }}"
                ));
            }
        }
        path.push(format!("tells{number}()"));
    }

    /// A stream function that obeys.
    fn taker(&mut self, text: &mut Text, path: &mut Vec<String>) {
        let number = self.counts[1];
        self.counts[1] += 1;
        let flow = "src: inet.src, sport: tcp.sport, dport: tcp.dport, offset: stream.offset";
        let kind = self.rng.below(5);
        let args = if kind > 2 { "bad: { \"ab\", \"evil\" }" } else { "" };
        match kind {
            // It decides alone.
            0 => text.line(&format!("stream nf obeys{number}() {{")),
            1 | 2 => {
                text.line(&format!("event WOKEN{number} extends SEEN {{ offset: size }}"));
                text.line(&format!("stream nf obeys{number}() {{"));
                text.line("state n: u32 per biflow = 0;");
                text.line("on open { n = 1; bypass; }");
                text.line(&format!("on data {{ n += 1; emit WOKEN{number} {{ {flow} }}; }}"));
                text.line("on close { delete n; }");
            }
            _ => {
                text.line(&format!(
                    "event TOOK{number} extends SEEN {{ offset: size, found: bool }}"
                ));
                text.line(&format!("stream nf obeys{number}(bad: patterns) {{"));
                text.line("state n: u32 per biflow = 0;");
                let end = *self.rng.pick(&["bypass;", "forward;", "forward;", "reset \"found\";"]);
                text.line("on open { if tcp.dport == 81 { bypass; } }");
                text.line(&format!(
                    "on data {{ n += 1; let found = stream.data matches bad; emit TOOK{number} \
                     {{ {flow}, found: found }}; if found {{ {end} }} }}"
                ));
                text.line("on close { delete n; }");
            }
        }
        let ends = ["bypass;", "resume;", "resume;", "reset \"ordered\";", "forward;"];
        let event = *self.rng.pick(&["STEER", "STEER", "STEER_MORE"]);
        text.line(&format!("on {event} {{"));
        for what in 0..KINDS {
            if !self.rng.one_in(3) {
                let end = *self.rng.pick(&ends);
                text.line(&format!("if event.what == {what} {{ {end} }}"));
            }
        }
        text.line("resume;");
        text.line("}");
        text.line("}");
        path.push(format!("obeys{number}({args})"));
    }
}
