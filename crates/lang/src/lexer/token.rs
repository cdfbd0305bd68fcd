//! Kinds of tokens.

use logos::Logos;

/// Kinds of tokens.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[logos(skip r"[ \t\r\n\u{feff}]+")]
pub enum Tok {
    /// A name or keyword. The parser distinguishes them.
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*")]
    Ident,
    /// `12`, `0x1f`, `0b101`, `1_000`. Malformed numbers become [`Tok::Error`].
    #[regex(r"[0-9][0-9_]*")]
    #[regex(r"0[xX][0-9A-Za-z_]*", priority = 6)]
    #[regex(r"0[bB][0-9][0-9A-Za-z_]*", priority = 6)]
    Int,
    /// `"text"`
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    Str,
    /// `10.0.0.1` (and `1.5`, which becomes an error)
    #[regex(r"[0-9]+(\.[0-9]+)+")]
    Ip4,
    /// `10.0.0.0/8`
    #[regex(r"[0-9]+(\.[0-9]+)+/[0-9]+")]
    Prefix4,
    /// `2001:db8::1`, and text that the regular expressions cannot distinguish from it, such as a
    /// MAC.
    #[regex(r"[0-9A-Fa-f]+(:[0-9A-Fa-f]+){2,}(\.[0-9]+){0,3}")]
    #[regex(r"([0-9A-Fa-f]+(:[0-9A-Fa-f]+)*)?::([0-9A-Fa-f]+(:[0-9A-Fa-f]+)*)?(\.[0-9]+){0,3}")]
    Ip6,
    /// `2001:db8::/32`
    #[regex(r"[0-9A-Fa-f]+(:[0-9A-Fa-f]+){2,}(\.[0-9]+){0,3}/[0-9]+")]
    #[regex(
        r"([0-9A-Fa-f]+(:[0-9A-Fa-f]+)*)?::([0-9A-Fa-f]+(:[0-9A-Fa-f]+)*)?(\.[0-9]+){0,3}/[0-9]+"
    )]
    Prefix6,
    /// `02:00:00:00:00:01`
    Mac,
    /// `{`
    #[token("{")]
    LBrace,
    /// `}`
    #[token("}")]
    RBrace,
    /// `(`
    #[token("(")]
    LParen,
    /// `)`
    #[token(")")]
    RParen,
    /// `[`
    #[token("[")]
    LBracket,
    /// `]`
    #[token("]")]
    RBracket,
    /// `,`
    #[token(",")]
    Comma,
    /// `;`
    #[token(";")]
    Semi,
    /// `:`
    #[token(":")]
    Colon,
    /// `.`
    #[token(".")]
    Dot,
    /// `..`
    #[token("..")]
    DotDot,
    /// `=`
    #[token("=")]
    Assign,
    /// `==`
    #[token("==")]
    EqEq,
    /// `!=`
    #[token("!=")]
    Ne,
    /// `<`
    #[token("<")]
    Lt,
    /// `<=`
    #[token("<=")]
    Le,
    /// `>`
    #[token(">")]
    Gt,
    /// `=>`
    #[token("=>")]
    FatArrow,
    /// `->`
    #[token("->")]
    Arrow,
    /// `<->`
    #[token("<->")]
    BothArrow,
    /// `+`
    #[token("+")]
    Plus,
    /// `-`
    #[token("-")]
    Minus,
    /// `*`
    #[token("*")]
    Star,
    /// `/`
    #[token("/")]
    Slash,
    /// `%`
    #[token("%")]
    Percent,
    /// `&`
    #[token("&")]
    Amp,
    /// `|`
    #[token("|")]
    Pipe,
    /// `^`
    #[token("^")]
    Caret,
    /// `~`
    #[token("~")]
    Tilde,
    /// `!`
    #[token("!")]
    Bang,
    /// `&&`
    #[token("&&")]
    AndAnd,
    /// `||`
    #[token("||")]
    OrOr,
    /// `<<`
    #[token("<<")]
    Shl,
    /// `+=`
    #[token("+=")]
    PlusEq,
    /// `-=`
    #[token("-=")]
    MinusEq,
    /// `*=`
    #[token("*=")]
    StarEq,
    /// `/=`
    #[token("/=")]
    SlashEq,
    /// `%=`
    #[token("%=")]
    PercentEq,
    /// `&=`
    #[token("&=")]
    AmpEq,
    /// `|=`
    #[token("|=")]
    PipeEq,
    /// `^=`
    #[token("^=")]
    CaretEq,
    /// `<<=`
    #[token("<<=")]
    ShlEq,
    /// `//`. The lexer consumes the rest of the line as a comment.
    #[token("//")]
    LineComment,
    /// `/*`. The lexer consumes everything up to the `*/` as a comment.
    #[token("/*")]
    BlockComment,
    /// Text that is not a token. It is already reported.
    Error,
    /// The end of the text.
    Eof,
}
