//! Records of packets that functions translate, and of packets that functions leave alone.

use super::{chain, enter, left, same};
use braid_packet::Field;
use braid_testkit::record::Stimulus;

#[test]
fn translated_windows_and_options_that_are_absent_do_not_prevent_records() {
    let text = "
        nf scaled() {
          state open: { from: u8, to: u8, by: u32 } per flow, idle 60 s;
          match {
            has tcp and tcp.flags & SYN != 0 => {
              open = { from: u8(tcp.window & 15), to: 7, by: 1000 };
              output;
            }
            has tcp and exists open => {
              if u32 at tcp.option(5) >= 0 { tcp.urgent = 7; }
              tcp.ack = wrapping(tcp.ack - open.by);
              if open.from != open.to {
                tcp.window = u16(u32(tcp.window) << open.from >> open.to);
              }
              output;
            }
            else => output;
          }
        }
        chain c {
          interface a { behind 10.0.0.0/8 }
          interface b;
          s = scaled();
          path a <-> s <-> b;
        }";
    let chain = chain(text, &[]);
    let run = |scale: u8, options: &dyn Fn(u64) -> &'static str| {
        let ends = "tcp 10.0.0.1:1000 > 192.0.2.1:80";
        let mut all = vec![enter(0, 0, &format!("{ends} S win={scale}"))];
        all.extend((1..=20_u64).map(|at| {
            let text = format!("{ends} A seq={at} ack={} win={} {}", 7 * at, 99 * at, options(at));
            enter(at, 0, &text)
        }));
        let (trace, flows) = same(&chain, &all);
        let windows = left(&trace, Field::TcpWindow);
        let acks = left(&trace, Field::TcpAck);
        (flows.hits, windows[20].expect("it leaves"), acks[20].expect("it leaves"))
    };
    let ack = u128::from((7_u32 * 20).wrapping_sub(1000));
    // One of the first packets makes the record.
    assert_eq!(run(7, &|_| ""), (17, 99 * 20, ack));
    assert_eq!(run(7, &|_| "nop nop ts=3,4"), (17, 99 * 20, ack));
    // The window is computed, which a record cannot do.
    assert_eq!(run(8, &|_| ""), (0, 2 * 99 * 20, ack));
    // Other options may be anywhere.
    assert_eq!(run(7, &|_| "ts=3,4 nop nop"), (0, 99 * 20, ack));
    assert_eq!(run(7, &|_| "nop nop opt=050a0000098d00000993"), (0, 99 * 20, ack));
    // Records are for packets whose options are like those of the packet that made them.
    let mixed = |at: u64| match at % 4 {
        0 => "",
        1 => "nop nop ts=3,4",
        2 => "nop nop opt=050a0000098d00000993",
        _ => "nop nop opt=06080000000000000000",
    };
    let (hits, window, found) = run(7, &mixed);
    assert!(hits <= 10, "{hits}");
    assert_eq!((window, found), (99 * 20, ack));
}

#[test]
fn packets_that_pass_stream_functions_by_take_records() {
    let chain = chain(
        "chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           first = connection_log();
           nat = napt(public: 203.0.113.1);
           second = connection_log();
           path lan <-> first <-> nat <-> second <-> wan;
         }",
        &[],
    );
    let flow = |proto: &str| -> Vec<Stimulus> {
        let text = format!(
            "{proto} 10.0.0.1:1000 > 192.0.2.1:53 {}",
            if proto == "tcp" { "A" } else { "" }
        );
        (0..12).map(|at| enter(at, 0, &text)).collect()
    };
    // The first packet makes the NAT's entries, and the second one makes the record.
    let (trace, flows) = same(&chain, &flow("udp"));
    assert!(left(&trace, Field::IpSrc).iter().all(|src| *src == Some(0xcb00_7101)));
    assert_eq!(flows.hits, 10, "{flows:?}");
    // TCP packets go to the functions' stacks.
    let (_, flows) = same(&chain, &flow("tcp"));
    assert_eq!(flows.hits, 0, "{flows:?}");
}
