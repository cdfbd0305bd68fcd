//! The index: declarations and uses of names; the words of the language.

use crate::source::Span;

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A constant.
    Const,
    /// A pure function of the program.
    Fn,
    /// An action.
    Action,
    /// An event type.
    Event,
    /// A field of an event type.
    EventField,
    /// A header.
    Header,
    /// A field of a header.
    HeaderField,
    /// A network function.
    Nf,
    /// A chain.
    Chain,
    /// A parameter.
    Param,
    /// A local name.
    Local,
    /// A state table.
    State,
    /// A queue.
    Queue,
    /// A tag.
    Tag,
    /// A port.
    Port,
    /// An interface of a chain.
    Interface,
    /// A function of a chain.
    Instance,
}

/// A declared name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// What it stands for.
    pub kind: Kind,
    /// The name.
    pub name: String,
    /// Where the name stands in its declaration.
    pub span: Span,
    /// The whole declaration, of a network function the part before its brace.
    pub whole: Span,
    /// Where the name can be used. `None`: in all files of the program.
    pub scope: Option<Span>,
    /// Its type, if it has one and it is known without lowering.
    pub ty: Option<String>,
    /// The declaration that it is a part of, such as the function of a parameter.
    pub owner: Option<usize>,
    /// Whether it is the library's.
    pub is_of_library: bool,
}

/// The names of a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Index {
    /// The declarations.
    pub definitions: Vec<Definition>,
    /// Where names are used, with the number of the declaration.
    pub uses: Vec<(Span, usize)>,
    /// Header fields by their names.
    pub fields: Vec<(Span, String)>,
    /// Calls of functions that the program does not declare, by their names.
    pub calls: Vec<(Span, String)>,
}

impl Index {
    /// The declaration of the name at a byte of a file, and where the name stands there.
    #[must_use]
    pub fn at(&self, file: u32, byte: u32) -> Option<(Span, usize)> {
        let declared = (0..).zip(&self.definitions).map(|(at, found)| (found.span, at));
        let mut all = declared.chain(self.uses.iter().copied());
        all.find(|(span, _)| touches(*span, file, byte))
    }

    /// The field at a byte of a file.
    #[must_use]
    pub fn field_at(&self, file: u32, byte: u32) -> Option<&(Span, String)> {
        self.fields.iter().find(|(span, _)| touches(*span, file, byte))
    }

    /// The built-in function or operator that is called at a byte of a file.
    #[must_use]
    pub fn call_at(&self, file: u32, byte: u32) -> Option<&(Span, String)> {
        self.calls.iter().find(|(span, _)| touches(*span, file, byte))
    }

    /// Where a declaration's name stands: in the declaration, and wherever it is used.
    #[must_use]
    pub fn places(&self, definition: usize) -> Vec<Span> {
        let declared = self.definitions.get(definition).map(|found| found.span);
        let uses = self.uses.iter().filter(|(_, of)| *of == definition).map(|(span, _)| *span);
        declared.into_iter().chain(uses).collect()
    }

    /// The declarations that can be used at a byte of a file.
    pub fn visible(&self, file: u32, byte: u32) -> impl Iterator<Item = &Definition> {
        let is_in =
            move |scope: Span| scope.file == file && (scope.start..=scope.end).contains(&byte);
        let is_hidden = |found: &Definition| found.is_of_library && found.kind != Kind::Nf;
        let all = self.definitions.iter().filter(move |found| !is_hidden(found));
        all.filter(move |found| found.scope.is_none_or(is_in))
    }
}

/// A cursor behind a name's last letter is on the name, too.
fn touches(span: Span, file: u32, byte: u32) -> bool {
    span.file == file && (span.start..=span.end).contains(&byte)
}

/// The words that an editor completes besides names: keywords, the words that start declarations,
/// types, built-in functions.
#[must_use]
pub fn words() -> Words {
    let words = crate::parse::words::KEYWORDS.iter().chain(crate::parse::words::openers());
    let mut keywords: Vec<&'static str> = words.copied().collect();
    keywords.sort_unstable();
    keywords.dedup();
    let types = crate::sema::types::names().collect();
    Words { keywords, types, functions: crate::sema::functions().collect() }
}

/// The words of the language.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Words {
    /// Keywords, and words that start declarations.
    pub keywords: Vec<&'static str>,
    /// Types.
    pub types: Vec<&'static str>,
    /// Built-in functions and operators.
    pub functions: Vec<&'static str>,
}

/// Whether a text can be a name.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_next = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(is_first)
        && text.chars().all(is_next)
        && !crate::parse::words::KEYWORDS.contains(&text)
}
