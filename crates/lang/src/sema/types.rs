//! Types: their names in the source, their form in the IR, and their names in messages.

use braid_ir::model::{Kind, MAX_STRING_WORDS, ParamTy, PoolOrder, Ty};
use braid_ir::show::field_kind;
use braid_packet::Field;

use crate::ast::{self, Ident, Span, TypeKind};
use crate::diag::{Diagnostic, Diagnostics, codes, did_you_mean_help};

/// The shortest period of a timer (ns). One packet after a gap may let all missed timers fire.
pub(crate) const MIN_PERIOD_NS: u128 = 1_000;

/// A written type, resolved.
#[derive(Clone, PartialEq, Debug)]
pub enum Type {
    /// One scalar.
    Scalar(Ty),
    /// Named scalars.
    Record(Vec<(String, Ty)>),
    /// Any other type. Only parameters have these types, and events can have strings.
    Param(ParamTy),
}

/// The most parts of a record, and the most fields of an event.
pub const MAX_PARTS: usize = 256;

const fn ty(width: u16, kind: Kind) -> Ty {
    Ty { width, kind }
}

/// `bool`
pub const BOOL: Ty = ty(1, Kind::Bool);
/// `u32`, the type of indices and counts.
pub const U32: Ty = ty(32, Kind::Uint);
/// `u64`
pub const U64: Ty = ty(64, Kind::Uint);
/// `u128`
pub const U128: Ty = ty(128, Kind::Uint);
/// `ip4`
pub const IP4: Ty = ty(32, Kind::Ip4);
/// `ip6`
pub const IP6: Ty = ty(128, Kind::Ip6);
/// `addr`
pub const ADDR: Ty = ty(128, Kind::Addr);
/// `mac`
pub const MAC: Ty = ty(48, Kind::Mac);
/// `port`
pub const PORT: Ty = ty(16, Kind::Port);
/// `duration`
pub const DURATION: Ty = ty(64, Kind::Duration);
/// `time`
pub const TIME: Ty = ty(64, Kind::Time);
/// `size`
pub const SIZE: Ty = ty(64, Kind::Size);
/// `bitrate`
pub const BITRATE: Ty = ty(64, Kind::Bitrate);

/// The length of a string.
pub const LENGTH: Ty = ty(8, Kind::Length);
/// A word of a string.
pub const BYTES: Ty = ty(128, Kind::Bytes);
/// The bytes of a word.
pub const WORD: usize = 16;

/// The parts of the type `bytes<COUNT>`: the length, then words.
pub fn bytes(count: u128, span: Span, diags: &mut Diagnostics) -> Option<Vec<(String, Ty)>> {
    let words = usize::try_from(count).ok().filter(|count| count.is_multiple_of(WORD));
    let words = words.map_or(0, |count| count / WORD);
    if !(1..=MAX_STRING_WORDS).contains(&words) {
        let most = MAX_STRING_WORDS * WORD;
        let message = format!("strings have room for 16, 32, … or {most} bytes");
        diags.push(Diagnostic::new(codes::BAD_TYPE, message, span, "not a multiple of 16"));
        return None;
    }
    let words = (0..words).map(|word| (word.to_string(), BYTES));
    Some([("len".to_owned(), LENGTH)].into_iter().chain(words).collect())
}

/// The parts of the type `bucket`: the credit (bits × nanoseconds a second), and its time.
#[must_use]
pub fn bucket() -> Vec<(String, Ty)> {
    vec![("credit".to_owned(), U128), ("since".to_owned(), TIME)]
}

/// Whether two records have the same parts: equal names, and types that may stand for one another.
#[must_use]
pub fn same_parts<T>(x: &[(String, T, Ty)], y: &[(String, T, Ty)]) -> bool {
    let alike =
        |((a, _, s), (b, _, t)): (&(String, T, Ty), &(String, T, Ty))| a == b && compatible(*s, *t);
    x.len() == y.len() && x.iter().zip(y).all(alike)
}

/// Whether a record's parts are those of a string.
#[must_use]
pub fn is_string<T>(parts: &[(String, T, Ty)]) -> bool {
    parts.first().is_some_and(|(_, _, ty)| *ty == LENGTH)
}

/// An unsigned integer of this many bits.
#[must_use]
pub const fn uint(width: u16) -> Ty {
    ty(width, Kind::Uint)
}

const SCALARS: &[(&str, Ty)] = &[
    ("bool", BOOL),
    ("ip4", IP4),
    ("ip6", IP6),
    ("addr", ADDR),
    ("mac", MAC),
    ("port", PORT),
    ("duration", DURATION),
    ("time", TIME),
    ("size", SIZE),
    ("bytes", SIZE),
    ("bitrate", BITRATE),
];

const OTHERS: &[&str] = &[
    "bucket",
    "index",
    "list",
    "set",
    "prefixes",
    "prefixes6",
    "pool",
    "rules",
    "routes",
    "patterns",
    "signatures",
    "hosts",
    "keys",
    "backends",
    "string",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
];

/// The scalar type with this name, such as `ip4` or `u12`.
#[must_use]
pub fn scalar(name: &str) -> Option<Ty> {
    if let Some((_, found)) = SCALARS.iter().find(|(known, _)| *known == name) {
        return Some(*found);
    }
    let digits = name.strip_prefix('u')?;
    if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|width| (1..=128).contains(width)).map(uint)
}

/// The names of types that have one.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCALARS.iter().map(|(name, _)| *name).chain(OTHERS.iter().copied())
}

/// A type's name in messages.
#[must_use]
pub fn name(ty: Ty) -> String {
    match ty.kind {
        Kind::Uint => format!("u{}", ty.width),
        Kind::Bool => "bool".into(),
        Kind::Ip4 => "ip4".into(),
        Kind::Ip6 => "ip6".into(),
        Kind::Addr => "addr".into(),
        Kind::Mac => "mac".into(),
        Kind::Port => "port".into(),
        Kind::Duration => "duration".into(),
        Kind::Time => "time".into(),
        Kind::Size => "size".into(),
        Kind::Bitrate => "bitrate".into(),
        Kind::Length => "length".into(),
        Kind::Bytes => "bytes".into(),
    }
}

/// The name of a parameter's type in messages.
#[must_use]
pub fn param_name(ty: &ParamTy) -> String {
    let columns = |columns: &[(String, Ty)]| match columns {
        [(column, ty)] if column.is_empty() => name(*ty),
        _ => record_name(columns),
    };
    match ty {
        ParamTy::Scalar(ty) => name(*ty),
        ParamTy::List(c) => format!("list<{}>", columns(c)),
        ParamTy::Set(ty) => format!("set<{}>", name(*ty)),
        ParamTy::Rules => "rules".into(),
        ParamTy::Routes => "routes".into(),
        ParamTy::Patterns => "patterns".into(),
        ParamTy::Strings(most) => format!("set<bytes<{most}>>"),
        ParamTy::Signatures => "signatures".into(),
        ParamTy::Hosts => "hosts".into(),
        ParamTy::Keys => "keys".into(),
        ParamTy::Pool(ty, _) => format!("pool<{}>", name(*ty)),
        ParamTy::Backends(c) => format!("backends<{}>", columns(c)),
        ParamTy::Str => "string".into(),
    }
}

/// A record type's name in messages.
#[must_use]
pub fn record_name(parts: &[(String, Ty)]) -> String {
    if let [(_, LENGTH), words @ ..] = parts {
        return format!("bytes<{}>", WORD * words.len());
    }
    let parts: Vec<String> = parts.iter().map(|(n, ty)| format!("{n}: {}", name(*ty))).collect();
    format!("{{ {} }}", parts.join(", "))
}

/// The largest value of a type.
#[must_use]
pub fn max(ty: Ty) -> u128 {
    u128::MAX >> (128 - u32::from(ty.width.clamp(1, 128)))
}

/// Whether values of one type may stand for values of the other: the types are equal, or `port` and
/// `u16`, or `addr` and `u128`.
#[must_use]
pub fn compatible(a: Ty, b: Ty) -> bool {
    let number = |kind| matches!(kind, Kind::Uint | Kind::Port | Kind::Addr);
    a.width == b.width && (a.kind == b.kind || number(a.kind) && number(b.kind))
}

/// The type of a field in the language. Lengths of the packet are sizes of 64 bits. Any other type
/// is as wide as its field.
#[must_use]
pub fn of_field(field: Field) -> Ty {
    match field_kind(field) {
        Kind::Size => SIZE,
        kind => Ty { width: field.info().width, kind },
    }
}

/// Resolves a written type. For `index(NAME)`, `is_list` decides whether a name is a list or
/// backends parameter. `None` after an error, which is then reported.
pub fn resolve(
    written: &ast::Type,
    is_list: &dyn Fn(&str) -> bool,
    diags: &mut Diagnostics,
) -> Option<Type> {
    let (name, args, of) = match &written.kind {
        TypeKind::Record(parts) => {
            return record(parts, is_list, diags).map(Type::Record);
        }
        TypeKind::Bytes(count) => {
            return bytes(*count, written.span, diags).map(Type::Record);
        }
        TypeKind::Named { name, args, of } => (name, args, of),
    };
    if name.text == "index" {
        return index(name, of.as_ref(), is_list, diags);
    }
    if let (Some(scalar), [], None) = (scalar(&name.text), args.as_slice(), of) {
        return Some(Type::Scalar(scalar));
    }
    if let ("bucket", [], None) = (name.text.as_str(), args.as_slice(), of) {
        return Some(Type::Record(bucket()));
    }
    let resolved = match (name.text.as_str(), args.as_slice()) {
        ("prefixes", []) => ParamTy::Set(IP4),
        ("prefixes6", []) => ParamTy::Set(IP6),
        ("rules", []) => ParamTy::Rules,
        ("routes", []) => ParamTy::Routes,
        ("patterns", []) => ParamTy::Patterns,
        ("signatures", []) => ParamTy::Signatures,
        ("hosts", []) => ParamTy::Hosts,
        ("keys", []) => ParamTy::Keys,
        ("string", []) => ParamTy::Str,
        ("list", [member]) => ParamTy::List(columns(member, is_list, diags)?),
        ("backends", [member]) => ParamTy::Backends(columns(member, is_list, diags)?),
        ("set", [ast::Type { kind: TypeKind::Bytes(most), span }]) => {
            let words = bytes(*most, *span, diags)?.len() - 1;
            ParamTy::Strings(u16::try_from(WORD * words).unwrap_or(u16::MAX))
        }
        ("set", [member]) => ParamTy::Set(only_scalar(member, is_list, diags)?),
        ("pool", [member]) => {
            ParamTy::Pool(only_scalar(member, is_list, diags)?, PoolOrder::Lowest)
        }
        ("pool", [member, order]) => {
            ParamTy::Pool(only_scalar(member, is_list, diags)?, pool_order(order, diags)?)
        }
        _ => {
            unknown(name, args, diags);
            return None;
        }
    };
    Some(Type::Param(resolved))
}

/// Whether a word names a type, even one that needs types in `<>`.
pub fn is_known(name: &str) -> bool {
    scalar(name).is_some() || OTHERS.contains(&name)
}

fn unknown(name: &Ident, args: &[ast::Type], diags: &mut Diagnostics) {
    let text = name.text.as_str();
    if matches!(text, "list" | "set" | "pool" | "backends") {
        let message = format!("`{text}` needs the type of its members, found {}", args.len());
        diags.push(
            Diagnostic::new(codes::BAD_TYPE, message, name.span, "")
                .help(format!("write `{text}<ip4>`")),
        );
    } else if is_known(text) {
        let message = format!("`{text}` takes no types in `<>`");
        diags.push(Diagnostic::new(codes::BAD_TYPE, message, name.span, ""));
    } else {
        let known = SCALARS.iter().map(|(known, _)| *known).chain(OTHERS.iter().copied());
        diags.push(
            Diagnostic::new(
                codes::UNKNOWN_TYPE,
                format!("there is no type `{text}`"),
                name.span,
                "expected a type",
            )
            .help_if(usual_name(text).or_else(|| did_you_mean_help(text, known))),
        );
    }
}

/// The help for a type that has another name in other languages.
fn usual_name(name: &str) -> Option<String> {
    let help = match name {
        "int" | "uint" | "integer" | "number" => {
            "integers are unsigned and say their width, such as `u32`"
        }
        "ipv4" => "IPv4 addresses are `ip4`",
        "ip" | "address" => "addresses of either IP version are `addr`",
        "ipv6" => "IPv6 addresses are `ip6`",
        "boolean" => "did you mean `bool`?",
        "str" | "text" => "did you mean `string`?",
        _ => return None,
    };
    Some(help.into())
}

fn index(
    name: &Ident,
    of: Option<&Ident>,
    is_list: &dyn Fn(&str) -> bool,
    diags: &mut Diagnostics,
) -> Option<Type> {
    let Some(of) = of else {
        diags.push(
            Diagnostic::new(codes::BAD_TYPE, "`index` needs a list", name.span, "")
                .help("write `index(servers)` with a parameter of type list or backends"),
        );
        return None;
    };
    if !is_list(&of.text) {
        let message = format!("`{}` is not a parameter of type list or backends", of.text);
        diags.push(Diagnostic::new(codes::WRONG_NAME, message, of.span, "an index of what?"));
    }
    Some(Type::Scalar(U32))
}

fn record(
    parts: &[(Ident, ast::Type)],
    is_list: &dyn Fn(&str) -> bool,
    diags: &mut Diagnostics,
) -> Option<Vec<(String, Ty)>> {
    if let Some((name, _)) = parts.get(MAX_PARTS) {
        let message = format!("a record has at most {MAX_PARTS} parts");
        diags.push(Diagnostic::new(codes::BAD_TYPE, message, name.span, "one too many"));
        return None;
    }
    let mut resolved: Vec<(String, Ty)> = Vec::with_capacity(parts.len());
    let mut whole = !parts.is_empty();
    for (name, ty) in parts {
        if resolved.iter().any(|(known, _)| *known == name.text) {
            let message = format!("the record has two parts `{}`", name.text);
            diags.push(Diagnostic::new(codes::DUPLICATE_NAME, message, name.span, "again"));
            whole = false;
        } else if let Some(ty) = only_scalar(ty, is_list, diags) {
            resolved.push((name.text.clone(), ty));
        } else {
            whole = false;
        }
    }
    whole.then_some(resolved)
}

/// Resolves a type that must be a scalar.
pub fn only_scalar(
    written: &ast::Type,
    is_list: &dyn Fn(&str) -> bool,
    diags: &mut Diagnostics,
) -> Option<Ty> {
    match resolve(written, is_list, diags)? {
        Type::Scalar(ty) => Some(ty),
        Type::Record(parts) if parts.first().is_some_and(|(_, ty)| *ty == LENGTH) => {
            not_scalar(&format!("`{}`", record_name(&parts)), written, diags)
        }
        Type::Record(_) => not_scalar("a record", written, diags),
        Type::Param(ty) => not_scalar(&format!("`{}`", param_name(&ty)), written, diags),
    }
}

fn not_scalar(found: &str, written: &ast::Type, diags: &mut Diagnostics) -> Option<Ty> {
    let message = format!("expected a scalar type, found {found}");
    diags.push(Diagnostic::new(codes::BAD_TYPE, message, written.span, "not a scalar"));
    None
}

fn pool_order(written: &ast::Type, diags: &mut Diagnostics) -> Option<PoolOrder> {
    if let TypeKind::Named { name, args, of: None } = &written.kind
        && args.is_empty()
    {
        match name.text.as_str() {
            "lowest" => return Some(PoolOrder::Lowest),
            "fifo" => return Some(PoolOrder::Fifo),
            "random" => return Some(PoolOrder::Random),
            _ => {}
        }
    }
    diags.push(
        Diagnostic::new(codes::BAD_TYPE, "a pool has no such order", written.span, "")
            .help("write `lowest`, `fifo` or `random`"),
    );
    None
}

/// The columns of a list: a record's parts, or one column without a name.
fn columns(
    member: &ast::Type,
    is_list: &dyn Fn(&str) -> bool,
    diags: &mut Diagnostics,
) -> Option<Vec<(String, Ty)>> {
    match &member.kind {
        TypeKind::Record(parts) => record(parts, is_list, diags),
        TypeKind::Named { .. } | TypeKind::Bytes(_) => {
            Some(vec![(String::new(), only_scalar(member, is_list, diags)?)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalar_names_resolve() {
        assert_eq!(scalar("u12"), Some(uint(12)));
        assert_eq!(scalar("bytes"), Some(SIZE));
        for wrong in ["u0", "u129", "u08", "u", "int", "u1x"] {
            assert_eq!(scalar(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn largest_value_fills_the_width() {
        assert_eq!(max(BOOL), 1);
        assert_eq!(max(PORT), 65_535);
        assert_eq!(max(IP6), u128::MAX);
    }

    #[test]
    fn only_ports_and_addresses_of_either_version_stand_for_numbers() {
        assert!(compatible(PORT, uint(16)));
        assert!(compatible(ADDR, U128));
        assert!(!compatible(ADDR, IP6));
        assert!(!compatible(IP4, uint(32)));
        assert!(!compatible(U32, U64));
    }
}
