//! Compares the markers of the library with a model of their own, to the packet, and shows that a
//! bucket is exact over a long time.

use braid_ir::chain::Chain;
use braid_packet::Field;
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Form, budget};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Output, Stimulus, record};

/// A byte, in bits × nanoseconds a second.
const BYTE: u128 = 8_000_000_000;
/// The DSCP of green, yellow and red packets.
const COLOURS: [u128; 3] = [10, 12, 14];

/// What a bucket lacks to be full. The markers of the library count what it has.
#[derive(Clone, Copy, Default)]
struct Lack(u128);

impl Lack {
    /// Fills up. What the bucket does not take is left.
    fn fill(&mut self, credit: u128) -> u128 {
        let taken = credit.min(self.0);
        self.0 -= taken;
        credit - taken
    }

    /// Takes a cost, if the bucket holds this.
    fn take(&mut self, cost: u128, most: u128) -> bool {
        let fits = self.0 + cost <= most;
        self.0 += if fits { cost } else { 0 };
        fits
    }
}

fn chain(function: &str) -> Chain {
    let source = format!("chain c {{ path in <-> {function} <-> out; }}");
    harness::compile(&source, &Default::default(), Form::AsWritten).expect("a chain")
}

/// Packets: their times (ns), sources and payload lengths.
fn traffic(rng: &mut Rng) -> Vec<(u64, usize, usize)> {
    let mut now = 0;
    (0..300)
        .map(|_| {
            now += match rng.below(4) {
                0 => 0,
                1 => rng.range(1, 1_000_000),
                2 => rng.range(1, 100_000_000),
                _ => rng.range(1, 2_000_000_000),
            };
            (now, rng.below(3), rng.below(100))
        })
        .collect()
}

/// The DSCP of each packet behind the chain, and the lengths of the packets.
fn marked(chain: &Chain, packets: &[(u64, usize, usize)]) -> Vec<(u128, u128)> {
    let arriving = |&(time, source, bytes): &(u64, usize, usize)| {
        let text = format!("udp 10.0.0.{}:1 > 192.0.2.1:9 bytes={bytes}", 1 + source);
        Stimulus::Packet(0, parse(&text).expect("a packet").at(time))
    };
    let stimuli: Vec<Stimulus> = packets.iter().map(arriving).collect();
    let trace = record(harness::reference(chain).as_mut(), &stimuli, Detail::End);
    let leaving = |outputs: &Vec<Output>| {
        let [Output::Packet(_, packet)] = outputs.as_slice() else { panic!("{outputs:?}") };
        let colour = packet.get(&packet.parse(), Field::IpDscp).expect("a DSCP");
        (colour, u128::from(packet.wire_len))
    };
    trace.outputs.iter().map(leaving).collect()
}

/// What a source's packet of `cost`, `gone` ns after the last one, does to the source's two
/// buckets, and the colour that it gets.
type Meter = Box<dyn Fn(&mut [Lack; 2], u128, u128) -> u128>;

/// Runs markers that `draw` makes, as a call with its meter, and compares every packet's colour.
fn compare(draw: impl Fn(&mut Rng) -> (String, Meter)) {
    for seed in budget::seeds(20) {
        let mut rng = Rng::new(seed);
        let (call, meter) = draw(&mut rng);
        let packets = traffic(&mut rng);
        let found = marked(&chain(&call), &packets);
        let mut sources = [([Lack::default(); 2], 0); 3];
        for (nth, (&(now, source, _), (colour, len))) in packets.iter().zip(found).enumerate() {
            let (buckets, since) = &mut sources[source];
            let gone = u128::from(now - std::mem::replace(since, now));
            let expected = meter(buckets, gone, len * BYTE);
            assert_eq!(colour, expected, "seed {seed}, packet {nth}, {call}");
        }
    }
}

#[test]
fn two_rates_mark_as_rfc_2698_says() {
    compare(|rng| {
        let (cir, more) = (rng.range(1, 5_000), rng.range(0, 5_000));
        let (cbs, pbs) = (rng.range(50, 400), rng.range(50, 400));
        let pir = cir + more;
        let call = format!(
            "trtcm(cir: {cir} bit/s, pir: {pir} bit/s, cbs: {cbs} B, pbs: {pbs} B, idle: 1 h)"
        );
        let meter = move |[peak, committed]: &mut [Lack; 2], gone, cost| {
            peak.fill(gone * u128::from(pir));
            committed.fill(gone * u128::from(cir));
            match () {
                () if !peak.take(cost, u128::from(pbs) * BYTE) => COLOURS[2],
                () if !committed.take(cost, u128::from(cbs) * BYTE) => COLOURS[1],
                () => COLOURS[0],
            }
        };
        (call, Box::new(meter))
    });
}

#[test]
fn one_rate_marks_as_rfc_2697_says() {
    compare(|rng| {
        let (cir, cbs, ebs) = (rng.range(1, 5_000), rng.range(50, 400), rng.range(0, 400));
        let call = format!("srtcm(cir: {cir} bit/s, cbs: {cbs} B, ebs: {ebs} B, idle: 1 h)");
        let meter = move |[committed, excess]: &mut [Lack; 2], gone, cost| {
            let left = committed.fill(gone * u128::from(cir));
            excess.fill(left);
            match () {
                () if committed.take(cost, u128::from(cbs) * BYTE) => COLOURS[0],
                () if excess.take(cost, u128::from(ebs) * BYTE) => COLOURS[1],
                () => COLOURS[2],
            }
        };
        (call, Box::new(meter))
    });
}

/// Twice the rate arrives for a minute, in packets that are no multiple of what comes in between.
#[test]
fn a_bucket_lets_through_its_rate_to_the_packet() {
    let chain = chain("trtcm(cir: 999983 bit/s, pir: 999983 bit/s, cbs: 1500 B, pbs: 1500 B)");
    let (every, seconds) = (4_000_037, 60);
    let count = seconds * 1_000_000_000 / every;
    let packets: Vec<_> = (0..count).map(|nth| (nth * every, 0, 958)).collect();
    let found = marked(&chain, &packets);
    let green = found.iter().filter(|(colour, _)| *colour == COLOURS[0]).map(|(_, len)| len);
    let sent = green.sum::<u128>() * BYTE;
    let time = u128::from(packets.last().expect("packets").0);
    let most = 1500 * BYTE + 999_983 * time;
    assert!(sent <= most && sent + 1000 * BYTE > most, "{sent} of {most}");
}
