//! TCP and its options (RFC 9293, RFC 7323, RFC 2018).

use super::proto;
use crate::declare::{
    Behind, Bits, Cover, Declaration, Own, Parse, Parts, Show, Where, bytes, ro, rw,
};
use crate::layout::{Layout, Sum, SumKind};
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window};

/// Offset of the sequence number.
pub(crate) const SEQ: usize = 4;
/// Offset of the acknowledgement number.
pub(crate) const ACK: usize = 8;
/// Offset of the data offset.
pub(crate) const DATA_OFFSET: usize = 12;
/// Offset of the flags.
pub(crate) const FLAGS: usize = 13;
/// Offset of the window.
pub(crate) const WINDOW: usize = 14;
/// Offset of the checksum.
pub(crate) const CHECKSUM: usize = 16;
/// The checksum.
pub(crate) const SUM: Sum = Sum { kind: SumKind::Tcp, at: CHECKSUM };
/// Offset of the urgent pointer.
pub(crate) const URGENT: usize = 18;
/// Length of the header without options.
pub(crate) const LEN: usize = 20;

const NEEDS: &[Header] = &[Header::Tcp, Header::L4, Header::Inet];

/// TCP. It is never in a fragment other than the first.
pub(crate) const TCP: Declaration = Declaration {
    follows: &[(Field::IpProto, &[proto::TCP as u16]), (Field::Ip6Proto, &[proto::TCP as u16])],
    parts: Parts::Any(&NAMED),
    at: (Base::L4, 0),
    parse: Parse::Own(Own(parse)),
    sum: Cover::Transport,
    holds: Some(SUM),
    takes_declared: true,
    summary: Some(("TCP", &[("", Field::TcpFlags)])),
    fields: &[
        rw(Field::TcpSport, "tcp.sport", 16, Where::Part(Field::L4Sport, 0), "TCP source port.")
            .shown(Show::Port)
            .of_flow(),
        rw(
            Field::TcpDport,
            "tcp.dport",
            16,
            Where::Part(Field::L4Dport, 0),
            "TCP destination port.",
        )
        .shown(Show::Port)
        .of_flow(),
        rw(Field::TcpSeq, "tcp.seq", 32, bytes(SEQ, 4), "Sequence number."),
        rw(Field::TcpAck, "tcp.ack", 32, bytes(ACK, 4), "Acknowledgement number."),
        rw(
            Field::TcpFlags,
            "tcp.flags",
            8,
            bytes(FLAGS, 1),
            "Flags: CWR ECE URG ACK PSH RST SYN FIN, from bit 7 down.",
        )
        .shown(Show::Flags),
        rw(Field::TcpWindow, "tcp.window", 16, bytes(WINDOW, 2), "Window, not scaled."),
        rw(Field::TcpUrgent, "tcp.urgent", 16, bytes(URGENT, 2), "Urgent pointer."),
        ro(
            Field::TcpHlen,
            "tcp.hlen",
            8,
            Where::Words(LENGTH),
            "TCP header length in bytes, options included.",
        ),
    ],
    ..Declaration::new(Header::Tcp, "tcp", &[Header::L4, Header::Inet])
};

/// TCP maximum segment size option.
pub(crate) const MSS: Declaration = Declaration {
    at: (Base::Mss, 0),
    sum: Cover::Transport,
    fields: &[rw(Field::TcpMss, "tcp.mss", 16, bytes(2, 2), "Maximum segment size option.")],
    ..Declaration::new(Header::TcpMss, "tcp.mss", NEEDS)
};

/// TCP window scale option.
pub(crate) const WSCALE: Declaration = Declaration {
    at: (Base::Wscale, 0),
    sum: Cover::Transport,
    fields: &[rw(Field::TcpWscale, "tcp.wscale", 8, bytes(2, 1), "Window scale option.")],
    ..Declaration::new(Header::TcpWscale, "tcp.wscale", NEEDS)
};

/// TCP SACK-permitted option.
pub(crate) const SACK_OK: Declaration = Declaration::new(Header::TcpSackOk, "tcp.sack_ok", NEEDS);

/// TCP timestamps option.
pub(crate) const TS: Declaration = Declaration {
    at: (Base::Ts, 0),
    sum: Cover::Transport,
    fields: &[
        rw(Field::TcpTsVal, "tcp.ts_val", 32, bytes(2, 4), "Timestamp value."),
        rw(Field::TcpTsEcr, "tcp.ts_ecr", 32, bytes(6, 4), "Timestamp echo reply."),
    ],
    ..Declaration::new(Header::TcpTs, "tcp.ts", NEEDS)
};

/// The most bytes of options.
pub(crate) const MOST_OPTIONS: usize = 40;
/// The option that only fills room.
pub(crate) const NOP: u8 = 1;

/// The options that models can name.
pub(crate) const NAMED: [Header; 4] =
    [Header::TcpMss, Header::TcpWscale, Header::TcpSackOk, Header::TcpTs];

/// The form of an option that models can name.
pub(crate) struct Form {
    pub(crate) header: Header,
    pub(crate) kind: u8,
    /// The number of bytes of each of its values.
    pub(crate) values: &'static [usize],
}

const FORMS: [Form; 4] = [
    Form { header: Header::TcpMss, kind: 2, values: &[2] },
    Form { header: Header::TcpWscale, kind: 3, values: &[1] },
    Form { header: Header::TcpSackOk, kind: 4, values: &[] },
    Form { header: Header::TcpTs, kind: 8, values: &[4, 4] },
];

impl Form {
    /// The form of the option that a header stands for.
    pub(crate) fn of(header: Header) -> Option<&'static Self> {
        FORMS.iter().find(|form| form.header == header)
    }

    /// The option's length.
    pub(crate) fn len(&self) -> usize {
        2 + self.values.iter().sum::<usize>()
    }

    /// Whether an option of this kind with these bytes has the form.
    pub(crate) fn fits(&self, kind: u8, option: &[u8]) -> bool {
        (self.kind, self.len()) == (kind, option.len())
    }
}

/// The header's length in words.
const LENGTH: Bits = Bits { offset: DATA_OFFSET, len: 1, shift: 4, width: 4 };

fn parse<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    layout.checksum(window, SUM);
    let (options, rest) = check(window)?;
    layout.add(Header::L4);
    layout.add(Header::Tcp);
    if options.sack_ok {
        layout.add(Header::TcpSackOk);
    }
    for (base, header, at) in [
        (Base::Mss, Header::TcpMss, options.mss),
        (Base::Wscale, Header::TcpWscale, options.wscale),
        (Base::Ts, Header::TcpTs, options.ts),
    ] {
        if let Some(at) = at {
            layout.add(header);
            layout.begin_at(base, at);
        }
    }
    layout.behind(rest);
    Ok(None)
}

/// Absolute offsets of the options that models can name. The first option of each kind counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    pub(crate) mss: Option<usize>,
    pub(crate) wscale: Option<usize>,
    pub(crate) sack_ok: bool,
    pub(crate) ts: Option<usize>,
}

/// The options, and the bytes behind the header.
pub(crate) fn check(window: Window<'_>) -> Result<(Options, Window<'_>), Stop> {
    let header = window.fixed::<LEN>(Malformed::TcpShort)?;
    let len = usize::from(header[DATA_OFFSET] >> 4) * 4;
    if len < LEN {
        return Err(Stop::Bad(Malformed::TcpHeaderLength));
    }
    let behind = window.skip(LEN);
    let bytes = behind.first(len - LEN, Malformed::TcpHeaderLength)?;
    Ok((options(bytes, behind.at())?, window.skip(len)))
}

/// An option: its kind, its offset among the options, and its bytes.
type Found<'a> = (u8, usize, &'a [u8]);

/// The options in these bytes, without padding. Ends behind an option that goes
/// beyond the bytes.
pub(crate) fn each(bytes: &[u8]) -> impl Iterator<Item = Result<Found<'_>, Stop>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while bytes.get(at) == Some(&NOP) {
            at += 1;
        }
        let kind = *bytes.get(at).filter(|kind| **kind != 0)?;
        let start = at;
        let len = bytes.get(start + 1).map_or(0, |len| usize::from(*len));
        at = if len < 2 { bytes.len() } else { start + len };
        let option = bytes.get(start..at).filter(|_| len >= 2);
        let option = option.ok_or(Stop::Bad(Malformed::TcpOptions));
        at = at.min(bytes.len());
        Some(option.map(|option| (kind, start, option)))
    })
}

fn options(bytes: &[u8], start: usize) -> Result<Options, Stop> {
    let mut seen = Options::default();
    for option in each(bytes) {
        let (kind, at, option) = option?;
        let form = FORMS.iter().find(|form| form.fits(kind, option));
        match form.map(|form| form.header) {
            Some(Header::TcpMss) => seen.mss = seen.mss.or(Some(start + at)),
            Some(Header::TcpWscale) => seen.wscale = seen.wscale.or(Some(start + at)),
            Some(Header::TcpSackOk) => seen.sack_ok = true,
            Some(Header::TcpTs) => seen.ts = seen.ts.or(Some(start + at)),
            _ => {}
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(words: u8, options: &[u8]) -> Vec<u8> {
        let mut data = vec![0; 20];
        data[12] = words << 4;
        data.extend(options);
        data
    }

    #[test]
    fn header_length_out_of_range_is_malformed() {
        for (words, wire) in [(4, 20), (6, 20)] {
            let data = header(words, &[]);
            let stop = check(Window::new(&data, wire)).unwrap_err();
            assert_eq!(stop, Stop::Bad(Malformed::TcpHeaderLength));
        }
        assert_eq!(check(Window::new(&header(6, &[]), 24)).unwrap_err(), Stop::Cut);
    }

    #[test]
    fn options_are_found_at_odd_offsets_and_first_wins() {
        let bytes = [1, 2, 4, 5, 180, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 2, 4, 0, 9];
        let data = header(11, &bytes);
        let (seen, rest) = check(Window::new(&data, data.len())).unwrap();
        let expected = Options { mss: Some(21), wscale: Some(25), sack_ok: true, ts: Some(30) };
        assert_eq!((seen, rest.at()), (expected, 44));
    }

    #[test]
    fn option_over_the_header_end_is_malformed() {
        for options in [[2, 5, 0, 0], [2, 0, 0, 0], [1, 1, 1, 2]] {
            let data = header(6, &options);
            let stop = check(Window::new(&data, 24)).unwrap_err();
            assert_eq!(stop, Stop::Bad(Malformed::TcpOptions));
        }
    }

    #[test]
    fn option_of_unusual_length_is_not_recognised() {
        let data = header(6, &[2, 3, 5, 0]);
        assert_eq!(check(Window::new(&data, 24)).unwrap().0, Options::default());
    }
}
