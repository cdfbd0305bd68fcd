//! What native functions declare besides their action profile, as text: the event types that they
//! publish, and their tags.

use super::parse_value::{event_ty, ty};
use super::scan::{Result, Scan};
use crate::model::{Ancestor, EventDecl, EventTy, FLOW_EVENT, Kind, ROOT_EVENT, TagDecl, Ty};
use serde::{Deserialize, Serialize};

/// The most event types of a function.
const MOST_EVENTS: usize = 256;
/// The most tags of a function.
pub const MOST_TAGS: usize = 32;
/// The most fields of an event.
const MOST_FIELDS: usize = 256;
/// The type of messages, which every native function has.
const LOG: &str = "LOG";

/// The declarations of a native function. Their text form is that of the library, so what another
/// process says of a function is checked as it is read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Texts", into = "Texts")]
pub struct Declared {
    /// The types of the events that the function publishes.
    pub events: Vec<EventDecl>,
    /// The tags that the function reads or sets.
    pub tags: Vec<TagDecl>,
    texts: Texts,
}

/// The text forms.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Texts {
    events: String,
    tags: String,
}

impl Declared {
    /// The declarations that a library has.
    ///
    /// # Errors
    /// The mistake in the text, in words.
    pub fn parse(events: &str, tags: &str) -> std::result::Result<Self, String> {
        Self::try_from(Texts { events: events.to_owned(), tags: tags.to_owned() })
    }
}

impl From<Declared> for Texts {
    fn from(declared: Declared) -> Self {
        declared.texts
    }
}

impl TryFrom<Texts> for Declared {
    type Error = String;

    fn try_from(texts: Texts) -> std::result::Result<Self, String> {
        let events = events(&texts.events).map_err(|why| format!("in its events, {why}"))?;
        let tags = tags(&texts.tags).map_err(|why| format!("in its tags, {why}"))?;
        Ok(Self { events, tags, texts })
    }
}

/// Event types: `SCAN { src: ip4 } PORT_SCAN extends SCAN { ports: u32 }`.
fn events(text: &str) -> Result<Vec<EventDecl>> {
    let (mut scan, mut known) = (Scan::new(text), Vec::new());
    while !scan.at_end() {
        let decl = event(&mut scan, &known)?;
        if known.len() == MOST_EVENTS {
            return scan.wrong(format!("there are more than {MOST_EVENTS} types"));
        }
        known.push(decl);
    }
    Ok(known)
}

fn event(scan: &mut Scan<'_>, known: &[EventDecl]) -> Result<EventDecl> {
    let name = scan.word()?.to_owned();
    if [ROOT_EVENT, FLOW_EVENT, LOG].contains(&name.as_str()) {
        return scan.wrong(format!("{name} is taken"));
    }
    if known.iter().any(|other| other.name == name) {
        return scan.wrong(format!("there are two types {name}"));
    }
    let root = Ancestor { name: ROOT_EVENT.to_owned(), fields: 0 };
    let (mut ancestors, mut fields) = (vec![root], Vec::new());
    if scan.eat_word("extends") {
        let parent = scan.word()?;
        let of_flow = EventDecl::of_flow();
        let mut all = known.iter().chain([&of_flow]);
        if let Some(decl) = all.find(|other| other.name == parent) {
            fields.clone_from(&decl.fields);
            let parent = Ancestor { name: parent.to_owned(), fields: fields.len() };
            ancestors = [parent].into_iter().chain(decl.ancestors.iter().cloned()).collect();
        } else if parent != ROOT_EVENT {
            return scan.wrong(format!("there is no type {parent} in front of {name}"));
        }
    }
    scan.expect("{")?;
    for (field, ty) in scan.items("}", field)? {
        if fields.iter().any(|(other, _)| *other == field) {
            return scan.wrong(format!("{name} has two fields {field}"));
        }
        fields.push((field, ty));
    }
    if fields.len() > MOST_FIELDS {
        return scan.wrong(format!("{name} has more than {MOST_FIELDS} fields"));
    }
    Ok(EventDecl { name, ancestors, fields })
}

/// Tags: `colour: u8 mark: u16`.
fn tags(text: &str) -> Result<Vec<TagDecl>> {
    let (mut scan, mut known) = (Scan::new(text), Vec::<TagDecl>::new());
    while !scan.at_end() {
        let name = scan.word()?.to_owned();
        if known.iter().any(|other| other.name == name) {
            return scan.wrong(format!("there are two tags {name}"));
        }
        if known.len() == MOST_TAGS {
            return scan.wrong(format!("there are more than {MOST_TAGS} tags"));
        }
        scan.expect(":")?;
        let ty = ty(&mut scan)?;
        scalar(&scan, ty)?;
        known.push(TagDecl { name, ty });
    }
    Ok(known)
}

/// `src: ip4`.
fn field(scan: &mut Scan<'_>) -> Result<(String, EventTy)> {
    let name = scan.word()?.to_owned();
    scan.expect(":")?;
    let ty = event_ty(scan)?;
    if let EventTy::Scalar(ty) = ty {
        scalar(scan, ty)?;
    }
    Ok((name, ty))
}

/// Checks a type that was just read.
fn scalar(scan: &Scan<'_>, ty: Ty) -> Result<()> {
    let has_width = ty.kind.width().is_none_or(|width| width == ty.width);
    match ty.kind {
        Kind::Length | Kind::Bytes => scan.wrong(format!("{ty} is no type of a number")),
        _ if (1..=128).contains(&ty.width) && has_width => Ok(()),
        _ => scan.wrong(format!("{ty} cannot have {} bits", ty.width)),
    }
}

#[cfg(test)]
mod tests {
    use super::Declared;

    #[test]
    fn types_have_the_fields_of_types_that_they_extend() {
        let text =
            "SCAN extends EVENT { src: ip4 }\nPORT_SCAN extends SCAN { ports: u32, who: string }";
        let declared = Declared::parse(text, "colour: u8\nhost: ip4").unwrap();
        let [scan, ports] = &declared.events[..] else { panic!("{declared:?}") };
        assert_eq!((scan.fields.len(), scan.ancestor_names()), (1, vec!["EVENT".to_owned()]));
        assert_eq!(ports.ancestor_names(), ["SCAN", "EVENT"]);
        assert_eq!((ports.ancestors[0].fields, ports.ancestors[1].fields), (1, 0));
        let names: Vec<&str> = ports.fields.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["src", "ports", "who"]);
        let tags: Vec<_> = declared.tags.iter().map(|tag| (&*tag.name, tag.ty.width)).collect();
        assert_eq!(tags, [("colour", 8), ("host", 32)]);
        let ending = Declared::parse("END extends FLOW { why: u8 }", "").unwrap();
        assert_eq!(ending.events[0].ancestor_names(), ["FLOW", "EVENT"]);
        assert!(ending.events[0].names_flow() && ending.events[0].fields.len() == 7);
        let wire = serde_json::to_string(&declared).unwrap();
        assert_eq!(serde_json::from_str::<Declared>(&wire).unwrap(), declared);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, why) in [
            ("SCAN", "in its events, line 1, column 5: expected `{`"),
            ("LOG {}", "in its events, line 1, column 1: LOG is taken"),
            ("FLOW {}", "in its events, line 1, column 1: FLOW is taken"),
            ("A {}\nA {}", "in its events, line 2, column 1: there are two types A"),
            (
                "B extends A {}",
                "in its events, line 1, column 11: there is no type A in front of B",
            ),
            ("A { a: u129 }", "in its events, line 1, column 8: u129 cannot have 129 bits"),
            ("A { a: u0 }", "in its events, line 1, column 8: u0 cannot have 0 bits"),
            ("A { a: bytes }", "in its events, line 1, column 8: bytes is no type of a number"),
            ("A { a: text }", "in its events, line 1, column 8: `text` is not a type"),
        ] {
            assert_eq!(Declared::parse(text, "").unwrap_err(), why, "{text}");
        }
        assert!(Declared::parse("A { a: u8 } B extends A { a: u8 }", "").is_err());
        for (text, why) in [
            ("colour", "in its tags, line 1, column 7: expected `:`"),
            (
                "a: u8
a: u8",
                "in its tags, line 2, column 1: there are two tags a",
            ),
            ("a: string", "in its tags, line 1, column 4: `string` is not a type"),
        ] {
            assert_eq!(Declared::parse("", text).unwrap_err(), why, "{text}");
        }
        assert!(serde_json::from_str::<Declared>("{\"events\":\"A\",\"tags\":\"\"}").is_err());
    }
}
