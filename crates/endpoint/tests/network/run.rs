//! Two endpoints, their users and the path between them, in simulated time.

use std::collections::BTreeMap;

use braid_endpoint::{Endpoint, Failure, Settings, refusal};
use braid_externs::rng::Rng;
use braid_tcp::{Flags, Reader, Stored};

use crate::link::{Link, Path, Segment, below};

/// What a user does with its endpoint.
#[derive(Clone, Debug)]
pub struct User {
    pub settings: Settings,
    /// What it sends.
    pub bytes: Vec<u8>,
    /// How many bytes it reads at once, and the time between (ns); 0 to read at once.
    pub reads: (usize, u64),
    /// Whether it closes only when the other side has.
    pub closes_last: bool,
}

/// One side.
struct Side {
    user: User,
    endpoint: Option<Endpoint>,
    written: usize,
    received: Vec<u8>,
    reads_at: u64,
}

/// A run.
pub struct Run {
    sides: [Side; 2],
    links: [Link; 2],
    random: Rng,
    /// Segments by time and number, with the side that they go to.
    flying: BTreeMap<(u64, u64), (usize, Segment)>,
    sent: u64,
    now: u64,
    last_byte_at: u64,
    /// Whether endpoints are saved and restored at random places.
    is_saved: bool,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    pub received: [Vec<u8>; 2],
    pub failures: [Option<Failure>; 2],
    /// When the last byte was received.
    pub last_byte_at: u64,
}

impl Run {
    pub fn new(users: [User; 2], paths: [Path; 2], seed: u64, is_saved: bool) -> Self {
        let mut random = Rng::new(seed);
        let isn = u32::MAX - u32::try_from(below(&mut random, 3000)).unwrap();
        let client = Endpoint::connect(&users[0].settings, isn, 0);
        let mut endpoint = Some(client);
        let sides = users.map(|user| Side {
            user,
            endpoint: endpoint.take(),
            written: 0,
            received: Vec::new(),
            reads_at: 0,
        });
        let links = paths.map(|path| Link::new(path, random.next_u64()));
        Self {
            sides,
            links,
            random,
            flying: BTreeMap::new(),
            sent: 0,
            now: 0,
            last_byte_at: 0,
            is_saved,
        }
    }

    /// Runs until both sides are over.
    pub fn run(mut self) -> Outcome {
        for _ in 0..5_000_000 {
            for side in 0..2 {
                self.use_side(side);
            }
            let Some(next) = self.next_time() else {
                return self.outcome();
            };
            assert!(next < 3_600_000_000_000 * 24, "the connection does not end");
            self.now = next.max(self.now);
            while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, segment) = entry.remove();
                self.deliver(to, &segment);
                self.use_side(to);
            }
        }
        panic!("the endpoints do not come to rest");
    }

    fn outcome(self) -> Outcome {
        let failures = [0, 1].map(|side: usize| {
            let endpoint = self.sides[side].endpoint.as_ref().expect("both sides have begun");
            let status = endpoint.status();
            assert!(status.is_over, "side {side} rests in {status:?}");
            status.failure
        });
        let received = self.sides.map(|side| side.received);
        Outcome { received, failures, last_byte_at: self.last_byte_at }
    }

    fn next_time(&self) -> Option<u64> {
        let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
        let sides = self.sides.iter().filter_map(|side| side.endpoint.as_ref());
        let deadlines = sides.filter_map(Endpoint::deadline);
        let reads = self.sides.iter().filter(|side| side.has_to_read()).map(|side| side.reads_at);
        flying.into_iter().chain(deadlines).chain(reads).min()
    }

    fn deliver(&mut self, to: usize, segment: &Segment) {
        let side = &mut self.sides[to];
        match &mut side.endpoint {
            Some(endpoint) if !endpoint.status().is_over => {
                endpoint.segment(&segment.incoming(), self.now);
            }
            None if segment.flags == Flags::SYN => {
                let isn = u32::MAX - 500;
                let settings = &side.user.settings;
                side.endpoint =
                    Some(Endpoint::accept(settings, &segment.incoming(), isn, self.now));
            }
            _ => {
                if let Some(answer) = refusal(&segment.incoming()) {
                    let answer = Segment::of(&answer);
                    self.launch(to, &answer);
                }
            }
        }
    }

    fn launch(&mut self, from: usize, segment: &Segment) {
        for at in self.links[from].arrivals(segment, self.now) {
            self.sent += 1;
            self.flying.insert((at, self.sent), (1 - from, segment.clone()));
        }
    }

    /// Lets a user read and write, and sends what is due.
    fn use_side(&mut self, index: usize) {
        if self.is_saved && below(&mut self.random, 8) == 0 {
            self.sides[index].move_endpoint();
        }
        let most = 1 + usize::try_from(below(&mut self.random, 20)).unwrap();
        let mut out = Vec::new();
        let side = &mut self.sides[index];
        let had = side.received.len();
        side.use_endpoint(self.now);
        if let Some(endpoint) = &mut side.endpoint {
            while endpoint.send(self.now, most, &mut |sent| out.push(Segment::of(&sent))) == most {}
            assert!(
                endpoint.deadline().is_none_or(|at| at > self.now),
                "nothing is due right after it was sent"
            );
        }
        side.use_endpoint(self.now);
        if side.received.len() > had {
            self.last_byte_at = self.now;
        }
        for segment in &out {
            self.launch(index, segment);
        }
    }
}

impl Side {
    fn has_to_read(&self) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| !endpoint.readable().0.is_empty())
    }

    fn use_endpoint(&mut self, now: u64) {
        let Some(endpoint) = &mut self.endpoint else {
            return;
        };
        self.written += endpoint.write(&self.user.bytes[self.written..]);
        let (count, pause) = self.user.reads;
        while now >= self.reads_at {
            let (front, back) = endpoint.readable();
            let bytes: Vec<u8> = front.iter().chain(back).take(count).copied().collect();
            if bytes.is_empty() {
                break;
            }
            endpoint.consume(bytes.len());
            self.received.extend(bytes);
            self.reads_at = now + pause;
        }
        let status = endpoint.status();
        let is_read = status.has_peer_closed && endpoint.readable().0.is_empty();
        let may_close = !self.user.closes_last || is_read;
        if self.written == self.user.bytes.len() && may_close && status.is_established {
            endpoint.close();
        }
    }

    /// Saves and restores the endpoint.
    fn move_endpoint(&mut self) {
        let Some(endpoint) = &self.endpoint else {
            return;
        };
        let mut bytes = Vec::new();
        endpoint.put(&mut bytes);
        let mut reader = Reader(&bytes);
        let restored = Endpoint::get(&mut reader);
        assert!(restored.is_some(), "not read back: {endpoint:?}");
        assert!(reader.is_at_end());
        self.endpoint = restored;
    }
}
