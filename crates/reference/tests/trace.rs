//! The reports about a packet's walk that an observer gets.

mod common;

use braid_ir::chain::Priority;
use braid_ir::model::{Dest, RowId, Word};
use braid_packet::{Field, Header, Packet};
use braid_reference::Reference;
use braid_reference::trace::{Observer, StateAccess, StateWhat, Verdict};
use common::{Got, LAN, alone, from_port, line, nf, wire};

/// Writes down each report in a line.
#[derive(Default)]
struct Diary(Vec<String>);

impl Observer for Diary {
    fn enter(&mut self, node: u16, packet: &Packet) {
        self.0.push(format!("{node} enter {}", packet.wire_len));
    }

    fn has(&mut self, node: u16, header: Header, present: bool) {
        self.0.push(format!("{node} has {} {present}", header.name()));
    }

    fn read(&mut self, node: u16, field: Field, value: Option<Word>) {
        self.0.push(format!("{node} read {} {value:?}", field.info().name));
    }

    fn write(&mut self, node: u16, field: Field, value: Word) {
        self.0.push(format!("{node} write {} {value}", field.info().name));
    }

    fn vlan(&mut self, node: u16, pushed: Option<u16>) {
        self.0.push(format!("{node} vlan {pushed:?}"));
    }

    fn state(&mut self, node: u16, access: &StateAccess<'_>) {
        let what = match access.what {
            StateWhat::Get(slots, found) => format!("get {slots:?} {found}"),
            other => format!("{other:?}").to_lowercase(),
        };
        self.0.push(format!("{node} {}{:?} {what}", access.state, access.key));
    }

    fn send(&mut self, node: u16, dest: Dest, packet: &Packet, created: bool) {
        self.0.push(format!("{node} send {dest:?} {} {created}", packet.wire_len));
    }

    fn count(&mut self, node: u16, row: RowId) {
        self.0.push(format!("{node} count {row}"));
    }

    fn verdict(&mut self, node: u16, verdict: &Verdict) {
        let what = match verdict {
            Verdict::Output { ports, row } => format!("output {} at {row}", ports.len()),
            Verdict::Drop { reason, row } => format!("drop {reason} at {row}"),
            Verdict::Consume { row } => format!("consume at {row}"),
            Verdict::Hold { until_ns, row, .. } => format!("hold until {until_ns} at {row}"),
            Verdict::Fault(fault) => format!("fault {}", fault.reason()),
        };
        self.0.push(format!("{node} {what}"));
    }

    fn stands(&mut self, node: u16) {
        self.0.push(format!("{node} stands"));
    }

    fn leave(&mut self, interface: u16, _packet: &Packet) {
        self.0.push(format!("leave {interface}"));
    }

    fn lost(&mut self, reason: &str) {
        self.0.push(format!("lost {reason}"));
    }
}

fn told(engine: &mut Reference, packet: Packet) -> Vec<String> {
    let mut diary = Diary::default();
    engine.trace(LAN, packet, &mut Got::default(), &mut diary);
    diary.0
}

#[test]
fn observer_is_told_each_step_in_order() {
    let model = nf(
        "state seen: u8 per (udp.sport) default (7) capacity 1 full refuse tick 1",
        "b0: v0:bool = has udp
             branch v0, b1, b3
         b1: count row1
             v1:port = load udp.dport
             v2:u8 = get seen[entry]
             v3:bool = set seen[entry], (v2)
             v4:bool = exists seen[entry]
             branch v3, b3, b2
         b2: v5:port = const 9
             store udp.dport, v5
             jump b3
         b3: output onward at row0",
    );
    let mut engine = Reference::new(line(vec![(model, vec![]), (wire(), vec![])])).unwrap();
    let first = told(&mut engine, from_port(1, 5));
    let expected = [
        "0 enter 46",
        "0 has udp true",
        "0 count row1",
        "0 read udp.dport Some(53)",
        "0 state0[5] get [7] false",
        "0 state0[5] created([7])",
        "0 state0[5] exists(true)",
        "0 output 1 at row0",
        "1 enter 46",
        "1 output 1 at row0",
        "leave 1",
    ];
    assert_eq!(first, expected);
    let second = told(&mut engine, from_port(2, 6));
    assert_eq!(
        second[5..8],
        ["0 state0[6] refused", "0 state0[6] exists(false)", "0 write udp.dport 9"]
    );
}

#[test]
fn observer_is_told_of_packets_beside_the_current_one() {
    // 46 bytes: Ethernet, IPv4, UDP and 4 bytes of payload; the new packet has no payload.
    let sends = nf(
        "",
        "b0: v0:bool = has ip
             branch v0, b1, b2
         b1: mirror onward
             create udp { } payload empty to back
             jump b2
         b2: output onward at row0",
    );
    let mut engine = Reference::new(alone(sends)).unwrap();
    let steps = told(&mut engine, from_port(1, 1));
    assert_eq!(steps[2..4], ["0 send Onward 46 false", "0 send Back 42 true"]);
}

#[test]
fn observer_is_told_of_losses_and_faults_and_whose_verdict_stands() {
    let faults = nf("", "b0: v0:u8 = const 0 v1:u8 = div v0, v0 output onward at row0");
    let mut engine = Reference::new(alone(faults)).unwrap();
    assert_eq!(told(&mut engine, from_port(1, 1)), ["0 enter 46", "0 fault division"]);
    let mut short = from_port(1, 1).data().to_vec();
    short[14] = 0x44;
    let lost = told(&mut engine, Packet::new(braid_packet::Link::Ethernet, 2, short));
    assert_eq!(lost, ["lost ip_header_length"]);
    let drops = nf("reason \"no\"", "b0: drop \"no\" at row1");
    let mut chain = line(vec![(wire(), vec![]), (drops, vec![])]);
    chain.priorities.push(Priority { winner: 1, loser: 0 });
    let mut engine = Reference::new(chain).unwrap();
    let expected =
        ["1 enter 46", "1 drop no at row1", "0 enter 46", "0 output 1 at row0", "1 stands"];
    assert_eq!(told(&mut engine, from_port(1, 1)), expected);
}

#[test]
fn observing_changes_nothing() {
    use braid_ir::engine::Engine;
    let chain = alone(wire());
    let (mut a, mut b) = (Reference::new(chain.clone()).unwrap(), Reference::new(chain).unwrap());
    a.packet(LAN, from_port(1, 1), &mut Got::default());
    told(&mut b, from_port(1, 1));
    assert_eq!(a.counters(), b.counters());
}
