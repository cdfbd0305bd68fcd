//! The list of headers. A header's line names its declaration and its fields. The declaration
//! itself is in the header's file in `wire`.

/// Passes the list to another macro: the Rust name of each header, its declaration, and its fields
/// in the order of the declaration. A new header goes to the end.
macro_rules! headers {
    ($then:ident) => {
        $then! {
            Pkt attributes::PKT [
                PktLen PktPayloadLen PktTime PktIngress PktBackward PktFragment PktLaterFragment PktHeld
                PktTruncated
            ];
            Eth ethernet::ETH [EthDst EthSrc EthType];
            Vlan vlan::VLAN [VlanId VlanPcp VlanDei VlanTpid];
            Vlan2 vlan::VLAN2 [Vlan2Id Vlan2Pcp Vlan2Dei];
            Arp arp::ARP [ArpOp ArpSha ArpSpa ArpTha ArpTpa];
            Mpls mpls::MPLS [MplsLabel MplsTc MplsBos MplsTtl];
            Ip4 ipv4::IP4 [
                IpSrc IpDst IpProto IpTtl IpTos IpDscp IpEcn IpId IpDf IpMf IpFrag IpLen IpHlen IpChecksum
            ];
            Ip6 ipv6::IP6 [Ip6Src Ip6Dst Ip6Next Ip6Proto Ip6Ttl Ip6Tc Ip6Flow Ip6Len];
            Inet inet::INET [InetVersion InetSrc InetDst InetProto InetTtl InetSport InetDport];
            Tcp tcp::TCP [
                TcpSport TcpDport TcpSeq TcpAck TcpFlags TcpWindow TcpUrgent TcpHlen
            ];
            TcpMss tcp::MSS [TcpMss];
            TcpWscale tcp::WSCALE [TcpWscale];
            TcpSackOk tcp::SACK_OK [];
            TcpTs tcp::TS [TcpTsVal TcpTsEcr];
            Udp udp::UDP [UdpSport UdpDport UdpLen];
            L4 inet::L4 [L4Sport L4Dport L4Checksum];
            Icmp icmp::ICMP [IcmpType IcmpCode IcmpRest];
            IcmpEcho icmp::ECHO [IcmpId IcmpSeq];
            Icmp6 icmp::ICMP6 [Icmp6Type Icmp6Code Icmp6Rest];
            Icmp6Echo icmp::ECHO6 [Icmp6Id Icmp6Seq];
            Gre gre::GRE [GreProto];
            GreKey gre::KEY [GreKey];
            Vxlan vxlan::VXLAN [VxlanVni];
            Ah ipsec::AH [AhSpi AhSeq];
            Esp ipsec::ESP [EspSpi EspSeq];
            Quoted quoted::QUOTED [
                QuotedProto QuotedInetVersion QuotedInetSrc QuotedInetDst QuotedInetSport QuotedInetDport
            ];
            Quoted4 quoted::IP4 [QuotedIpSrc QuotedIpDst QuotedIpTos QuotedIpId QuotedIpTtl];
            Quoted6 quoted::IP6 [QuotedIp6Src QuotedIp6Dst QuotedIp6Ttl];
            QuotedL4 quoted::L4 [QuotedSport QuotedDport];
            QuotedEcho quoted::ECHO [QuotedId];
            Geneve geneve::GENEVE [GeneveVni GeneveProto GeneveOptions GeneveControl GeneveCritical];
            Pppoe pppoe::PPPOE [PppoeCode PppoeSession PppoeLen];
            Ppp pppoe::PPP [PppProto];
        }
    };
}
