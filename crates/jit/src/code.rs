//! Compiles residual programs, and runs their machine code.

use crate::abi::{
    AddressGroups, Count, Ended, GuardFailure, Host, Resource, Resources, Search, Work,
};
use crate::emit::{self, Emitter, Hint, Lists, MainPath};
use crate::error::Error;
use crate::facts::Facts;
use crate::index::Index;
use crate::regions::Regions;
use crate::sys::{self, CodeMemory, OutcomeMemory};
use braid_ir::model::{ParamId, Word};
use braid_ir::residual::{HeaderMask, Residual};
use braid_packet::{Layout, Packet};
use cranelift_codegen::ir::{AbiParam, Function, Signature, UserFuncName, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_codegen::{CodegenError, Context};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};
use std::cell::Cell;
use std::sync::Arc;

/// The machine code of a residual program. Its memory is freed with it.
#[derive(Debug)]
pub struct Code {
    memory: CodeMemory,
    shape: HeaderMask,
    counters: usize,
    inputs: usize,
    /// The outcomes of regions. The code contains their addresses.
    _outcomes: OutcomeMemory,
    _lists: Lists,
    _indexes: Vec<Arc<Index>>,
    uses_address_groups: bool,
}

/// Resources whose numbers are known, but nothing else.
struct Numbers<'a>(&'a mut dyn FnMut(u16, Resource) -> Option<u32>);

impl Resources for Numbers<'_> {
    fn number(&mut self, node: u16, resource: Resource) -> Option<u32> {
        (self.0)(node, resource)
    }

    fn address_groups(&mut self, _: &[(u16, ParamId)], _: bool) -> Option<AddressGroups> {
        None
    }

    fn list(&self, _: u16, _: ParamId) -> Option<&[Vec<Word>]> {
        None
    }
}

/// Compiles a program. `number` gives the numbers of resources (see [`Host`]). Steps on a resource
/// without a number go through [`Host::step`].
///
/// # Errors
/// Returns an error when the program is not well-formed, or when there is no code generator for
/// this machine.
pub fn compile(
    residual: &Residual,
    number: &mut dyn FnMut(u16, Resource) -> Option<u32>,
) -> Result<Code, Error> {
    compile_with(residual, &mut Numbers(number))
}

/// As [`compile`], for an engine that knows more about its resources.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(residual: &Residual, resources: &mut dyn Resources) -> Result<Code, Error> {
    let facts = Facts::of(residual)?;
    let isa = machine()?;
    let regions = Regions::of(residual, &facts, resources);
    let outcomes = OutcomeMemory::new(regions.words);
    let mut lists = Lists::default();
    let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
    let known = (&regions, outcomes.start());
    let (whole, ()) = function(&mut module, "whole", 1, |builder, config| {
        let emitter = Emitter::new(residual, &facts, &mut *resources, &mut lists, known, builder);
        emit::whole_program(emitter, config)
    })?;
    let mut main_path = None;
    if let Some(path) = MainPath::of(residual, &facts, &regions) {
        let (id, useful) = function(&mut module, "main_path", 1, |builder, config| {
            let emitter =
                Emitter::new(residual, &facts, &mut *resources, &mut lists, known, builder);
            emit::main_path(emitter, &path, config)
        })?;
        main_path = useful.then_some(id);
    }
    let mut prefetch = None;
    let hints = Hint::all(residual, &facts, resources);
    if !hints.is_empty() {
        let none = Regions::default();
        let (id, useful) = function(&mut module, "prefetch", 0, |builder, config| {
            let none = (&none, 0);
            let emitter =
                Emitter::new(residual, &facts, &mut *resources, &mut lists, none, builder);
            emit::prefetch(emitter, &hints, config)
        })?;
        prefetch = useful.then_some(id);
    }
    module.finalize_definitions().map_err(generator)?;
    let memory = CodeMemory::new(module, whole, main_path, prefetch);
    let uses_address_groups = !regions.lookups.is_empty();
    let searched = regions.lookups.into_iter().filter_map(|lookups| match lookups.groups.search {
        Search::Index(index) => Some(index),
        Search::Host(_) => None,
    });
    Ok(Code {
        memory,
        shape: residual.shape,
        counters: residual.counter_lists.len(),
        inputs: facts.inputs,
        _outcomes: outcomes,
        _lists: lists,
        _indexes: searched.collect(),
        uses_address_groups,
    })
}

impl Code {
    /// Runs the program on one packet.
    ///
    /// # Errors
    /// Returns an error, without any effect, when the packet, its layout or the counts do not fit
    /// the program.
    #[inline(always)]
    pub fn run<H: Host>(&self, host: &mut H, work: Work<'_>) -> Result<Ended, GuardFailure> {
        let Work { packet, layout, now, counts } = work;
        let counts = Cell::from_mut(counts).as_slice_of_cells();
        self.runner(host, counts)?.run(packet, layout, now)
    }

    /// Prepares runs of the program on one packet after the other.
    ///
    /// # Errors
    /// Returns an error when there are fewer counts than counter lists, or when the program reads
    /// inputs.
    #[inline(always)]
    pub fn runner<'a, H: Host>(
        &'a self,
        host: &'a mut H,
        counts: &'a [Cell<Count>],
    ) -> Result<Runner<'a, H>, GuardFailure> {
        self.runner_with_inputs(host, counts, &[])
    }

    /// As [`Self::runner`], for a program that reads inputs.
    ///
    /// # Errors
    /// As [`Self::runner`], and when there are fewer inputs than the program reads.
    #[inline(always)]
    pub fn runner_with_inputs<'a, H: Host>(
        &'a self,
        host: &'a mut H,
        counts: &'a [Cell<Count>],
        inputs: &'a [Word],
    ) -> Result<Runner<'a, H>, GuardFailure> {
        sys::Runner::new(self.entry_point(), host, counts, inputs).map(Runner)
    }

    /// The code, and the packets, counts and inputs that it accepts.
    #[inline(always)]
    fn entry_point(&self) -> sys::EntryPoint<'_> {
        let Self { memory, shape, counters, inputs, .. } = self;
        let (shape, counters, inputs) = (*shape, *counters, *inputs);
        sys::EntryPoint { memory, shape, counters, inputs }
    }

    /// Whether the code relies on [`Resources::address_groups`].
    #[must_use]
    pub fn uses_address_groups(&self) -> bool {
        self.uses_address_groups
    }

    /// Whether [`Prefetcher::prefetch`] does anything.
    #[must_use]
    pub fn prefetches(&self) -> bool {
        self.memory.prefetches()
    }

    /// Prepares prefetches for packets of the program.
    ///
    /// # Errors
    /// Returns an error when the program reads inputs.
    #[inline(always)]
    pub fn prefetcher<'a, H: Host>(
        &'a self,
        host: &'a mut H,
    ) -> Result<Prefetcher<'a, H>, GuardFailure> {
        let entry_point = sys::EntryPoint { counters: 0, ..self.entry_point() };
        sys::Runner::new(entry_point, host, &[], &[]).map(Prefetcher)
    }
}

/// A program and its host, for prefetches before packets run.
pub struct Prefetcher<'a, H>(sys::Runner<'a, H>);

impl<H: Host> Prefetcher<'_, H> {
    /// The host.
    #[inline(always)]
    pub fn host(&mut self) -> &mut H {
        self.0.host()
    }

    /// Announces the first lookups that the program will probably do to the host
    /// ([`Host::prefetch`], [`Host::prefetch_classify`]), as far as they are known before the
    /// program runs. A packet of another shape runs another program, so nothing is prefetched for
    /// it.
    #[inline(always)]
    pub fn prefetch(&mut self, packet: &mut Packet, layout: &mut Layout, now: u64) {
        let _ = self.0.prefetch(packet, layout, now);
    }
}

/// A program and its host, for runs on one packet after the other.
pub struct Runner<'a, H>(sys::Runner<'a, H>);

impl<'a, H: Host> Runner<'a, H> {
    /// The host.
    #[inline(always)]
    pub fn host(&mut self) -> &mut H {
        self.0.host()
    }

    /// Switches to another program.
    ///
    /// # Errors
    /// As [`Code::runner`]. The runner then keeps its program.
    #[inline(always)]
    pub fn switch_to(
        &mut self,
        code: &'a Code,
        counts: &'a [Cell<Count>],
    ) -> Result<(), GuardFailure> {
        self.0.switch_to(code.entry_point(), counts)
    }

    /// Runs the program on one packet, as [`Code::run`].
    ///
    /// # Errors
    /// Returns an error, without any effect, when the packet or its layout does not fit the
    /// program.
    #[inline(always)]
    pub fn run(
        &mut self,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) -> Result<Ended, GuardFailure> {
        self.0.run(packet, layout, now)
    }
}

/// The machine on which this process runs.
fn machine() -> Result<OwnedTargetIsa, Error> {
    if cfg!(not(all(target_endian = "little", target_pointer_width = "64"))) {
        return Err(Error::Machine("it is not a 64-bit machine with low bytes first".to_owned()));
    }
    let mut flags = settings::builder();
    let chosen = [
        ("opt_level", "speed"),
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("unwind_info", "false"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
        // A large stack frame must not reach beyond the guard page at the end of the stack.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ];
    for (name, value) in chosen {
        flags.set(name, value).map_err(|why| Error::Machine(why.to_string()))?;
    }
    let machine = cranelift_native::builder().map_err(|why| Error::Machine(why.to_owned()))?;
    machine.finish(Flags::new(flags)).map_err(|why| Error::Machine(why.to_string()))
}

/// Compiles a function that takes the frame and returns `results` words.
fn function<T>(
    module: &mut JITModule,
    name: &str,
    results: usize,
    write: impl FnOnce(
        FunctionBuilder<'_>,
        cranelift_codegen::isa::TargetFrontendConfig,
    ) -> Result<T, Error>,
) -> Result<(FuncId, T), Error> {
    let mut signature = Signature::new(module.isa().default_call_conv());
    signature.params.push(AbiParam::new(types::I64));
    signature.returns.extend((0..results).map(|_| AbiParam::new(types::I64)));
    let id = module.declare_function(name, Linkage::Local, &signature).map_err(generator)?;
    let name = UserFuncName::user(0, id.as_u32());
    let mut context = Context::for_function(Function::with_name_signature(name, signature));
    let mut kept = FunctionBuilderContext::new();
    let config = module.isa().frontend_config();
    let done = write(FunctionBuilder::new(&mut context.func, &mut kept), config)?;
    module.define_function(id, &mut context).map_err(generator)?;
    Ok((id, done))
}

fn generator(error: ModuleError) -> Error {
    match error {
        ModuleError::Compilation(CodegenError::Verifier(errors)) => {
            Error::Generator(format!("the program's values do not dominate their uses: {errors}"))
        }
        other => Error::Generator(other.to_string()),
    }
}
