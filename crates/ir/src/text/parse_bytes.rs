//! Parses parts of operations on bytes of the packet and on strings.

use super::parse_ops::{Parser, header};
use super::scan::Result;
use crate::model::{Area, Haystack, StringParts, ValueId};
use braid_packet::Header;

impl Parser<'_, '_> {
    /// The area that the name of an operation ends in, with the kind that follows.
    pub(super) fn area(&mut self, name: &str) -> Result<Area> {
        let area = match name.split_once('_').map_or(name, |(_, area)| area) {
            "payload" => return Ok(Area::Payload),
            "ip_option" => Area::IpOption,
            "extension" => Area::Ip6Extension,
            _ => Area::TcpOption,
        };
        let kind = self.scan.number()?;
        self.scan.expect(",")?;
        Ok(area(kind))
    }

    /// A TCP option with its values.
    pub(super) fn option(&mut self) -> Result<(Header, Vec<ValueId>)> {
        let option = header(self.scan)?;
        self.scan.expect("(")?;
        Ok((option, self.scan.items(")", |scan| scan.id("v").map(ValueId))?))
    }

    /// The value that a TCP option gets, if it is not removed: `, v1, (v2, …)`.
    pub(super) fn option_value(&mut self) -> Result<Option<StringParts>> {
        if !self.scan.eat(",") {
            return Ok(None);
        }
        self.text().map(Some)
    }

    /// The length and the words of a string: `v1, (v2, …)`.
    fn text(&mut self) -> Result<StringParts> {
        let len = self.value()?;
        self.scan.expect(",")?;
        self.scan.expect("(")?;
        Ok((len, self.values(")")?))
    }

    /// What a search looks at: `, part v1, v2`, `, text v1, (v2, …)`, or nothing for the payload.
    pub(super) fn haystack(&mut self) -> Result<Haystack> {
        if !self.scan.eat(",") {
            return Ok(Haystack::Payload);
        }
        if self.scan.eat_word("part") {
            return Ok(Haystack::Part(self.value()?, self.comma_value()?));
        }
        if !self.scan.eat_word("text") {
            return self.scan.error("expected `part` or `text`");
        }
        self.text().map(|(len, words)| Haystack::Text(len, words))
    }
}
