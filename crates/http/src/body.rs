//! Where the body of a message ends.

use crate::head::{Head, Line, Malformed};
use crate::limits::{MAX_EXTENSIONS, MAX_HEAD};

/// What a response needs to know of its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    Head,
    Connect,
    Other,
}

impl Method {
    /// The method with this name.
    pub fn of(name: &str) -> Self {
        match name {
            "HEAD" => Self::Head,
            "CONNECT" => Self::Connect,
            _ => Self::Other,
        }
    }
}

/// How the length of a body is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// That many bytes are left.
    Length(u64),
    Chunked(Chunk),
    /// It has all bytes up to the end of the connection.
    UntilEnd,
}

/// A place in a chunked body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chunk {
    /// The size, and the number of its digits.
    Size(u64, u8),
    /// Behind the size, with the number of bytes of extensions.
    Extension(u64, u32),
    /// Bytes of data that are left.
    Data(u64),
    /// The line end behind the data: whether its CR has come.
    DataEnd(bool),
    /// The trailer: the bytes of the current line, and of all lines.
    Trailer(u32, u32),
}

/// What the next bytes of a body are.
pub enum Next {
    /// That many bytes of data.
    Data(usize),
    /// One byte of the framing.
    Framing,
    /// One byte of the framing, the last one of the message.
    Last,
}

impl Framing {
    /// Of a message with this head. `None` without a body. `method` is that of a response's
    /// request.
    pub fn of(head: &Head<'_>, method: Method) -> Result<Option<Self>, Malformed> {
        let (length, is_chunked) = (head.content_length()?, head.is_chunked());
        let without = match head.line {
            Line::Request { .. } => false,
            Line::Response { code, .. } => {
                method == Method::Head || matches!(code, 100..=199 | 204 | 304)
            }
        };
        Ok(match (without, is_chunked, length) {
            (true, ..) | (false, false, Some(0)) => None,
            (_, true, _) => Some(Self::Chunked(Chunk::Size(0, 0))),
            (_, _, Some(length)) => Some(Self::Length(length)),
            (_, _, None) if matches!(head.line, Line::Request { .. }) => None,
            (_, _, None) => Some(Self::UntilEnd),
        })
    }

    /// Whether the body is complete.
    pub fn is_complete(self) -> bool {
        self == Self::Length(0)
    }

    /// Goes on behind bytes that are missing, if they can only be bytes of the body. Returns
    /// whether that is so.
    pub fn skip(&mut self, missing: u64) -> bool {
        match self {
            Self::UntilEnd => true,
            Self::Length(left) if missing <= *left => {
                *left -= missing;
                true
            }
            Self::Chunked(chunk) => chunk.skip(missing),
            Self::Length(_) => false,
        }
    }

    /// What the next bytes are. There is at least one.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Next, Malformed> {
        let run = |left: &mut u64| {
            let run = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= run as u64;
            run
        };
        let first = bytes.first().copied().unwrap_or_default();
        match self {
            Self::UntilEnd => Ok(Next::Data(bytes.len())),
            Self::Length(left) => Ok(Next::Data(run(left))),
            Self::Chunked(chunk @ Chunk::Data(_)) => {
                let Chunk::Data(left) = chunk else { return Err(Malformed) };
                let taken = run(left);
                if *left == 0 {
                    *chunk = Chunk::DataEnd(false);
                }
                Ok(Next::Data(taken))
            }
            Self::Chunked(chunk) => chunk.framing(first),
        }
    }
}

impl Chunk {
    /// Goes on behind bytes that are missing, if they can only be data.
    fn skip(&mut self, missing: u64) -> bool {
        let Self::Data(left) = self else { return false };
        let Some(rest) = left.checked_sub(missing) else { return false };
        *self = if rest == 0 { Self::DataEnd(false) } else { Self::Data(rest) };
        true
    }

    /// The next byte of the framing.
    fn framing(&mut self, byte: u8) -> Result<Next, Malformed> {
        *self = match (*self, byte) {
            (Self::Size(size, 1..) | Self::Extension(size, _), b'\n') => match size {
                0 => Self::Trailer(0, 0),
                size => Self::Data(size),
            },
            (Self::Size(size, 1..), b'\r' | b' ' | b'\t' | b';') => Self::Extension(size, 0),
            (Self::Size(size, digits), _) => {
                let digit = char::from(byte).to_digit(16).ok_or(Malformed)?;
                let size = size.checked_mul(16).ok_or(Malformed)? | u64::from(digit);
                Self::Size(size, digits.saturating_add(1))
            }
            (Self::Extension(_, MAX_EXTENSIONS..), _) => return Err(Malformed),
            (Self::Extension(size, len), _) => Self::Extension(size, len + 1),
            (Self::DataEnd(false), b'\r') => Self::DataEnd(true),
            (Self::DataEnd(_), b'\n') => Self::Size(0, 0),
            (Self::Trailer(0, _), b'\n') => return Ok(Next::Last),
            (Self::Trailer(_, all), b'\n') => Self::Trailer(0, all),
            (Self::Trailer(line, all), b'\r') => Self::Trailer(line, all),
            (Self::Trailer(line, all), _) if (all as usize) < MAX_HEAD => {
                Self::Trailer(line + 1, all + 1)
            }
            (Self::Data(_) | Self::DataEnd(_) | Self::Trailer(..), _) => return Err(Malformed),
        };
        Ok(Next::Framing)
    }
}
