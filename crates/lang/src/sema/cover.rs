//! Finds rows of a match that can never match: earlier rows subsume them, or they contradict
//! themselves.
//!
//! A predicate is a list of alternatives (at most [`MAX_ALTERNATIVES`]). Each alternative is a list
//! of atoms that hold together. Comparisons of a field with constants are intervals. Other atoms
//! are compared by their text.

use braid_ir::value::IntervalSet;
use braid_packet::{Field, Header};

use super::constant::{Eval, prefix_range};
use super::env::Constants;
use super::types;
use crate::ast::joined;
use crate::ast::{BinOp, Expr, ExprKind, Row};
use crate::diag::Diagnostics;
use crate::lexer::{Tok, lex};
use crate::source::SourceMap;

/// The most alternatives of a predicate. A predicate with more subsumes nothing.
const MAX_ALTERNATIVES: usize = 16;
/// The most comparisons of atoms for a match. Later rows count as rows that match.
const MAX_COMPARISONS: usize = 4_000_000;

/// Why a row is dead.
pub enum Dead {
    /// An earlier row matches all of its packets.
    Before(usize),
    /// Its predicate holds for no packet.
    Contradiction,
}

/// The findings about a match.
#[derive(Default)]
pub struct Cover {
    /// Rows that never match.
    pub dead: Vec<(usize, Dead)>,
    /// Whether every packet matches a row.
    pub total: bool,
    /// The row at which `forward` and `backward` together cover all packets.
    pub covered: Option<usize>,
}

#[derive(Clone, PartialEq)]
enum Atom {
    /// The field is present and its value is in the set.
    Field(Field, IntervalSet),
    /// The header is present.
    Has(Header),
    /// Any other atom, by its text.
    Text(String),
    /// An atom that may differ at each evaluation.
    Chance,
}

type Together = Vec<Atom>;

struct Reader<'a> {
    constants: &'a dyn Constants,
    sources: &'a SourceMap,
}

/// Checks the rows of a match. `guards` holds the headers that each row tests besides its
/// predicate.
pub fn check(
    rows: &[Row],
    guards: &[Vec<Header>],
    constants: &dyn Constants,
    sources: &SourceMap,
) -> Cover {
    let reader = Reader { constants, sources };
    let mut cover = Cover::default();
    let mut earlier: Vec<(usize, Vec<Together>)> = Vec::new();
    let mut all: Option<usize> = None;
    let (mut forward, mut backward) = (false, false);
    let mut left = MAX_COMPARISONS;
    for (at, row) in rows.iter().enumerate() {
        let ways = match &row.pred {
            None => Some(vec![Vec::new()]),
            Some(pred) => reader.alternatives(pred, false),
        };
        if let Some(first) = all {
            cover.dead.push((at, Dead::Before(first)));
            continue;
        }
        let Some(mut ways) = ways else { continue };
        for way in &mut ways {
            way.extend(guards.get(at).into_iter().flatten().map(|header| Atom::Has(*header)));
        }
        let ways = ways.into_iter().map(merged);
        let possible: Vec<Together> = ways.filter(|way| !contradicts(way)).collect();
        if possible.is_empty() {
            cover.dead.push((at, Dead::Contradiction));
            continue;
        }
        if let Some(first) = subsumed(&possible, &earlier, &mut left) {
            cover.dead.push((at, Dead::Before(first)));
            continue;
        }
        for way in &possible {
            match way.as_slice() {
                [] => all = Some(at),
                [Atom::Field(Field::PktBackward, set)] => {
                    forward |= set.contains(0);
                    backward |= set.contains(1);
                }
                _ => {}
            }
        }
        if all.is_none() && forward && backward {
            all = Some(at);
            cover.covered = Some(at);
        }
        earlier.push((at, possible));
    }
    cover.total = all.is_some() || rows.iter().any(|row| row.pred.is_none());
    cover
}

/// The row that subsumes these alternatives: the last of the rows that are needed for that.
fn subsumed(
    ways: &[Together],
    earlier: &[(usize, Vec<Together>)],
    left: &mut usize,
) -> Option<usize> {
    let mut last = None;
    for way in ways {
        let mut takes = |row: &Together| {
            *left = left.saturating_sub((row.len() + 1) * (way.len() + 1));
            *left > 0 && row.iter().all(|atom| implied(atom, way))
        };
        let taken = earlier.iter().find(|(_, rows)| rows.iter().any(&mut takes));
        last = last.max(Some(taken?.0));
    }
    last
}

/// The alternative with its atoms of each field merged into one.
fn merged(way: Together) -> Together {
    let mut one: Together = Vec::with_capacity(way.len());
    for atom in way {
        let Atom::Field(field, set) = &atom else {
            one.push(atom);
            continue;
        };
        let before = one.iter_mut().find_map(|known| match known {
            Atom::Field(other, known) if other == field => Some(known),
            _ => None,
        });
        match before {
            Some(known) => *known = known.intersection(set),
            None => one.push(atom),
        }
    }
    one
}

fn contradicts(way: &Together) -> bool {
    way.iter().any(|atom| matches!(atom, Atom::Field(_, set) if set.is_empty()))
}

fn implied(atom: &Atom, way: &Together) -> bool {
    match atom {
        Atom::Field(field, set) => {
            let known = way.iter().find_map(|atom| match atom {
                Atom::Field(other, known) if other == field => Some(known),
                _ => None,
            });
            known.is_some_and(|known| within(known, set))
                || is_full(*field, set) && has(field.info().header, way)
        }
        Atom::Has(header) => has(*header, way),
        Atom::Text(_) => way.contains(atom),
        Atom::Chance => false,
    }
}

/// Whether all members of `a` are members of `b`.
fn within(a: &IntervalSet, b: &IntervalSet) -> bool {
    let around = b.intervals();
    a.intervals().iter().all(|(low, high)| {
        let after = around.partition_point(|(from, _)| from <= low);
        after > 0 && *high <= around[after - 1].1
    })
}

fn has(header: Header, way: &Together) -> bool {
    let brings = |there: Header| there == header || there.implies().contains(&header);
    header == Header::Pkt
        || way.iter().any(|atom| match atom {
            Atom::Field(field, _) => brings(field.info().header),
            Atom::Has(there) => brings(*there),
            Atom::Text(_) | Atom::Chance => false,
        })
}

fn is_full(field: Field, set: &IntervalSet) -> bool {
    *set.intervals() == [(0, types::max(types::of_field(field)))]
}

impl Reader<'_> {
    /// The alternatives of a predicate, or of its negation. `None` for too many.
    fn alternatives(&self, expr: &Expr, negated: bool) -> Option<Vec<Together>> {
        let (op, a, b) = match &expr.kind {
            ExprKind::Not(inner) => return self.alternatives(inner, !negated),
            ExprKind::Bool(value) => {
                return Some(if *value == negated { Vec::new() } else { vec![Vec::new()] });
            }
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => (*op, a, b),
            _ => return Some(vec![vec![self.atom(expr, negated)]]),
        };
        let (x, y) = (self.alternatives(a, negated)?, self.alternatives(b, negated)?);
        let ways: Vec<Together> = if (op == BinOp::Or) == negated {
            x.iter().flat_map(|x| y.iter().map(move |y| [x.clone(), y.clone()].concat())).collect()
        } else {
            [x, y].concat()
        };
        (ways.len() <= MAX_ALTERNATIVES).then_some(ways)
    }

    fn atom(&self, expr: &Expr, negated: bool) -> Atom {
        let text = normalised(self.sources.slice(expr.span));
        if text.contains("random") {
            return Atom::Chance;
        }
        if negated {
            // The negation of `forward` is `backward`. Other fields may be absent.
            return match self.interval(expr) {
                Some((Field::PktBackward, set)) => {
                    let other = u128::from(!set.contains(1));
                    Atom::Field(Field::PktBackward, IntervalSet::new([(other, other)]))
                }
                _ => Atom::Text(format!("not {text}")),
            };
        }
        if let ExprKind::Has(path) = &expr.kind
            && let Some(header) = Header::by_name(&joined(path))
        {
            return Atom::Has(header);
        }
        match self.interval(expr) {
            Some((field, set)) => Atom::Field(field, set),
            None => Atom::Text(text),
        }
    }

    /// The field and the set of a test of one field against constants.
    fn interval(&self, expr: &Expr) -> Option<(Field, IntervalSet)> {
        match &expr.kind {
            ExprKind::Path(path) => {
                let name = joined(path);
                let single = |value| IntervalSet::new([(value, value)]);
                match name.as_str() {
                    "forward" => Some((Field::PktBackward, single(0))),
                    "backward" => Some((Field::PktBackward, single(1))),
                    _ => {
                        let field = Field::by_name(&name)?;
                        (types::of_field(field) == types::BOOL).then(|| (field, single(1)))
                    }
                }
            }
            ExprKind::Binary(op, a, b) if crate::ast::is_comparison(*op) => {
                if let Some(field) = field_of(a) {
                    return Some((field, self.compared(*op, field, b)?));
                }
                let field = field_of(b)?;
                Some((field, self.compared(mirrored(*op), field, a)?))
            }
            ExprKind::In(item, set) => {
                let field = field_of(item)?;
                let mut quiet = Diagnostics::new();
                let ty = types::of_field(field);
                let set = Eval::new(self.constants, &mut quiet).set(set, ty)?;
                Some((field, set))
            }
            _ => None,
        }
    }

    fn compared(&self, op: BinOp, field: Field, with: &Expr) -> Option<IntervalSet> {
        if prefix_range(&with.kind).is_some() {
            return None;
        }
        let ty = types::of_field(field);
        let mut quiet = Diagnostics::new();
        let value = Eval::new(self.constants, &mut quiet).number(with, ty)?;
        let most = types::max(ty);
        let below = value.checked_sub(1).map(|high| (0, high));
        let above = value.checked_add(1).filter(|low| *low <= most).map(|low| (low, most));
        let parts: Vec<(u128, u128)> = match op {
            BinOp::Eq => vec![(value, value)],
            BinOp::Ne => below.into_iter().chain(above).collect(),
            BinOp::Lt => below.into_iter().collect(),
            BinOp::Le => vec![(0, value)],
            BinOp::Gt => above.into_iter().collect(),
            _ => vec![(value, most)],
        };
        Some(IntervalSet::new(parts))
    }
}

fn field_of(expr: &Expr) -> Option<Field> {
    match &expr.kind {
        ExprKind::Path(path) if path.parts.len() > 1 => Field::by_name(&joined(path)),
        _ => None,
    }
}

fn mirrored(op: BinOp) -> BinOp {
    match op {
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Gt => BinOp::Lt,
        BinOp::Ge => BinOp::Le,
        other => other,
    }
}

/// The findings about a match before it is lowered.
pub struct Rows {
    /// The headers that each row tests besides its predicate.
    pub guards: Vec<Vec<Header>>,
    pub cover: Cover,
}

/// Source text without comments, with single spaces between tokens, and without a comma behind the
/// last member of a list.
pub fn normalised(text: &str) -> String {
    let tokens = lex(text, 0, 0).tokens;
    let (mut found, mut end) = (String::new(), 0);
    for (token, next) in tokens.iter().zip(tokens.iter().skip(1)) {
        let closes = matches!(next.kind, Tok::RBrace | Tok::RParen | Tok::RBracket);
        if token.kind == Tok::Comma && closes {
            continue;
        }
        let (start, behind) = (token.start as usize, token.end as usize);
        if start > end && !found.is_empty() {
            found.push(' ');
        }
        found.push_str(text.get(start..behind).unwrap_or_default());
        end = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(intervals: &[(u128, u128)]) -> IntervalSet {
        IntervalSet::new(intervals.iter().copied())
    }

    #[test]
    fn set_within_another_fits_one_interval_each() {
        let ports = set(&[(1, 9), (20, 29)]);
        assert!(within(&set(&[(2, 3), (9, 9), (20, 29)]), &ports));
        assert!(!within(&set(&[(8, 21)]), &ports) && !within(&set(&[(0, 0)]), &ports));
        assert!(within(&set(&[]), &ports) && !within(&ports, &set(&[])));
    }

    #[test]
    fn intersection_keeps_what_both_have() {
        let common = set(&[(1, 9), (20, 29)]).intersection(&set(&[(5, 22), (28, 40)]));
        assert_eq!(common, set(&[(5, 9), (20, 22), (28, 29)]));
    }

    #[test]
    fn field_brings_its_header() {
        let port = vec![Atom::Field(Field::TcpSport, set(&[(1, 1)]))];
        assert!(has(Header::Inet, &port) && has(Header::L4, &port) && !has(Header::Udp, &port));
        let whole = Atom::Field(Field::L4Sport, set(&[(0, 65_535)]));
        assert!(implied(&whole, &port) && !implied(&Atom::Chance, &vec![Atom::Chance]));
    }

    #[test]
    fn text_is_normalised() {
        assert_eq!(normalised("a  and // why\n   b"), "a and b");
        assert_eq!(normalised("a in {\n 1,\n /* two */ 2,\n}"), "a in { 1, 2 }");
        assert_eq!(
            normalised(" f(a,b)  or\"x  // y\"at payload"),
            "f(a,b) or\"x  // y\"at payload"
        );
    }
}
