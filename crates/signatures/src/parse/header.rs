//! Lists of addresses and ports, and variables that stand for them.

use super::fault::Fault;
use crate::limits::{MAX_NESTED, MAX_RANGES};
use crate::rule::Addresses;
use braid_intervals::IntervalSet;
use std::collections::HashMap;
use std::net::IpAddr;

/// The variables that every file has, as Suricata's own configuration names them.
const PREDECLARED: &[(&str, &str)] = &[
    ("HOME_NET", "any"),
    ("EXTERNAL_NET", "any"),
    ("HTTP_SERVERS", "$HOME_NET"),
    ("SMTP_SERVERS", "$HOME_NET"),
    ("SQL_SERVERS", "$HOME_NET"),
    ("DNS_SERVERS", "$HOME_NET"),
    ("TELNET_SERVERS", "$HOME_NET"),
    ("AIM_SERVERS", "$EXTERNAL_NET"),
    ("DC_SERVERS", "$HOME_NET"),
    ("DNP3_SERVER", "$HOME_NET"),
    ("DNP3_CLIENT", "$HOME_NET"),
    ("MODBUS_SERVER", "$HOME_NET"),
    ("MODBUS_CLIENT", "$HOME_NET"),
    ("ENIP_SERVER", "$HOME_NET"),
    ("ENIP_CLIENT", "$HOME_NET"),
    ("HTTP_PORTS", "80"),
    ("SHELLCODE_PORTS", "!80"),
    ("ORACLE_PORTS", "1521"),
    ("SSH_PORTS", "22"),
    ("DNP3_PORTS", "20000"),
    ("MODBUS_PORTS", "502"),
    ("FILE_DATA_PORTS", "[$HTTP_PORTS,110,143]"),
    ("FTP_PORTS", "21"),
];

/// The lists that variables stand for.
#[derive(Debug, Default)]
pub struct Lists {
    /// What a list means as addresses, and as ports.
    declared: HashMap<String, (Option<Addresses>, Option<IntervalSet>)>,
}

/// A kind of lists.
trait List: Sized + Clone + Default {
    fn all() -> Self;
    fn one(text: &str) -> Option<Self>;
    fn union(all: &[Self]) -> Self;
    fn without(&self, other: &Self) -> Self;
    fn is_empty(&self) -> bool;
    fn len(&self) -> usize;
    fn named(lists: &Lists, name: &str, depth: usize) -> Option<Self>;
}

impl Lists {
    pub fn len(&self) -> usize {
        self.declared.len()
    }

    /// Declares a variable. It may use those before it.
    pub fn declare(&mut self, name: &str, list: &str) -> Result<(), Fault> {
        let addresses = self.addresses(list);
        let ports = self.ports(list);
        if let (Err(fault), Err(_)) = (&addresses, &ports) {
            return Err(Fault { name: format!("${name}"), ..fault.clone() });
        }
        self.declared.insert(name.to_owned(), (addresses.ok(), ports.ok()));
        Ok(())
    }

    /// The addresses of a list.
    pub fn addresses(&self, text: &str) -> Result<Addresses, Fault> {
        self.list(text, 0, "addresses")
    }

    /// The ports of a list.
    pub fn ports(&self, text: &str) -> Result<IntervalSet, Fault> {
        self.list(text, 0, "ports")
    }

    fn list<T: List>(&self, text: &str, depth: usize, what: &str) -> Result<T, Fault> {
        let found = self.parts::<T>(text, depth, what)?;
        if found.is_empty() {
            return Err(Fault::unsupported(what, format!("`{text}` has no {what}")));
        }
        Ok(found)
    }

    fn parts<T: List>(&self, text: &str, depth: usize, what: &str) -> Result<T, Fault> {
        let text = text.trim();
        if depth > MAX_NESTED {
            return Err(Fault::wrong(what, format!("lists nest at most {MAX_NESTED} deep")));
        }
        if let Some(text) = text.strip_prefix('!') {
            return Ok(T::all().without(&self.parts(text, depth + 1, what)?));
        }
        if let Some(name) = text.strip_prefix('$') {
            let unknown = || Fault::wrong(what, format!("there is no variable ${name} of {what}"));
            return T::named(self, name, depth).ok_or_else(unknown);
        }
        let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
            if text.eq_ignore_ascii_case("any") {
                return Ok(T::all());
            }
            return T::one(text).ok_or_else(|| Fault::wrong(what, format!("`{text}` is none")));
        };
        let (mut found, mut but): (Vec<T>, Vec<T>) = (Vec::new(), Vec::new());
        let mut count = 0;
        for part in split(inner) {
            let part = part.trim();
            let (list, part) = match part.strip_prefix('!') {
                Some(part) => (&mut but, part),
                None => (&mut found, part),
            };
            let part = self.parts::<T>(part, depth + 1, what)?;
            count += part.len();
            if count > MAX_RANGES {
                return Err(Fault::wrong(what, format!("a list has at most {MAX_RANGES} ranges")));
            }
            list.push(part);
        }
        let all = if found.is_empty() { T::all() } else { T::union(&found) };
        Ok(all.without(&T::union(&but)))
    }

    fn predeclared<T: List>(&self, name: &str, depth: usize) -> Option<T> {
        let (_, list) = PREDECLARED.iter().find(|(of, _)| *of == name)?;
        self.parts(list, depth + 1, name).ok()
    }
}

/// Splits a list at its commas, but not at those of lists within it.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

impl List for Addresses {
    fn all() -> Self {
        let v4 = IntervalSet::new([(0, u32::MAX.into())]);
        Self { v4, v6: IntervalSet::new([(0, u128::MAX)]) }
    }

    fn one(text: &str) -> Option<Self> {
        let of = |text: &str| match text.trim().parse().ok()? {
            IpAddr::V4(address) => Some((true, u128::from(u32::from(address)))),
            IpAddr::V6(address) => Some((false, u128::from(address))),
        };
        let (is_v4, range) = if let Some((first, last)) = text.split_once('-') {
            let ((a, first), (b, last)) = (of(first)?, of(last)?);
            (a == b && first <= last).then_some((a, (first, last)))?
        } else {
            let (address, length) = match text.split_once('/') {
                Some((address, length)) => (address, Some(length.parse::<u32>().ok()?)),
                None => (text, None),
            };
            let (is_v4, address) = of(address)?;
            let width: u32 = if is_v4 { 32 } else { 128 };
            let free = width.checked_sub(length.unwrap_or(width))?;
            let host = 1_u128.checked_shl(free).map_or(u128::MAX, |size| size - 1);
            (is_v4, (address & !host, address | host))
        };
        let (range, none) = (IntervalSet::new([range]), IntervalSet::default());
        Some(if is_v4 { Self { v4: range, v6: none } } else { Self { v4: none, v6: range } })
    }

    fn union(all: &[Self]) -> Self {
        let of = |of: fn(&Self) -> &IntervalSet| IntervalSet::union_of(all.iter().map(of));
        Self { v4: of(|one| &one.v4), v6: of(|one| &one.v6) }
    }

    fn without(&self, other: &Self) -> Self {
        Self { v4: self.v4.without(&other.v4), v6: self.v6.without(&other.v6) }
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn len(&self) -> usize {
        self.v4.intervals().len() + self.v6.intervals().len()
    }

    fn named(lists: &Lists, name: &str, depth: usize) -> Option<Self> {
        match lists.declared.get(name) {
            Some((addresses, _)) => addresses.clone(),
            None => lists.predeclared(name, depth),
        }
    }
}

impl List for IntervalSet {
    fn all() -> Self {
        Self::new([(0, u16::MAX.into())])
    }

    fn one(text: &str) -> Option<Self> {
        let port = |text: &str| text.trim().parse::<u16>().ok();
        let (first, last) = match text.split_once(':') {
            Some((first, "")) => (port(first)?, u16::MAX),
            Some(("", last)) => (0, port(last)?),
            Some((first, last)) => (port(first)?, port(last)?),
            None => (port(text)?, port(text)?),
        };
        (first <= last).then(|| Self::new([(first.into(), last.into())]))
    }

    fn union(all: &[Self]) -> Self {
        Self::union_of(all)
    }

    fn without(&self, other: &Self) -> Self {
        self.without(other)
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn len(&self) -> usize {
        self.intervals().len()
    }

    fn named(lists: &Lists, name: &str, depth: usize) -> Option<Self> {
        match lists.declared.get(name) {
            Some((_, ports)) => ports.clone(),
            None => lists.predeclared(name, depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lists;

    fn ports(text: &str) -> Vec<u128> {
        let ports = Lists::default().ports(text).expect("ports");
        [0, 21, 22, 79, 80, 81, 443, 8080, 65_535]
            .into_iter()
            .filter(|p| ports.contains(*p))
            .collect()
    }

    #[test]
    fn lists_of_ports() {
        assert_eq!(ports("any").len(), 9);
        assert_eq!(ports("80"), [80]);
        assert_eq!(ports("[80:443,!81]"), [80, 443]);
        assert_eq!(ports("[21:, ![80:81,8080:]]"), [21, 22, 79, 443]);
        assert_eq!(ports("![:79,443]"), [80, 81, 8080, 65_535]);
        assert_eq!(ports("[!80,!443]"), [0, 21, 22, 79, 81, 8080, 65_535]);
        assert_eq!(ports("$HTTP_PORTS"), [80]);
        for wrong in ["", "x", "65536", "9:8", "[80", "$NO_PORTS", "$HOME_NETS", "!any", "[80,!80]"]
        {
            assert!(Lists::default().ports(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_of_addresses() {
        let mut lists = Lists::default();
        lists.declare("HOME_NET", "[10.0.0.0/8,2001:db8::/32,!10.1.0.0/16]").expect("a list");
        lists.declare("EXTERNAL_NET", "!$HOME_NET").expect("a list");
        let has = |list: &str, address: &str| {
            let of = lists.addresses(list).expect("addresses");
            match address.parse().expect("an address") {
                std::net::IpAddr::V4(address) => of.v4.contains(u32::from(address).into()),
                std::net::IpAddr::V6(address) => of.v6.contains(address.into()),
            }
        };
        for (list, address, wanted) in [
            ("$HTTP_SERVERS", "10.2.3.4", true),
            ("$HOME_NET", "10.1.3.4", false),
            ("$EXTERNAL_NET", "10.1.3.4", true),
            ("$EXTERNAL_NET", "2001:db8::1", false),
            ("$EXTERNAL_NET", "2001:db9::1", true),
            ("1.2.3.4", "1.2.3.4", true),
            ("1.2.3.4", "1.2.3.5", false),
            ("1.2.3.4-1.2.3.6", "1.2.3.5", true),
            ("[1.2.3.4/31,5.6.7.8]", "1.2.3.5", true),
            ("any", "::", true),
        ] {
            assert_eq!(has(list, address), wanted, "{list} {address}");
        }
        for wrong in ["1.2.3", "1.2.3.4/33", "::/129", "::-1.2.3.4", "!any", "[[[[[[[[[[[[[[[[[[1"]
        {
            assert!(lists.addresses(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn variables_that_use_one_another_stay_small() {
        let mut lists = Lists::default();
        lists.declare("V0", "[1.2.3.4,1.2.3.6]").expect("a list");
        for at in 1..200 {
            let list = format!("[$V{0},$V{0},$V{0}]", at - 1);
            lists.declare(&format!("V{at}"), &list).expect("a list");
        }
        assert_eq!(lists.addresses("$V199"), lists.addresses("$V0"));
    }
}
