//! A chain under construction, and the parts of the program that it refers to.

use std::sync::Arc;

use braid_ir::chain::{self as ir, Sink, Source};
use braid_ir::model::{Model, ParamTy};
use braid_ir::steering::Steering;
use braid_ir::value::ParamValue;
use rustc_hash::FxHashMap;

use crate::ast::{self, ChainItem, Expr, Ident, Span};
use crate::diag::{Diagnostic, Diagnostics, codes};
use crate::sema::env::Env;
use crate::sema::eval::param_value;

/// The most functions of a chain.
pub const MAX_FUNCTIONS: usize = 1024;
/// The most interfaces of a chain.
pub const MAX_INTERFACES: usize = 256;
/// The most addresses of an interface.
pub const MAX_ADDRESSES: usize = 16;
/// The most links of a chain. Each direction counts.
pub const MAX_LINKS: usize = 4096;
/// The most rules of a policy.
pub const MAX_RULES: usize = 4096;
/// The most workers.
pub const MAX_WORKERS: u16 = 1024;

/// The functions of a program.
pub trait Functions {
    /// The function with this name: from the file, from the files that it uses, or from the
    /// library.
    fn find(&mut self, name: &str, diags: &mut Diagnostics) -> Found;
    /// Names of all functions, for suggestions.
    fn names(&self) -> Vec<String>;
}

/// The parts of the program that a chain refers to.
pub struct Scope<'a> {
    /// The functions of the program.
    pub functions: &'a mut dyn Functions,
    /// Everything that arguments may refer to.
    pub env: Env<'a>,
    /// Whether syntax errors may have removed parts of the chain. Missing parts are then not
    /// reported.
    pub doubt: bool,
}

impl Scope<'_> {
    /// The value of an argument. `None` after an error, which is then reported.
    pub(super) fn value(
        &mut self,
        value: &Expr,
        ty: &ParamTy,
        diags: &mut Diagnostics,
    ) -> Option<ParamValue> {
        param_value(ty, value, &self.env, diags)
    }
}

/// The result of a search for a function.
#[derive(Clone, Debug)]
pub enum Found {
    /// A function that can run.
    Model(Arc<Model>),
    /// A function with errors, which are reported.
    Broken,
    /// There is no function with this name.
    Unknown,
}

/// A chain under construction.
pub(super) struct Draft<'a> {
    pub(super) ast: &'a ast::Chain,
    /// Whether parts of the chain may be missing.
    pub(super) doubt: bool,
    pub(super) names: FxHashMap<&'a str, End>,
    /// Names that instances in place cannot have. Each has the number of the last suffix that was
    /// tried.
    pub(super) taken: FxHashMap<String, u32>,
    pub(super) interfaces: Vec<Interface>,
    pub(super) nodes: Vec<Node>,
    pub(super) links: Vec<Link>,
    pub(super) malformed: ir::Malformed,
    pub(super) seed: u64,
    pub(super) workers: u16,
    /// The place of the policy that orders the functions, if no path does.
    pub(super) by_rules: Option<Span>,
}

/// The declaration that a name in a chain refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Interface(u16),
    Node(u16),
}

pub(super) struct Interface {
    pub(super) ir: ir::Interface,
    /// The place of the declaration. `None` for the implicit interfaces of a chain that declares
    /// none.
    pub(super) span: Option<Span>,
}

pub(super) struct Node {
    pub(super) name: String,
    pub(super) span: Span,
    /// The function's model. `None` if the function is unknown or has errors.
    pub(super) model: Option<Arc<Model>>,
    /// A value for each parameter. Wrong values are reported and omitted.
    pub(super) params: Vec<ParamValue>,
}

#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) source: Source,
    pub(super) sink: Sink,
    pub(super) span: Span,
}

impl<'a> Draft<'a> {
    pub(super) fn new(ast: &'a ast::Chain, doubt: bool) -> Self {
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
            by_rules: by_rules(ast),
        }
    }

    /// Whether errors elsewhere made a function or its values unusable.
    pub(super) fn broken(&self) -> bool {
        self.nodes.iter().any(|node| {
            node.model.as_ref().is_none_or(|model| model.params.len() != node.params.len())
        })
    }

    /// Names of interfaces and functions, for suggestions.
    pub(super) fn end_names(&self) -> impl Iterator<Item = &str> {
        let interfaces = self.interfaces.iter().map(|interface| interface.ir.name.as_str());
        interfaces.chain(self.node_names())
    }

    pub(super) fn node_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    pub(super) fn node_name(&self, node: u16) -> &str {
        self.nodes.get(usize::from(node)).map_or("?", |node| &node.name)
    }

    pub(super) fn finish(
        self,
        policy: Vec<ir::PolicyRule>,
        priorities: Vec<ir::Priority>,
    ) -> ir::Chain {
        let node = |n: Node| {
            let (name, params) = (n.name, n.params);
            n.model.map(|model| ir::Node { name, model, params })
        };
        ir::Chain {
            name: self.ast.name.text.clone(),
            interfaces: self.interfaces.into_iter().map(|i| i.ir).collect(),
            nodes: self.nodes.into_iter().filter_map(node).collect(),
            links: self.links.iter().map(|link| (link.source, link.sink)).collect(),
            priorities,
            policy,
            malformed: self.malformed,
            seed: self.seed,
            workers: self.workers,
            steering: Steering::by_connection(),
            only: None,
            by_rules: self.by_rules.is_some(),
        }
    }
}

/// Gives an interface or function its name, unless another one has it.
pub(super) fn name_it<'a>(
    draft: &mut Draft<'a>,
    name: &'a Ident,
    end: End,
    diags: &mut Diagnostics,
) {
    if let Some(before) = draft.names.get(name.text.as_str()) {
        let message = format!("`{}` is declared twice in this chain", name.text);
        let mut diagnostic =
            Diagnostic::new(codes::CHAIN_DUPLICATE_NAME, message, name.span, "again here");
        if let Some(span) = declared_at(draft, *before) {
            diagnostic = diagnostic.label(span, "first here");
        }
        diags.push(diagnostic.help("give one of them another name"));
        return;
    }
    draft.names.insert(&name.text, end);
}

fn declared_at(draft: &Draft<'_>, end: End) -> Option<Span> {
    match end {
        End::Interface(at) => draft.interfaces.get(usize::from(at)).and_then(|i| i.span),
        End::Node(at) => draft.nodes.get(usize::from(at)).map(|node| node.span),
    }
}

/// The place of the policy of a chain that has rules in place of paths. Its links, if any, begin or
/// end at ports of functions.
pub(crate) fn by_rules(chain: &ast::Chain) -> Option<Span> {
    let mut place = None;
    for item in &chain.items {
        match item {
            ChainItem::Path { .. } => return None,
            ChainItem::Link { from, to, .. } if from.port.is_none() && to.port.is_none() => {
                return None;
            }
            ChainItem::Policy { span, .. } => place = place.or(Some(*span)),
            _ => {}
        }
    }
    place
}
