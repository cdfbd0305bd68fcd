//! Keys of flows as bytes.

use braid_packet::FlowKey;
use braid_tcp::{Reader, Stored};

/// Writes a key without its protocol.
pub fn put_key(key: FlowKey, out: &mut Vec<u8>) {
    let FlowKey { version, src, dst, proto: _, sport, dport } = key;
    version.put(out);
    src.put(out);
    dst.put(out);
    sport.put(out);
    dport.put(out);
}

/// Reads a key of this protocol.
pub fn get_key(proto: u8, from: &mut Reader<'_>) -> Option<FlowKey> {
    let version = u8::get(from).filter(|version| [4, 6].contains(version))?;
    let (src, dst) = (u128::get(from)?, u128::get(from)?);
    let (sport, dport) = (u16::get(from)?, u16::get(from)?);
    Some(FlowKey { version, src, dst, proto, sport, dport })
}
