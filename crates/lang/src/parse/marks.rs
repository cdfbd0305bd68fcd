//! Marks on tokens. The parser sets them for the formatter.

/// A declaration, row or rule starts at the token. It gets a line of its own.
pub(crate) const LINE: u8 = 1;
/// A statement starts at the token. It may stay on the line of the statement before.
pub(crate) const STMT: u8 = 2;
/// The `{` opens a block of statements, rows or declarations.
pub(crate) const BLOCK: u8 = 4;
/// No space before the token.
pub(crate) const GLUE: u8 = 8;
/// The `<` or `>` is a bracket around types.
pub(crate) const GENERIC: u8 = 16;
/// The bracket opens a list. A comma may follow its last item.
pub(crate) const LIST: u8 = 32;

/// The `{` opens the fields of a header. A long line breaks there first.
pub(crate) const FIELDS: u8 = 64;

/// Marks by token.
#[derive(Debug)]
pub(crate) struct Marks(Vec<u8>);

impl Marks {
    pub(super) fn new(tokens: usize) -> Self {
        Self(vec![0; tokens])
    }

    pub(super) fn set(&mut self, token: usize, mark: u8) {
        if let Some(marks) = self.0.get_mut(token) {
            *marks |= mark;
        }
    }

    /// Whether the token has the mark.
    pub(crate) fn has(&self, token: usize, mark: u8) -> bool {
        self.0.get(token).is_some_and(|marks| marks & mark != 0)
    }
}
