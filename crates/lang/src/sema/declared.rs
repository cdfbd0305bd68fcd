//! The declarations of headers that a program declares, resolved: what each follows, and where its
//! fields are.

use std::collections::BTreeSet;

use braid_ir::model::{Kind, Ty};
use braid_packet::Header;

use super::say;
use super::types::{self, Type};
use crate::ast::{HeaderDef, Ident, Path, joined};
use crate::diag::{Diagnostic, Diagnostics, codes, did_you_mean_help};

/// The most bytes that the fields of a header take.
const MAX_BYTES: u32 = 256;
/// The most bytes that a field touches: one operation reads or writes them.
const MAX_FIELD_BYTES: u32 = 16;
/// How many declared headers may follow each other.
pub const MAX_NESTING: usize = 16;

/// A declared header.
pub struct DeclaredHeader<'a> {
    /// Its declaration.
    pub def: &'a HeaderDef,
    /// The headers in front of it, as the declaration lists them.
    pub parents: Vec<Parent>,
    /// Its fields.
    pub fields: Vec<DeclaredField>,
    /// The number of the field with its checksum.
    pub checksum: Option<usize>,
    /// The bytes of its fields.
    pub least: u32,
}

impl DeclaredHeader<'_> {
    /// The number of the field that a dotted name stands for.
    ///
    /// # Errors
    /// The name stands for no field.
    pub fn field(&self, path: &Path) -> Result<usize, Diagnostic> {
        let own = &self.def.name.text;
        let behind = path.parts.get(own.split('.').count()..).unwrap_or_default();
        let [name, rest @ ..] = behind else {
            let message = format!("`{own}` is a header, not a value");
            let wrong = Diagnostic::new(codes::NOT_A_VALUE, message, path.span, "");
            return Err(wrong.help("name one of its fields, or write `has` in front of it"));
        };
        let Some(found) = self.fields.iter().position(|field| field.name == name.text) else {
            return Err(self.unknown(name));
        };
        match rest.first() {
            None => Ok(found),
            Some(part) => {
                let message = format!("this has no parts, so no `{}`", part.text);
                let (code, label) = (codes::UNKNOWN_MEMBER, "not a record");
                Err(Diagnostic::new(code, message, part.span, label))
            }
        }
    }

    /// The message for a name of no field.
    pub fn unknown(&self, name: &Ident) -> Diagnostic {
        let known = self.fields.iter().map(|field| field.name.as_str());
        let list: Vec<String> = known.clone().map(|name| format!("`{name}`")).collect();
        let message = format!("`{}` has no field `{}`", self.def.name.text, name.text);
        Diagnostic::new(codes::UNKNOWN_FIELD, message, name.span, "unknown")
            .note(format!("its fields are {}", list.join(", ")))
            .help_if(did_you_mean_help(&name.text, known))
    }
}

/// The header in front of a declared one.
#[derive(Clone, Copy)]
pub enum Parent {
    /// A header of the table.
    Known(Header),
    /// A declared header, by its number.
    Declared(usize),
}

/// A field of a declared header.
pub struct DeclaredField {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Ty,
    /// The number of its first bit in the header. Bit 0 is the highest one of the first byte.
    bit: u32,
}

impl DeclaredField {
    /// The numbers of its first bit, and of the first bit behind it.
    pub fn bits(&self) -> (u32, u32) {
        (self.bit, self.bit + u32::from(self.ty.width))
    }

    /// The bytes that it touches: the first one, and their number.
    pub fn bytes(&self) -> (u32, u32) {
        let first = self.bit / 8;
        (first, (self.bit + u32::from(self.ty.width)).div_ceil(8) - first)
    }

    /// The number of bits behind it in its last byte.
    pub fn shift(&self) -> u32 {
        (8 - (self.bit + u32::from(self.ty.width)) % 8) % 8
    }

    /// Whether it is all that its bytes hold.
    pub fn is_whole(&self) -> bool {
        u32::from(self.ty.width) == 8 * self.bytes().1
    }
}

/// Resolves the declared headers of a program, each behind the one that it follows.
pub fn resolve<'a>(defs: &[&'a HeaderDef], diags: &mut Diagnostics) -> Vec<DeclaredHeader<'a>> {
    let mut found: Vec<DeclaredHeader<'a>> = Vec::new();
    let mut waiting = defs.to_vec();
    loop {
        let before = waiting.len();
        waiting.retain(|def| {
            let parents = def.after.iter().map(|after| parent(&after.header, defs, &found));
            match parents.collect::<Option<Result<Vec<_>, _>>>() {
                Some(Ok(parents)) => {
                    found.extend(header(def, parents, diags));
                    false
                }
                Some(Err(wrong)) => {
                    diags.push(wrong);
                    false
                }
                None => true,
            }
        });
        if waiting.len() == before {
            break;
        }
    }
    for def in &waiting {
        for after in def.after.iter().filter(|after| leads_to(&after.header, def, defs)) {
            let message = format!("`{}` follows itself", def.name.text);
            let span = after.header.span;
            diags.push(Diagnostic::new(codes::RECURSION, message, span, "leads back"));
        }
    }
    found
}

/// Whether a header is this one, or has it somewhere in front.
fn leads_to(from: &Path, to: &HeaderDef, defs: &[&HeaderDef]) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![joined(from)]);
    while let Some(name) = next.pop() {
        if name == to.name.text {
            return true;
        }
        let def = defs.iter().find(|def| def.name.text == name);
        if let Some(def) = def.filter(|_| seen.insert(name)) {
            next.extend(def.after.iter().map(|after| joined(&after.header)));
        }
    }
    false
}

/// The header in front of a declared one. `None`: it is declared, but not resolved yet.
fn parent(
    after: &Path,
    defs: &[&HeaderDef],
    found: &[DeclaredHeader<'_>],
) -> Option<Result<Parent, Diagnostic>> {
    let name = joined(after);
    if let Some(header) = Header::by_name(&name).filter(|header| header.info().takes_declared) {
        return Some(Ok(Parent::Known(header)));
    }
    if let Some(at) = found.iter().position(|own| own.def.name.text == name) {
        if nesting(found, at) >= MAX_NESTING {
            let message = format!("at most {MAX_NESTING} declared headers follow each other");
            return Some(Err(Diagnostic::new(codes::TOO_LARGE, message, after.span, "")));
        }
        return Some(Ok(Parent::Declared(at)));
    }
    if defs.iter().any(|other| other.name.text == name) {
        return None;
    }
    let known: Vec<&str> = Header::before_declared().map(Header::name).collect();
    let message = match Header::by_name(&name) {
        Some(_) => format!("no declared header can follow `{name}`"),
        None => format!("there is no header `{name}`"),
    };
    let own = defs.iter().map(|def| def.name.text.as_str());
    let help = match Header::by_name(&name) {
        Some(_) => None,
        None => did_you_mean_help(&name, known.iter().copied().chain(own)),
    };
    let wrong = Diagnostic::new(codes::UNKNOWN_HEADER, message, after.span, "")
        .note(format!("declared headers follow each other, or {}", known.join(", ")));
    Some(Err(wrong.help_if(help)))
}

/// The number of declared headers up to this one.
fn nesting(found: &[DeclaredHeader<'_>], at: usize) -> usize {
    let parents = found.get(at).into_iter().flat_map(|own| &own.parents);
    let in_front = parents.filter_map(|parent| match parent {
        // Each header is behind the ones that it follows.
        Parent::Declared(parent) if *parent < at => Some(nesting(found, *parent)),
        _ => None,
    });
    1 + in_front.max().unwrap_or(0)
}

/// Resolves the fields of a declared header. `None` after an error, which is then reported.
fn header<'a>(
    def: &'a HeaderDef,
    parents: Vec<Parent>,
    diags: &mut Diagnostics,
) -> Option<DeclaredHeader<'a>> {
    if Header::by_name(&def.name.text).is_some() {
        let message = format!("Braid knows a header `{}`", def.name.text);
        let wrong = Diagnostic::new(codes::DUPLICATE_NAME, message, def.name.span, "");
        diags.push(wrong.help("give this one another name"));
        return None;
    }
    let (mut fields, mut bits): (Vec<DeclaredField>, u32) = (Vec::new(), 0);
    for (name, written) in &def.fields {
        let wrong = match types::resolve(written, &|_| false, diags)? {
            Type::Scalar(ty) if is_of_bits(ty) => {
                let field = DeclaredField { name: name.text.clone(), ty, bit: bits };
                bits += u32::from(ty.width);
                let is_new = fields.iter().all(|before| before.name != name.text);
                let touched = field.bytes().1;
                fields.push(field);
                match () {
                    () if !is_new => {
                        let message = format!("the header has two fields `{}`", name.text);
                        Diagnostic::new(codes::DUPLICATE_NAME, message, name.span, "again")
                    }
                    () if touched > MAX_FIELD_BYTES => {
                        let message = format!("a field touches at most {MAX_FIELD_BYTES} bytes");
                        Diagnostic::new(codes::BAD_TYPE, message, written.span, "")
                    }
                    () if bits > 8 * MAX_BYTES => {
                        let message = format!("the fields take at most {MAX_BYTES} bytes");
                        Diagnostic::new(codes::BAD_TYPE, message, written.span, "one too many")
                    }
                    () => continue,
                }
            }
            _ => {
                let message = "a header's field is a number or an address";
                let wrong = Diagnostic::new(codes::BAD_TYPE, message, written.span, "");
                wrong.help("write `u1` to `u128`, `bool`, `port`, `ip4`, `ip6` or `mac`")
            }
        };
        diags.push(wrong);
        return None;
    }
    if bits == 0 || !bits.is_multiple_of(8) {
        let message = format!("the fields have {} together", say::count(bits as usize, "bit"));
        let wrong = Diagnostic::new(codes::BAD_TYPE, message, def.name.span, "no whole bytes");
        diags.push(wrong.help("a header consists of whole bytes, at least one"));
        return None;
    }
    let checksum = match &def.checksum {
        Some(name) => Some(checksum(def, name, &fields, diags)?),
        None => None,
    };
    Some(DeclaredHeader { def, parents, fields, checksum, least: bits / 8 })
}

/// The number of the field with the checksum: 16 bits, at an even byte, so that it is a word of the
/// sum (RFC 1071). `None` after an error, which is then reported.
fn checksum(
    def: &HeaderDef,
    name: &Ident,
    fields: &[DeclaredField],
    diags: &mut Diagnostics,
) -> Option<usize> {
    let own = &def.name.text;
    let Some(at) = fields.iter().position(|field| field.name == name.text) else {
        let message = format!("`{own}` has no field `{}`", name.text);
        let known = fields.iter().map(|field| field.name.as_str());
        let wrong = Diagnostic::new(codes::UNKNOWN_FIELD, message, name.span, "unknown");
        diags.push(wrong.help_if(did_you_mean_help(&name.text, known)));
        return None;
    };
    let fits = |field: &DeclaredField| field.bit.is_multiple_of(16) && field.ty.width == 16;
    if !fields.get(at).is_some_and(fits) {
        let message = "a checksum has 16 bits, and an even number of bytes in front of it";
        diags.push(Diagnostic::new(codes::BAD_TYPE, message, name.span, ""));
        return None;
    }
    // A difference of the sum is computed from at most 128 bits.
    let is_odd = |field: &&DeclaredField| !field.bytes().0.is_multiple_of(2);
    let wide = fields.iter().filter(is_odd).find(|field| field.bytes().1 == MAX_FIELD_BYTES);
    if let Some(field) = wide {
        let message = format!("`{}` begins at an odd byte of a header with a checksum", field.name);
        let wrong = Diagnostic::new(codes::BAD_TYPE, message, name.span, "");
        diags.push(wrong.help("put it at an even byte, or divide it"));
        return None;
    }
    Some(at)
}

/// Whether a type's values are the bits that packets hold.
fn is_of_bits(ty: Ty) -> bool {
    matches!(ty.kind, Kind::Uint | Kind::Bool | Kind::Port | Kind::Ip4 | Kind::Ip6 | Kind::Mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_names_the_headers_that_declared_ones_may_follow() {
        let manual = include_str!("../../../../docs/manual.md");
        let (_, list) = manual.split_once("**`after`** names the header in front: ").unwrap();
        let (list, _) = list.split_once(", or another header of your own").unwrap();
        let named: Vec<&str> =
            list.split([',', ' ', '\n']).filter(|name| !name.is_empty()).collect();
        let known: Vec<String> =
            Header::before_declared().map(|header| format!("`{}`", header.name())).collect();
        assert_eq!(named, known);
    }
}
