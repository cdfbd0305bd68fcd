//! Numbers and lists as bytes, for what is saved.

/// Writes a number.
pub fn number(number: u64, out: &mut Vec<u8>) {
    out.extend(number.to_le_bytes());
}

/// Writes a list of bytes.
pub fn list(bytes: &[u8], out: &mut Vec<u8>) {
    number(bytes.len() as u64, out);
    out.extend(bytes);
}

/// Takes this number of bytes. `None` if there are fewer.
pub fn take<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

/// Reads a number.
pub fn read_number(from: &mut &[u8]) -> Option<u64> {
    take(from, 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// Reads a number that is 0 or 1.
pub fn read_bool(from: &mut &[u8]) -> Option<bool> {
    match read_number(from)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Reads a list of bytes with at most this length.
pub fn read_list<'a>(from: &mut &'a [u8], most: usize) -> Option<&'a [u8]> {
    let len = usize::try_from(read_number(from)?).ok().filter(|len| *len <= most)?;
    take(from, len)
}
