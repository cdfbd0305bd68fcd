//! Steering: the choice of the worker that a packet belongs to, as data. One function,
//! [`Steering::worker`], gives it its meaning, so that all who steer packets agree.

use crate::model::{ParamId, Word};
use crate::value::{IntervalSet, ParamValue};
use braid_packet::{Field, FlowKey, Layout, Packet};

/// The steering of a chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steering {
    /// The rule for the packets of each interface, by its number. Packets of further interfaces are
    /// steered by [`By::Connection`].
    pub entries: Vec<By>,
    /// Whether an ICMP error goes to the worker of the flow that it is about. The error is then
    /// steered as an answer to the packet that it quotes. Otherwise its own header steers it.
    pub errors_follow: bool,
}

/// A rule of steering. Packets that lack what the rule reads belong to worker 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// A hash of the `biflow` key. Both directions of a connection have the same hash.
    Connection,
    /// A hash of one end of the flow, or of a part of it.
    Part(Part),
    /// A hash of a field.
    Field(Field),
    /// The worker whose share of a pool holds the value. A hash decides about other values.
    Pool(Part, Pool),
}

/// A part of a flow's key: one end, or one half of an end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Part {
    /// The end of the flow.
    pub end: Side,
    /// The part of the end.
    pub what: Of,
}

/// An end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// The sender.
    Source,
    /// The receiver.
    Destination,
}

/// A part of an end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Of {
    /// Address and port.
    Both,
    /// The address.
    Address,
    /// The port, or the identifier of an ICMP echo.
    Port,
}

/// A pool that workers have shares of (`braid_externs::pool::split`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// The function, by number.
    pub node: u16,
    /// Its parameter.
    pub param: ParamId,
    /// The members.
    pub members: IntervalSet,
}

impl Steering {
    /// The steering of a chain that says nothing else: by connection everywhere.
    #[must_use]
    pub fn by_connection() -> Self {
        Self { entries: Vec::new(), errors_follow: false }
    }

    /// The rule for packets that enter at an interface.
    #[must_use]
    pub fn by(&self, interface: u16) -> &By {
        self.entries.get(usize::from(interface)).unwrap_or(&By::Connection)
    }

    /// The fields that decide about packets of this number of interfaces, unless the packets quote
    /// others.
    #[must_use]
    pub fn fields(&self, interfaces: u16) -> Vec<Field> {
        let mut fields: Vec<Field> =
            (0..interfaces).flat_map(|number| self.by(number).fields()).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// Takes over a parameter's new value, if the steering goes by the shares of this pool.
    pub fn change(&mut self, node: u16, param: ParamId, value: &ParamValue) {
        let ParamValue::Pool(new) = value else { return };
        for by in &mut self.entries {
            if let By::Pool(_, pool) = by
                && (pool.node, pool.param) == (node, param)
            {
                pool.members.clone_from(new);
            }
        }
    }

    /// The worker of a packet that enters at an interface, from 0.
    #[must_use]
    #[inline]
    pub fn worker(&self, packet: &Packet, layout: &Layout, interface: u16, workers: u16) -> u16 {
        if workers <= 1 {
            return 0;
        }
        let by = self.by(interface);
        if let Some(ends) = packet.ends4(layout)
            && let Some(worker) = by.worker4(ends, workers)
        {
            return worker;
        }
        if let By::Field(field) = by {
            return packet.get(layout, *field).map_or(0, |word| spread([word], workers));
        }
        let quoted = self.errors_follow.then(|| packet.quoted_flow_key(layout)).flatten();
        let key = quoted.map(FlowKey::reversed).or_else(|| packet.flow_key(layout));
        key.map_or(0, |key| by.worker(key, workers))
    }

    /// Gives the worker of each packet, in order, as [`Self::worker`] does, in a fraction of the
    /// time: the rule is looked up once for packets in a row.
    pub fn each_worker(
        &self,
        packets: &[Packet],
        mut layouts: &[Layout],
        workers: u16,
        mut give: impl FnMut(u16),
    ) {
        for run in packets.chunk_by(|one, next| one.ingress == next.ingress) {
            let Some((own, rest)) = layouts.split_at_checked(run.len()) else { return };
            layouts = rest;
            let (all, interface) = ((run, own), run.first().map_or(0, |one| one.ingress));
            let other =
                |packet: &Packet, layout: &Layout| self.worker(packet, layout, interface, workers);
            let give = &mut give;
            match self.by(interface) {
                By::Part(Part { end: Side::Source, what: Of::Both }) if workers > 1 => {
                    let of = |[(addr, port), _]: [(u32, u16); 2]| {
                        spread([addr.into(), port.into()], workers)
                    };
                    each_of(all, of, other, give);
                }
                By::Part(Part { end: Side::Destination, what: Of::Both }) if workers > 1 => {
                    let of = |[_, (addr, port)]: [(u32, u16); 2]| {
                        spread([addr.into(), port.into()], workers)
                    };
                    each_of(all, of, other, give);
                }
                _ => run.iter().zip(own).for_each(|(packet, layout)| give(other(packet, layout))),
            }
        }
    }
}

/// The workers of packets that enter at one interface: that of their ends where they are IPv4 with
/// ports ([`Packet::ends4`]), and otherwise the one that `other` gives.
#[inline(always)]
fn each_of(
    (packets, layouts): (&[Packet], &[Layout]),
    of_ends: impl Fn([(u32, u16); 2]) -> u16,
    other: impl Fn(&Packet, &Layout) -> u16,
    give: &mut impl FnMut(u16),
) {
    for (packet, layout) in packets.iter().zip(layouts) {
        give(packet.ends4(layout).map_or_else(|| other(packet, layout), &of_ends));
    }
}

impl By {
    /// The fields that the rule looks at.
    fn fields(&self) -> Vec<Field> {
        use Field::{InetDport, InetDst, InetSport, InetSrc};
        match self {
            By::Connection => vec![InetSrc, InetDst, InetSport, InetDport],
            By::Field(field) => vec![*field],
            By::Part(part) | By::Pool(part, _) => {
                let [address, port] = match part.end {
                    Side::Source => [InetSrc, InetSport],
                    Side::Destination => [InetDst, InetDport],
                };
                match part.what {
                    Of::Both => vec![address, port],
                    Of::Address => vec![address],
                    Of::Port => vec![port],
                }
            }
        }
    }

    /// The worker of packets with these ends, source and destination, each an IPv4 address and a
    /// port: what [`Self::worker`] gives for their key. `None` if the ends do not decide. Most
    /// packets take this way, which has no words of 128 bits.
    #[inline]
    fn worker4(&self, [src, dst]: [(u32, u16); 2], workers: u16) -> Option<u16> {
        let end = |part: &Part| if part.end == Side::Source { src } else { dst };
        Some(match self {
            By::Part(part) => match (part.what, end(part)) {
                (Of::Both, (addr, port)) => spread([addr.into(), port.into()], workers),
                (Of::Address, (addr, _)) => spread([addr.into()], workers),
                (Of::Port, (_, port)) => spread([port.into()], workers),
            },
            By::Pool(part, pool) => {
                let (addr, port) = end(part);
                let value = if part.what == Of::Port { port.into() } else { addr };
                let owner = owner(&pool.members, value.into(), workers);
                owner.unwrap_or_else(|| spread([value.into()], workers))
            }
            By::Connection | By::Field(_) => return None,
        })
    }

    /// The worker of packets with this key.
    fn worker(&self, key: FlowKey, workers: u16) -> u16 {
        match self {
            By::Connection | By::Field(_) => {
                let FlowKey { version, src, dst, proto, sport, dport } = key.bidirectional();
                let ports = Word::from(sport) << 16 | Word::from(dport);
                let rest = ports << 16 | Word::from(version) << 8 | Word::from(proto);
                spread([src, dst, rest], workers)
            }
            By::Part(part) => match (part.what, part.of(key)) {
                (Of::Both, (addr, port)) => spread([addr, port], workers),
                (Of::Address, (addr, _)) => spread([addr], workers),
                (Of::Port, (_, port)) => spread([port], workers),
            },
            By::Pool(part, pool) => {
                let (addr, port) = part.of(key);
                let value = if part.what == Of::Port { port } else { addr };
                owner(&pool.members, value, workers).unwrap_or_else(|| spread([value], workers))
            }
        }
    }
}

impl Part {
    /// The address and the port of the end.
    fn of(self, key: FlowKey) -> (Word, Word) {
        match self.end {
            Side::Source => (key.src, key.sport.into()),
            Side::Destination => (key.dst, key.dport.into()),
        }
    }
}

/// Spreads values over workers: each half of a word is mixed into a state of 64 bits.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a word has two halves of 64 bits, and the result is below `workers`"
)]
fn spread<const WORDS: usize>(words: [Word; WORDS], workers: u16) -> u16 {
    let mut state = 0x243f_6a88_85a3_08d3_u64;
    for word in words {
        for half in [word as u64, (word >> 64) as u64] {
            let mixed = (state ^ half).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            state = mixed ^ mixed >> 32;
        }
    }
    (((state.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * u64::from(workers)) >> 32) as u16
}

/// The worker whose share of these members holds a value. Shares are contiguous and ascending. The
/// first shares may be larger by one.
#[must_use]
pub fn owner(members: &IntervalSet, value: Word, workers: u16) -> Option<u16> {
    let size = |(low, high): &(Word, Word)| (high - low).saturating_add(1);
    let count = members.intervals().iter().map(size).fold(0, Word::saturating_add);
    let mut before: Word = 0;
    let holds = |(low, high): &&(Word, Word)| *low <= value && value <= *high;
    for interval in members.intervals() {
        if holds(&interval) {
            let rank = before + (value - interval.0);
            // A division of 64 bits takes a fraction of the time.
            let part = match (u64::try_from(count), u64::try_from(rank)) {
                (Ok(count), Ok(rank)) => part(count, rank, workers.into()).into(),
                _ => wide_part(count, rank, workers.into()),
            };
            return u16::try_from(part).ok();
        }
        before = before.saturating_add(size(interval));
    }
    None
}

/// The share of the member with this rank, if this number of workers share `count` members.
fn part(count: u64, rank: u64, workers: u64) -> u64 {
    let (share, larger) = (count / workers, count % workers);
    // At most `count`.
    let wide = larger * (share + 1);
    if rank < wide { rank / (share + 1) } else { larger + (rank - wide) / share }
}

/// As [`part`], of more members.
#[cold]
fn wide_part(count: Word, rank: Word, workers: Word) -> Word {
    let (share, larger) = (count / workers, count % workers);
    let wide = larger * (share + 1);
    if rank < wide { rank / (share + 1) } else { larger + (rank - wide) / share }
}

#[cfg(test)]
mod tests {
    use super::{By, Of, Part, Pool, Side, Steering, owner, spread};
    use crate::model::ParamId;
    use crate::value::IntervalSet;
    use braid_externs::pool::split;
    use braid_packet::{Field, Link, Shape, build_fresh};

    #[test]
    fn neighbours_spread_over_all_workers() {
        for workers in [2, 3, 4, 7, 64] {
            let mut counts = vec![0; usize::from(workers)];
            for number in 0..1000 * u128::from(workers) {
                counts[usize::from(spread([0x0a00_0000 + number, 80], workers))] += 1;
            }
            assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn packets_with_ports_are_steered_by_their_ends_as_by_their_keys() {
        let members = IntervalSet::new([(1000, 1999), (0x0a00_0000, 0x0a00_ffff)]);
        let pool = Pool { node: 0, param: ParamId(0), members };
        for number in 0..3600_u128 {
            let end = [Side::Source, Side::Destination][usize::try_from(number).unwrap() % 2];
            let what = [Of::Both, Of::Address, Of::Port][usize::try_from(number).unwrap() / 2 % 3];
            let part = Part { end, what };
            let fields = [
                (Field::IpSrc, 0x0a00_0000 + number * 977),
                (Field::IpDst, 0xc000_0000 + number * 31_337),
                (Field::L4Sport, 900 + number * 3),
                (Field::L4Dport, 65_535 - number * 101 % 60_000),
            ];
            let shape = if number % 2 == 0 { Shape::Tcp4 } else { Shape::Udp4 };
            let packet = build_fresh(Link::Ethernet, 0, shape, &fields, &[]).unwrap();
            let layout = packet.parse();
            let key = packet.flow_key(&layout).unwrap();
            for by in [By::Connection, By::Part(part), By::Pool(part, pool.clone())] {
                let steering = Steering { entries: vec![by.clone()], errors_follow: true };
                let workers = 2 + u16::try_from(number % 9).unwrap();
                let worker = steering.worker(&packet, &layout, 0, workers);
                assert_eq!(worker, by.worker(key, workers), "{by:?} {key:?}");
                let (all, mut given) = ([packet.clone(), packet.clone()], Vec::new());
                steering.each_worker(&all, &[layout; 2], workers, |worker| given.push(worker));
                assert_eq!(given, [worker; 2], "{by:?} {key:?}");
            }
        }
    }

    #[test]
    fn shares_of_few_and_of_many_members_follow_one_rule() {
        for (count, workers) in [(1, 2), (10, 3), (64_512, 7), (u64::MAX, 5), (1 << 40, 1024)] {
            for rank in [0, 1, count / 3, count / 2, count - 1] {
                let (rank, few) =
                    (rank.min(count - 1), super::part(count, rank.min(count - 1), workers));
                let many = super::wide_part(count.into(), rank.into(), workers.into());
                assert_eq!(u128::from(few), many, "{rank} of {count}");
            }
        }
    }

    #[test]
    fn the_owner_of_a_member_is_the_worker_whose_share_holds_it() {
        let members = IntervalSet::new([(3, 9), (20, 20), (30, 47)]);
        for workers in 1..40 {
            let shares = split(members.intervals(), workers);
            for value in 0..60 {
                let holds = |share: &Vec<(u128, u128)>| {
                    share.iter().any(|(low, high)| *low <= value && value <= *high)
                };
                let expected = shares.iter().position(holds).map(|at| at as u16);
                assert_eq!(owner(&members, value, workers), expected, "{value} of {workers}");
            }
        }
    }
}
