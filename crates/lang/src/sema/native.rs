//! Native functions. The program declares their parameters, and the library declares everything
//! else.

use braid_ir::model::{EventDecl, EventTy, Model, ROOT_EVENT};
use braid_native::{Checks, Reference};

use super::env::Loader;
use super::library::{path, unavailable};
use super::lower::Lower;
use super::module::Module;
use super::{decl, stream};
use crate::ast::{NativeCode, Nf};
use crate::diag::{Diagnostic, Diagnostics, codes};
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
            let mut model =
                braid_native::bridge::model(&nf.name.text, params, reference, &description);
            if model.is_stream() {
                model = stream::of_native(model, module, sources, diags);
            }
            debug_assert_eq!(braid_ir::verify::verify(&model), Ok(()), "of {}", nf.name.text);
            let unlike = model.events.iter().find(|event| module.declares_otherwise(event));
            if let Some(event) = unlike {
                diags.push(differs(event, &name.text, code));
                return None;
            }
            Some(model)
        }
        Err(why) => {
            diags.push(unavailable(code, &name.text, name.span, &why));
            None
        }
    }
}

/// The message for an event type that the library and the program declare differently.
fn differs(event: &EventDecl, function: &str, code: &NativeCode) -> Diagnostic {
    let inherited = event.ancestors.first().map_or(0, |parent| parent.fields);
    let parent = event.ancestors.first().map_or(ROOT_EVENT, |parent| &parent.name);
    let field = |(name, ty): &(String, EventTy)| match ty {
        EventTy::Scalar(ty) => format!("{name}: {ty}"),
        EventTy::Str => format!("{name}: string"),
    };
    let own: Vec<String> = event.fields.iter().skip(inherited).map(field).collect();
    let name = &event.name;
    let message = format!("`{function}` and this program declare the event {name} differently");
    Diagnostic::new(codes::EVENT_TYPES_DIFFER, message, code.span, "publishes it")
        .help(format!("declare `event {name} extends {parent} {{ {} }}`", own.join(", ")))
}
