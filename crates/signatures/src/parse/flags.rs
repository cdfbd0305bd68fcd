//! The flags behind an expression of PCRE.

use super::fault::Fault;
use crate::rule::Buffer;

/// What flags say.
#[derive(Default)]
pub struct Flags {
    pub is_nocase: bool,
    pub is_dot_all: bool,
    pub is_multi_line: bool,
    pub is_extended: bool,
    pub is_ungreedy: bool,
    pub is_anchored: bool,
    pub is_dollar_end: bool,
    pub is_relative: bool,
    pub buffer: Option<Buffer>,
}

impl Flags {
    /// Reads flags.
    ///
    /// # Errors
    /// A flag is unknown, or two name different buffers.
    pub fn read(text: &str) -> Result<Self, Fault> {
        let mut flags = Self::default();
        for c in text.chars() {
            let buffer = match c {
                'i' => {
                    flags.is_nocase = true;
                    continue;
                }
                's' => {
                    flags.is_dot_all = true;
                    continue;
                }
                'm' => {
                    flags.is_multi_line = true;
                    continue;
                }
                'x' => {
                    flags.is_extended = true;
                    continue;
                }
                'G' => {
                    flags.is_ungreedy = true;
                    continue;
                }
                'A' => {
                    flags.is_anchored = true;
                    continue;
                }
                'E' => {
                    flags.is_dollar_end = true;
                    continue;
                }
                'R' => {
                    flags.is_relative = true;
                    continue;
                }
                // Raw bytes, and no limit on matches: nothing changes.
                'B' | 'O' => continue,
                'U' => Buffer::Uri,
                'I' => Buffer::RawUri,
                'M' => Buffer::Method,
                'H' => Buffer::Header,
                'D' => Buffer::RawHeader,
                'C' => Buffer::Cookie,
                'P' => Buffer::RequestBody,
                'Q' => Buffer::ResponseBody,
                'S' => Buffer::StatusCode,
                'Y' => Buffer::StatusMessage,
                'V' => Buffer::Field("user-agent"),
                'W' => Buffer::Host,
                c => return Err(Fault::unsupported("pcre", format!("its flag `{c}`"))),
            };
            if flags.buffer.replace(buffer).is_some_and(|before| before != buffer) {
                return Err(Fault::wrong("pcre", "its flags name two buffers"));
            }
        }
        Ok(flags)
    }
}
