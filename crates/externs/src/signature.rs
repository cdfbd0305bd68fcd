//! The description of an operator for its callers: arguments, results, action profile, examples.

use crate::call::{Arg, CallCtx, Results};
use std::fmt;

/// An operator: its signature and its code.
#[derive(Debug)]
pub struct Extern {
    /// The description for callers and analyses.
    pub signature: Signature,
    /// The code. It is a total function: it returns results for all arguments, never panics and
    /// never blocks.
    pub(crate) code: Code,
}

/// The code of an operator.
#[derive(Debug)]
pub(crate) enum Code {
    /// One of Braid's own.
    Own(fn(&mut CallCtx<'_>) -> Results),
    /// From a library.
    Loaded(Loaded),
}

/// The code of an operator from a library.
pub type LoadedCode = dyn Fn(&[Arg], &[u8]) -> u128 + Send + Sync;

/// An operator from a library: a function of its arguments, and of the payload if it reads it.
pub struct Loaded {
    /// Whether it reads the payload.
    pub reads_payload: bool,
    /// The code: arguments and payload to a number.
    pub call: Box<LoadedCode>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("reads_payload", &self.reads_payload).finish_non_exhaustive()
    }
}

/// The description of an operator for callers and analyses.
#[derive(Debug)]
pub struct Signature {
    /// The name in the language and in the IR.
    pub name: &'static str,
    /// The arguments in order, without the operator's parameter.
    pub args: &'static [ArgSpec],
    /// Whether the last argument may be given more than once.
    pub variadic: bool,
    /// The kind of the operator's parameter, which the language writes as the first argument.
    pub takes_param: Option<ParamKind>,
    /// The results in order. See [`Signature::fallible`].
    pub results: &'static [ResultSpec],
    /// The parts of the packet and of the instance that the operator touches.
    pub profile: Profile,
    /// The description for the manual: sentences in Markdown.
    pub doc: &'static str,
    /// Examples, for the manual and as tests.
    pub examples: &'static [Example],
}

/// An argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArgSpec {
    /// The name in the manual.
    pub name: &'static str,
    /// The width.
    pub width: Width,
}

/// The width of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// Any scalar. Its width is part of its meaning.
    Any,
    /// This many bits.
    Bits(u16),
}

/// The kind of an operator's parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamKind {
    /// Backends with their health.
    Backends,
}

/// A result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResultSpec {
    /// The name in the manual.
    pub name: &'static str,
    /// The meaning of the result.
    pub kind: ResultKind,
}

/// The meaning of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultKind {
    /// Whether there is an answer (one bit). Only the first result may be of this kind.
    Found,
    /// An unsigned integer of this many bits.
    Uint(u16),
    /// The number of a member of the operator's parameter (32 bits).
    Index,
}

/// How an operator touches a part of the packet or of its instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// It does not touch it.
    No,
    /// It reads.
    Reads,
    /// It reads and writes.
    Writes,
}

/// An action profile (NFP Table 2). Operators get header fields only as arguments, which the IR
/// reads with separate operations. Therefore the profile has no part for headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The payload. If the capture cut a packet's payload, the call is a fault.
    pub payload: Touch,
    /// The state of the instance, without its tables: the health of backends, and the random
    /// generator.
    pub state: Touch,
}

/// A call and its result, which the manual shows and a test runs.
#[derive(Debug)]
pub struct Example {
    /// The call in the language.
    pub call: &'static str,
    /// Arguments as (value, width in bits).
    pub args: &'static [(u128, u16)],
    /// The packet's payload.
    pub payload: &'static [u8],
    /// Backends as (name, up).
    pub backends: &'static [(u128, bool)],
    /// Seed of the generator.
    pub seed: u64,
    /// The results, as many as the signature has.
    pub results: &'static [u128],
}

impl Example {
    /// An example of an operator that uses only its arguments.
    pub(crate) const fn of(
        call: &'static str,
        args: &'static [(u128, u16)],
        results: &'static [u128],
    ) -> Self {
        Self { call, args, payload: &[], backends: &[], seed: 0, results }
    }
}

impl Profile {
    /// The operator touches only its arguments.
    pub const PURE: Self = Self { payload: Touch::No, state: Touch::No };
}

impl Signature {
    /// Whether the first result is [`ResultKind::Found`]. The language then requires an `else`.
    #[must_use]
    pub fn fallible(&self) -> bool {
        matches!(self.results.first(), Some(ResultSpec { kind: ResultKind::Found, .. }))
    }

    /// Whether the operator needs the packet's payload.
    #[must_use]
    pub fn reads_payload(&self) -> bool {
        self.profile.payload != Touch::No
    }

    /// Whether the operator accepts this number of arguments.
    #[must_use]
    pub fn accepts(&self, args: usize) -> bool {
        if self.variadic { args >= self.args.len() } else { args == self.args.len() }
    }

    /// The argument with this index. The last one stands for all further arguments of a variadic
    /// operator.
    #[must_use]
    pub fn arg(&self, index: usize) -> Option<&ArgSpec> {
        match self.args.get(index) {
            None if self.variadic => self.args.last(),
            arg => arg,
        }
    }

    /// The usage in one line, such as `maglev(BACKENDS, hash: u32) -> found, index`.
    #[must_use]
    pub fn usage(&self) -> String {
        let param = self.takes_param.map(|ParamKind::Backends| "BACKENDS".to_owned());
        let args = self.args.iter().map(|arg| match arg.width {
            Width::Any => arg.name.to_owned(),
            Width::Bits(bits) => format!("{}: u{bits}", arg.name),
        });
        let more = self.variadic.then(|| "…".to_owned());
        let inside: Vec<_> = param.into_iter().chain(args).chain(more).collect();
        let results: Vec<_> = self.results.iter().map(ResultSpec::usage).collect();
        format!("{}({}) -> {}", self.name, inside.join(", "), results.join(", "))
    }
}

impl ResultSpec {
    /// The width in bits.
    #[must_use]
    pub fn width(&self) -> u16 {
        match self.kind {
            ResultKind::Found => 1,
            ResultKind::Uint(bits) => bits,
            ResultKind::Index => 32,
        }
    }

    fn usage(&self) -> String {
        match self.kind {
            ResultKind::Found | ResultKind::Index => self.name.to_owned(),
            ResultKind::Uint(bits) => format!("{}: u{bits}", self.name),
        }
    }
}

impl Extern {
    /// Calls the operator. The results of its signature come first; all further ones are 0. Results
    /// fit their widths.
    pub fn call(&self, ctx: &mut CallCtx<'_>) -> Results {
        match &self.code {
            Code::Own(run) => run(ctx),
            Code::Loaded(loaded) => {
                let payload = if loaded.reads_payload { ctx.payload } else { &[] };
                [(loaded.call)(ctx.args, payload), 0]
            }
        }
    }
}

/// The signature of operators from libraries. The program that names one declares its types.
pub(crate) const LOADED: Signature = Signature {
    name: "",
    args: &[ArgSpec { name: "value", width: Width::Any }],
    variadic: true,
    takes_param: None,
    results: &[ResultSpec { name: "result", kind: ResultKind::Uint(128) }],
    profile: Profile::PURE,
    doc: "",
    examples: &[],
};

/// The signature of operators that choose a backend by a hash.
pub(crate) const CHOICE: Signature = Signature {
    name: "",
    args: &[ArgSpec { name: "hash", width: Width::Bits(32) }],
    variadic: false,
    takes_param: Some(ParamKind::Backends),
    results: &[
        ResultSpec { name: "found", kind: ResultKind::Found },
        ResultSpec { name: "index", kind: ResultKind::Index },
    ],
    profile: Profile { payload: Touch::No, state: Touch::Reads },
    doc: "",
    examples: &[],
};
