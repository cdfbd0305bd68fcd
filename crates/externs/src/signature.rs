//! What an operator looks like from outside: arguments, results, action profile, examples.

use crate::call::{CallCtx, Results};

/// An operator: its signature and its code.
#[derive(Debug)]
pub struct Extern {
    /// What callers and analyses need to know.
    pub signature: Signature,
    /// The code. Total: it gives results for all arguments, never panics, never blocks.
    pub(crate) run: fn(&mut CallCtx<'_>) -> Results,
}

/// What callers and analyses need to know of an operator.
#[derive(Debug)]
pub struct Signature {
    /// Its name in the language and in the IR.
    pub name: &'static str,
    /// Arguments in order, without the parameter that it works on.
    pub args: &'static [ArgSpec],
    /// Whether the last argument may be given more than once.
    pub variadic: bool,
    /// The kind of the parameter that it works on, which the language writes as first argument.
    pub takes_param: Option<ParamKind>,
    /// Results in order. See [`Signature::fallible`].
    pub results: &'static [ResultSpec],
    /// What it touches.
    pub profile: Profile,
    /// What it does, for the manual: sentences in Markdown.
    pub doc: &'static str,
    /// Documentation and tests at once.
    pub examples: &'static [Example],
}

/// An argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArgSpec {
    /// Its name in the manual.
    pub name: &'static str,
    /// Its width.
    pub width: Width,
}

/// The width of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// Any scalar; its width is part of its meaning.
    Any,
    /// So many bits.
    Bits(u16),
}

/// The kind of a parameter that an operator works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamKind {
    /// Backends with their health.
    Backends,
}

/// A result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResultSpec {
    /// Its name in the manual.
    pub name: &'static str,
    /// What it denotes.
    pub kind: ResultKind,
}

/// What a result denotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultKind {
    /// Whether there is an answer (one bit); only ever the first result.
    Found,
    /// An unsigned integer of so many bits.
    Uint(u16),
    /// Number of a member of the parameter that the operator works on (32 bits).
    Index,
}

/// How an operator touches a part of the packet or of its instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// Not at all.
    No,
    /// Reads.
    Reads,
    /// Reads and writes.
    Writes,
}

/// An action profile (NFP Table 2). Header fields reach an operator only as arguments, which the
/// IR reads by operations of their own, so there is no part for headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The payload. A packet whose payload was cut by the capture faults before the call.
    pub payload: Touch,
    /// State of the instance other than its tables: health of backends, the random generator.
    pub state: Touch,
}

/// A call and its outcome: shown in the manual and run as a test.
#[derive(Debug)]
pub struct Example {
    /// The call as the language writes it.
    pub call: &'static str,
    /// Arguments as (value, width in bits).
    pub args: &'static [(u128, u16)],
    /// The packet's payload.
    pub payload: &'static [u8],
    /// Backends as (name, up).
    pub backends: &'static [(u128, bool)],
    /// Seed of the generator.
    pub seed: u64,
    /// Results, as many as the signature has.
    pub results: &'static [u128],
}

impl Example {
    /// An example of an operator that uses its arguments only.
    pub(crate) const fn of(
        call: &'static str,
        args: &'static [(u128, u16)],
        results: &'static [u128],
    ) -> Self {
        Self { call, args, payload: &[], backends: &[], seed: 0, results }
    }
}

impl Profile {
    /// Nothing but the arguments.
    pub const PURE: Self = Self { payload: Touch::No, state: Touch::No };
}

impl Signature {
    /// Whether the first result says if there is an answer; the language then wants an `else`.
    #[must_use]
    pub fn fallible(&self) -> bool {
        matches!(self.results.first(), Some(ResultSpec { kind: ResultKind::Found, .. }))
    }

    /// Whether it needs the packet's payload.
    #[must_use]
    pub fn reads_payload(&self) -> bool {
        self.profile.payload != Touch::No
    }

    /// Whether it can be called with so many arguments.
    #[must_use]
    pub fn accepts(&self, args: usize) -> bool {
        if self.variadic { args >= self.args.len() } else { args == self.args.len() }
    }

    /// The `index`-th argument; the last one stands for all further ones of a variadic operator.
    #[must_use]
    pub fn arg(&self, index: usize) -> Option<&ArgSpec> {
        match self.args.get(index) {
            None if self.variadic => self.args.last(),
            arg => arg,
        }
    }

    /// Usage in one line, such as `maglev(BACKENDS, hash: u32) -> found, index`.
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
    /// Width in bits.
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
    /// Calls the operator. The results of its signature come first; further ones are 0. Results
    /// fit their widths.
    pub fn call(&self, ctx: &mut CallCtx<'_>) -> Results {
        (self.run)(ctx)
    }
}
