//! The monitor: all connections, within a limit of memory.

use std::collections::HashMap;

use braid_packet::checksum::verify;
use braid_packet::{Field, FlowKey, Layout, Packet, proto};
use foldhash::fast::RandomState;

use crate::connection::Connection;
use crate::direction::Pair;
use crate::lists::{List, Lists};
use crate::options::{Checksums, Options};
use crate::place::{ConnectionId, Progress, Restored, Status};
use crate::report::Ended;
use crate::saved::{Reader, Stored};
use crate::segment::{Segment, Syn};
use crate::sink::Sink;

/// The memory that a connection needs besides waiting bytes: itself, its places in the table and in
/// the list, and the allocator's part.
const CONNECTION_BYTES: usize = size_of::<Connection>() + size_of::<FlowKey>() + 512;
/// The least memory of a monitor: a few connections with some bytes.
const LEAST_MEMORY: usize = 64 << 10;
/// The time that a connection stays known after its end, so that late packets do not open a new one
/// (ns).
const LINGER_NS: u64 = 60 * 1_000_000_000;

/// The numbers of a monitor. Each packet is counted once: as a segment, or as left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Segments of connections.
    pub segments: u64,
    /// Packets that are not TCP.
    pub other: u64,
    /// Fragments of IP packets with TCP. Their bytes are missing in the streams.
    pub fragments: u64,
    /// Packets with malformed headers, and TCP packets whose header is not captured as a whole.
    pub malformed: u64,
    /// Segments that were left out because of a wrong checksum.
    pub wrong_checksums: u64,
    /// Segments with a wrong checksum that count ([`Checksums::Learned`]). They are among
    /// `segments`.
    pub unverified: u64,
    /// Segments whose payload is not captured as a whole. They are among `segments`.
    pub cut: u64,
    /// Connections.
    pub connections: u64,
    /// Connections that were given up because of memory.
    pub given_up: u64,
    /// Gaps that were made because of memory.
    pub memory_gaps: u64,
}

/// Follows all TCP connections.
#[derive(Debug)]
pub struct Monitor {
    options: Options,
    table: HashMap<FlowKey, usize, RandomState>,
    connections: Lists<Box<Connection>>,
    /// The latest time of a packet (ns). Captures go back in time; the monitor's time does not.
    now_ns: u64,
    memory: usize,
    counts: Counts,
}

impl Monitor {
    /// A monitor without connections. Its memory is at least 64 KiB, and a stream may use at most a
    /// quarter of it.
    #[must_use]
    pub fn new(mut options: Options) -> Self {
        options.memory = options.memory.max(LEAST_MEMORY);
        options.stream_memory = options.stream_memory.min(options.memory / 4);
        let connections = Lists::new();
        let table = HashMap::default();
        Self { options, table, connections, now_ns: 0, memory: 0, counts: Counts::default() }
    }

    /// The numbers.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The memory in use (bytes).
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Takes a packet. `layout` is where its headers are. Returns the packet's connection.
    pub fn packet<S: Sink>(
        &mut self,
        packet: &Packet,
        layout: &Layout,
        sink: &mut S,
    ) -> Option<ConnectionId> {
        if layout.is_fragment() {
            let is_tcp = packet.get(layout, Field::InetProto) == Some(proto::TCP.into());
            self.counts.fragments += u64::from(is_tcp);
            self.counts.other += u64::from(!is_tcp);
            return None;
        }
        let Some(mut segment) = Segment::of(packet, layout) else {
            // TCP without its header is cut by the capture.
            let is_tcp = packet.get(layout, Field::InetProto) == Some(proto::TCP.into());
            let is_damaged = is_tcp || layout.malformed_reason().is_some();
            self.counts.malformed += u64::from(is_damaged);
            self.counts.other += u64::from(!is_damaged);
            return None;
        };
        if self.options.checksums != Checksums::Ignored {
            let sums = verify(packet, layout);
            segment.is_right = sums.transport != Some(false);
            if sums.ip == Some(false) {
                self.counts.wrong_checksums += 1;
                return None;
            }
            if self.options.checksums == Checksums::Verified && !segment.is_right {
                self.counts.wrong_checksums += 1;
                return None;
            }
        }
        let segments = self.counts.segments;
        let connection = self.segment(&segment, sink);
        let is_taken = self.counts.segments > segments;
        self.counts.cut += u64::from(is_taken && layout.payload_truncated());
        connection
    }

    /// Takes a segment. Returns its connection.
    pub fn segment<S: Sink>(
        &mut self,
        segment: &Segment<'_>,
        sink: &mut S,
    ) -> Option<ConnectionId> {
        self.now_ns = self.now_ns.max(segment.time_ns);
        self.expire(sink);
        let key = segment.flow.bidirectional();
        let known = self.table.get(&key).copied();
        let refuses = |connection: &mut Connection| connection.refuses(segment);
        if known.and_then(|at| self.connections.get(at)).is_some_and(|one| refuses(one)) {
            self.counts.wrong_checksums += 1;
            return None;
        }
        self.counts.segments += 1;
        self.counts.unverified += u64::from(!segment.is_right);
        let now_ns = self.now_ns;
        let connection = known.and_then(|at| self.connections.get(at));
        let reopened = connection.and_then(|connection| connection.reopened_by(segment, now_ns));
        let at = match (known, reopened) {
            (Some(at), Some(by)) => {
                self.remove(at, Ended::Reopened, sink);
                self.open(key, segment, by.syn)
            }
            (Some(at), None) => at,
            (None, _) => self.open(key, segment, None),
        };
        let connection = self.connections.get(at)?;
        let id = connection.id;
        let (memory, gaps, was_over) =
            (connection.memory(), connection.memory_gaps, connection.is_over);
        connection.segment(segment, self.now_ns, &self.options, sink);
        let list = connection.list();
        self.counts.memory_gaps += connection.memory_gaps - gaps;
        self.memory = self.memory + connection.memory() - memory;
        // A connection that is over stays known for a time from its end on.
        if !was_over {
            self.connections.renew(at, list);
        }
        while self.memory > self.options.memory
            && let Some((oldest, ended)) = self.idle(at)
        {
            self.counts.given_up += u64::from(ended == Ended::GivenUp);
            self.remove(oldest, ended, sink);
        }
        Some(id)
    }

    /// Ends the connection of a flow, in any direction, as if each end had sent a RST. Returns how
    /// far both streams were.
    pub fn abort<S: Sink>(&mut self, flow: FlowKey, sink: &mut S) -> Pair<Progress> {
        let at = self.table.get(&flow.bidirectional()).copied();
        let connection = at.and_then(|at| Some((at, self.connections.get(at)?)));
        let Some((at, connection)) = connection else { return Pair::default() };
        let (memory, was_over) = (connection.memory(), connection.is_over);
        let reached = connection.abort(self.now_ns, &self.options, sink);
        self.memory = self.memory + connection.memory() - memory;
        if !was_over {
            self.connections.renew(at, List::Done);
        }
        reached
    }

    /// How far both directions of a connection have been delivered, for a flow in any direction.
    /// `None` if there is no such connection.
    pub fn progress(&mut self, flow: FlowKey) -> Option<Pair<Progress>> {
        let at = self.table.get(&flow.bidirectional()).copied()?;
        self.connections.get(at).map(|connection| connection.progress())
    }

    /// What is known of the connection of a flow, in any direction.
    pub fn status(&mut self, flow: FlowKey) -> Option<Status> {
        let at = self.table.get(&flow.bidirectional()).copied()?;
        let connection = self.connections.get(at)?;
        let Connection { flow, is_open, is_over, .. } = **connection;
        Some(Status { client: flow, is_established: is_open, is_over })
    }

    /// The memory that the caller now keeps for the connection of a flow, in any direction (bytes).
    /// It counts towards the limit until the sink learns that the connection is forgotten.
    pub fn charge(&mut self, flow: FlowKey, bytes: usize) {
        let at = self.table.get(&flow.bidirectional()).copied();
        if let Some(connection) = at.and_then(|at| self.connections.get(at)) {
            self.memory = self.memory + bytes - connection.charged;
            connection.charged = bytes;
        }
    }

    /// Ends all connections: first the ones that are over, then the unconfirmed ones, then the
    /// rest.
    pub fn finish<S: Sink>(&mut self, sink: &mut S) {
        for list in [List::Done, List::Unconfirmed, List::Live] {
            while let Some(at) = self.connections.oldest(list) {
                self.remove(at, Ended::Capture, sink);
            }
        }
    }

    fn open(&mut self, key: FlowKey, segment: &Segment<'_>, syn: Option<Syn>) -> usize {
        let id = ConnectionId(self.counts.connections);
        let mut connection = Connection::new(id, segment, &self.options.policies);
        if let Some(syn) = syn {
            connection.open(syn);
        }
        self.add(key, connection)
    }

    /// Adds the next connection.
    fn add(&mut self, key: FlowKey, connection: Connection) -> usize {
        self.counts.connections += 1;
        self.memory += CONNECTION_BYTES + connection.memory();
        let list = connection.list();
        let at = self.connections.add(Box::new(connection), list);
        self.table.insert(key, at);
        at
    }

    /// The connections in the order in which [`Self::save`] writes them.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.all().map(|connection| connection.id)
    }

    fn all(&self) -> impl Iterator<Item = &Connection> {
        let lists = [List::Unconfirmed, List::Live, List::Done].into_iter();
        lists.flat_map(|list| self.connections.iter(list)).map(|connection| &**connection)
    }

    /// Writes the time and the connections, in their order of use. Options and the numbers of
    /// reports are not written.
    pub fn save(&self, out: &mut Vec<u8>) {
        self.now_ns.put(out);
        (self.table.len() as u64).put(out);
        self.all().for_each(|connection| connection.put(out));
    }

    /// Takes over connections that a monitor has saved, and returns them in their order. The
    /// connections that this monitor has stay as they are, and the others come behind them. `None`
    /// if the bytes are damaged.
    pub fn restore(&mut self, from: &mut Reader<'_>) -> Option<Vec<Restored>> {
        let now_ns = u64::get(from)?;
        self.now_ns = self.now_ns.max(now_ns);
        let first = self.counts.connections;
        let mut all = Vec::new();
        for _ in 0..from.len_of_list()? {
            let mut saved = Connection::get(from)?;
            if saved.over_ns > now_ns {
                return None;
            }
            let key = saved.flow.bidirectional();
            let known = self.table.get(&key).copied();
            all.push(match known.and_then(|at| self.connections.get(at)) {
                // One monitor has no two connections between the same ends.
                Some(known) if known.id.0 >= first => return None,
                Some(known) => known.restored(known.is_as_far_as(&saved)),
                None => {
                    let id = ConnectionId(self.counts.connections);
                    saved.begin_anew(id, &self.options.policies);
                    let restored = saved.restored(true);
                    self.add(key, saved);
                    restored
                }
            });
        }
        Some(all)
    }

    fn remove<S: Sink>(&mut self, at: usize, ended: Ended, sink: &mut S) {
        let Some(mut connection) = self.connections.remove(at) else { return };
        self.memory = self.memory.saturating_sub(CONNECTION_BYTES + connection.memory());
        self.table.remove(&connection.flow.bidirectional());
        connection.close(ended, &self.options, sink);
    }

    /// The connection to remove first: one that is over, or else one that is not confirmed, or else
    /// one that is. So a flood of forged packets does not drive out connections. Among these, it is
    /// the one idle for the longest time. The connection `at` stays.
    fn idle(&mut self, at: usize) -> Option<(usize, Ended)> {
        let ended = [Ended::Capture, Ended::GivenUp, Ended::GivenUp];
        let mut lists = [List::Done, List::Unconfirmed, List::Live].into_iter().zip(ended);
        lists.find_map(|(list, ended)| {
            let oldest = self.connections.oldest(list).filter(|oldest| *oldest != at)?;
            Some((oldest, ended))
        })
    }

    /// Removes the connections that have been over for a time.
    fn expire<S: Sink>(&mut self, sink: &mut S) {
        while let Some(at) = self.connections.oldest(List::Done)
            && let Some(connection) = self.connections.get(at)
            && self.now_ns.saturating_sub(connection.over_ns) > LINGER_NS
        {
            self.remove(at, Ended::Capture, sink);
        }
    }
}
