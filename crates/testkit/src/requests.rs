//! Sends a fuzzer's bytes to the control socket of a live run.

use crate::convert::packet_of;
use crate::harness::{self, Form, HOSTILE};
use crate::packet::packet;
use braid_io::{Port, Unreceived, Unsent};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::Engine;
use braid_ir::snapshot::Snapshot;
use braid_packet::frame::FRAME;
use braid_packet::{Frame, Pool};
use braid_runtime::ctl::Socket;
use braid_runtime::live::{Attached, Clock, Filter, Flags, Live, Operator, Ports, Traced};
use braid_runtime::{Engines, RefusedChange, Summary};
use serde_json::{Value, json};
use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The chain that runs.
const CHAIN: &str = "chain fuzzed {
  workers 2;
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  count = monitor(idle: 2 s, flows: 6);
  all = rate_limiter(rate: 400 kbit/s, burst: 6000 B);
  nat = napt(public: 203.0.113.1, ports: 1024..1030, idle: 3 s, mappings: 5);
  path lan <-> count <-> all <-> nat <-> wan;
}
";

/// How long a client waits for a line of a feed, and for an answer.
const FEED: Duration = Duration::from_millis(20);
const ANSWER: Duration = Duration::from_secs(5);

/// A device that receives a packet each millisecond.
struct Trickle {
    next: Instant,
    number: u16,
    never: UnixDatagram,
}

impl Port for Trickle {
    fn receive(
        &mut self,
        _: &mut Pool,
        frames: &mut Vec<Frame>,
        _: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        if Instant::now() < self.next {
            return Ok(0);
        }
        self.next = Instant::now() + Duration::from_millis(1);
        self.number = (self.number + 1) % 16;
        let spec = packet(&format!("udp 10.0.0.1:{} > 192.0.2.2:53 \"x\"", 5000 + self.number));
        frames.push(Frame::of(packet_of(&spec.frame(), 0).data()));
        Ok(1)
    }

    fn send(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>, _: &mut dyn FnMut(usize, Unsent)) {
        frames.drain(..).for_each(|frame| pool.put(frame));
    }

    fn overrun(&mut self) -> u64 {
        0
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }
}

/// The program around the run.
struct Around(Chain);

impl Around {
    fn engines(&self) -> Engines {
        let make = |chain: Chain| Ok::<Box<dyn Engine>, ()>(HOSTILE[1].make(&chain));
        Engines::new(&self.0, make).expect("engines are made")
    }
}

impl Operator for Around {
    fn changes(&mut self, text: &str, chain: &Chain) -> Result<Vec<Control>, String> {
        harness::control(chain, 0, text, Path::new("")).map(|change| vec![change])
    }

    fn filter(&mut self, _: &str) -> Result<Filter, String> {
        // The fuzz target `language` has the compiler.
        Ok(Filter::new(harness::reference(&Chain { workers: 1, ..self.0.clone() })))
    }

    fn traced(&mut self, number: u64, traced: Traced, _: bool) -> Result<Value, String> {
        Ok(json!({ "packet": number, "left": traced.left.len() }))
    }

    fn flows(
        &mut self,
        _: &Chain,
        _: Box<dyn Any + Send>,
        _: Option<&str>,
        _: bool,
    ) -> (Value, Option<usize>) {
        (Value::Null, None)
    }

    fn present(&mut self, _: &Chain, so_far: &Summary) -> String {
        format!("{} packets", so_far.counters.packets_in)
    }

    fn refused(&mut self, _: &[RefusedChange]) {
        unreachable!("runs for tests of requests have no control file")
    }

    fn tell(&mut self, _: &str) {}

    fn load(&mut self) -> Result<(Chain, Engines), String> {
        Ok((self.0.clone(), self.engines()))
    }

    fn save(&mut self, _: &Snapshot) {}
}

/// A run with its control socket.
struct Run {
    path: PathBuf,
    thread: JoinHandle<()>,
}

impl Run {
    fn start() -> Self {
        let path = std::env::temp_dir().join(format!("braid-requests-{}", std::process::id()));
        let socket = Socket::listen(&path).expect("a socket");
        let thread = std::thread::spawn(move || {
            let chain = harness::compile(CHAIN, &BTreeMap::new(), Form::AsWritten);
            let mut around = Around(chain.expect("the chain compiles"));
            let never = UnixDatagram::unbound().expect("a socket");
            let port = Box::new(Trickle { next: Instant::now(), number: 0, never });
            let attached = vec![Attached { interface: 0, name: "trickle".to_owned(), port }];
            let pool = Pool::new(256, FRAME).expect("memory");
            let live = Live::new(around.0.clone(), around.engines(), Clock::start())
                .ports(Ports { pool, attached })
                .socket(socket);
            let [stop, show, reload] = [const { AtomicBool::new(false) }; 3];
            let flags = Flags { stop: &stop, show: &show, reload: &reload };
            live.run(&mut around, flags).expect("workers start");
        });
        Self { path, thread }
    }

    /// Sends bytes, and returns the first line of the answers.
    fn send(&self, bytes: &[u8], patience: Duration) -> io::Result<Option<Value>> {
        let mut client = UnixStream::connect(&self.path)?;
        client.set_read_timeout(Some(patience))?;
        client.write_all(bytes)?;
        client.shutdown(Shutdown::Write)?;
        let (mut first, mut lines) = (None, BufReader::new(client).lines());
        // A feed goes on until the client goes.
        while let Some(Ok(line)) = lines.next() {
            let value: Value = serde_json::from_str(&line).expect("each answer is JSON");
            assert!(value.is_object(), "{line}");
            first.get_or_insert(value);
        }
        Ok(first)
    }
}

/// Sends the bytes to the control socket of a run, which goes on from call to call.
///
/// # Errors
/// The run does not answer any more, and has not ended.
///
/// # Panics
/// When the run panics, or an answer is no JSON object.
pub fn check(bytes: &[u8]) -> Result<(), String> {
    static RUN: Mutex<Option<Run>> = Mutex::new(None);
    let mut place = RUN.lock().unwrap_or_else(PoisonError::into_inner);
    let run = place.take().unwrap_or_else(Run::start);
    // A run that a request has ended may refuse its client.
    drop(run.send(bytes, FEED));
    let status = run.send(b"{\"do\":\"status\"}\n", ANSWER);
    if matches!(&status, Ok(Some(status)) if status["chain"] == "fuzzed") {
        *place = Some(run);
        return Ok(());
    }
    let start = Instant::now();
    while !run.thread.is_finished() {
        if start.elapsed() > ANSWER {
            return Err(format!("the run does not end, and says {status:?}"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    run.thread.join().expect("the run does not panic");
    Ok(())
}
