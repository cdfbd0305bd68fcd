//! Expands the program's own functions where they are called.

use braid_ir::model::{ParamTy, StateId, Ty};

use rustc_hash::FxHashMap;

use super::lower::{Binding, Frame, Lower, Value};
use super::say;
use super::types::{self, Type};
use crate::ast::{self, Arg, Expr, FnDef, Ident, Span};
use crate::diag::{Diagnostic, codes};

impl<'a> Lower<'a> {
    /// Expands one of the program's functions: binds the arguments and runs `inner` on its body.
    pub fn expand<T>(
        &mut self,
        def: &'a FnDef,
        args: &[Arg],
        span: Span,
        inner: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        if self.calls.contains(&def.name.text) {
            let message = format!("`{}` calls itself", def.name.text);
            return self
                .fail(Diagnostic::new(codes::RECURSION, message, span, "here").help(
                    "functions are expanded where they are called, so none may call itself",
                ));
        }
        let bound = self.bind_arguments(def, args, span)?;
        let sees_nf = matches!(self.names.get(def.name.text.as_str()), Some(Binding::Fn(own))
            if std::ptr::eq(*own, def));
        self.frames.push(Frame { scopes: vec![bound], sees_nf });
        self.calls.push(def.name.text.clone());
        let wrapping = std::mem::replace(&mut self.wrapping, false);
        let result = self.deeper(span, inner);
        self.wrapping = wrapping;
        self.calls.pop();
        self.frames.pop();
        result
    }

    fn bind_arguments(
        &mut self,
        def: &FnDef,
        args: &[Arg],
        span: Span,
    ) -> Option<FxHashMap<String, Value>> {
        if args.len() != def.params.len() {
            let takes = say::count(def.params.len(), "argument");
            let message = format!("`{}` takes {takes}, found {}", def.name.text, args.len());
            let diagnostic = Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, "")
                .label(def.name.span, "declared here");
            return self.fail(diagnostic);
        }
        let mut bound = FxHashMap::default();
        let mut whole = true;
        for (at, arg) in args.iter().enumerate() {
            let place = match &arg.name {
                None => Some(at),
                Some(name) => def.params.iter().position(|(param, _)| param.text == name.text),
            };
            let Some((param, ty)) = place.and_then(|place| def.params.get(place)) else {
                let message = format!("`{}` has no such parameter", def.name.text);
                self.say(Diagnostic::new(codes::WRONG_ARGUMENTS, message, arg.value.span, ""));
                whole = false;
                continue;
            };
            if bound.contains_key(&param.text) {
                let message = format!("`{}` is given twice", param.text);
                self.say(Diagnostic::new(codes::WRONG_ARGUMENTS, message, arg.value.span, ""));
                whole = false;
                continue;
            }
            match self.argument_of(ty, &arg.value) {
                Some(value) => {
                    bound.insert(param.text.clone(), value);
                }
                None => whole = false,
            }
        }
        whole.then_some(bound)
    }

    fn argument_of(&mut self, ty: &ast::Type, expr: &Expr) -> Option<Value> {
        match self.resolve_type(ty)? {
            Type::Scalar(ty) => self.typed(expr, ty).map(|id| Value::Scalar(id, ty)),
            Type::Record(parts) => self.record(&parts, expr).map(Value::Record),
            Type::Param(_) => {
                let message = "arguments are scalars or records";
                self.fail(Diagnostic::new(codes::BAD_TYPE, message, ty.span, "neither"))
            }
        }
    }

    /// Resolves a written type.
    pub fn resolve_type(&mut self, written: &ast::Type) -> Option<Type> {
        let lists: Vec<String> = self
            .model
            .params
            .iter()
            .filter(|decl| matches!(decl.ty, ParamTy::List(_) | ParamTy::Backends(_)))
            .map(|decl| decl.name.clone())
            .collect();
        types::resolve(written, &|name| lists.iter().any(|list| list == name), self.diags)
    }

    /// Resolves a written type that must be scalar.
    pub fn scalar_type(&mut self, written: &ast::Type) -> Option<Ty> {
        match self.resolve_type(written)? {
            Type::Scalar(ty) => Some(ty),
            _ => {
                let message = "expected a scalar type";
                self.fail(Diagnostic::new(codes::BAD_TYPE, message, written.span, "not a scalar"))
            }
        }
    }

    /// The table with this name.
    pub fn state_named(&mut self, name: &Ident) -> Option<StateId> {
        if let Some(Binding::State(state)) = self.binding(&name.text) {
            return Some(state);
        }
        let states = self.model.state.iter().map(|state| state.name.as_str());
        let help = self.suggest(&name.text, states);
        let message = format!("`{}` is not a state", name.text);
        let diagnostic = Diagnostic::new(codes::NOT_A_STATE, message, name.span, "not a state");
        self.fail(diagnostic.help_if(help))
    }
}
