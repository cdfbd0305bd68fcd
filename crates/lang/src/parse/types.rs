//! Parses types, parameters and keys.

use super::marks::{GENERIC, GLUE};
use super::state::{Parsed, Parser};
use crate::ast::{Ident, KeyPart, ParamDef, Path, Type, TypeKind};
use crate::lexer::Tok;

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Parsed<Type> {
        self.deeper(Self::ty_inner)
    }

    fn ty_inner(&mut self) -> Parsed<Type> {
        let start = self.pos;
        let kind = if self.at(Tok::LBrace) {
            TypeKind::Record(self.record_type()?)
        } else {
            let name = self.name("a type")?;
            let args = if self.at(Tok::Lt) { self.type_args()? } else { Vec::new() };
            let of = if self.at(Tok::LParen) { Some(self.type_of()?) } else { None };
            TypeKind::Named { name, args, of }
        };
        Ok(Type { kind, span: self.span_from(start) })
    }

    /// `{ addr: ip4, port: port }`
    pub(super) fn record_type(&mut self) -> Parsed<Vec<(Ident, Type)>> {
        self.bracketed((Tok::LBrace, Tok::RBrace), false, Self::typed_name)
    }

    /// `addr: ip4`. The name may be a keyword.
    fn typed_name(&mut self) -> Parsed<(Ident, Type)> {
        let name = self.any_word("a name")?;
        self.expect(Tok::Colon, "`:` and a type")?;
        Ok((name, self.ty()?))
    }

    fn type_args(&mut self) -> Parsed<Vec<Type>> {
        self.mark(GLUE | GENERIC);
        let open = self.bump();
        let args = self.list(open, Tok::Gt, Self::ty)?;
        self.marks.set(self.pos - 1, GLUE | GENERIC);
        Ok(args)
    }

    /// `(servers)` after `index`.
    fn type_of(&mut self) -> Parsed<Ident> {
        self.mark(GLUE);
        let open = self.bump();
        let of = self.name("the name of a list")?;
        self.close(open, Tok::RParen, "")?;
        Ok(of)
    }

    /// `(name: type = default, …)`
    pub(super) fn params(&mut self) -> Parsed<Vec<ParamDef>> {
        self.bracketed((Tok::LParen, Tok::RParen), true, |p| {
            let name = p.name("the name of a parameter")?;
            p.expect(Tok::Colon, "`:` and a type")?;
            let ty = p.ty()?;
            let default = if p.eat(Tok::Assign) { Some(p.expr()?) } else { None };
            Ok(ParamDef { name, ty, default })
        })
    }

    /// `(name: type, …)` of one of the program's own functions.
    pub(super) fn plain_params(&mut self) -> Parsed<Vec<(Ident, Type)>> {
        self.bracketed((Tok::LParen, Tok::RParen), true, |p| {
            let name = p.name("the name of a parameter")?;
            p.expect(Tok::Colon, "`:` and a type")?;
            Ok((name, p.ty()?))
        })
    }

    /// Parses a field (a dotted name) or a type.
    pub(super) fn key_part(&mut self) -> Parsed<KeyPart> {
        if self.at(Tok::Ident) && self.token(1).kind == Tok::Dot {
            return Ok(KeyPart::Field(self.path("a field")?));
        }
        Ok(KeyPart::Type(self.ty()?))
    }

    /// `a.b.c`. Parts behind a dot may be keywords.
    pub(super) fn path(&mut self, what: &str) -> Parsed<Path> {
        let start = self.pos;
        let mut parts = vec![self.name(what)?];
        while self.at(Tok::Dot) {
            self.bump();
            parts.push(self.any_word("a name after the `.`")?);
        }
        Ok(Path { parts, span: self.span_from(start) })
    }
}
