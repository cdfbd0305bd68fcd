//! A network device: link, driver, XDP, queues, offloads.

use std::net::IpAddr;

use braid_io::{DeviceFacts, State, XdpSupport, device_facts};

use super::finding::Finding;

/// The largest MTU for AF_XDP.
const XDP_MTU: u32 = 3498;

pub(super) fn findings(name: &str) -> Vec<Finding> {
    match device_facts(name) {
        Ok(facts) => of(name, &facts),
        Err(why) => {
            vec![Finding::problem("device", why.to_string(), "`ip link` lists the devices")]
        }
    }
}

fn of(name: &str, facts: &DeviceFacts) -> Vec<Finding> {
    let driver = facts.driver.as_deref().unwrap_or("unknown");
    vec![
        link(name, facts.state),
        if facts.is_ethernet {
            Finding::ok("frames", "Ethernet")
        } else {
            let remedy = "use a veth, bridge, tap or network card";
            Finding::problem("frames", "no Ethernet headers", remedy)
        },
        Finding::ok("driver", driver),
        xdp(facts.xdp),
        attached(name, facts.has_xdp_program),
        addresses(name, &facts.addresses),
        mtu(name, facts.mtu),
        Finding::ok("queues", facts.queues.to_string()),
        received(name, facts),
        vlan(name, facts),
    ]
}

fn link(name: &str, state: State) -> Finding {
    match state {
        State::Up => Finding::ok("link", "up"),
        State::Down => Finding::problem(
            "link",
            "down, or without a carrier",
            format!("sudo ip link set {name} up, and look at its cable or its other end"),
        ),
        State::Missing => Finding::problem("link", "the device is gone", "make it again"),
    }
}

fn xdp(support: Option<XdpSupport>) -> Finding {
    let fast = "in the driver";
    match support {
        Some(XdpSupport { zero_copy: true, .. }) => {
            Finding::ok("xdp", format!("{fast}, without copies of frames"))
        }
        Some(XdpSupport { native: true, .. }) => {
            Finding::ok("xdp", format!("{fast}, with copies of frames"))
        }
        Some(_) => {
            Finding::note("xdp", "not in the driver: generic mode, no faster than af_packet", None)
        }
        None => Finding::note("xdp", "unknown: kernels report it from 6.3 on", None),
    }
}

fn attached(name: &str, has_xdp_program: bool) -> Finding {
    if has_xdp_program {
        return Finding::note(
            "xdp program",
            "one is attached: another program, or a run of braid, uses xdp on this device",
            format!("sudo ip link set {name} xdp off"),
        );
    }
    Finding::ok("xdp program", "none is attached")
}

/// What arrives for the kernel's own addresses has two receivers.
fn addresses(name: &str, addresses: &[IpAddr]) -> Finding {
    let Some(first) = addresses.first() else {
        return Finding::ok("addresses", "none: the kernel does not answer by itself");
    };
    Finding::note(
        "addresses",
        format!("{first}: with af_packet, the kernel also answers packets of the chain"),
        format!("instead of {name}, use a device without addresses, such as one in a namespace"),
    )
}

fn mtu(name: &str, mtu: u32) -> Finding {
    if mtu <= XDP_MTU {
        return Finding::ok("mtu", mtu.to_string());
    }
    let text = format!("{mtu}: too large for xdp");
    Finding::note("mtu", text, format!("sudo ip link set {name} mtu {XDP_MTU}, or use af_packet"))
}

/// Packets that were joined on arrival.
fn received(name: &str, facts: &DeviceFacts) -> Finding {
    if facts.joins_received == Some(true) {
        return Finding::problem(
            "offloads",
            "the card joins packets (LRO), which cannot be split exactly",
            format!("sudo ethtool -K {name} lro off"),
        );
    }
    if facts.kernel_joins_received == Some(true) {
        return Finding::note(
            "offloads",
            "the kernel joins packets (GRO), and af_packet takes them apart again",
            format!("sudo ethtool -K {name} gro off"),
        );
    }
    Finding::ok("offloads", "packets arrive as they were sent")
}

fn vlan(name: &str, facts: &DeviceFacts) -> Finding {
    match (facts.removes_vlan, facts.driver.as_deref()) {
        (Some(true), Some("veth")) => Finding::note(
            "vlan",
            "the kernel passes VLAN tags beside frames, where xdp does not see them",
            format!("sudo ethtool -K DEVICE txvlan off, at the other end of {name}"),
        ),
        (Some(true), _) => Finding::note(
            "vlan",
            "the card removes VLAN tags, which xdp then does not see",
            format!("sudo ethtool -K {name} rxvlan off"),
        ),
        _ => Finding::ok("vlan", "tags stay in the frames"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Health::{Note, Ok, Problem};
    use super::*;

    fn good() -> DeviceFacts {
        DeviceFacts {
            state: State::Up,
            is_ethernet: true,
            mtu: 1500,
            driver: Some("ice".into()),
            queues: 8,
            xdp: Some(XdpSupport { native: true, zero_copy: true }),
            has_xdp_program: false,
            addresses: Vec::new(),
            joins_received: Some(false),
            removes_vlan: Some(false),
            kernel_joins_received: Some(false),
        }
    }

    #[test]
    fn good_device_has_no_remedies() {
        let found = of("eth0", &good());
        assert!(found.iter().all(|f| f.health == Ok && f.remedy.is_none()), "{found:?}");
    }

    #[test]
    fn each_shortcoming_is_found_with_a_remedy_that_names_the_device() {
        let changes: [(fn(&mut DeviceFacts), _); 7] = [
            (|facts| facts.has_xdp_program = true, Note),
            (|facts| facts.addresses = vec![[10, 0, 0, 1].into()], Note),
            (|facts| facts.state = State::Down, Problem),
            (|facts| facts.mtu = 9000, Note),
            (|facts| facts.joins_received = Some(true), Problem),
            (|facts| facts.kernel_joins_received = Some(true), Note),
            (|facts| facts.removes_vlan = Some(true), Note),
        ];
        for (change, health) in changes {
            let mut facts = good();
            change(&mut facts);
            let found: Vec<_> =
                of("eth0", &facts).into_iter().filter(|found| found.health != Ok).collect();
            let [finding] = &found[..] else { panic!("{found:?}") };
            assert_eq!(finding.health, health);
            assert!(finding.remedy.as_ref().unwrap().contains("eth0"), "{finding:?}");
        }
    }

    #[test]
    fn device_that_does_not_exist_is_a_problem() {
        let found = findings("no-such-dev");
        assert_eq!((found.len(), found[0].health), (1, Problem));
    }
}
