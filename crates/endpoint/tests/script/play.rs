//! Plays a script of segments against an endpoint.
//!
//! A segment is text: its flags, its sequence number, `+` with the length of its payload, and then
//! `ack`, `win` and options in any order, each with its numbers: `SA 0 ack 1 win 9000 mss 1460`.
//! Numbers count from the SYN of their side. Byte i of each stream is i modulo 251. Flags are S, F,
//! R, P and A. The values of own timestamps are milliseconds.

use braid_endpoint::{Endpoint, Incoming, Outgoing, Settings, Status};
use braid_tcp::{Flags, Seq};

/// Both sides wrap soon.
const OWN: u32 = u32::MAX - 1500;
const PEER: u32 = u32::MAX - 700;

const FLAGS: [(char, Flags); 5] =
    [('S', Flags::SYN), ('F', Flags::FIN), ('R', Flags::RST), ('P', Flags::PSH), ('A', Flags::ACK)];

/// The settings of scripts: 100 bytes in a segment, no options.
pub const PLAIN: Settings =
    Settings { mss: 100, receive: 1000, send: 4000, wscale: false, sack: false, timestamps: false };

/// A script being played.
pub struct Play {
    pub endpoint: Endpoint,
    /// In milliseconds.
    now: u64,
    /// How many bytes have been written.
    written: u64,
    /// The window of the last segment that was sent.
    pub window: u16,
}

impl Play {
    pub fn connect(settings: Settings) -> Self {
        Self::of(Endpoint::connect(&settings, OWN, 0))
    }

    /// Takes a SYN.
    pub fn accept(settings: Settings, syn: &str) -> Self {
        let endpoint = with(syn, |syn| Endpoint::accept(&settings, syn, OWN, 0));
        Self::of(endpoint)
    }

    fn of(endpoint: Endpoint) -> Self {
        Self { endpoint, now: 0, written: 0, window: 0 }
    }

    /// A connection that a SYN with this text has opened.
    pub fn opened(settings: Settings, syn: &str) -> Self {
        let mut play = Self::accept(settings, &format!("S 0 {syn}"));
        play.sent();
        let timestamps = if syn.contains("ts") { "ts 1 0" } else { "" };
        let window = syn.split("win ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        play.gets(&format!("A 1 ack 1 win {window} {timestamps}"));
        assert!(play.status().is_established);
        play.sends(&[]);
        play
    }

    pub fn status(&self) -> Status {
        self.endpoint.status()
    }

    /// Takes a segment.
    pub fn gets(&mut self, text: &str) {
        let now = self.now * 1_000_000;
        with(text, |segment| self.endpoint.segment(segment, now));
    }

    /// A segment, counted from the own SYN, was too long.
    pub fn too_long(&mut self, number: u32, most: u16) -> bool {
        self.endpoint.too_long(Seq(OWN).plus(number), most)
    }

    /// Whether a SYN may take the endpoint's place.
    pub fn makes_way_for(&self, syn: &str) -> bool {
        with(syn, |syn| self.endpoint.makes_way_for(syn))
    }

    /// Lets the endpoint send, and compares.
    pub fn sends(&mut self, wanted: &[&str]) {
        assert_eq!(self.sent(), wanted, "at {} ms", self.now);
    }

    /// Lets the endpoint send.
    pub fn sent(&mut self) -> Vec<String> {
        let (mut sent, mut window) = (Vec::new(), self.window);
        self.endpoint.send(self.now * 1_000_000, 1000, &mut |segment| {
            window = segment.window;
            sent.push(show(&segment));
        });
        self.window = window;
        sent
    }

    /// Waits until something is due, checks when that is (ms), and compares what is sent then.
    pub fn sends_at(&mut self, at: u64, wanted: &[&str]) {
        assert_eq!(self.endpoint.deadline(), Some(at * 1_000_000));
        self.now = at;
        self.sends(wanted);
    }

    /// Lets time pass (ms).
    pub fn wait(&mut self, time: u64) {
        self.now += time;
    }

    pub fn writes(&mut self, count: u64) {
        let bytes: Vec<u8> = (self.written..self.written + count).map(byte).collect();
        self.written += self.endpoint.write(&bytes) as u64;
    }

    /// Reads all, and checks how many bytes that is.
    pub fn reads(&mut self, count: usize) {
        let (front, back) = self.endpoint.readable();
        let len = front.len() + back.len();
        assert_eq!(len, count);
        self.endpoint.consume(len);
    }
}

/// The byte at an offset behind the SYN.
fn byte(offset: u64) -> u8 {
    u8::try_from(offset % 251).unwrap()
}

/// Builds the segment of a text.
fn with<T>(text: &str, use_it: impl FnOnce(&Incoming<'_>) -> T) -> T {
    let mut words = text.split_whitespace();
    let flags = words
        .next()
        .unwrap()
        .chars()
        .map(|name| FLAGS.iter().find(|(flag, _)| *flag == name).expect("a flag").1);
    let flags = flags.fold(Flags(0), Flags::with);
    let place = words.next().unwrap();
    let (seq, len) = place.split_once('+').unwrap_or((place, "0"));
    let (seq, len): (i64, u64) = (seq.parse().unwrap(), len.parse().unwrap());
    let first = seq + i64::from(flags.has(Flags::SYN)) - 1;
    let payload: Vec<u8> = (0..len).map(|i| byte(first.cast_unsigned().wrapping_add(i))).collect();
    let (mut ack, mut window, mut options) = (Seq(0), 1000, Vec::new());
    while let Some(word) = words.next() {
        let mut number = || words.next().unwrap().parse::<i64>().unwrap();
        match word {
            "ack" => ack = relative(OWN, number()),
            "win" => window = u16::try_from(number()).unwrap(),
            "mss" => {
                options.extend([2, 4]);
                options.extend(u16::try_from(number()).unwrap().to_be_bytes());
            }
            "wscale" => options.extend([3, 3, u8::try_from(number()).unwrap()]),
            "sackok" => options.extend([4, 2]),
            "sack" => {
                options.extend([5, 10]);
                options.extend(relative(OWN, number()).0.to_be_bytes());
                options.extend(relative(OWN, number()).0.to_be_bytes());
            }
            "ts" => {
                options.extend([8, 10]);
                options.extend(u32::try_from(number()).unwrap().to_be_bytes());
                options.extend(relative(OWN, number()).0.to_be_bytes());
            }
            _ => panic!("unknown word {word}"),
        }
    }
    let seq = relative(PEER, seq);
    use_it(&Incoming { seq, ack, flags, window, options: &options, payload: &payload })
}

fn relative(base: u32, number: i64) -> Seq {
    let number = i32::try_from(number).unwrap();
    Seq(base.wrapping_add_signed(number))
}

/// The text of a segment, without its window.
fn show(segment: &Outgoing<'_>) -> String {
    let own = |number: Seq| i64::from(number.from(Seq(OWN)));
    let peer = |number: Seq| number.from(Seq(PEER));
    let names = FLAGS.iter().filter(|(_, flag)| segment.flags.has(*flag));
    let mut text: String = names.map(|(name, _)| *name).collect();
    text += &format!(" {}", own(segment.seq));
    let payload = [segment.payload.0, segment.payload.1].concat();
    for (i, value) in (0..).zip(&payload) {
        let first = u64::try_from(own(segment.seq) - 1).unwrap();
        assert_eq!(*value, byte(first + i), "byte {i} of {text}");
    }
    if !payload.is_empty() {
        text += &format!("+{}", payload.len());
    }
    if segment.flags.has(Flags::ACK) {
        text += &format!(" ack {}", peer(segment.ack));
    }
    assert_eq!(segment.options.len() % 4, 0);
    text + &show_options(&segment.options)
}

fn show_options(mut bytes: &[u8]) -> String {
    let number = |bytes: &[u8]| Seq(u32::from_be_bytes(bytes.try_into().unwrap()));
    let mut text = String::new();
    while let [kind, rest @ ..] = bytes {
        if *kind == 1 {
            bytes = rest;
            continue;
        }
        let (option, rest) = bytes.split_at(rest[0].into());
        let body = &option[2..];
        text += &match kind {
            2 => format!(" mss {}", u16::from_be_bytes(body.try_into().unwrap())),
            3 => format!(" wscale {}", body[0]),
            4 => " sackok".to_owned(),
            5 => body.chunks(8).fold(" sack".to_owned(), |text, block| {
                let [start, end] =
                    [&block[..4], &block[4..]].map(|edge| number(edge).from(Seq(PEER)));
                format!("{text} {start} {end}")
            }),
            8 => format!(" ts {} {}", number(&body[..4]).from(Seq(OWN)), number(&body[4..]).0),
            _ => panic!("unknown option {kind}"),
        };
        bytes = rest;
    }
    text
}
