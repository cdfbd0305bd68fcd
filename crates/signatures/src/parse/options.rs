//! The options of a rule.

use super::digits::{number, signed};
use super::fault::Fault;
use super::names::Names;
use super::{content, flowbits, number, packet, pcre, threshold};
use crate::flowbits::BitsOfRule;
use crate::headers::Number;
use crate::limits::{MAX_PLACE, MAX_TESTS};
use crate::rule::{Buffer, Content, Signature, Test, What};
use crate::threshold::Threshold;
use braid_intervals::IntervalSet;

/// The priority of rules that give none, as in Suricata.
const PRIORITY: u8 = 3;

/// What the options of a rule say.
pub struct Options<'a> {
    pub signature: Signature,
    pub from_client: Option<bool>,
    pub is_established: Option<bool>,
    /// `flow:only_stream`.
    pub is_of_stream: bool,
    /// `flow:no_stream`.
    pub is_of_packets: bool,
    /// What it asks of the headers of packets.
    pub numbers: Vec<(Number, IntervalSet)>,
    /// The names of the options that are there, with their places. A `flowbits:noalert` is also
    /// there as `noalert`.
    given: Vec<(&'a str, usize)>,
    /// Each with its buffer, and whether more bytes cannot make it false.
    pub tests: Vec<(Buffer, Test, bool)>,
    /// The buffer of the tests that follow (a sticky buffer).
    sticky: Buffer,
    /// The test that is the last content, if it has no sticky buffer, so that an option can give it
    /// one.
    open: Option<usize>,
    /// The options about the place of the last content.
    places: Vec<&'static str>,
    flow: [bool; 2],
    /// Of the numbers that were found.
    names: number::Names,
    pub bits: BitsOfRule,
    pub is_silent: bool,
    pub threshold: Option<Threshold>,
}

/// The buffers that options name, as modifiers of a content and as sticky buffers.
const BUFFERS: &[(&str, &str, Buffer)] = &[
    ("http_method", "http.method", Buffer::Method),
    ("http_uri", "http.uri", Buffer::Uri),
    ("http_raw_uri", "http.uri.raw", Buffer::RawUri),
    ("http_header", "http.header", Buffer::Header),
    ("http_raw_header", "http.header.raw", Buffer::RawHeader),
    ("http_host", "http.host", Buffer::Host),
    ("http_user_agent", "http.user_agent", Buffer::Field("user-agent")),
    ("http_cookie", "http.cookie", Buffer::Cookie),
    ("http_client_body", "http.request_body", Buffer::RequestBody),
    ("http_stat_code", "http.stat_code", Buffer::StatusCode),
    ("http_stat_msg", "http.stat_msg", Buffer::StatusMessage),
    ("http_server_body", "http.response_body", Buffer::ResponseBody),
    ("", "file_data", Buffer::ResponseBody),
    ("", "file.data", Buffer::ResponseBody),
    ("", "pkt_data", Buffer::Raw),
    ("http_request_line", "http.request_line", Buffer::RequestLine),
    ("http_response_line", "http.response_line", Buffer::ResponseLine),
    ("http_referer", "http.referer", Buffer::Field("referer")),
    ("http_accept", "http.accept", Buffer::Field("accept")),
    ("http_accept_enc", "http.accept_enc", Buffer::Field("accept-encoding")),
    ("http_accept_lang", "http.accept_lang", Buffer::Field("accept-language")),
    ("http_content_type", "http.content_type", Buffer::Field("content-type")),
    ("http_content_len", "http.content_len", Buffer::Field("content-length")),
    ("http_connection", "http.connection", Buffer::Field("connection")),
    ("", "http.location", Buffer::Field("location")),
    ("", "http.server", Buffer::Field("server")),
];

/// Options that need a value.
const VALUED: &[&str] = &[
    "msg",
    "sid",
    "gid",
    "rev",
    "classtype",
    "priority",
    "reference",
    "metadata",
    "target",
    "flow",
    "content",
    "uricontent",
    "pcre",
    "isdataat",
    "byte_test",
    "byte_jump",
    "byte_extract",
    "urilen",
    "threshold",
    "detection_filter",
    "flowbits",
    "offset",
    "depth",
    "distance",
    "within",
];

/// Options without a value, beside buffers.
const BARE: &[&str] = &["noalert", "nocase", "startswith", "endswith", "rawbytes", "sameip"];

/// Verifies that an option has a name, a value if it needs one, and none if it has none.
fn verify(name: &str, value: Option<&str>) -> Result<(), Fault> {
    if name.is_empty() {
        return Err(Fault::wrong("option", "its name is missing"));
    }
    let is_buffer = || BUFFERS.iter().any(|(of, sticky, _)| *of == name || *sticky == name);
    let is_valued = VALUED.contains(&name) || packet::has_value(name);
    if is_valued && value.is_none_or(str::is_empty) {
        return Err(Fault::wrong(name, "its value is missing"));
    }
    match value.is_some() && (BARE.contains(&name) || is_buffer()) {
        true => Err(Fault::wrong(name, "it has no value")),
        false => Ok(()),
    }
}

impl<'a> Options<'a> {
    /// Reads the options between the brackets, which begin at this place of the line.
    pub fn read(text: &'a str, begin: usize, names: &Names) -> Result<Self, Fault> {
        let mut options = Self {
            signature: Signature {
                sid: 0,
                gid: 1,
                rev: 0,
                priority: PRIORITY,
                message: String::new(),
                is_drop: false,
            },
            from_client: None,
            is_established: None,
            is_of_stream: false,
            is_of_packets: false,
            numbers: Vec::new(),
            given: Vec::new(),
            tests: Vec::new(),
            sticky: Buffer::Raw,
            open: None,
            places: Vec::new(),
            flow: [false; 2],
            names: Vec::new(),
            bits: BitsOfRule::default(),
            is_silent: false,
            threshold: None,
        };
        let (mut class, mut given) = (None, None);
        for (at, option) in split(text) {
            let (name, value) = match option.split_once(':') {
                Some((name, value)) => (name.trim_end(), Some(value.trim())),
                None => (option, None),
            };
            let place = begin + at;
            verify(name, value).map_err(|fault| fault.at(place))?;
            match (name, value) {
                ("classtype", Some(value)) => class = Some(value.to_ascii_lowercase()),
                ("priority", Some(value)) => {
                    given = Some(priority(value).map_err(|fault| fault.at(place))?);
                }
                _ => options.option(name, value).map_err(|fault| fault.at(place))?,
            }
            options.given.push((name, place));
            if options.is_silent && options.place_of("noalert").is_none() {
                options.given.push(("noalert", place));
            }
        }
        let of_class = class.and_then(|class| names.classes.get(&class).copied());
        options.signature.priority = given.or(of_class).unwrap_or(PRIORITY);
        Ok(options)
    }

    /// The place of an option. Of several, that of the last one.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.given.iter().rev().find(|(of, _)| *of == name).map(|(_, at)| *at)
    }

    fn option(&mut self, name: &str, value: Option<&str>) -> Result<(), Fault> {
        if let Some(of_packets) = packet::read(name, value) {
            if self.numbers.len() >= MAX_TESTS {
                return Err(Fault::wrong(name, format!("a rule has at most {MAX_TESTS} of these")));
            }
            self.numbers.push(of_packets?);
            return Ok(());
        }
        match (name, value) {
            ("msg", Some(value)) => {
                let (_, text) = content::quoted(name, value)?;
                self.signature.message = content::text(text);
            }
            ("sid", Some(value)) => self.signature.sid = number(name, value)?,
            ("gid", Some(value)) => self.signature.gid = number(name, value)?,
            ("rev", Some(value)) => self.signature.rev = number(name, value)?,
            ("reference" | "metadata" | "target", Some(_)) => {}
            ("flow", Some(value)) => self.flow(value)?,
            ("content" | "uricontent", Some(value)) => self.content(name, value)?,
            ("pcre", Some(value)) => self.pcre(value)?,
            ("isdataat", Some(value)) => self.data_at(value)?,
            ("byte_test" | "byte_jump" | "byte_extract", Some(value)) => {
                self.number(name, value)?
            }
            ("urilen", Some(value)) => self.uri_length(value)?,
            ("threshold" | "detection_filter", Some(value)) => self.threshold(name, value)?,
            ("flowbits", Some(value)) => {
                flowbits::read(value, &mut self.bits, &mut self.is_silent)?
            }
            ("noalert", None) => self.is_silent = true,
            ("nocase" | "startswith" | "endswith" | "rawbytes", None) => self.modifier(name)?,
            ("fast_pattern", _) => {
                self.last(name)?;
            }
            ("offset" | "depth" | "distance" | "within", Some(value)) => {
                self.place(name, value)?;
            }
            (name, None) => self.buffer(name)?,
            (name, Some(_)) => return Err(Fault::unsupported(name, "this option")),
        }
        Ok(())
    }

    /// `flow:established,to_server`.
    fn flow(&mut self, value: &str) -> Result<(), Fault> {
        for word in value.split(',').map(str::trim) {
            let from_client = match word {
                "established" | "not_established" => {
                    let is_established = word == "established";
                    if self.is_established.is_some_and(|other| other != is_established) {
                        return Err(Fault::wrong("flow", "it is established, or it is not"));
                    }
                    self.is_established = Some(is_established);
                    continue;
                }
                "only_stream" => {
                    self.is_of_stream = true;
                    continue;
                }
                "no_stream" => {
                    self.is_of_packets = true;
                    continue;
                }
                // Nothing is asked of the connection.
                "stateless" => continue,
                "to_server" | "from_client" => true,
                "to_client" | "from_server" => false,
                "" => return Err(Fault::wrong("flow", "a word is missing")),
                _ => return Err(Fault::unsupported("flow", format!("`{word}`"))),
            };
            self.from_client = Some(from_client);
            let [client, server] = &mut self.flow;
            *(if from_client { client } else { server }) = true;
        }
        match self.flow == [true, true] {
            true => Err(Fault::wrong("flow", "two directions")),
            false => Ok(()),
        }
    }

    fn threshold(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        if self.threshold.is_some() {
            return Err(Fault::wrong(name, "a rule has one threshold or one detection_filter"));
        }
        self.threshold = Some(threshold::read(name, value)?);
        Ok(())
    }

    fn add(
        &mut self,
        buffer: Buffer,
        what: What,
        is_relative: bool,
        is_plain: bool,
    ) -> Result<(), Fault> {
        if self.tests.len() >= MAX_TESTS {
            return Err(Fault::wrong("content", format!("a rule has at most {MAX_TESTS} tests")));
        }
        let test = Test { what, is_negated: false, is_relative, feeds: false };
        self.tests.push((buffer, test, is_plain));
        Ok(())
    }

    fn content(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        let (is_negated, text) = content::quoted(name, value)?;
        let bytes = content::bytes(text)?.into();
        let what = What::Content(Content { bytes, ..Content::default() });
        let buffer = if name == "uricontent" { Buffer::Uri } else { self.sticky };
        self.add(buffer, what, false, !is_negated)?;
        let last = self.tests.len() - 1;
        self.open = (name == "content" && self.sticky == Buffer::Raw).then_some(last);
        self.places.clear();
        if let Some((_, test, _)) = self.tests.last_mut() {
            test.is_negated = is_negated;
        }
        Ok(())
    }

    fn pcre(&mut self, value: &str) -> Result<(), Fault> {
        let pcre = pcre::pcre(value)?;
        let buffer = pcre.buffer.unwrap_or(self.sticky);
        let is_plain = pcre.is_monotone && !pcre.is_negated;
        self.add(buffer, What::Regex(Box::new(pcre.regex)), pcre.is_relative, is_plain)?;
        self.open = None;
        if let Some((_, test, _)) = self.tests.last_mut() {
            test.is_negated = pcre.is_negated;
        }
        Ok(())
    }

    /// `isdataat:[!]COUNT[,relative]`.
    fn data_at(&mut self, value: &str) -> Result<(), Fault> {
        let (is_negated, value) = match value.strip_prefix('!') {
            Some(value) => (true, value),
            None => (false, value),
        };
        let mut words = value.split(',').map(str::trim);
        let count = words.next().unwrap_or_default();
        self.is_fixed("isdataat", count)?;
        let count: u32 = number("isdataat", count)?;
        if count > MAX_PLACE {
            return Err(Fault::wrong("isdataat", "the number is out of range"));
        }
        let mut is_relative = false;
        for word in words {
            match word {
                "relative" => is_relative = true,
                "rawbytes" => {}
                "" => return Err(Fault::wrong("isdataat", "a word is missing")),
                _ => return Err(Fault::unsupported("isdataat", format!("`{word}`"))),
            }
        }
        let buffer = self.buffer_of_next(is_relative);
        self.add(buffer, What::DataAt(count as usize), is_relative, !is_negated)?;
        if let Some((_, test, _)) = self.tests.last_mut() {
            test.is_negated = is_negated;
        }
        Ok(())
    }

    /// Verifies that a value is not the name of a number that was found.
    fn is_fixed(&self, name: &str, value: &str) -> Result<(), Fault> {
        match self.names.iter().any(|of| of == value) {
            true => Err(Fault::unsupported(name, "a variable as its value")),
            false => Ok(()),
        }
    }

    /// The buffer of a test that has no place for a modifier: of the test before, if it counts from
    /// there.
    fn buffer_of_next(&self, is_relative: bool) -> Buffer {
        let last = self.tests.last().map(|(buffer, ..)| *buffer);
        last.filter(|_| is_relative).unwrap_or(self.sticky)
    }

    fn number(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        let read = number::read(name, value, &mut self.names)?;
        let buffer = self.buffer_of_next(read.is_relative);
        self.add(buffer, read.what, read.is_relative, read.is_plain)?;
        Ok(())
    }

    /// `urilen:10`, `<10`, `>10`, `10<>20`, and which URI.
    fn uri_length(&mut self, value: &str) -> Result<(), Fault> {
        let (range, which) = value.split_once(',').unwrap_or((value, "norm"));
        let buffer = match which.trim() {
            "norm" => Buffer::Uri,
            "raw" => Buffer::RawUri,
            _ => return Err(Fault::wrong("urilen", "`norm` or `raw`")),
        };
        let (least, most) = lengths("urilen", range)?;
        self.add(buffer, What::Length(least, most), false, false)?;
        self.open = None;
        Ok(())
    }

    /// The content that an option is about.
    fn last(&mut self, name: &str) -> Result<(&mut Content, &mut bool, &mut bool), Fault> {
        let contents =
            self.tests.iter_mut().rev().filter_map(|(_, test, is_plain)| match &mut test.what {
                What::Content(content) => Some((content, &mut test.is_relative, is_plain)),
                _ => None,
            });
        let mut contents = contents;
        contents.next().ok_or_else(|| Fault::wrong(name, "it stands behind a content"))
    }

    fn modifier(&mut self, name: &str) -> Result<(), Fault> {
        let is_placed = !self.places.is_empty();
        let (content, _, is_plain) = self.last(name)?;
        match name {
            "nocase" => {
                content.is_nocase = true;
                content.bytes.make_ascii_lowercase();
            }
            "startswith" if is_placed => {
                return Err(Fault::wrong(name, "it excludes offset, depth, distance and within"));
            }
            "startswith" => {
                content.room = Some(content.bytes.len());
                self.places.push("startswith");
            }
            "endswith" => {
                content.is_at_end = true;
                *is_plain = false;
            }
            _ => {}
        }
        Ok(())
    }

    /// `offset`, `depth`, `distance`, `within`.
    fn place(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        self.is_fixed(name, value)?;
        let given: i64 = signed(name, value)?;
        let becomes_relative = matches!(name, "distance" | "within");
        let kinds = if becomes_relative { ["distance", "within"] } else { ["offset", "depth"] };
        if self.places.iter().any(|place| !kinds.contains(place)) {
            let why = "a content has offset and depth, or distance and within, or startswith";
            return Err(Fault::unsupported(name, why));
        }
        self.places.extend(kinds.into_iter().filter(|kind| *kind == name));
        let (content, is_relative, _) = self.last(name)?;
        *is_relative = becomes_relative;
        match name {
            "offset" | "distance" => {
                if given.unsigned_abs() > MAX_PLACE.into() || given < 0 && !becomes_relative {
                    return Err(Fault::wrong(name, "the number is out of range"));
                }
                content.from = given;
            }
            _ => {
                let least = content.bytes.len();
                let room = usize::try_from(given).ok().filter(|room| *room >= least);
                let why = "there is no room for the content";
                content.room = Some(room.ok_or_else(|| Fault::wrong(name, why))?);
            }
        }
        Ok(())
    }

    /// A buffer: a modifier of the content before, or for the tests that follow.
    fn buffer(&mut self, name: &str) -> Result<(), Fault> {
        if let Some((_, _, buffer)) = BUFFERS.iter().find(|(_, sticky, _)| *sticky == name) {
            self.sticky = *buffer;
            self.open = None;
            return Ok(());
        }
        let modifier = BUFFERS.iter().find(|(of, ..)| *of == name && !of.is_empty());
        let Some((_, _, buffer)) = modifier else {
            return Err(Fault::unsupported(name, "this option"));
        };
        let open = self.open.take().and_then(|at| self.tests.get_mut(at..));
        let Some(([(of, ..)], behind)) = open.and_then(|tests| tests.split_at_mut_checked(1))
        else {
            return Err(Fault::wrong(name, "it stands behind a content without a buffer"));
        };
        *of = *buffer;
        // Tests that count from the end of the content look where it is.
        for (of, test, _) in behind {
            *of = if test.is_relative { *buffer } else { *of };
        }
        Ok(())
    }
}

/// The least and the largest length of `10`, `<10`, `>10` or `10<>20`.
fn lengths(name: &str, range: &str) -> Result<(usize, usize), Fault> {
    let range = range.trim();
    let count = |text: &str| number::<usize>(name, text.trim());
    if let Some((least, most)) = range.split_once("<>") {
        let (least, most) = (count(least)?.saturating_add(1), count(most)?.saturating_sub(1));
        return match least <= most {
            true => Ok((least, most)),
            false => Err(Fault::wrong(name, "no length is between them")),
        };
    }
    if let Some(least) = range.strip_prefix('>') {
        return Ok((count(least)?.saturating_add(1), usize::MAX));
    }
    if let Some(most) = range.strip_prefix('<') {
        let most = count(most)?.checked_sub(1);
        return Ok((0, most.ok_or_else(|| Fault::wrong(name, "no length is below 0"))?));
    }
    Ok((count(range)?, count(range)?))
}

/// A priority, from 1 to 255.
pub fn priority(text: &str) -> Result<u8, Fault> {
    let priority: u8 = number("priority", text.trim())?;
    match priority {
        0 => Err(Fault::wrong("priority", "a number from 1 to 255")),
        priority => Ok(priority),
    }
}

/// The options, each with its place. A `;` ends an option, except in quotes and behind `\`.
fn split(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut begin = 0;
    let parts = text.split(move |c| {
        let is_plain = !std::mem::replace(&mut is_escaped, false);
        match c {
            '\\' if is_plain => is_escaped = true,
            '"' if is_plain => is_quoted = !is_quoted,
            _ => {}
        }
        c == ';' && is_plain && !is_quoted
    });
    let parts = parts.map(move |part| {
        let at = begin + part.len() - part.trim_start().len();
        begin += part.len() + 1;
        (at, part.trim())
    });
    parts.filter(|(_, part)| !part.is_empty())
}
