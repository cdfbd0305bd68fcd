//! Chains: from the syntax tree to `ir::chain::Chain`, with everything checked that can be known
//! before a packet comes.
//!
//! `nodes` declares interfaces and instances, `args` gives them their parameters, `links` reads
//! paths and links, `graph` checks what follows from them (with `reach`: where a model may send
//! packets), `policy` checks NFP's rules. All findings of a chain are reported at once; a part that
//! is broken is left out of the checks after it.

pub(crate) mod args;
mod graph;
mod links;
mod nodes;
mod policy;
mod reach;

use std::sync::Arc;

use braid_ir::chain::{self as ir, Sink, Source};
use braid_ir::model::{Model, ParamTy, Ty};
use braid_ir::value::{IntervalSet, ParamValue};
use rustc_hash::FxHashMap;

use crate::ast::{self, ChainItem, Expr, Ident, Span};
use crate::diag::{Diagnostic, Diagnostics, codes};
use crate::sema::Env;
use crate::sema::eval::param_value;

/// Most functions of a chain.
pub const MAX_FUNCTIONS: usize = 1024;
/// Most interfaces of a chain.
pub const MAX_INTERFACES: usize = 256;
/// Most links of a chain, counting each direction.
pub const MAX_LINKS: usize = 4096;
/// Most rules of a policy.
pub const MAX_RULES: usize = 4096;
/// Most workers.
pub const MAX_WORKERS: u16 = 1024;

/// The functions of a program.
pub trait Functions {
    /// The function of this name: of the file, of those that it uses, or of the library.
    fn find(&mut self, name: &str, diags: &mut Diagnostics) -> Found;
    /// Names of all functions, for suggestions.
    fn names(&self) -> Vec<String>;
}

/// What a chain needs to know of the rest of the program.
pub struct Scope<'a> {
    /// Functions.
    pub functions: &'a mut dyn Functions,
    /// What arguments may refer to.
    pub env: Env<'a>,
    /// Whether errors of syntax may have left out parts of the chain. What is missing is not
    /// reported then.
    pub doubt: bool,
}

impl Scope<'_> {
    /// The value of an argument; `None` when it is wrong, which is then reported.
    fn value(&mut self, value: &Expr, ty: &ParamTy, diags: &mut Diagnostics) -> Option<ParamValue> {
        param_value(ty, value, &self.env, diags)
    }
}

/// A function by name.
#[derive(Clone, Debug)]
pub enum Found {
    /// A function that can run.
    Model(Arc<Model>),
    /// A stream function.
    Stream,
    /// One with errors, which are reported.
    Broken,
    /// There is none.
    Unknown,
}

/// Resolves a chain. `None` when it has errors, which are then in `diags`.
pub fn resolve(
    chain: &ast::Chain,
    scope: &mut Scope<'_>,
    diags: &mut Diagnostics,
) -> Option<ir::Chain> {
    let mut found = Diagnostics::new();
    let mut draft = Draft::new(chain, scope.doubt);
    nodes::declare(&mut draft, scope, &mut found);
    links::link(&mut draft, scope, &mut found);
    let is_whole = graph::check(&draft, &mut found);
    let (policy, priorities) = policy::check(&draft, is_whole, &mut found);
    settings(&mut draft, scope, &mut found);
    let failed = found.has_errors() || draft.doubt || draft.broken();
    diags.extend(found);
    if failed { None } else { Some(draft.finish(policy, priorities)) }
}

/// A chain in the making.
struct Draft<'a> {
    ast: &'a ast::Chain,
    /// Whether parts may have been left out.
    doubt: bool,
    names: FxHashMap<&'a str, End>,
    /// Names that instances in place cannot have, each with the number that was last put behind it.
    taken: FxHashMap<String, u32>,
    interfaces: Vec<Interface>,
    nodes: Vec<Node>,
    links: Vec<Link>,
    malformed: ir::Malformed,
    seed: u64,
    workers: u16,
}

/// What a name in a chain stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Interface(u16),
    Node(u16),
}

struct Interface {
    name: String,
    /// `None` for those of a chain that declares none.
    span: Option<Span>,
    behind4: IntervalSet,
    behind6: IntervalSet,
}

struct Node {
    name: String,
    span: Span,
    /// `None` where the function is unknown or has errors.
    model: Option<Arc<Model>>,
    /// A value for each parameter; those that are wrong are missing, and reported.
    params: Vec<ParamValue>,
}

#[derive(Clone, Copy)]
struct Link {
    source: Source,
    sink: Sink,
    span: Span,
}

impl<'a> Draft<'a> {
    fn new(ast: &'a ast::Chain, doubt: bool) -> Self {
        Self {
            ast,
            doubt,
            names: FxHashMap::default(),
            taken: FxHashMap::default(),
            interfaces: Vec::new(),
            nodes: Vec::new(),
            links: Vec::new(),
            malformed: ir::Malformed::Drop,
            seed: 0,
            workers: 1,
        }
    }

    /// Whether a function was left out because of errors elsewhere.
    fn broken(&self) -> bool {
        self.nodes.iter().any(|node| {
            node.model.as_ref().is_none_or(|model| model.params.len() != node.params.len())
        })
    }

    /// Names of interfaces and functions, for suggestions.
    fn end_names(&self) -> impl Iterator<Item = &str> {
        let interfaces = self.interfaces.iter().map(|interface| interface.name.as_str());
        interfaces.chain(self.node_names())
    }

    fn node_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    fn node_name(&self, node: u16) -> &str {
        self.nodes.get(usize::from(node)).map_or("?", |node| &node.name)
    }

    fn finish(self, policy: Vec<ir::PolicyRule>, priorities: Vec<ir::Priority>) -> ir::Chain {
        let interface =
            |i: Interface| ir::Interface { name: i.name, behind4: i.behind4, behind6: i.behind6 };
        let node = |n: Node| {
            let (name, params) = (n.name, n.params);
            n.model.map(|model| ir::Node { name, model, params })
        };
        ir::Chain {
            name: self.ast.name.text.clone(),
            interfaces: self.interfaces.into_iter().map(interface).collect(),
            nodes: self.nodes.into_iter().filter_map(node).collect(),
            links: self.links.iter().map(|link| (link.source, link.sink)).collect(),
            priorities,
            policy,
            malformed: self.malformed,
            seed: self.seed,
            workers: self.workers,
        }
    }
}

/// `malformed`, `seed`, `workers`.
fn settings(draft: &mut Draft<'_>, scope: &mut Scope<'_>, diags: &mut Diagnostics) {
    let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
    for item in &draft.ast.items {
        let (name, span) = match item {
            ChainItem::Malformed(what) => ("malformed", what.span),
            ChainItem::Setting { name, .. } => (name.text.as_str(), name.span),
            _ => continue,
        };
        if let Some(before) = seen.insert(name, span) {
            let message = format!("`{name}` is set twice");
            diags.push(
                Diagnostic::new(codes::BAD_SETTING, message, span, "again")
                    .label(before, "first here")
                    .help("keep one of them"),
            );
        }
        match item {
            ChainItem::Malformed(what) => malformed(&mut draft.malformed, what, diags),
            ChainItem::Setting { name, value } => {
                if let Some(number) = number(name, value, scope, diags) {
                    match name.text.as_str() {
                        "seed" => draft.seed = number,
                        _ => draft.workers = u16::try_from(number).unwrap_or(1),
                    }
                }
            }
            _ => {}
        }
    }
}

fn malformed(setting: &mut ir::Malformed, what: &Ident, diags: &mut Diagnostics) {
    match what.text.as_str() {
        "drop" => *setting = ir::Malformed::Drop,
        "pass" => *setting = ir::Malformed::Pass,
        other => {
            let message = format!("expected `drop` or `pass`, found `{other}`");
            diags.push(
                Diagnostic::new(codes::BAD_SETTING, message, what.span, "")
                    .note("malformed packets are dropped where they enter, or pass on"),
            );
        }
    }
}

fn number(
    name: &Ident,
    value: &Expr,
    scope: &mut Scope<'_>,
    diags: &mut Diagnostics,
) -> Option<u64> {
    let least: u64 = match name.text.as_str() {
        "seed" => 0,
        "workers" => 1,
        other => {
            let message = format!("chains have no setting `{other}`");
            let help = crate::diag::did_you_mean_help(other, ["malformed", "seed", "workers"]);
            diags.push(
                Diagnostic::new(codes::BAD_SETTING, message, name.span, "unknown").help_if(help),
            );
            return None;
        }
    };
    let most = if least == 0 { u64::MAX } else { u64::from(MAX_WORKERS) };
    let ty = ParamTy::Scalar(Ty::uint(64));
    let ParamValue::Scalar(word) = scope.value(value, &ty, diags)? else { return None };
    let number = u64::try_from(word).ok().filter(|number| (least..=most).contains(number));
    if number.is_none() {
        let message = format!("`{}` is {word}, which is not in {least} to {most}", name.text);
        diags.push(Diagnostic::new(codes::BAD_SETTING, message, value.span, "out of range"));
    }
    number
}
