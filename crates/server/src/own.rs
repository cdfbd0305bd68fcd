//! Connections that a server opens of its own accord, for no client.

use crate::outgoing::{Openers, Outgoing, Outgoings};
use braid_connections::wire::{Ends, Frame, link_for};
use braid_connections::{Secret, answer};
use braid_endpoint::{Settings, refusal};
use braid_native::{Flow, Host};
use braid_tcp::{Reader, Stored as _, put_bytes};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The first one of the ports from which they are opened. The last one is the last port.
const FIRST_PORT: u16 = 49_152;
/// The most of them at a time.
const MOST: usize = 4_096;
/// The most answers that wait to be sent.
const MOST_ANSWERS: usize = 64;
/// The flow to which they belong: none.
const NO_FLOW: Flow = Flow(0);

/// The address and port of a host.
pub type Place = (IpAddr, u16);

/// Connections that a server opens of its own accord, from its own address.
#[derive(Debug)]
pub struct Own {
    outgoing: Outgoings,
    /// The server's first address of each IP version.
    sources: Vec<IpAddr>,
    /// The port of the next connection.
    port: u16,
    /// The link header of frames that come from clients, and whether these are on the left.
    clients: Option<(Vec<u8>, bool)>,
    /// To where there were connections.
    places: HashSet<Place>,
    /// Frames that refuse segments without a connection.
    answers: Vec<Vec<u8>>,
    /// When something is to be done (ns).
    due: Option<u64>,
}

impl Own {
    /// None yet.
    pub(crate) fn new(host: &Host<'_>, opening: (Settings, Secret), openers: &Openers) -> Self {
        let addresses = host.config_rows::<2>("addresses").into_iter();
        let addresses: Vec<_> = addresses.map(|[first, _]| address(first)).collect();
        let first_of = |is_v4| addresses.iter().find(|one| one.is_ipv4() == is_v4);
        Self {
            outgoing: Outgoings::new(NO_FLOW, opening, openers, MOST),
            sources: [true, false].into_iter().filter_map(first_of).copied().collect(),
            port: FIRST_PORT,
            clients: None,
            places: HashSet::new(),
            answers: Vec::new(),
            due: None,
        }
    }

    /// Whether it is known where to send frames: a client has had a connection.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.clients.is_some()
    }

    /// Opens a connection to a host, from the server's first address of the host's IP version.
    /// Bytes may be written at once. `None` if there is no such address, or one connection too
    /// many.
    pub fn connect(&mut self, to: Place, now: u64) -> Option<&mut Outgoing> {
        let (link, _) = self.clients.as_ref()?;
        let source = self.sources.iter().find(|one| one.is_ipv4() == to.0.is_ipv4())?;
        let ends = Ends { from: (*source, self.port), to };
        self.port = self.port.checked_add(1).unwrap_or(FIRST_PORT);
        self.outgoing.leave_with(link_for(link, to.0.is_ipv4()));
        self.places.insert(to);
        self.outgoing.open(ends, now)
    }

    /// The connection to this host, if there is one.
    pub fn connection(&mut self, to: Place) -> Option<&mut Outgoing> {
        self.outgoing.find(to)
    }

    /// Ends the connections to hosts that are not to be kept.
    pub fn retain(&mut self, keeps: impl Fn(Place) -> bool) {
        self.outgoing.retain(keeps);
    }

    /// A client has a connection. Its frames come with this link header, from this side. Later
    /// clients of the other side count for nothing.
    pub(crate) fn meet(&mut self, link: Vec<u8>, is_left: bool) {
        match &mut self.clients {
            Some((known, was_left)) if *was_left == is_left => *known = link,
            Some(_) => {}
            None => {
                self.clients = Some((link, is_left));
                self.due = Some(0);
            }
        }
    }

    /// Whether segments with these ends are those of such a connection, or of one that has ended.
    pub(crate) fn has(&self, ends: Ends) -> bool {
        let (at, port) = ends.to;
        port >= FIRST_PORT && self.sources.contains(&at) && self.places.contains(&ends.from)
    }

    /// A right segment with such ends has come.
    pub(crate) fn segment(&mut self, frame: &Frame<'_>, now: u64) {
        self.due = Some(0);
        if !self.outgoing.segment(frame, now) && self.answers.len() < MOST_ANSWERS {
            let refusal = refusal(&frame.segment);
            self.answers.extend(refusal.map(|segment| answer(frame, &segment)));
        }
    }

    /// When something is to be done (ns).
    pub(crate) fn due(&self) -> Option<u64> {
        self.due
    }

    /// The server has done what is to be done, and will go on at a time. Gives the frames, and
    /// whether they leave to the left. Returns how many they are.
    pub(crate) fn send(
        &mut self,
        (now, most): (u64, usize),
        deadline: Option<u64>,
        out: &mut dyn FnMut(bool, &[u8]),
    ) -> usize {
        let to_left = self.clients.as_ref().is_some_and(|(_, is_left)| !is_left);
        let answers = self.answers.len().min(most);
        self.answers.drain(..answers).for_each(|frame| out(to_left, &frame));
        let left = (now, most - answers);
        let sent = answers + self.outgoing.send(left, &mut |frame| out(to_left, frame));
        self.due = match sent == most {
            true => Some(now),
            false => self.outgoing.deadline().into_iter().chain(deadline).min(),
        };
        sent
    }

    /// Writes them.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.outgoing.put(out);
        self.port.put(out);
        self.clients.is_some().put(out);
        if let Some((link, is_left)) = &self.clients {
            put_bytes(link, out);
            is_left.put(out);
        }
    }

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    pub(crate) fn read(&mut self, from: &mut Reader<'_>) -> Option<()> {
        self.outgoing.read(from)?;
        self.places.extend(self.outgoing.places());
        self.port = u16::get(from).filter(|port| *port >= FIRST_PORT)?;
        self.clients = match bool::get(from)? {
            true => Some((from.bytes()?.to_vec(), bool::get(from)?)),
            false => None,
        };
        self.due = Some(0);
        Some(())
    }
}

/// An address from a number. One of IPv4 has 32 bits.
pub(crate) fn address(number: u128) -> IpAddr {
    match u32::try_from(number) {
        Ok(address) => IpAddr::V4(Ipv4Addr::from(address)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(number)),
    }
}
