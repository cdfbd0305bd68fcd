//! Facts about the headers of packets of one header shape.

use braid_ir::residual::HeaderMask;
use braid_packet::{HEADERS, Header};

/// Headers that are known to be present or absent.
///
/// Memory safety depends on this: machine code reads fields of headers that are present without
/// checking lengths. Everything here follows from what [`braid_packet::Layout`] guarantees about
/// presence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Headers {
    present: u128,
    absent: u128,
}

impl Headers {
    /// The headers of packets of this shape, with all consequences.
    pub(crate) fn of(shape: HeaderMask) -> Headers {
        let mut known = Headers {
            present: shape.care & shape.present | Header::Pkt.bit(),
            absent: shape.care & !shape.present,
        };
        loop {
            let before = known;
            for (header, _) in HEADERS {
                known.close(*header);
            }
            for (header, _) in HEADERS {
                if let [a, b] = header.info().one_of {
                    known.either(*header, *a, *b);
                }
            }
            if known == before {
                return known;
            }
        }
    }

    /// Whether a header is present, if that is known.
    pub(crate) fn has(self, header: Header) -> Option<bool> {
        let bit = header.bit();
        if self.present & bit != 0 {
            return Some(true);
        }
        (self.absent & bit != 0).then_some(false)
    }

    pub(crate) fn is_present(self, header: Header) -> bool {
        self.has(header) == Some(true)
    }

    /// Records the consequences of a header: if it is present, so are the headers that it implies.
    /// If one of these is absent, the header is absent.
    fn close(&mut self, header: Header) {
        for implied in header.implies() {
            if self.is_present(header) {
                self.present |= implied.bit();
            }
            if self.has(*implied) == Some(false) {
                self.absent |= header.bit();
            }
        }
    }

    /// Records the consequences of the rule that `any` is present if and only if exactly one of `a`
    /// and `b` is.
    fn either(&mut self, any: Header, a: Header, b: Header) {
        for (one, other) in [(a, b), (b, a)] {
            if self.is_present(one) {
                self.absent |= other.bit();
            }
            if self.is_present(any) && self.has(one) == Some(false) {
                self.present |= other.bit();
            }
        }
        if self.has(a) == Some(false) && self.has(b) == Some(false) {
            self.absent |= any.bit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(present: &[Header], absent: &[Header]) -> Headers {
        let present = Header::bits(present);
        Headers::of(HeaderMask { care: present | Header::bits(absent), present })
    }

    #[test]
    fn headers_bring_what_they_imply() {
        let known = known(&[Header::Ip4, Header::Tcp], &[]);
        for header in [Header::Pkt, Header::Inet, Header::L4] {
            assert_eq!(known.has(header), Some(true), "{header:?}");
        }
        for header in [Header::Ip6, Header::Udp, Header::Vxlan, Header::Icmp6Echo] {
            assert_eq!(known.has(header), Some(false), "{header:?}");
        }
        for header in [Header::Eth, Header::TcpMss, Header::Icmp] {
            assert_eq!(known.has(header), None, "{header:?}");
        }
    }

    #[test]
    fn one_of_two_is_there_without_the_other() {
        assert_eq!(known(&[Header::Inet], &[Header::Ip4]).has(Header::Ip6), Some(true));
        assert_eq!(known(&[], &[Header::Ip4, Header::Ip6]).has(Header::Inet), Some(false));
        assert_eq!(known(&[], &[Header::Inet]).has(Header::Tcp), Some(false));
        assert_eq!(known(&[], &[Header::Tcp]).has(Header::L4), None);
    }
}
