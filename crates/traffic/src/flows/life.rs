//! The packets of a flow: the life of a TCP connection, or only data.

/// TCP flags.
pub const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// Packets that open a connection (SYN, SYN+ACK, ACK).
const OPENING: u32 = 3;
/// Packets that close a connection (FIN+ACK from either side, ACK).
const CLOSING: u32 = 3;

/// One packet of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The server sends the packet.
    pub back: bool,
    /// TCP flags; 0 for UDP.
    pub flags: u8,
    /// The packet carries data.
    pub data: bool,
}

impl Segment {
    /// How far the packet, with this many bytes of data, advances the sequence number of its
    /// sender.
    pub fn advance(self, data: u32) -> u32 {
        data + u32::from(self.flags & (SYN | FIN) != 0)
    }

    /// Whether the acknowledgement number is valid.
    pub fn acknowledges(self) -> bool {
        self.flags & ACK != 0
    }

    fn control(back: bool, flags: u8) -> Self {
        Self { back, flags, data: false }
    }

    fn data(back: bool) -> Self {
        Self { back, flags: PSH | ACK, data: true }
    }
}

/// Packet `i` (below `size`) of a TCP flow of `size` packets. The server sends `replies_ppm`
/// millionths of the data packets.
///
/// Without replies the flow is SYN, data, FIN. With replies, three packets open the flow and three
/// close it. A flow of fewer than six packets opens as far as its packets reach; if it has packets
/// after the opening, it ends with a RST.
pub fn tcp(i: u32, size: u32, replies_ppm: u32) -> Segment {
    let left = size.saturating_sub(i);
    if replies_ppm == 0 {
        return match (i, left) {
            (0, _) => Segment::control(false, SYN),
            (_, 1) => Segment::control(false, FIN | ACK),
            _ => Segment::data(false),
        };
    }
    match (i, left) {
        (0, _) => Segment::control(false, SYN),
        (1, _) => Segment::control(true, SYN | ACK),
        (2, _) => Segment::control(false, ACK),
        (_, 1) if size < OPENING + CLOSING => Segment::control(false, RST | ACK),
        _ if size < OPENING + CLOSING => Segment::data(false),
        (_, 3) => Segment::control(false, FIN | ACK),
        (_, 2) => Segment::control(true, FIN | ACK),
        (_, 1) => Segment::control(false, ACK),
        _ => Segment::data(goes_back(i - OPENING, replies_ppm)),
    }
}

/// Packet `i` of a UDP flow. The client sends the first one.
pub fn udp(i: u32, replies_ppm: u32) -> Segment {
    Segment { back: i > 0 && goes_back(i, replies_ppm), flags: 0, data: true }
}

/// Spreads replies evenly: among any n packets in a row, the number of replies is n times the
/// share, give or take one.
fn goes_back(i: u32, ppm: u32) -> bool {
    let before = |i: u64| i * u64::from(ppm) / 1_000_000;
    before(u64::from(i) + 1) > before(u64::from(i))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(size: u32, replies_ppm: u32) -> String {
        let text = |segment: Segment| {
            let names = [(SYN, 'S'), (FIN, 'F'), (RST, 'R'), (PSH, 'P'), (ACK, '.')];
            let flags: String =
                names.iter().filter(|(bit, _)| segment.flags & bit != 0).map(|(_, c)| c).collect();
            format!("{}{flags}", if segment.back { '<' } else { '>' })
        };
        (0..size).map(|i| text(tcp(i, size, replies_ppm))).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn connections_are_opened_and_closed() {
        assert_eq!(flow(6, 500_000), ">S <S. >. >F. <F. >.");
        assert_eq!(flow(10, 500_000), ">S <S. >. >P. <P. >P. <P. >F. <F. >.");
        assert_eq!(flow(9, 1_000_000), ">S <S. >. <P. <P. <P. >F. <F. >.");
    }

    #[test]
    fn short_connections_are_cut() {
        assert_eq!(flow(1, 500_000), ">S");
        assert_eq!(flow(2, 500_000), ">S <S.");
        assert_eq!(flow(3, 500_000), ">S <S. >.");
        assert_eq!(flow(4, 500_000), ">S <S. >. >R.");
        assert_eq!(flow(5, 500_000), ">S <S. >. >P. >R.");
    }

    #[test]
    fn one_way_connections_are_begun_and_ended() {
        assert_eq!(flow(1, 0), ">S");
        assert_eq!(flow(2, 0), ">S >F.");
        assert_eq!(flow(4, 0), ">S >P. >P. >F.");
    }

    #[test]
    fn replies_have_their_share_of_datagrams() {
        let back = |ppm| (0..1_000).filter(|i| udp(*i, ppm).back).count();
        assert_eq!([back(0), back(250_000), back(1_000_000)], [0, 250, 999]);
        assert!(!udp(0, 1_000_000).back);
    }

    #[test]
    fn sequence_numbers_count_data_and_the_ends() {
        assert_eq!(tcp(0, 6, 1).advance(0), 1);
        assert_eq!(tcp(2, 6, 1).advance(0), 0);
        assert_eq!(tcp(3, 9, 1).advance(100), 100);
        assert!(!tcp(0, 6, 1).acknowledges() && tcp(1, 6, 1).acknowledges());
    }
}
