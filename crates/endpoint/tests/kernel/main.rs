//! An endpoint and the kernel's TCP exchange bytes over a TAP device, with losses. This needs a
//! network namespace, and so root; elsewhere the test says so and passes.

mod device;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use braid_endpoint::{Endpoint, Settings};
use braid_externs::rng::Rng;
use braid_tcp::State;
use device::{HERE, THERE, Tap};

/// Set in the process that runs in a namespace.
const INSIDE: &str = "BRAID_TEST_IN_NAMESPACE";
/// The port of the side that listens.
const PORT: u16 = 7000;
/// One segment in this many is lost.
const LOSS: u128 = 100;

#[test]
fn bytes_pass_between_an_endpoint_and_the_kernel() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let mut unshare = Command::new("unshare");
    let works = unshare.args(["--net", "ip", "link", "set", "lo", "up"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        println!("skipped: no network namespace can be made here");
        return;
    }
    let name = "bytes_pass_between_an_endpoint_and_the_kernel";
    let mut again = Command::new("unshare");
    again.arg("--net").arg(std::env::current_exe().unwrap());
    let output = again.args(["--exact", name, "--nocapture"]).env(INSIDE, "1").output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    println!("{}", String::from_utf8_lossy(&text));
    assert!(output.status.success());
}

/// All of this runs in a namespace of its own.
fn inside() {
    let mut tap = match Tap::open() {
        Ok(tap) => tap,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let all = Settings::default();
    let none = Settings { wscale: false, sack: false, timestamps: false, mss: 500, ..all };
    let mut port = 40_000;
    for settings in
        [all, Settings { sack: false, ..all }, Settings { timestamps: false, ..all }, none]
    {
        for is_active in [true, false] {
            port += 1;
            exchange(&mut tap, &settings, is_active, port);
        }
    }
}

/// A MiB, or up to ten.
fn bytes(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let words = usize::try_from(braid_cases::cases(1).min(10)).unwrap() << 17;
    (0..words).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}

/// The kernel's side: writes its bytes, reads the others, and compares.
fn kernel_side(socket: TcpStream) -> Vec<JoinHandle<()>> {
    let mut reader = socket.try_clone().unwrap();
    let read = thread::spawn(move || {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        assert!(all == bytes(1), "the kernel has other bytes");
    });
    let mut writer = socket;
    let write = thread::spawn(move || {
        writer.write_all(&bytes(2)).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    vec![read, write]
}

/// The endpoint's user, and the endpoint once there is one.
struct Side {
    endpoint: Option<Endpoint>,
    ports: (u16, u16),
    sends: Vec<u8>,
    written: usize,
    received: Vec<u8>,
}

impl Side {
    fn use_endpoint(&mut self) {
        let Some(endpoint) = &mut self.endpoint else {
            return;
        };
        self.written += endpoint.write(&self.sends[self.written..]);
        if self.written == self.sends.len() {
            endpoint.close();
        }
        let (front, back) = endpoint.readable();
        let count = front.len() + back.len();
        self.received.extend(front);
        self.received.extend(back);
        endpoint.consume(count);
    }

    /// Whether both streams have ended.
    fn is_done(&self) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| {
            let status = endpoint.status();
            assert_eq!(status.failure, None, "{endpoint:?}");
            status.is_over || status.state == State::TimeWait
        })
    }
}

fn exchange(tap: &mut Tap, settings: &Settings, is_active: bool, port: u16) {
    let start = Instant::now();
    let listener = TcpListener::bind((THERE, PORT)).unwrap();
    let kernel = thread::spawn(move || {
        let socket = if is_active {
            listener.accept().unwrap().0
        } else {
            drop(listener);
            TcpStream::connect(SocketAddr::from((HERE, port))).unwrap()
        };
        kernel_side(socket)
    });
    let endpoint = is_active.then(|| Endpoint::connect(settings, 4_294_000_000, 0));
    let ports = (port, PORT);
    let (written, received) = (0, Vec::new());
    let mut side = Side { endpoint, ports, sends: bytes(1), written, received };
    let mut rng = Rng::new(port.into());
    while !side.is_done() {
        assert!(start.elapsed() < Duration::from_secs(120), "no end: {:?}", side.endpoint);
        turn(tap, &mut side, settings, start, &mut rng);
    }
    kernel.join().unwrap().into_iter().for_each(|one| one.join().unwrap());
    assert!(side.received == bytes(2), "the endpoint has other bytes");
    println!("{settings:?}, active {is_active}: {:?}", start.elapsed());
}

/// Takes what has come, and sends what is due.
fn turn(tap: &mut Tap, side: &mut Side, settings: &Settings, start: Instant, rng: &mut Rng) {
    let now = || u64::try_from(start.elapsed().as_nanos()).unwrap();
    let deadline = side.endpoint.as_ref().and_then(Endpoint::deadline);
    let pause = deadline.map_or(u64::MAX, |at| at.saturating_sub(now())).min(10_000_000);
    tap.receive(Duration::from_nanos(pause), |(from, to), segment| {
        if to != side.ports.0 || rng.below(LOSS) == 0 {
            return;
        }
        if let Some(endpoint) = &mut side.endpoint {
            endpoint.segment(segment, now());
        } else {
            side.ports.1 = from;
            side.endpoint = Some(Endpoint::accept(settings, segment, 4_294_000_000, now()));
        }
    });
    side.use_endpoint();
    let ports = side.ports;
    if let Some(endpoint) = &mut side.endpoint {
        endpoint.send(now(), 1000, &mut |segment| {
            if rng.below(LOSS) > 0 {
                tap.send(ports, &segment);
            }
        });
    }
    side.use_endpoint();
}
