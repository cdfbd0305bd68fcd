//! Residual programs of small functions, worked out by hand.

use super::common::{expect, forward, model, router, row, text};
use braid_packet::Header::{self, Eth, Ip4, Tcp, Udp, Vlan};

#[test]
fn decrements_of_two_routers_are_one_and_so_are_their_tests() {
    let router = router();
    let chain = row(&[&router, &router], &[]);
    expect(
        &text(&chain, &[Ip4]),
        "at f0 forward for ip, 2 functions
         b0:
           f0: v0:u8 = load ip.ttl
           f1: v1:u8 = const 3
           f1: v2:bool = ge v0, v1
           branch v2, b6, b1
         b1:
           f0: v3:u8 = const 1
           f0: v4:bool = le v0, v3
           branch v4, b3, b2
         b2:
           f0: v5:u8 = const 1
           f0: v6:u8 = sub_wrap v0, v5
           f1: v7:bool = le v6, v5
           branch v7, b5, b4
         b3:
           f0: drop \"no\" at row1 [f0:forward f0:row1]
         b4:
           f1: v8:u8 = const 2
           f1: v9:u8 = sub_wrap v0, v8
           f1: write ip.ttl = v9
           leave wan [f0:forward f1:forward]
         b5:
           f1: drop \"no\" at row1 [f0:forward f1:forward f1:row1]
         b6:
           f1: v10:u8 = const 2
           f1: v11:u8 = sub_wrap v0, v10
           f1: write ip.ttl = v11
           leave wan [f0:forward f1:forward]",
    );
}

#[test]
fn packets_of_another_shape_are_not_tested() {
    let chain = row(&[&router()], &[]);
    expect(
        &text(&chain, &[Eth]),
        "at f0 forward for not ip, 1 functions
         b0:
           leave wan [f0:forward]",
    );
}

#[test]
fn value_written_earlier_decides_a_later_test() {
    let writer = model(
        "",
        "b0: v0:bool = has l4 branch v0, b1, b2
         b1: v1:port = const 53 store l4.dport, v1 output onward at row0
         b2: output onward at row0",
    );
    let reader = model(
        "",
        "b0: v0:bool = has udp branch v0, b1, b3
         b1: v1:port = load udp.dport v2:port = const 80 v3:bool = eq v1, v2 branch v3, b2, b3
         b2: drop \"no\" at row0
         b3: output onward at row0",
    );
    let chain = row(&[&writer, &reader], &[]);
    let absent: String =
        Header::behind_ports().map(|header| format!(" not {}", header.name())).collect();
    expect(
        &text(&chain, &[Ip4, Udp]),
        &format!(
            "at f0 forward for inet udp l4{absent}, 2 functions
             b0:
               f0: v0:port = const 53
               f1: write l4.dport = v0
               leave wan [f0:forward f1:forward]"
        ),
    );
}

#[test]
fn entry_that_exists_is_looked_up_once_and_read() {
    let model = model(
        "state s: u16 per (ip.src) default (7) capacity 10",
        "b0: v0:bool = has ip branch v0, b1, b3
         b1: v1:bool = exists s[entry] branch v1, b2, b3
         b2: v2:u16 = get s[entry] store ip.id, v2 output onward at row0
         b3: output onward at row0",
    );
    expect(
        &text(&row(&[&model], &[]), &[Ip4]),
        "at f0 forward for ip, 1 functions
         b0:
           f0: v0:ip4 = load ip.src
           f0: v1:bool, v2:u64 = find s[v0]
           branch v1, b1, b2
         b1:
           f0: v3:u16 = read s, v2
           f0: write ip.id = v3
           leave wan [f0:forward]
         b2:
           leave wan [f0:forward]",
    );
}

#[test]
fn entry_that_was_looked_up_on_all_ways_that_meet_is_not_looked_up_again() {
    let model = model(
        "state s: u16 per (ip.src) default (7) capacity 10",
        "b0: v0:bool = has ip branch v0, b1, b7
         b1: v1:u8 = load ip.ttl v2:u8 = const 9 v3:bool = gt v1, v2 branch v3, b2, b4
         b2: v4:bool = exists s[entry] branch v4, b3, b6
         b3: count row0 jump b6
         b4: v5:bool = exists s[entry] branch v5, b5, b6
         b5: count row1 jump b6
         b6: v6:u16 = get s[entry] store ip.id, v6 output onward at row0
         b7: output onward at row0",
    );
    expect(
        &text(&row(&[&model], &[]), &[Ip4]),
        "at f0 forward for ip, 1 functions
         b0:
           f0: v0:ip4 = load ip.src
           f0: v1:u8 = load ip.ttl
           f0: v2:u8 = const 9
           f0: v3:bool = gt v1, v2
           branch v3, b1, b2
         b1:
           f0: v4:bool, v5:u64 = find s[v0]
           branch v4, b3, b5(v4, v5)
         b2:
           f0: v6:bool, v7:u64 = find s[v0]
           branch v6, b4, b5(v6, v7)
         b3:
           f0: count [f0:row0]
           jump b5(v4, v5)
         b4:
           f0: count [f0:row1]
           jump b5(v6, v7)
         b5(v8:bool, v9:u64):
           f0: v10:u16 = const 7
           branch v8, b6, b7(v10)
         b6:
           f0: v11:u16 = read s, v9
           jump b7(v11)
         b7(v12:u16):
           f0: write ip.id = v12
           leave wan [f0:forward]",
    );
}

#[test]
fn read_without_an_entry_gives_the_default_and_without_one_is_a_fault() {
    let with = model(
        "state s: u16 per (ip.src) default (7) capacity 10",
        "b0: v0:bool = has ip branch v0, b1, b2
         b1: v1:u16 = get s[entry] store ip.id, v1 output onward at row0
         b2: output onward at row0",
    );
    let without = with.replace("default (7)", "");
    expect(
        &text(&row(&[&with], &[]), &[Ip4]),
        "at f0 forward for ip, 1 functions
         b0:
           f0: v0:ip4 = load ip.src
           f0: v1:bool, v2:u64 = find s[v0]
           f0: v3:u16 = const 7
           branch v1, b1, b2(v3)
         b1:
           f0: v4:u16 = read s, v2
           jump b2(v4)
         b2(v5:u16):
           f0: write ip.id = v5
           leave wan [f0:forward]",
    );
    expect(
        &text(&row(&[&without], &[]), &[Ip4]),
        "at f0 forward for ip, 1 functions
         b0:
           f0: v0:ip4 = load ip.src
           f0: v1:bool, v2:u64 = find s[v0]
           branch v1, b1, b2
         b1:
           f0: v3:u16 = read s, v2
           f0: write ip.id = v3
           leave wan [f0:forward]
         b2:
           f0: fault no_entry [f0:forward f0:row2]",
    );
}

#[test]
fn write_that_comes_to_nothing_stays_where_a_checksum_covers_it() {
    let there = model(
        "",
        "b0: v0:bool = has ip v1:bool = has eth v2:bool = and v0, v1 branch v2, b1, b2
         b1: v3:u8 = load ip.tos v4:mac = load eth.src
             store ip.tos, v3 store eth.src, v4 output onward at row0
         b2: output onward at row0",
    );
    expect(
        &text(&row(&[&there], &[]), &[Eth, Ip4]),
        "at f0 forward for eth ip, 1 functions
         b0:
           f0: v0:u8 = load ip.tos
           f0: write ip.tos = v0
           leave wan [f0:forward]",
    );
}

#[test]
fn field_as_on_entry_is_the_value_before_the_function_wrote_it() {
    let swap = model(
        "",
        "b0: v0:bool = has ip branch v0, b1, b2
         b1: v1:ip4 = load ip.dst store ip.src, v1 v2:ip4 = load_entry ip.src store ip.dst, v2
             output onward at row0
         b2: output onward at row0",
    );
    let chain = row(&[&swap, &swap], &[]);
    expect(
        &text(&chain, &[Ip4]),
        "at f0 forward for ip, 2 functions
         b0:
           f0: v0:ip4 = load ip.src
           f0: v1:ip4 = load ip.dst
           f1: write ip.src = v0, ip.dst = v1
           leave wan [f0:forward f1:forward]",
    );
}

#[test]
fn packets_dropped_later_are_not_written_but_counted_everywhere() {
    let writer = model(
        "",
        "b0: count row0 v0:bool = has ip branch v0, b1, b2
         b1: v1:u16 = const 5 store ip.id, v1 output onward at row0
         b2: output onward at row0",
    );
    let dropper = model("", "b0: count row1 drop \"no\" at row1");
    let chain = row(&[&writer, &dropper], &[]);
    expect(
        &text(&chain, &[Ip4]),
        "at f0 forward for ip, 2 functions
         b0:
           f1: drop \"no\" at row1 [f0:forward f0:row0 f1:forward f1:row1]",
    );
}

#[test]
fn lengths_of_counts_are_those_at_their_place() {
    let push = model(
        "",
        "b0: v0:bool = has eth branch v0, b1, b2
         b1: v1:u12 = const 9 push_vlan v1 count row0 output onward at row0
         b2: output onward at row0",
    );
    let chain = row(&[&push], &[]);
    expect(
        &text(&chain, &[Eth, Ip4]),
        "at f0 forward for eth not vlan not vlan2, 1 functions
         b0:
           f0: v0:u12 = const 9
           f0: push_vlan v0
           leave wan [f0:forward-4 f0:row0]",
    );
}

#[test]
fn ways_that_meet_count_apart_what_they_do_not_share() {
    let model = model(
        "",
        "b0: v0:bool = has tcp branch v0, b1, b3
         b1: v1:port = load tcp.dport v2:port = const 80 v3:bool = eq v1, v2 branch v3, b2, b3
         b2: count row0 jump b4
         b3: count row1 jump b4
         b4: v4:u32 = extern random(v5)
             output onward at row0",
    )
    .replace("v4:u32 = extern random(v5)", "v4:u16 = load pkt.ingress v5:u16 = const 3 emit E(v4)")
    .replace("row \"1\"", "event E { at: u16 } row \"1\"");
    expect(
        &text(&row(&[&model], &[]), &[Ip4, Tcp]),
        "at f0 forward for tcp l4, 1 functions
         b0:
           f0: v0:port = load l4.dport
           f0: v1:port = const 80
           f0: v2:bool = eq v0, v1
           branch v2, b1, b2
         b1:
           f0: count [f0:row0]
           jump b3
         b2:
           f0: count [f0:row1]
           jump b3
         b3:
           f0: v3:u16 = load pkt.ingress
           f0: emit E(v3)
           leave wan [f0:forward]",
    );
}

/// Drops packets that are longer than 100 bytes.
const LONG: &str =
    "b0: v0:u32 = load pkt.len v1:u32 = const 100 v2:bool = gt v0, v1 branch v2, b1, b2
         b1: count row1 drop \"no\" at row1
         b2: count row0 output onward at row0";

#[test]
fn tag_that_is_added_and_taken_off_again_leaves_fields_known() {
    let push = model(
        "",
        "b0: v0:bool = has eth branch v0, b1, b2
         b1: v1:u12 = const 9 push_vlan v1 output onward at row0
         b2: output onward at row0",
    );
    let check = model(
        "",
        "b0: v0:bool = has vlan branch v0, b1, b2
         b1: v1:u12 = load vlan.id v2:u12 = const 9 v3:bool = eq v1, v2 branch v3, b3, b2
         b2: drop \"no\" at row1
         b3: pop_vlan output onward at row0",
    );
    let chain = row(&[&push, &model("", LONG), &check], &[]);
    expect(
        &text(&chain, &[Eth, Ip4]),
        "at f0 forward for eth not vlan not vlan2, 3 functions
         b0:
           f0: v0:u32 = load pkt.len
           f0: v1:u32 = const 4
           f0: v2:u32 = add_wrap v0, v1
           f1: v3:u32 = const 100
           f1: v4:bool = gt v2, v3
           branch v4, b1, b2
         b1:
           f1: drop \"no\" at row1 [f0:forward f1:forward+4 f1:row1+4]
         b2:
           leave wan [f0:forward f1:forward+4 f1:row0+4 f2:forward+4]",
    );
    let twice = forward(&row(&[&check], &[]), &[Vlan]);
    assert_eq!(twice.blocks.len(), 3, "it is not for packets that come with a tag");
}

#[test]
fn tag_that_is_taken_off_and_added_again_is_written_where_it_has_the_usual_type() {
    let pop = model(
        "",
        "b0: v0:bool = has vlan branch v0, b1, b2
         b1: pop_vlan count row0 output onward at row0
         b2: drop \"no\" at row1",
    );
    let push = model(
        "",
        "b0: v0:bool = has eth branch v0, b1, b2
         b1: v1:u12 = const 9 push_vlan v1 v2:u3 = const 1 store vlan.pcp, v2 output onward at row0
         b2: output onward at row0",
    );
    expect(
        &text(&row(&[&pop, &push], &[]), &[Vlan]),
        "at f0 forward for eth vlan not vlan2, 2 functions
         b0:
           f0: v0:u16 = load vlan.tpid
           f1: v1:u16 = const 33024
           f1: v2:bool = eq v0, v1
           branch v2, b1, b2
         b1:
           f1: v3:u12 = const 9
           f1: v4:u3 = const 1
           f1: v5:bool = const false
           f1: write vlan.id = v3, vlan.pcp = v4, vlan.dei = v5
           leave wan [f0:forward f0:row0-4 f1:forward-4]
         b2:
           f0: pop_vlan
           f1: v6:u12 = const 9
           f1: push_vlan v6
           f1: parse
           f1: v7:u3 = const 1
           f1: write vlan.pcp = v7
           leave wan [f0:forward f0:row0-4 f1:forward-4]",
    );
}

#[test]
fn old_value_is_written_where_a_copy_was_sent_with_another_one() {
    let lend = model(
        "",
        "b0: v0:bool = has eth branch v0, b1, b2
         b1: v1:mac = load eth.src v2:mac = load eth.dst store eth.src, v2 mirror back
             store eth.src, v1 output onward at row0
         b2: output onward at row0",
    );
    expect(
        &text(&row(&[&lend], &[]), &[Eth]),
        "at f0 forward for eth, 1 functions
         b0:
           f0: v0:mac = load eth.src
           f0: v1:mac = load eth.dst
           f0: write eth.src = v1
           f0: mirror back
           f0: write eth.src = v0
           f0: output onward [f0:forward]",
    );
}
