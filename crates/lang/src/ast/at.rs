//! Bytes of the packet that are no fields.

use super::{Expr, Ident, OptionOf};

/// `u16 at payload + OFFSET`, `"GET " at tcp.option(KIND)`: bytes of the packet that are no fields.
#[derive(Clone, PartialEq, Debug)]
pub struct At {
    /// What the bytes are.
    pub what: Chunk,
    /// What has the bytes.
    pub within: Within,
    /// Where they begin. `None`: at the beginning.
    pub offset: Option<Expr>,
}

/// What has bytes that are no fields.
#[derive(Clone, PartialEq, Debug)]
pub enum Within {
    /// The payload.
    Payload,
    /// The value of the option of this kind.
    Option(OptionOf, Expr),
    /// The payload from this header of the program on.
    Header(Ident),
}

impl At {
    /// The expressions in it.
    pub fn parts(&self) -> impl Iterator<Item = &Expr> {
        let len = match &self.what {
            Chunk::Bytes(_, len) => len.as_ref(),
            Chunk::Number(_) | Chunk::Text(_) => None,
        };
        let kind = match &self.within {
            Within::Option(_, kind) => Some(kind),
            Within::Payload | Within::Header(_) => None,
        };
        kind.into_iter().chain(&self.offset).chain(len)
    }
}

/// The form of bytes that are no fields.
#[derive(Clone, PartialEq, Debug)]
pub enum Chunk {
    /// A number of a type.
    Number(Ident),
    /// This text.
    Text(String),
    /// A string. Its type has room for the first number of bytes. The value behind `for` is its
    /// length; without `for`, the string fills the room.
    Bytes(u128, Option<Expr>),
}
