//! SYN cookies (RFC 4987 §3.6): while too many connections are half open, a SYN leaves no state.
//! Its answer's number tells what is needed when the client's acknowledgement comes.
//!
//! A cookie has, from the top: 5 bits of the time in periods of 64 s, 3 bits of the client's MSS,
//! and 24 bits of a hash that only Braid can compute, of the ends, the client's number, the period
//! and the MSS. Window scaling, selective acknowledgements and timestamps have no room: such a
//! connection goes without.

use braid_connections::Secret;
use braid_connections::wire::{Ends, Frame};
use braid_endpoint::{Endpoint, Incoming, OptionBytes, Outgoing, Settings};
use braid_tcp::{Flags, Seq};

/// A period (ns).
const PERIOD: u64 = 64_000_000_000;
/// For how long behind the last cookie acknowledgements of cookies count (ns).
pub(crate) const LIFE: u64 = 2 * PERIOD;
/// The values of the MSS that a cookie can tell.
const MSS: [u16; 8] = [216, 536, 1_200, 1_360, 1_400, 1_440, 1_452, 1_460];
/// The window of a connection that begins by a cookie: it cannot be scaled.
const WINDOW: u16 = u16::MAX;

/// What a connection without options can use.
fn plain(settings: Settings) -> Settings {
    Settings { wscale: false, sack: false, timestamps: false, ..settings }
}

/// The cookie for a connection. The number `place` is that of its MSS.
fn cookie(secret: &Secret, ends: Ends, isn: Seq, period: u64, place: u8) -> Seq {
    let [low, middle, high, ..] = secret.hash(("cookie", ends, isn.0, period, place)).to_le_bytes();
    let [period, ..] = period.to_le_bytes();
    Seq(u32::from_be_bytes([period << 3 | place, high, middle, low]))
}

/// The answer to a SYN, which leaves no state.
pub(crate) fn answer(
    frame: &Frame<'_>,
    (secret, settings): (&Secret, &Settings),
    now: u64,
) -> Outgoing<'static> {
    // The endpoint of this moment reads the options.
    let agreed = Endpoint::accept(&plain(*settings), &frame.segment, 0, now).agreed();
    let fits = MSS.iter().rposition(|mss| *mss <= agreed.mss).unwrap_or(0);
    let place = u8::try_from(fits).unwrap_or(0);
    let mut options = OptionBytes::new();
    let [high, low] = settings.mss.to_be_bytes();
    options.extend([2, 4, high, low]);
    Outgoing {
        seq: cookie(secret, frame.ends, frame.segment.seq, now / PERIOD, place),
        ack: frame.segment.seq.plus(1),
        flags: Flags::SYN.with(Flags::ACK),
        window: WINDOW,
        options,
        payload: (&[], &[]),
    }
}

/// The endpoint of a connection whose client acknowledges a cookie with this segment. `None` if it
/// does not, or if the cookie is too old.
pub(crate) fn accept(
    frame: &Frame<'_>,
    (secret, settings): (&Secret, &Settings),
    now: u64,
) -> Option<Endpoint> {
    let Incoming { seq, ack, flags, .. } = frame.segment;
    let others = Flags::SYN.with(Flags::RST);
    if !flags.has(Flags::ACK) || flags.0 & others.0 != 0 {
        return None;
    }
    let (given, isn) = (Seq(ack.0.wrapping_sub(1)), Seq(seq.0.wrapping_sub(1)));
    let [top, ..] = given.0.to_be_bytes();
    let place = top & 7;
    let period = now / PERIOD;
    let is_right = |period: &u64| cookie(secret, frame.ends, isn, *period, place) == given;
    [period, period.wrapping_sub(1)].iter().find(|period| is_right(period))?;
    let mss = MSS.get(usize::from(place)).copied().unwrap_or(MSS[0]);
    let [high, low] = mss.to_be_bytes();
    // The SYN as it came, as far as it matters.
    let syn = Incoming {
        seq: isn,
        ack: Seq(0),
        flags: Flags::SYN,
        window: frame.segment.window,
        options: &[2, 4, high, low],
        payload: &[],
    };
    let mut endpoint = Endpoint::accept(&plain(*settings), &syn, given.0, now);
    // The cookie was its answer.
    endpoint.send(now, 1, &mut |_| {});
    endpoint.segment(&frame.segment, now);
    Some(endpoint)
}
