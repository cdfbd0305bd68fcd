//! Compiles the chains of benches.

use braid_bench::setup::Source;
use braid_ir::chain::Chain;
use braid_lang::Loader;
use braid_lang::diag::{Style, render};

struct Files<'a>(&'a Source);

impl Loader for Files<'_> {
    fn read(&self, path: &str, _: &str) -> Result<Vec<u8>, String> {
        self.0.files.get(path).map(|text| text.clone().into_bytes()).ok_or("none".to_owned())
    }
}

/// Compiles a source to its first chain.
pub fn chain(source: &Source) -> Result<Chain, String> {
    let library: Vec<(&str, &str)> =
        braid_nfs::all().iter().map(|nf| (nf.name, nf.source)).collect();
    let compiled = braid_lang::compile((&source.name, &source.text), &library, &Files(source));
    let text = render(&compiled.diagnostics, &compiled.sources, Style::default());
    let chains = compiled.unit.map(|unit| unit.chains).unwrap_or_default();
    chains.into_iter().next().ok_or(text)
}
