//! The part of the program that finds the flow key of a packet.

use super::{DPORT, DST, END, SPORT, SRC, Writer};
use braid_io::bpf::Register::{R0, R1, R2, R7, R8, R9, R10};
use braid_io::bpf::{Label, Operand, Operation, Register, Size, Test};
use braid_packet::field::{Parse, Rules};
use braid_packet::{Field, Header, ether_type, proto};

/// The most tags inside a packet that the program looks behind.
const MOST_TAGS: usize = 3;

/// The most extension headers that the program looks behind.
const MOST_EXTENSIONS: usize = 6;

/// The differences between ICMP and ICMPv6: the types of echoes and of errors.
struct Messages {
    echoes: &'static [u16],
    errors: &'static [u16],
}

impl Messages {
    fn of_icmp() -> Self {
        let announced = |header: Header| header.announced_by(Field::IcmpType);
        Self { echoes: announced(Header::IcmpEcho), errors: announced(Header::Quoted) }
    }

    fn of_icmp6() -> Self {
        let announced = |header: Header| header.announced_by(Field::Icmp6Type);
        Self { echoes: announced(Header::Icmp6Echo), errors: announced(Header::Quoted) }
    }
}

/// The slots for a packet's two ends, the sender's first: addresses and ports.
type Ends = [(i16, i16); 2];
const FORWARD: Ends = [(SRC, SPORT), (DST, DPORT)];
/// An error is steered as an answer to the packet that it quotes.
const REVERSED: Ends = [(DST, DPORT), (SRC, SPORT)];

/// The offset of a field in its header.
fn offset(field: Field) -> i16 {
    i16::try_from(field.offset()).unwrap_or(i16::MAX)
}

impl Writer {
    /// Puts the flow key on the stack, and goes on at `key`.
    pub(super) fn parse(&mut self, errors_follow: bool) {
        self.code.set(R0, 0);
        for slot in [SRC, SRC + 8, DST, DST + 8, SPORT, DPORT] {
            self.code.store(Size::Double, R10, slot, R0);
        }
        self.tags();
        let [version4, version6] = self.network();
        self.code.place(version4);
        self.ip4(errors_follow);
        self.code.place(version6);
        self.ip6(errors_follow);
    }

    /// Goes to a label unless the EtherType announces a tag.
    pub(super) fn unless_tag(&mut self, label: Label) {
        let tag = self.code.label();
        self.if_any(&ether_type::TAGS, tag);
        self.code.jump(label);
        self.code.place(tag);
    }

    /// Goes to a label if `R8` is one of these numbers.
    fn if_any(&mut self, numbers: &[impl Into<Operand> + Copy], label: Label) {
        for number in numbers {
            self.code.jump_if(Test::Equal, R8, *number, label);
        }
    }

    /// Skips the tags inside the packet.
    fn tags(&mut self) {
        let done = self.code.label();
        for _ in 0..MOST_TAGS {
            self.unless_tag(done);
            self.bytes(4);
            self.number(R8, Size::Half, 2);
            self.skip(4);
        }
        self.if_any(&ether_type::TAGS, self.undecided);
        self.code.place(done);
    }

    fn skip(&mut self, count: i32) {
        self.code.operate(Operation::Add, R7, count);
    }

    /// Goes to the parsers of IPv4 and of IPv6.
    fn network(&mut self) -> [Label; 2] {
        let [version4, version6, pppoe] = [(); 3].map(|()| self.code.label());
        self.code.jump_if(Test::Equal, R8, ether_type::IPV4, version4);
        self.code.jump_if(Test::Equal, R8, ether_type::IPV6, version6);
        self.if_any(Header::Pppoe.announced_by(Field::EthType), pppoe);
        // The kernel has small numbers of its own for frames with lengths.
        self.code.jump_if(Test::Greater, R8, ether_type::MOST_LENGTH, self.first);
        self.code.jump(self.undecided);
        self.code.place(pppoe);
        if let (Parse::Rules(pppoe), Parse::Rules(ppp)) =
            (Header::Pppoe.info().parse, Header::Ppp.info().parse)
        {
            self.session(&pppoe, &ppp, [version4, version6]);
        }
        self.code.jump(self.first);
        [version4, version6]
    }

    /// Goes to the parsers of IPv4 and of IPv6 if a PPPoE session announces them.
    fn session(&mut self, pppoe: &Rules, ppp: &Rules, [version4, version6]: [Label; 2]) {
        let session = self.code.label();
        let bytes = i32::try_from(pppoe.least + ppp.least).unwrap_or(i32::MAX);
        self.bytes(bytes);
        for (at, mask, value) in pppoe.fixed {
            self.number(R1, Size::Byte, i16::try_from(*at).unwrap_or(i16::MAX));
            self.code.operate(Operation::And, R1, i32::from(*mask));
            self.code.jump_if(Test::Differ, R1, *value, self.first);
        }
        self.number(R8, Size::Byte, offset(Field::PppoeCode));
        self.if_any(Header::Ppp.announced_by(Field::PppoeCode), session);
        self.code.jump(self.first);
        self.code.place(session);
        self.number(R8, Size::Half, offset(Field::PppProto));
        self.skip(bytes);
        for (protocol, _, kind) in ppp.same {
            let version = if *kind == ether_type::IPV4 { version4 } else { version6 };
            self.code.jump_if(Test::Equal, R8, *protocol, version);
        }
    }

    /// Copies two IPv4 addresses to the key.
    fn addresses4(&mut self, ends: Ends) {
        for ((slot, _), field) in ends.into_iter().zip([Field::IpSrc, Field::IpDst]) {
            self.number(R1, Size::Word, offset(field));
            self.code.store(Size::Double, R10, slot, R1);
        }
    }

    /// Copies two IPv6 addresses to the key.
    fn addresses6(&mut self, ends: Ends) {
        for ((slot, _), field) in ends.into_iter().zip([Field::Ip6Src, Field::Ip6Dst]) {
            let at = offset(field);
            for (half, at) in [(slot, at + 8), (slot + 8, at)] {
                self.number(R1, Size::Double, at);
                self.code.store(Size::Double, R10, half, R1);
            }
        }
    }

    /// Ends without a decision unless the packet has this IP version.
    fn version(&mut self, version: i32) {
        self.number(R1, Size::Byte, 0);
        self.code.set(R2, R1);
        self.code.operate(Operation::ShiftRight, R2, 4);
        self.code.jump_if(Test::Differ, R2, version, self.undecided);
        self.code.set(R9, version);
    }

    /// Stores the end of a packet whose length from `R7` on is in a register.
    fn end(&mut self, length: Register) {
        self.code.operate(Operation::Add, length, R7);
        self.code.store(Size::Double, R10, END, length);
    }

    fn ip4(&mut self, errors_follow: bool) {
        self.bytes(20);
        self.number(R2, Size::Half, offset(Field::IpLen));
        self.end(R2);
        self.version(4);
        // The length of the header.
        self.code.operate(Operation::And, R1, 15);
        self.code.operate(Operation::ShiftLeft, R1, 2);
        self.code.operate(Operation::Add, R7, R1);
        self.number(R8, Size::Byte, offset(Field::IpProto));
        self.addresses4(FORWARD);
        self.later_fragment(self.key);
        let behind = self.code.label();
        self.code.jump_if(Test::Differ, R8, proto::AH, behind);
        self.extension(4, 2);
        self.code.place(behind);
        self.ports(FORWARD);
        self.code.jump_if(Test::Differ, R8, proto::ICMP, self.key);
        self.icmp(&Messages::of_icmp(), errors_follow);
        if errors_follow {
            self.quoted4();
        }
    }

    /// Goes to a label if the packet is a later fragment.
    fn later_fragment(&mut self, label: Label) {
        self.number(R1, Size::Half, offset(Field::IpFrag));
        self.code.operate(Operation::And, R1, 0x1fff);
        self.code.jump_if(Test::Differ, R1, 0, label);
    }

    /// Skips a header that names the next header and its own length, in words of this size, not
    /// counting the first `more` words.
    fn extension(&mut self, word: i32, more: i32) {
        self.bytes(2);
        self.number(R8, Size::Byte, 0);
        self.number(R1, Size::Byte, 1);
        self.code.operate(Operation::Add, R1, more);
        self.code.operate(Operation::Multiply, R1, word);
        self.code.operate(Operation::Add, R7, R1);
    }

    fn ip6(&mut self, errors_follow: bool) {
        self.bytes(40);
        self.version(6);
        self.number(R2, Size::Half, offset(Field::Ip6Len));
        self.skip(40);
        self.end(R2);
        self.number(R8, Size::Byte, offset(Field::Ip6Next));
        self.addresses6(FORWARD);
        let transport = self.code.label();
        for _ in 0..MOST_EXTENSIONS {
            self.extension6(transport);
        }
        self.unless_transport();
        self.code.place(transport);
        self.ports(FORWARD);
        self.code.jump_if(Test::Differ, R8, proto::ICMP6, self.key);
        self.icmp(&Messages::of_icmp6(), errors_follow);
        if errors_follow {
            self.quoted6();
        }
    }

    /// Ends without a decision if the packet has an extension header here.
    fn unless_transport(&mut self) {
        self.if_any(&proto::EXTENSIONS, self.undecided);
        self.if_any(&[proto::AH, proto::FRAGMENT], self.undecided);
    }

    /// Skips an extension header of IPv6. Goes to `transport` if there is none.
    fn extension6(&mut self, transport: Label) {
        let [long, ah, fragment, next] = [(); 4].map(|()| self.code.label());
        self.if_any(&proto::EXTENSIONS, long);
        self.code.jump_if(Test::Equal, R8, proto::AH, ah);
        self.code.jump_if(Test::Equal, R8, proto::FRAGMENT, fragment);
        self.code.jump(transport);
        self.code.place(long);
        self.extension(8, 1);
        self.code.jump(next);
        self.code.place(ah);
        self.extension(4, 2);
        self.code.jump(next);
        self.code.place(fragment);
        self.bytes(4);
        self.number(R8, Size::Byte, 0);
        self.number(R1, Size::Half, 2);
        self.code.operate(Operation::ShiftRight, R1, 3);
        self.code.jump_if(Test::Differ, R1, 0, self.key);
        self.skip(8);
        self.code.place(next);
    }

    /// Copies the ports of TCP and UDP to the key, which then is complete.
    fn ports(&mut self, ends: Ends) {
        let [has, has_not] = [(); 2].map(|()| self.code.label());
        self.code.jump_if(Test::Equal, R8, proto::TCP, has);
        self.code.jump_if(Test::Differ, R8, proto::UDP, has_not);
        self.code.place(has);
        self.bytes(4);
        for ((_, slot), field) in ends.into_iter().zip([Field::UdpSport, Field::UdpDport]) {
            self.number(R1, Size::Half, offset(field));
            self.code.store(Size::Double, R10, slot, R1);
        }
        self.code.jump(self.key);
        self.code.place(has_not);
    }

    /// Copies the identifier of an echo to the key. With `errors_follow`, the program goes on
    /// behind the header of an error.
    fn icmp(&mut self, messages: &Messages, errors_follow: bool) {
        let [echo, error] = [(); 2].map(|()| self.code.label());
        self.bytes(8);
        self.number(R1, Size::Byte, offset(Field::IcmpType));
        for kind in messages.echoes {
            self.code.jump_if(Test::Equal, R1, *kind, echo);
        }
        for kind in messages.errors.iter().filter(|_| errors_follow) {
            self.code.jump_if(Test::Equal, R1, *kind, error);
        }
        self.code.jump(self.key);
        self.code.place(echo);
        self.number(R1, Size::Half, offset(Field::IcmpId));
        self.code.store(Size::Double, R10, SPORT, R1);
        self.code.store(Size::Double, R10, DPORT, R1);
        self.code.jump(self.key);
        self.code.place(error);
        if errors_follow {
            self.skip(8);
        }
    }

    /// The packet that an error quotes, if it is plain and goes on for 8 bytes behind its header.
    fn quoted4(&mut self) {
        self.bytes(20);
        self.number(R1, Size::Byte, 0);
        self.code.jump_if(Test::Differ, R1, 0x45, self.undecided);
        self.later_fragment(self.undecided);
        self.number(R8, Size::Byte, offset(Field::IpProto));
        self.code.jump_if(Test::Equal, R8, proto::AH, self.undecided);
        self.addresses4(REVERSED);
        self.skip(20);
        self.quoted(proto::ICMP, &Messages::of_icmp());
    }

    /// The same for IPv6.
    fn quoted6(&mut self) {
        self.bytes(40);
        self.version(6);
        self.number(R8, Size::Byte, offset(Field::Ip6Next));
        self.unless_transport();
        self.addresses6(REVERSED);
        self.skip(40);
        self.quoted(proto::ICMP6, &Messages::of_icmp6());
    }

    fn quoted(&mut self, icmp: u8, messages: &Messages) {
        self.code.set(R1, R7);
        self.code.operate(Operation::Add, R1, 8);
        self.code.load(Size::Double, R2, R10, END);
        self.code.jump_if(Test::Greater, R1, R2, self.undecided);
        self.ports(REVERSED);
        self.code.jump_if(Test::Differ, R8, icmp, self.key);
        self.icmp(messages, false);
        // All other messages have already left for the key.
    }
}
