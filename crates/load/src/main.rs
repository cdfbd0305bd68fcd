//! Sends numbered UDP packets on one device of the machine and receives them on another one, for
//! `make bench-live`. Prints what arrived and how late, as JSON.
//!
//! One thread does both, so that one core is enough, and one clock stamps both ends. Packets go
//! through packet sockets. A packet carries the number of its run, its own number, and the time at
//! which it was sent.
#![forbid(unsafe_code)]

mod account;
mod packets;

use std::time::{Duration, Instant};

use account::Account;
use braid_io::{PacketPort, Port};
use braid_packet::{Frame, Pool};
use clap::Parser;
use packets::{LEAST, MOST, Packets, Target};
use serde_json::json;

/// The most packets that one system call sends.
const BATCH: u64 = 32;
/// The time without arrivals after which no packet is on its way any more.
const QUIET: Duration = Duration::from_secs(1);

/// Sends numbered packets on a device and receives them on another one.
#[derive(Parser)]
struct Options {
    /// The device to send on
    #[arg(long)]
    from: String,
    /// The device to receive on
    #[arg(long)]
    to: String,
    /// The MAC address of the device under test
    #[arg(long)]
    mac: String,
    /// The address and the port to send to
    #[arg(long)]
    target: std::net::SocketAddrV4,
    /// Lengths of frames without their check sequence, which take turns
    #[arg(long, value_delimiter = ',', default_value = "60")]
    sizes: Vec<usize>,
    /// The number of flows, which take turns
    #[arg(long, default_value_t = 1000)]
    flows: u32,
    /// Packets a second; 0: as many as this core sends
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// Seconds of sending
    #[arg(long = "for", default_value_t = 1.0)]
    seconds: f64,
}

fn main() {
    match run(&Options::parse()) {
        Ok(report) => println!("{report}"),
        Err(why) => {
            eprintln!("braid-load: {why}");
            std::process::exit(1);
        }
    }
}

fn run(options: &Options) -> Result<serde_json::Value, String> {
    let open = |name: &str| PacketPort::open(name).map_err(|why| format!("{name}: {why}"));
    if options.sizes.iter().any(|size| !(LEAST..=MOST).contains(size)) || options.sizes.is_empty() {
        return Err(format!("frames have {LEAST} to {MOST} bytes"));
    }
    if options.flows == 0 || !(options.seconds > 0.0 && options.seconds < 3600.0) {
        return Err("there is at least one flow, and at most an hour of sending".into());
    }
    let (mut from, to) = (open(&options.from)?, open(&options.to)?);
    let source = from.ethernet().ok_or("the device to send on is gone")?.mac;
    let target = Target { source, mac: mac(&options.mac)?, address: options.target };
    let packets = Packets::new(&target, &options.sizes, options.flows);
    let account = Account::new(packets.run(), options.flows);
    let pool = Pool::new(8192, 2048).ok_or("there is not enough memory")?;
    let mut load = Load { packets, account, pool, frames: Vec::new(), to, next: 0, refused: 0 };
    let (seconds, slowest) = load.send(&mut from, options)?;
    load.drain()?;
    Ok(load.report(seconds, slowest))
}

/// Six bytes in hexadecimal, with colons.
fn mac(text: &str) -> Result<[u8; 6], String> {
    let bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16));
    let bytes = bytes.collect::<Result<Vec<u8>, _>>().ok();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(format!("`{text}` is no MAC address"))
}

/// A run that sends and receives.
struct Load {
    packets: Packets,
    account: Account,
    pool: Pool,
    frames: Vec<Frame>,
    to: PacketPort,
    /// The number of the next packet.
    next: u64,
    /// The packets that the kernel did not take.
    refused: u64,
}

impl Load {
    /// Sends at the rate for the time. Returns the seconds that it took, and the longest time for
    /// which a packet waited that was due.
    fn send(&mut self, from: &mut PacketPort, options: &Options) -> Result<(f64, f64), String> {
        let (start, mut slowest) = (Instant::now(), 0.0_f64);
        let rate = options.rate as f64;
        loop {
            let passed = start.elapsed().as_secs_f64();
            let due = match options.rate {
                0 => self.next + BATCH,
                _ => (passed.min(options.seconds) * rate) as u64,
            };
            let is_over = passed >= options.seconds;
            if is_over && (options.rate == 0 || due <= self.next || passed > 2.0 * options.seconds)
            {
                return Ok((passed, slowest));
            }
            if options.rate > 0 && due > self.next {
                slowest = slowest.max(passed - self.next as f64 / rate);
            }
            self.send_batch(from, due.saturating_sub(self.next).min(BATCH))?;
            self.receive()?;
        }
    }

    fn send_batch(&mut self, from: &mut PacketPort, count: u64) -> Result<(), String> {
        let now = packets::now_ns();
        for number in self.next..self.next + count {
            let mut frame = self.pool.take().ok_or("the pool is too small")?;
            self.packets.write(number, now, &mut frame);
            self.frames.push(frame);
        }
        self.next += count;
        let refused = &mut self.refused;
        from.send(&mut self.pool, &mut self.frames, &mut |_, _| *refused += 1);
        Ok(())
    }

    /// Reads all that has arrived. Returns whether anything has.
    fn receive(&mut self) -> Result<bool, String> {
        let mut any = false;
        loop {
            let got = self.to.receive(&mut self.pool, &mut self.frames, &mut |_| {});
            if got.map_err(|why| format!("the receiving device: {why}"))? == 0 {
                return Ok(any);
            }
            any = true;
            let now = packets::now_ns();
            for frame in self.frames.drain(..) {
                self.account.arrived(frame.bytes(), now, self.next);
                self.pool.put(frame);
            }
        }
    }

    /// Receives until all packets have arrived, or nothing arrives any more.
    fn drain(&mut self) -> Result<(), String> {
        let mut last = Instant::now();
        let sent = self.next - self.refused;
        while self.account.received() < sent && last.elapsed() < QUIET {
            if self.receive()? {
                last = Instant::now();
            }
        }
        Ok(())
    }

    fn report(mut self, seconds: f64, slowest: f64) -> serde_json::Value {
        let sent = self.next - self.refused;
        let overrun = self.to.overrun();
        let account = self.account.end(self.next);
        json!({
            "seconds": seconds,
            "sent": sent,
            "refused": self.refused,
            "sent_pps": sent as f64 / seconds,
            "received": account.received,
            // Refused packets have numbers, too.
            "lost": account.missing - self.refused,
            "duplicates": account.duplicates,
            "reordered": account.reordered,
            "foreign": account.foreign,
            "wrong_checksums": account.wrong,
            "receiver_overrun": overrun,
            "received_bytes": account.bytes,
            "behind_us_max": slowest * 1e6,
            "latency_ns": account.latency.map(|[p50, p99, p999, max]| {
                json!({ "p50": p50, "p99": p99, "p999": p999, "max": max })
            }),
            "sources": account.sources.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}
