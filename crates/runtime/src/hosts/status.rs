//! The status of an interface, for users.

use super::messages::Mac;
use super::others::Others;
use super::table::{Neighbour, Table};
use braid_ir::chain::{Interface, OwnAddress};
use serde_json::{Value, json};
use std::net::IpAddr;

/// The most neighbours of a report.
const MOST_SHOWN: usize = 1000;

/// The counters of an interface.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) answered_arp: u64,
    pub(super) answered_ndp: u64,
    pub(super) answered_echo: u64,
    pub(super) told_too_long: u64,
    pub(super) told_unreachable: u64,
    pub(super) asked: u64,
    pub(super) for_others: u64,
    pub(super) invalid: u64,
    pub(super) not_answered: u64,
    pub(super) unsent: u64,
}

/// The facts about an interface that are shown to users.
pub(super) struct Told<'l> {
    pub(super) mac: Mac,
    pub(super) mtu: Option<u32>,
    pub(super) declared: &'l Interface,
    pub(super) counts: &'l Counts,
    pub(super) others: &'l Others,
    pub(super) neighbours: &'l Table,
}

impl<'l> Told<'l> {
    /// Addresses of the interface and of functions that other hosts on the link have, too.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> + use<'l> {
        let Self { declared, others, .. } = *self;
        let name = &declared.name;
        others.iter().map(move |(address, mac)| {
            let host = show(mac);
            match declared.addresses.iter().any(|own| own.address == address) {
                true => {
                    format!("{name}: the host {host} on the link has the same address {address}")
                }
                false => format!(
                    "{name}: the host {host} on the link has the address {address} of a function, \
                     so the run does not answer for it"
                ),
            }
        })
    }

    /// The status of the interface, for a client of the control socket.
    pub(super) fn status(&self, now_ns: u64) -> Value {
        let Self { mac, mtu, declared, counts, neighbours, others } = self;
        let own = |own: &OwnAddress| format!("{}/{}", own.address, own.prefix_len);
        let neighbour = |one: &Neighbour| {
            json!({
                "address": one.address.to_string(),
                "mac": one.mac.map(show),
                "state": one.state.name(now_ns),
            })
        };
        let shown = neighbours.neighbours().iter().take(MOST_SHOWN);
        json!({
            "mac": show(*mac),
            "mtu": mtu,
            "addresses": declared.addresses.iter().map(own).collect::<Vec<_>>(),
            "gateways": declared.gateways.iter().map(IpAddr::to_string).collect::<Vec<_>>(),
            "answered": {
                "arp": counts.answered_arp,
                "ndp": counts.answered_ndp,
                "echo": counts.answered_echo,
                "too_long": counts.told_too_long,
                "unreachable": counts.told_unreachable,
            },
            "others_have": others.iter().map(|(at, _)| at.to_string()).collect::<Vec<_>>(),
            "asked": counts.asked,
            "for_other_hosts": counts.for_others,
            "invalid": counts.invalid,
            "not_answered": counts.not_answered,
            "not_sent": counts.unsent,
            "neighbours_known": neighbours.neighbours().len(),
            "neighbours": shown.map(neighbour).collect::<Vec<_>>(),
        })
    }
}

fn show(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
