//! The first message of a TLS connection, the ClientHello (RFC 8446 §4.1.2), and the server's name
//! in it (RFC 6066 §3).

/// The most bytes in front of the message's end.
pub const MOST: usize = 16 << 10;
/// The most records over which the message may be spread.
const MOST_RECORDS: usize = 16;
/// The type of records of a handshake, and that of the message.
pub const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// The extension with the server's name, and the type of names that are those of hosts.
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// What the first bytes of a connection are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hello {
    /// More are needed.
    Part,
    /// The message is whole. This is the server's name in lower case, which is empty if the client
    /// does not tell it.
    Whole(Vec<u8>),
    /// They are no ClientHello, or a malformed or too long one.
    Wrong,
}

impl Hello {
    /// Reads the first bytes of a connection.
    pub fn read(bytes: &[u8]) -> Self {
        match message(bytes) {
            Ok(Some(message)) => name(&mut Bytes(&message)).map_or(Self::Wrong, Self::Whole),
            Ok(None) if bytes.len() < MOST => Self::Part,
            Ok(None) | Err(Malformed) => Self::Wrong,
        }
    }
}

/// The bytes cannot be what they should be.
struct Malformed;

/// The message without its own header, from the records that have it. `None` if bytes are missing.
fn message(mut bytes: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
    let mut message = Vec::new();
    for _ in 0..MOST_RECORDS {
        let is_right = bytes.iter().zip([HANDSHAKE, 3]).all(|(byte, wanted)| *byte == wanted);
        if !is_right {
            return Err(Malformed);
        }
        let Some((&[_, _, _, high, low], rest)) = bytes.split_first_chunk() else {
            return Ok(None);
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        if len == 0 || len > MOST {
            return Err(Malformed);
        }
        message.extend(rest.iter().take(len));
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Err(Malformed);
        }
        if let Some((&[_, high, middle, low], body)) = message.split_first_chunk() {
            let wanted = u32::from_be_bytes([0, high, middle, low]);
            let wanted = usize::try_from(wanted).ok().filter(|wanted| *wanted <= MOST);
            if let Some(body) = body.get(..wanted.ok_or(Malformed)?) {
                return Ok(Some(body.to_vec()));
            }
        }
        match rest.get(len..) {
            Some(behind) => bytes = behind,
            None => return Ok(None),
        }
    }
    Err(Malformed)
}

/// The name in a message. `None` if the message is malformed.
fn name(message: &mut Bytes<'_>) -> Option<Vec<u8>> {
    // The version and a random number, then lists of the session, ciphers and compressions.
    message.take(2 + 32)?;
    message.list(1)?;
    message.list(2)?;
    message.list(1)?;
    if message.0.is_empty() {
        return Some(Vec::new());
    }
    let (mut extensions, mut found) = (message.list(2)?, None);
    while !extensions.0.is_empty() {
        let (kind, data) = (extensions.number(2)?, extensions.list(2)?);
        if kind == usize::from(SERVER_NAME) && found.replace(host(data)?).is_some() {
            return None;
        }
    }
    message.0.is_empty().then(|| found.unwrap_or_default())
}

/// The host's name in the extension. `None` if the extension is malformed.
fn host(mut extension: Bytes<'_>) -> Option<Vec<u8>> {
    let (mut names, mut found) = (extension.list(2)?, None);
    while !names.0.is_empty() {
        let (kind, name) = (names.number(1)?, names.list(2)?);
        let is_name = !name.0.is_empty() && name.0.iter().all(u8::is_ascii_graphic);
        let is_host = kind == usize::from(HOST_NAME);
        if is_host && (!is_name || found.replace(name.0.to_ascii_lowercase()).is_some()) {
            return None;
        }
    }
    found.filter(|_| extension.0.is_empty())
}

/// Bytes that are still to be read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number with this many bytes.
    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// A list behind its length, which has this many bytes.
    fn list(&mut self, bytes: usize) -> Option<Self> {
        let len = self.number(bytes)?;
        self.take(len).map(Self)
    }
}
