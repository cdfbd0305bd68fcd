//! Generates expressions of a given type.

use super::pieces::{ParamKind, Pieces, Scope};
use super::types::{ADDR, IP4, IP6, literal, name, of_field, readable};
use crate::generate::Rng;
use braid_ir::model::{Kind, Ty};

/// Generates expressions for one place.
pub(super) struct Exprs<'a> {
    /// The random choices.
    pub(super) rng: &'a mut Rng,
    /// The declarations of the function.
    pub(super) pieces: &'a Pieces,
    /// The names and facts in scope.
    pub(super) scope: &'a Scope,
}

impl Exprs<'_> {
    /// An expression of this type. It may be a literal.
    pub(super) fn any(&mut self, ty: Ty, depth: usize) -> String {
        if self.rng.one_in(4) {
            return literal(self.rng, ty);
        }
        self.typed(ty, depth).unwrap_or_else(|| literal(self.rng, ty))
    }

    /// An expression of this type that depends on the packet, if there is one.
    pub(super) fn typed(&mut self, ty: Ty, depth: usize) -> Option<String> {
        let leaf = self.leaf(ty);
        if depth == 0 || self.rng.one_in(3) {
            return leaf;
        }
        match (self.rng.below(5), leaf) {
            (0, _) => self.cast(ty, depth).or_else(|| self.leaf(ty)),
            (1, Some(leaf)) => {
                let other = self.any(ty, depth - 1);
                Some(match ty.kind {
                    Kind::Bool => leaf,
                    _ => {
                        let pick = *self.rng.pick(&["min", "max"]);
                        format!("{pick}({leaf}, {other})")
                    }
                })
            }
            (2, Some(leaf)) => {
                let condition = self.condition();
                let other = self.any(ty, depth - 1);
                Some(format!("(if {condition} {{ {leaf} }} else {{ {other} }})"))
            }
            (_, Some(leaf)) => Some(self.arithmetic(ty, leaf, depth)),
            (_, None) => None,
        }
    }

    fn arithmetic(&mut self, ty: Ty, left: String, depth: usize) -> String {
        let right = self.any(ty, depth - 1);
        let bits = ["&", "|", "^"];
        let op = match ty.kind {
            Kind::Bool | Kind::Time | Kind::Length | Kind::Bytes => return left,
            Kind::Ip4 | Kind::Ip6 | Kind::Addr | Kind::Mac => *self.rng.pick(&bits),
            Kind::Duration | Kind::Size | Kind::Bitrate => *self.rng.pick(&["+", "-"]),
            Kind::Uint | Kind::Port => match self.rng.below(9) {
                0 => {
                    let most =
                        (u64::from(ty.width) - 1).min(u64::try_from(ty.max()).unwrap_or(127));
                    let count = self.rng.range(1, most);
                    let shift = *self.rng.pick(&["<<", ">>"]);
                    return format!("({left} {shift} {count})");
                }
                1 => {
                    let divisor = self.rng.range(1, u64::try_from(ty.max()).unwrap_or(9).min(9));
                    let divide = *self.rng.pick(&["/", "%"]);
                    return format!("({left} {divide} {divisor})");
                }
                // A division by a possible zero is a fault. Faults are part of the semantics, so
                // this is tested too.
                2 if self.rng.one_in(4) => match self.leaf(ty) {
                    Some(divisor) => return format!("({left} / {divisor})"),
                    None => "+",
                },
                3 => return format!("wrapping({left} + {right})"),
                4..6 => *self.rng.pick(&bits),
                _ => *self.rng.pick(&["+", "-", "*"]),
            },
        };
        format!("({left} {op} {right})")
    }

    /// A value of another type, with a cast.
    fn cast(&mut self, ty: Ty, depth: usize) -> Option<String> {
        if matches!(ty.kind, Kind::Ip4 | Kind::Ip6)
            && let Some(address) = self.leaf(ADDR)
        {
            return Some(format!("{}({address})", name(ty)));
        }
        if !matches!(ty.kind, Kind::Uint | Kind::Port | Kind::Ip4 | Kind::Addr | Kind::Size) {
            return None;
        }
        let widths = [8, 16, 32, 64];
        let from = Ty::uint(*self.rng.pick(&widths));
        if self.rng.one_in(4)
            && let Some(value) = self.leaf(from)
        {
            let hash = *self.rng.pick(&["hash(", "crc32(", "siphash(9, "]);
            return Some(format!("{}({hash}{value}))", name(ty)));
        }
        let value = self.typed(from, depth - 1)?;
        Some(format!("{}({value})", name(ty)))
    }

    /// A field, parameter, local, tag, length or state of this type.
    fn leaf(&mut self, ty: Ty) -> Option<String> {
        let mut found: Vec<String> = readable(&self.scope.headers)
            .filter(|field| of_field(*field) == ty)
            .map(|field| field.info().name.to_owned())
            .collect();
        if ty == ADDR {
            let narrow = readable(&self.scope.headers)
                .filter(|field| [IP4, IP6].contains(&of_field(*field)));
            found.extend(narrow.map(|field| format!("addr({})", field.info().name)));
        }
        found.extend(match ty.kind {
            Kind::Size => Some("pkt.len".to_owned()),
            Kind::Time => Some("pkt.time".to_owned()),
            Kind::Uint if ty.width == 16 => Some("pkt.ingress".to_owned()),
            _ => None,
        });
        for param in &self.pieces.params {
            match param.kind {
                ParamKind::Scalar(of) if of == ty => found.push(param.name.clone()),
                ParamKind::List | ParamKind::Backends if ty == Ty::uint(32) => {
                    found.push(format!("len({})", param.name));
                }
                _ => {}
            }
        }
        let lets = self.scope.lets.iter().filter(|(_, of)| *of == ty);
        found.extend(lets.map(|(name, _)| name.clone()));
        found.extend(self.pieces.tags.iter().filter(|(_, of)| *of == ty).map(|(n, _)| n.clone()));
        for (number, state) in self.pieces.states.iter().enumerate() {
            let key = match state.per {
                super::pieces::Per::Types(_) => continue,
                _ => self.scope.has(&state.per.needs()),
            };
            if !key || !(state.default || self.scope.exists.contains(&number)) {
                continue;
            }
            for (slot, _) in state.slots.iter().filter(|(_, of)| *of == ty) {
                let dot = if slot.is_empty() { "" } else { "." };
                found.push(format!("{}{dot}{slot}", state.name));
            }
        }
        if found.is_empty() { None } else { Some(self.rng.pick(&found).clone()) }
    }

    /// A condition on values in scope.
    pub(super) fn condition(&mut self) -> String {
        let choices =
            [Ty::uint(8), Ty::uint(16), Ty::uint(32), super::types::SIZE, super::types::PORT];
        let ty = *self.rng.pick(&choices);
        let op = *self.rng.pick(&["==", "!=", "<", ">"]);
        match self.leaf(ty) {
            Some(left) => {
                let right = match self.rng.one_in(4) {
                    true => self.leaf(ty).filter(|right| *right != left),
                    false => None,
                };
                let right = right.unwrap_or_else(|| literal(self.rng, ty));
                // No value is below the smallest one or above the largest one.
                let at_an_end = [0, ty.max()].iter().any(|end| {
                    let written = right.split(' ').next().unwrap_or_default();
                    [format!("{end}"), format!("{end:#x}")].contains(&written.to_owned())
                });
                format!("{left} {} {right}", if at_an_end { "!=" } else { op })
            }
            None => format!("pkt.len {op} {}", 60 + self.rng.below(600)),
        }
    }
}
