//! Native functions. The program declares their parameters, and the library declares everything
//! else.

use braid_ir::model::Model;
use braid_native::{Checks, Reference};

use super::decl;
use super::env::Loader;
use super::library::{path, unavailable};
use super::lower::Lower;
use super::module::Module;
use crate::ast::{NativeCode, Nf};
use crate::diag::Diagnostics;
use crate::source::SourceMap;

/// The model of a native function. `None` after an error, which is then reported.
pub fn lower(
    nf: &Nf,
    code: &NativeCode,
    module: &Module<'_>,
    sources: &SourceMap,
    loader: &dyn Loader,
    diags: &mut Diagnostics,
) -> Option<Model> {
    let mut found = Diagnostics::new();
    let mut lower = Lower::new(module, sources, &mut found, Model::new(&nf.name.text));
    decl::declare(&mut lower, nf, loader);
    let params = lower.model.params;
    let failed = module.is_damaged(nf.span) || found.has_errors();
    diags.extend(found);
    if failed {
        return None;
    }
    let from = sources.get(code.span.file).map_or("", |file| file.name());
    let library = path(&code.library, from);
    let name = code.function.as_ref().unwrap_or(&nf.name);
    match loader.native(&library, &name.text, code.isolated.is_some()) {
        Ok(description) => {
            let function = name.text.clone();
            let isolated = code.isolated;
            let checks = Checks::default();
            let reference = Reference { library, function, checks, isolated };
            let model = braid_native::bridge::model(&nf.name.text, params, reference, &description);
            debug_assert_eq!(braid_ir::verify::verify(&model), Ok(()), "of {}", nf.name.text);
            Some(model)
        }
        Err(why) => {
            diags.push(unavailable(code, &name.text, name.span, &why));
            None
        }
    }
}
