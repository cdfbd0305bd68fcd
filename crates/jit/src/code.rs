//! Compiled programs: from a residual program to code that runs.

use crate::abi::{Classes, Count, Ended, Host, Misfit, Resource, Resources, Search, Work};
use crate::emit::{Emitter, Hint, Hot, Lists};
use crate::error::Error;
use crate::facts::Facts;
use crate::index::Index;
use crate::regions::Regions;
use crate::sys::{self, Memory, Records};
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
    memory: Memory,
    shape: HeaderMask,
    tallies: usize,
    /// What the code reads and writes beside what it is given: it has their addresses.
    _records: Records,
    _lists: Lists,
    _indexes: Vec<Arc<Index>>,
    knows_classes: bool,
}

/// Resources that have nothing but numbers.
struct Numbers<'a>(&'a mut dyn FnMut(u16, Resource) -> Option<u32>);

impl Resources for Numbers<'_> {
    fn number(&mut self, node: u16, resource: Resource) -> Option<u32> {
        (self.0)(node, resource)
    }

    fn classes(&mut self, _: &[(u16, ParamId)], _: bool) -> Option<Classes> {
        None
    }

    fn list(&self, _: u16, _: ParamId) -> Option<&[Vec<Word>]> {
        None
    }
}

/// Compiles a program. `number` chooses numbers for the resources of functions (see
/// [`Host`]); one without goes through [`Host::step`].
///
/// # Errors
/// When the program is not well-formed, or there is no code generator for this machine.
pub fn compile(
    residual: &Residual,
    number: &mut dyn FnMut(u16, Resource) -> Option<u32>,
) -> Result<Code, Error> {
    compile_with(residual, &mut Numbers(number))
}

/// As [`compile`], for an engine that tells more about its resources.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(residual: &Residual, resources: &mut dyn Resources) -> Result<Code, Error> {
    let facts = Facts::of(residual)?;
    let isa = machine()?;
    let regions = Regions::of(residual, &facts, resources);
    let records = Records::new(regions.words);
    let mut lists = Lists::default();
    let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
    let known = (&regions, records.start());
    let (whole, ()) = function(&mut module, "whole", 1, |builder, config| {
        Emitter::new(residual, &facts, &mut *resources, &mut lists, known, builder).program(config)
    })?;
    let mut main_way = None;
    if let Some(hot) = Hot::of(residual, &facts, &regions) {
        let (id, useful) = function(&mut module, "main_way", 1, |builder, config| {
            Emitter::new(residual, &facts, &mut *resources, &mut lists, known, builder)
                .main_way(&hot, config)
        })?;
        main_way = useful.then_some(id);
    }
    let mut prefetch = None;
    let hints = Hint::all(residual, &facts, resources);
    if !hints.is_empty() {
        let none = Regions::default();
        let (id, useful) = function(&mut module, "prefetch", 0, |builder, config| {
            let none = (&none, 0);
            Emitter::new(residual, &facts, &mut *resources, &mut lists, none, builder)
                .prefetch(&hints, config)
        })?;
        prefetch = useful.then_some(id);
    }
    module.finalize_definitions().map_err(generator)?;
    let memory = Memory::new(module, whole, main_way, prefetch);
    let knows_classes = !regions.groups.is_empty();
    let searched = regions.groups.into_iter().filter_map(|group| match group.classes.search {
        Search::Index(index) => Some(index),
        Search::Host(_) => None,
    });
    Ok(Code {
        memory,
        shape: residual.shape,
        tallies: residual.tallies.len(),
        _records: records,
        _lists: lists,
        _indexes: searched.collect(),
        knows_classes,
    })
}

impl Code {
    /// Runs the program on one packet.
    ///
    /// # Errors
    /// When the packet, its layout or the counts do not fit the program; nothing was done then.
    #[inline(always)]
    pub fn run<H: Host>(&self, host: &mut H, work: Work<'_>) -> Result<Ended, Misfit> {
        let Work { packet, layout, now, counts } = work;
        let counts = Cell::from_mut(counts).as_slice_of_cells();
        self.runner(host, counts)?.run(packet, layout, now)
    }

    /// To run the program on packet after packet.
    ///
    /// # Errors
    /// When there are fewer counts than tallies.
    #[inline(always)]
    pub fn runner<'a, H: Host>(
        &'a self,
        host: &'a mut H,
        counts: &'a [Cell<Count>],
    ) -> Result<Runner<'a, H>, Misfit> {
        sys::Runner::new(self.entrance(), host, counts).map(Runner)
    }

    /// What runs, and on what.
    #[inline(always)]
    fn entrance(&self) -> sys::Entrance<'_> {
        sys::Entrance { memory: &self.memory, shape: self.shape, tallies: self.tallies }
    }

    /// Whether it relies on [`Resources::classes`].
    #[must_use]
    pub fn knows_classes(&self) -> bool {
        self.knows_classes
    }

    /// Whether [`Self::prefetch`] does anything.
    #[must_use]
    pub fn prefetches(&self) -> bool {
        self.memory.prefetches()
    }

    /// Tells the host what the program will likely look up first, as far as that is known before it runs
    /// ([`Host::prefetch`], [`Host::ask`]).
    pub fn prefetch<H: Host>(
        &self,
        host: &mut H,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) {
        // A packet of another shape has other programs, and nothing to fetch for this one.
        let entrance = sys::Entrance { tallies: 0, ..self.entrance() };
        let runner = sys::Runner::new(entrance, host, &[]);
        let _ = runner.and_then(|mut runner| runner.prefetch(packet, layout, now));
    }
}

/// A program and its host, for packet after packet.
pub struct Runner<'a, H>(sys::Runner<'a, H>);

impl<'a, H: Host> Runner<'a, H> {
    /// The host.
    #[inline(always)]
    pub fn host(&mut self) -> &mut H {
        self.0.host()
    }

    /// From now on another program runs.
    ///
    /// # Errors
    /// As [`Code::runner`]; the program stays the one that it was.
    #[inline(always)]
    pub fn turn_to(&mut self, code: &'a Code, counts: &'a [Cell<Count>]) -> Result<(), Misfit> {
        self.0.turn_to(code.entrance(), counts)
    }

    /// Runs the program on one packet; as [`Code::run`].
    ///
    /// # Errors
    /// When the packet or its layout do not fit the program; nothing was done then.
    #[inline(always)]
    pub fn run(
        &mut self,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) -> Result<Ended, Misfit> {
        self.0.run(packet, layout, now)
    }
}

/// The machine that this runs on.
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
        // A large frame must not reach past the guard behind the stack.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ];
    for (name, value) in chosen {
        flags.set(name, value).map_err(|why| Error::Machine(why.to_string()))?;
    }
    let machine = cranelift_native::builder().map_err(|why| Error::Machine(why.to_owned()))?;
    machine.finish(Flags::new(flags)).map_err(|why| Error::Machine(why.to_string()))
}

/// Generates a function from a frame to so many words.
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
            Error::Generator(format!("the program's values do not fit its ways: {errors}"))
        }
        other => Error::Generator(other.to_string()),
    }
}
