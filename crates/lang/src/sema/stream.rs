//! Checks stream functions (NFD's bytestream functions). They cannot run yet. They are lowered like
//! packet functions, so that types, names and state are checked in the same way. The result is
//! discarded.

use braid_ir::model::Model;
use braid_packet::Field;

use super::env::Loader;
use super::lower::{Lower, Mode};
use super::module::Module;
use super::nf;
use super::walk::{self, Visitor};
use super::{decl, unused};
use crate::ast::joined;
use crate::ast::{Expr, ExprKind, Ident, Nf, NfItem, Path, Span, Stmt, StmtKind};
use crate::diag::{Diagnostic, Diagnostics, codes, did_you_mean_help};
use crate::source::SourceMap;

/// The names that a stream function can read of its stream.
const STREAM: &[&str] = &["stream.data", "stream.len", "stream.offset"];
/// The words that end a path through a stream function.
const ENDS: &[&str] = &["forward", "close", "reset"];

/// Checks a stream function: it has no packet operators, its types are right, and everything is
/// used.
pub fn check(
    nf: &Nf,
    module: &Module<'_>,
    sources: &SourceMap,
    loader: &dyn Loader,
    diags: &mut Diagnostics,
) {
    let mut found = Diagnostics::new();
    for item in &nf.items {
        match item {
            NfItem::Stmt(stmt) => {
                let message = "statements of a stream function stand in `on open|data|close`";
                found.push(
                    Diagnostic::new(codes::MIXED_STREAM, message, stmt.span, "outside")
                        .help("write `on data { … }`, or `nf` for a packet function"),
                );
            }
            NfItem::Port(ports) => {
                for port in ports {
                    packet_only(&format!("`port {}`", port.text), port.span, &mut found);
                }
            }
            NfItem::Tag(name, _) => packet_only("`tag`", name.span, &mut found),
            NfItem::Queue { name, .. } => packet_only("`queue`", name.span, &mut found),
            NfItem::OnStream { body, .. }
            | NfItem::Every { body, .. }
            | NfItem::OnExpire { body, .. } => walk::block(body, &mut Mixed { diags: &mut found }),
            NfItem::Fn(def) => match &def.body {
                crate::ast::FnBody::Pure(_, body) => {
                    walk::expr(body, &mut Mixed { diags: &mut found });
                }
                crate::ast::FnBody::Action(body) => {
                    walk::block(body, &mut Mixed { diags: &mut found });
                }
            },
            NfItem::Const(_) | NfItem::State(_) => {}
        }
    }
    // The result of a packet operator has no type in a stream function.
    if !found.has_errors() {
        types(nf, module, sources, loader, &mut found);
    }
    if !module.is_damaged(nf.span) {
        unused::check(nf, sources, &mut found);
    }
    diags.extend(found);
}

/// Checks names, types and state by lowering every block.
fn types(
    nf: &Nf,
    module: &Module<'_>,
    sources: &SourceMap,
    loader: &dyn Loader,
    diags: &mut Diagnostics,
) {
    let mut lower = Lower::new(module, sources, diags, Model::new(&nf.name.text));
    lower.doubt = module.is_damaged(nf.span);
    decl::declare(&mut lower, nf, loader);
    for item in &nf.items {
        match item {
            NfItem::OnStream { body, .. } => {
                nf::program(&mut lower, Mode::Stream, body);
            }
            NfItem::Every { period, body, .. } => {
                decl::period(&mut lower, period);
                nf::program(&mut lower, Mode::Timer, body);
            }
            NfItem::OnExpire { state, body, .. } => nf::on_expire(&mut lower, state, body),
            _ => {}
        }
    }
}

fn packet_only(what: &str, span: Span, diags: &mut Diagnostics) {
    let message = format!("{what} is for packets, and a stream function sees none");
    diags.push(
        Diagnostic::new(codes::MIXED_STREAM, message, span, "a packet operator")
            .help("a stream function ends with `forward;`, `close;` or `reset;`"),
    );
}

struct Mixed<'d> {
    diags: &'d mut Diagnostics,
}

impl<'a> Visitor<'a> for Mixed<'_> {
    fn stmt(&mut self, stmt: &'a Stmt) -> bool {
        let what = match &stmt.kind {
            StmtKind::Output(_) => "`output`",
            StmtKind::Drop(_) => "`drop`",
            StmtKind::Consume => "`consume`",
            StmtKind::Mirror(_) => "`mirror`",
            StmtKind::Hold { .. } => "`hold`",
            StmtKind::Resubmit => "`resubmit`",
            StmtKind::Send { .. } => "`send`",
            StmtKind::Push { .. } => "`push`",
            StmtKind::Pop { .. } => "`pop`",
            // These words end the path of a stream.
            StmtKind::Call { call: Expr { kind: ExprKind::Path(path), .. }, .. } => {
                return !path.parts.first().is_some_and(|p| ENDS.contains(&p.text.as_str()));
            }
            _ => return true,
        };
        packet_only(what, stmt.span, self.diags);
        true
    }

    fn expr(&mut self, expr: &'a Expr) -> bool {
        let ExprKind::Path(path) = &expr.kind else { return true };
        let name = joined(path);
        if Field::by_name(&name).is_some() || matches!(name.as_str(), "packet" | "payload") {
            packet_only(&format!("`{name}`"), path.span, self.diags);
        } else if name.starts_with("stream.") && !STREAM.contains(&name.as_str()) {
            self.diags.push(
                Diagnostic::new(
                    codes::UNKNOWN_FIELD,
                    format!("there is no `{name}`"),
                    path.span,
                    "expected stream.data, stream.len or stream.offset",
                )
                .help_if(did_you_mean_help(&name, STREAM.iter().copied())),
            );
        }
        true
    }

    fn header(&mut self, path: &'a Path) {
        packet_only(&format!("`has {}`", joined(path)), path.span, self.diags);
    }

    fn call(&mut self, _name: &'a Ident) {}
}
