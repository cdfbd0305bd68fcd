//! Interfaces with addresses of their own, in live runs.
//!
//! Such an interface is a host on its link: it answers ARP, neighbour discovery and echo requests
//! for its addresses, answers for the addresses of functions, and finds the next hops of packets
//! that leave. It does no input and output itself: the driver gives it the frames that have
//! arrived, the packets that leave, and the time, and sends the frames in [`Out`]. Interfaces
//! without addresses are not affected.

mod errors;
mod limit;
mod link;
mod messages;
mod mld;
mod others;
mod out;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod too_long;

pub(crate) use link::Leaving;
pub(crate) use out::{NO_GATEWAY, Out};

use crate::owned::Owned;
use braid_io::Ethernet;
use braid_ir::chain::{Chain, Change, Control, Node};
use braid_ir::value::ParamValue;
use braid_packet::{Frame, Packet};
use link::{Arriving, Link};
use serde_json::Value;

/// The time between two checks for due work.
const TICK_NS: u64 = 50_000_000;
/// The time between two questions to the devices. After a change of a device's MTU, packets that
/// are too long get no answer for this time.
const DEVICES_NS: u64 = 10_000_000;

/// The interfaces of a chain that are hosts on their links.
pub(crate) struct Hosts {
    /// By interface number.
    links: Vec<Option<Link>>,
    /// The chain's functions. Only parameters that may be addresses have their values.
    nodes: Vec<Node>,
    owned: Owned,
    now_ns: u64,
    tick_ns: u64,
    devices_ns: u64,
    out: Out,
}

impl Hosts {
    /// The hosts of a chain; `None` if there are none.
    pub(crate) fn new(chain: &Chain) -> Option<Self> {
        let links: Vec<_> =
            (0..).zip(&chain.interfaces).map(|(number, i)| Link::new(number, i)).collect();
        links.iter().any(Option::is_some).then(|| Self {
            links,
            owned: Owned::of(&chain.nodes),
            nodes: chain.nodes.iter().map(small).collect(),
            now_ns: 0,
            tick_ns: 0,
            devices_ns: 0,
            out: Out::default(),
        })
    }

    fn link(&mut self, interface: u16) -> Option<&mut Link> {
        self.links.get_mut(usize::from(interface))?.as_mut()
    }

    /// Sets the time, and performs the due work. Returns whether [`Self::device`] should be called
    /// now.
    pub(crate) fn advance(&mut self, now_ns: u64) -> bool {
        self.now_ns = now_ns;
        if now_ns >= self.tick_ns {
            self.tick_ns = now_ns.saturating_add(TICK_NS);
            let Self { links, owned, out, .. } = self;
            links.iter_mut().flatten().for_each(|link| link.advance(now_ns, owned, out));
        }
        let is_due = now_ns >= self.devices_ns;
        if is_due {
            self.devices_ns = now_ns.saturating_add(DEVICES_NS);
        }
        is_due
    }

    /// Takes over the facts that the device of an interface reports: its MAC address and MTU, and
    /// whether it carries frames.
    pub(crate) fn device(&mut self, interface: u16, told: Option<Ethernet>, is_up: bool) {
        let now_ns = self.now_ns;
        if let Some(link) = self.link(interface) {
            link.device(told, is_up, now_ns);
            self.tick_ns = now_ns;
        }
    }

    /// The hosts of a chain that takes the place of another one. An interface with the same
    /// declaration keeps its knowledge.
    pub(crate) fn replace(before: Option<Self>, chain: &Chain) -> Option<Self> {
        let mut next = Self::new(chain)?;
        let Some(before) = before else { return Some(next) };
        next.now_ns = before.now_ns;
        for mut old in before.links.into_iter().flatten() {
            let same = next.links.iter_mut().flatten().find(|link| link.is_same(&old.declared));
            if let Some(link) = same {
                old.number = link.number;
                *link = old;
            }
        }
        if next.owned != before.owned {
            next.links.iter_mut().flatten().for_each(|link| link.start_anew(next.now_ns));
        }
        Some(next)
    }

    /// Counts packets as lost that another chain cannot take over: packets that wait at interfaces
    /// which it lacks or declares differently, and ICMP errors that have not entered this chain.
    pub(crate) fn end_not_in(&mut self, chain: &Chain) {
        let Self { links, out, .. } = self;
        let is_same = |link: &&mut Link| chain.interfaces.iter().any(|one| link.is_same(one));
        let gone = links.iter_mut().flatten().filter(|link| !is_same(link));
        gone.for_each(|link| link.end(out));
        out.errors.clear();
    }

    /// Takes over a change of configuration that was made.
    pub(crate) fn change(&mut self, control: &Control) {
        let Change::Set(value) = &control.change else { return };
        if !may_be_addresses(value) {
            return;
        }
        let node = self.nodes.get_mut(usize::from(control.node));
        if let Some(param) = node.and_then(|node| node.params.get_mut(control.param.index())) {
            *param = value.clone();
        }
        let owned = Owned::of(&self.nodes);
        if owned != self.owned {
            self.owned = owned;
            self.links.iter_mut().flatten().for_each(|link| link.start_anew(self.now_ns));
        }
    }

    /// Removes the frames that do not enter the chain from the frames that have arrived at an
    /// interface: messages of the link, frames for other hosts, and echo requests to the interface.
    /// Returns their number.
    pub(crate) fn receive(&mut self, interface: u16, frames: &mut Vec<Frame>) -> u64 {
        let Self { links, owned, now_ns, out, .. } = self;
        let link = links.get_mut(usize::from(interface)).and_then(Option::as_mut);
        let Some(link) = link else { return 0 };
        let before = frames.len();
        frames.retain_mut(|frame| match link.arrive(frame.bytes()) {
            Arriving::Enters => true,
            Arriving::Ends => false,
            Arriving::IsHeard => {
                let heard = std::mem::replace(frame, Frame::empty());
                link.hear(heard, *now_ns, owned, out).is_some_and(|entering| {
                    *frame = entering;
                    true
                })
            }
        });
        (before - frames.len()) as u64
    }

    /// Prepares a packet that leaves by an interface: it gets the MAC addresses of its next hop and
    /// of the interface. Takes the packet if it must wait.
    #[inline]
    pub(crate) fn leave(&mut self, interface: u16, packet: &mut Packet) -> Leaving {
        let Self { links, now_ns, out, .. } = self;
        match links.get_mut(usize::from(interface)) {
            Some(Some(link)) => link.leave(packet, *now_ns, out),
            _ => Leaving::Sends,
        }
    }

    /// The work for the caller, which takes it out.
    pub(crate) fn out(&mut self) -> &mut Out {
        &mut self.out
    }

    /// Records that a frame of an interface's own was not sent.
    pub(crate) fn note_unsent(&mut self, interface: u16) {
        if let Some(link) = self.link(interface) {
            link.note_unsent();
        }
    }

    /// Counts the packets that wait as lost, because the run ends.
    pub(crate) fn end(&mut self) {
        let Self { links, out, .. } = self;
        links.iter_mut().flatten().for_each(|link| link.end(out));
    }

    /// The number of packets that wait for the MAC addresses of their next hops.
    pub(crate) fn waiting(&self) -> usize {
        self.links.iter().flatten().map(Link::waiting).sum()
    }

    /// The status of an interface, for a client of the control socket; `None` if the interface is
    /// no host.
    pub(crate) fn status(&self, interface: u16) -> Option<Value> {
        let link = self.links.get(usize::from(interface))?.as_ref()?;
        Some(link.told().status(self.now_ns))
    }

    /// Warnings for the user.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.links.iter().flatten().flat_map(|link| link.told().warnings()).collect()
    }
}

/// A change of configuration that may change the addresses of functions.
pub(crate) fn new_addresses(control: &Control) -> Option<Control> {
    let is_needed = matches!(&control.change, Change::Set(value) if may_be_addresses(value));
    is_needed.then(|| control.clone())
}

/// A function without parameters that may be large.
fn small(node: &Node) -> Node {
    let param = |value: &ParamValue| match may_be_addresses(value) {
        true => value.clone(),
        false => ParamValue::Str(String::new()),
    };
    let params = node.params.iter().map(param).collect();
    Node { name: node.name.clone(), model: node.model.clone(), params }
}

fn may_be_addresses(value: &ParamValue) -> bool {
    matches!(value, ParamValue::Scalar(_) | ParamValue::Pool(_))
}
