//! What a connection brings, as bytes in shared memory.

use crate::stream::{Data, News, What};
use braid_packet::{FlowKey, proto};

/// The bytes in front of the data: what it brings, the version of IP, the ports, the addresses, and
/// the place of the first byte.
const HEAD: usize = 48;
const OPEN: u8 = 0;
const CLIENT: u8 = 1;
const SERVER: u8 = 2;
const CLOSE: u8 = 3;

/// Writes the news behind each other.
pub(super) fn put(News { client, what }: News<'_>, out: &mut Vec<u8>) {
    let (kind, offset, bytes): (u8, u64, &[u8]) = match what {
        What::Open => (OPEN, 0, &[]),
        What::Data(data) if data.from_client => (CLIENT, data.offset, data.bytes),
        What::Data(data) => (SERVER, data.offset, data.bytes),
        What::Close => (CLOSE, 0, &[]),
    };
    out.clear();
    out.extend_from_slice(&[kind, client.version, 0, 0]);
    out.extend_from_slice(&client.sport.to_le_bytes());
    out.extend_from_slice(&client.dport.to_le_bytes());
    out.extend_from_slice(&client.src.to_le_bytes());
    out.extend_from_slice(&client.dst.to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Reads news. `None` if the bytes are none.
pub(super) fn get(all: &[u8]) -> Option<News<'_>> {
    let (head, bytes) = all.split_first_chunk::<HEAD>()?;
    let ([kind, version, ..], rest) = head.split_first_chunk::<4>()?;
    let (sport, rest) = rest.split_first_chunk()?;
    let (dport, rest) = rest.split_first_chunk()?;
    let (src, rest) = rest.split_first_chunk()?;
    let (dst, rest) = rest.split_first_chunk()?;
    let (offset, _) = rest.split_first_chunk()?;
    let client = FlowKey {
        version: *version,
        src: u128::from_le_bytes(*src),
        dst: u128::from_le_bytes(*dst),
        proto: proto::TCP,
        sport: u16::from_le_bytes(*sport),
        dport: u16::from_le_bytes(*dport),
    };
    let offset = u64::from_le_bytes(*offset);
    let data = |from_client| What::Data(Data { from_client, bytes, offset, missing: 0 });
    let what = match *kind {
        OPEN => What::Open,
        CLIENT => data(true),
        SERVER => data(false),
        CLOSE => What::Close,
        _ => return None,
    };
    Some(News { client, what })
}

#[cfg(test)]
mod tests {
    use super::{HEAD, get, put};
    use crate::stream::{Data, News, What};
    use braid_packet::FlowKey;

    #[test]
    fn news_are_read_as_they_are_written() {
        let client = FlowKey { version: 6, src: 7 << 99, dst: 2, proto: 6, sport: 3, dport: 65535 };
        let data = |from_client, bytes| {
            What::Data(Data { from_client, bytes, offset: 1 << 40, missing: 0 })
        };
        let mut bytes = Vec::new();
        for what in [What::Open, data(true, b"some"), data(false, b""), What::Close] {
            put(News { client, what }, &mut bytes);
            assert_eq!(get(&bytes), Some(News { client, what }));
        }
        assert_eq!(get(&bytes[..HEAD - 1]), None);
        bytes[0] = 9;
        assert_eq!(get(&bytes), None);
    }
}
