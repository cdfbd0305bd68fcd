//! E01xx: lexer and parser.

codes! {
    UNEXPECTED_TOKEN = 101, Error, "unexpected token",
    "The parser met something that cannot stand at this place. The message lists what could. Often a `;` is missing at the end of the statement before, or a brace is not closed.",
    wrong: "nf f() { output drop; }",
    right: "nf f() { output; }";
}
