//! What a stack holds for one of its functions as bytes, so that another stack goes on from it:
//! parts of the function, the connections, and for each connection how the function takes part.
//!
//! The bytes are the same whether the function has its stack for itself or shares it.

use crate::datagrams::Flows;
use crate::follower::{Follower, Part, Scans};
use crate::function::Function;
use crate::http::Messages;
use crate::inspections::Inspections;
use crate::orders::Orders;
use crate::stack::{Known, Stack};
use braid_externs::patterns::Scan;
use braid_ir::model::{ParamId, ReasonId};
use braid_ir::value::ParamValue;
use braid_signatures::{Inspection, Thresholds};
use braid_tcp::{Direction, Reader, Restored, Stored, put_bytes};

/// The parts that followers name by number: the parameters whose patterns are searched or whose
/// signatures inspect, and the reasons of resets.
struct Names {
    searched: Vec<String>,
    reasons: Vec<String>,
}

/// How a function takes part in a connection, by number.
const NEW: u8 = 0;
const FOLLOWS: u8 = 1;
const LEFT: u8 = 2;
const RESET: u8 = 3;
const OVER: u8 = 4;
/// Its rules about packets have set bits before it knows of the connection.
const NEW_WITH_BITS: u8 = 5;

impl Stack {
    /// What the stack holds for a function, except the numbers of packets.
    #[must_use]
    pub fn save(&self, function: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let Some(of) = self.functions.get(function) else { return out };
        put_names(&of.searched_names, &mut out);
        put_names(&of.reasons, &mut out);
        let lately = self.lately.get(function).map(|lately| lately.0.as_slice());
        let lately = lately.unwrap_or_default();
        (lately.len() as u64).put(&mut out);
        lately.iter().for_each(|one| put_bytes(&one.to_bytes(), &mut out));
        self.flows.get(function).into_iter().for_each(|flows| flows.put(&mut out));
        self.monitor.save(&mut out);
        for connection in self.monitor.connections() {
            let known = self.places.get(&connection).and_then(|at| self.known.get(*at));
            let follower = known.and_then(|known| known.followers.get(function));
            match follower.zip(known) {
                Some((follower, known)) => follower.put(known.aborted.is_some(), of, &mut out),
                None => out.push(NEW),
            }
        }
        self.orders.get(function).into_iter().for_each(|orders| orders.put(&mut out));
        out
    }

    /// Goes on from what a stack has saved for a function. The functions of the stack come in their
    /// order, each with its parameters at that time, and before the first packet.
    ///
    /// Functions that saw the same packets have the same connections. If they differ, the stack has
    /// the connections of all functions, each as the first function has it. A function that does
    /// not know a connection gets its next bytes as those of a new one. Where a function was at
    /// another byte, its searches begin anew.
    ///
    /// # Errors
    /// The bytes are damaged. The stack is then of no further use.
    pub fn restore(
        &mut self,
        function: usize,
        params: &[ParamValue],
        bytes: &[u8],
    ) -> Result<(), String> {
        let from = &mut Reader(bytes);
        let restored = self.read(function, params, from).filter(|()| from.is_at_end());
        restored.ok_or_else(|| "the state of its connections is damaged".to_owned())
    }

    fn read(
        &mut self,
        function: usize,
        params: &[ParamValue],
        from: &mut Reader<'_>,
    ) -> Option<()> {
        let (count, of) = (self.functions.len(), self.functions.get(function)?);
        let names = Names { searched: names(from)?, reasons: names(from)? };
        let lately = (0..from.len_of_list()?).map(|_| Thresholds::from_bytes(from.bytes()?));
        let lately = lately.collect::<Option<Vec<_>>>()?;
        let is_same = names.searched == of.searched_names;
        if is_same && let Some(place) = self.lately.get_mut(function) {
            place.0 = lately;
        }
        *self.flows.get_mut(function)? = Flows::get(from, of, &names.reasons, is_same)?;
        for Restored { connection, flow, is_same } in self.monitor.restore(from)? {
            let Some((follower, is_aborted)) = follower(&names, of, params, from)? else {
                continue;
            };
            let at = self.places.entry(connection);
            let at = *at.or_insert_with(|| self.known.insert(Known::new(count)));
            let known = self.known.get_mut(at)?;
            if is_aborted {
                known.aborted = Some(flow);
            }
            if let Some(place) = known.followers.get_mut(function) {
                known.memory -= place.memory();
                *place = follower;
                if !is_same {
                    place.search_anew();
                }
                known.memory += place.memory();
            }
            self.monitor.charge(flow, known.memory);
        }
        // State of an older version has none.
        if !from.is_at_end() {
            *self.orders.get_mut(function)? = Orders::get(from, of, &names.reasons)?;
        }
        Some(())
    }
}

impl Follower {
    /// Writes what the stack keeps of a connection. `is_aborted`: a function has reset it.
    fn put(&self, is_aborted: bool, function: &Function, out: &mut Vec<u8>) {
        match self.part {
            Part::New if !self.inspections.has_bits() => out.push(NEW),
            Part::Over => out.push(OVER),
            Part::Left => out.push(LEFT),
            Part::Reset(ReasonId(reason)) => {
                out.push(RESET);
                reason.put(out);
            }
            Part::New | Part::Follows => {
                out.push(if self.part == Part::New { NEW_WITH_BITS } else { FOLLOWS });
                is_aborted.put(out);
                for direction in Direction::BOTH {
                    let searches = self.searches(direction, function);
                    (!searches.is_empty()).put(out);
                    searches.iter().for_each(|search| put_bytes(search, out));
                }
                let http = self.http.as_ref().map(|http| http.to_bytes());
                put_bytes(&http.unwrap_or_default(), out);
            }
        }
    }

    /// The searches in a direction, one for each name: those for patterns, and with the client's
    /// direction the inspections by signatures. None without any.
    fn searches(&self, direction: Direction, function: &Function) -> Vec<Vec<u8>> {
        let scans: &[Scan] = match self.changes == function.changes {
            true => self.scans.of(direction),
            // They begin anew with the next bytes.
            false => &[],
        };
        let inspections = match direction {
            Direction::Forward => &*self.inspections.0,
            Direction::Backward => &[],
        };
        if scans.is_empty() && inspections.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<Vec<u8>> = scans.iter().map(Scan::to_bytes).collect();
        all.resize(function.scanned.len(), Vec::new());
        all.extend(inspections.iter().map(Inspection::to_bytes));
        all.resize(function.searched_names.len(), Vec::new());
        all
    }
}

/// Reads what a stack has kept of a connection, and whether a function has reset it. `Some(None)`:
/// the function does not know of the connection yet.
#[expect(clippy::option_option, reason = "the outer one is for damaged bytes, as in all readers")]
fn follower(
    names: &Names,
    function: &Function,
    params: &[ParamValue],
    from: &mut Reader<'_>,
) -> Option<Option<(Follower, bool)>> {
    let mut follower = Follower::default();
    let mut is_aborted = false;
    let part = u8::get(from)?;
    follower.part = match part {
        NEW => return Some(None),
        OVER => Part::Over,
        LEFT => Part::Left,
        RESET => {
            let name = names.reasons.get(usize::try_from(u32::get(from)?).ok()?)?;
            // A function that does not reset for this reason any more has nothing to do with the
            // connection.
            function.reason(name).map_or(Part::Left, Part::Reset)
        }
        FOLLOWS | NEW_WITH_BITS => {
            is_aborted = bool::get(from)?;
            for direction in Direction::BOTH {
                let searches = searches(names, function, from)?;
                *follower.scans.of_mut(direction) = scans(&searches, function, params);
                if direction == Direction::Forward {
                    follower.inspections = inspections(&searches, function);
                }
            }
            let http = from.bytes()?;
            if function.has_http() {
                let read = Messages::from_bytes(http, function.takes[1]);
                follower.http = read.map(Box::new);
            }
            if part == FOLLOWS { Part::Follows } else { Part::New }
        }
        _ => return None,
    };
    follower.changes = function.changes;
    Some(Some((follower, is_aborted)))
}

/// Reads the searches in a direction. There are none if the function now has others.
fn searches<'a>(
    names: &Names,
    function: &Function,
    from: &mut Reader<'a>,
) -> Option<Vec<&'a [u8]>> {
    if !bool::get(from)? {
        return Some(Vec::new());
    }
    let all: Option<Vec<&[u8]>> = names.searched.iter().map(|_| from.bytes()).collect();
    Some(if names.searched == function.searched_names { all? } else { Vec::new() })
}

/// The searches for patterns. They begin anew where another version of Braid may have written them.
fn scans(searches: &[&[u8]], function: &Function, params: &[ParamValue]) -> Scans {
    let scans = searches.get(..function.scanned.len()).unwrap_or_default();
    if scans.iter().all(|scan| scan.is_empty()) {
        return Scans::new();
    }
    let anew = || {
        let mut anew = Scan::default();
        anew.skip();
        anew
    };
    let scan = |(param, bytes): (&ParamId, &&[u8])| match params.get(param.index()) {
        Some(ParamValue::Patterns(set)) => set.read_scan(bytes).unwrap_or_else(anew),
        _ => Scan::default(),
    };
    function.scanned.iter().zip(scans).map(scan).collect()
}

/// The inspections by signatures, likewise.
fn inspections(searches: &[&[u8]], function: &Function) -> Inspections {
    let inspections = searches.get(function.scanned.len()..).unwrap_or_default();
    if inspections.iter().all(|bytes| bytes.is_empty()) {
        return Inspections::default();
    }
    let read = inspections.iter().map(|bytes| Inspection::from_bytes(bytes).unwrap_or_default());
    Inspections(read.collect())
}

fn put_names(names: &[String], out: &mut Vec<u8>) {
    (names.len() as u64).put(out);
    names.iter().for_each(|name| put_bytes(name.as_bytes(), out));
}

fn names(from: &mut Reader<'_>) -> Option<Vec<String>> {
    let name = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    (0..from.len_of_list()?).map(|_| from.bytes().and_then(name)).collect()
}
