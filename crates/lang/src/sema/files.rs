//! Evaluates parameter values from files, such as `rules("f")` and `routes("f")`.

use braid_ir::model::ParamTy;
use braid_ir::strings::MAX_STRING;
use braid_ir::value::ParamValue;
use braid_signatures::Signatures;

use super::env::Env;
use super::types;
use super::types::{ADDR, IP4, IP6};
use crate::ast::{Arg, Expr, ExprKind, Ident, Span};
use crate::diag::{Diagnostic, Diagnostics, codes, did_you_mean_help};
use crate::import::{self, Family, ImportErrors, Unsupported};

const NAMES: &[&str] = &[
    "classbench",
    "rules",
    "routes",
    "prefixes",
    "patterns",
    "signatures",
    "strings",
    "hosts",
    "keys",
];

/// Whether a call with this name makes a value from a file.
#[must_use]
pub fn is_file_value(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The value of a call that reads a file. `None` after an error, which is then reported.
pub fn value(
    ty: &ParamTy,
    name: &Ident,
    args: &[Arg],
    span: Span,
    env: &Env<'_>,
    diags: &mut Diagnostics,
) -> Option<ParamValue> {
    let family = match ty {
        ParamTy::Set(ty) if *ty == IP6 => Family::V6,
        ParamTy::Set(ty) if *ty == ADDR => Family::Both,
        _ => Family::V4,
    };
    let most = match ty {
        ParamTy::Strings(most) => usize::from(*most),
        _ => MAX_STRING,
    };
    let fits = match (name.text.as_str(), ty) {
        ("classbench" | "rules", ParamTy::Rules)
        | ("routes", ParamTy::Routes)
        | ("patterns", ParamTy::Patterns)
        | ("signatures", ParamTy::Signatures)
        | ("strings", ParamTy::Strings(_))
        | ("hosts", ParamTy::Hosts)
        | ("keys", ParamTy::Keys) => true,
        ("prefixes", ParamTy::Set(ty)) => [IP4, IP6, ADDR].contains(ty),
        _ => false,
    };
    if !fits {
        let message = format!(
            "the parameter is of type {}, which `{}` does not give",
            types::param_name(ty),
            name.text
        );
        diags.push(Diagnostic::new(codes::FILE_VALUE, message, span, "another kind of file"));
        return None;
    }
    let call = Call::read(name, args, span, diags)?;
    let is_secret = *ty == ParamTy::Keys;
    let text = read(call.path, is_secret, call.path_span, env, diags)?;
    if name.text == "signatures" {
        return signatures(&call, &text, diags).map(ParamValue::Signatures);
    }
    let result = match name.text.as_str() {
        "classbench" => {
            import::classbench(&text, call.match_pass, call.default_pass).map(ParamValue::Rules)
        }
        "rules" => import::rules(&text).map(ParamValue::Rules),
        "routes" => import::routes(&text).map(ParamValue::Routes),
        "patterns" => import::patterns(&text).map(ParamValue::Patterns),
        "strings" => import::strings(&text, most).map(ParamValue::Strings),
        "hosts" => import::hosts(&text).map(ParamValue::Strings),
        "keys" => import::keys(&text).map(ParamValue::Keys),
        _ => import::prefixes(&text, family).map(ParamValue::Set),
    };
    match result {
        Ok(value) => Some(value),
        Err(errors) => {
            report(call.path, &errors, call.path_span, diags);
            None
        }
    }
}

/// The signatures of a file. What is left out is a warning.
fn signatures(call: &Call<'_>, text: &str, diags: &mut Diagnostics) -> Option<Signatures> {
    let (result, summary) = import::signatures(text, call.unsupported);
    let (path, span) = (call.path, call.path_span);
    let summary = summary.map(|summary| format!("{path}: {summary}"));
    match result {
        Ok(set) => {
            let left_out = summary.map(|summary| {
                Diagnostic::new(codes::FILE_LEFT_OUT, summary, span, "they are left out")
            });
            left_out.into_iter().for_each(|warning| diags.push(warning));
            Some(set)
        }
        Err(errors) => {
            report(path, &errors, span, diags);
            if let (Some(summary), Unsupported::Refuse) = (summary, call.unsupported) {
                let help = format!("`signatures(\"{path}\", unsupported: skip)` leaves them out");
                let more = Diagnostic::new(codes::FILE_CONTENT, summary, span, "they are needed");
                diags.push(more.help(help));
            }
            None
        }
    }
}

/// Checks the arguments of a call. It reads no file. `None` after an error, which is then reported.
pub fn check_arguments(
    name: &Ident,
    args: &[Arg],
    span: Span,
    diags: &mut Diagnostics,
) -> Option<()> {
    Call::read(name, args, span, diags).map(|_| ())
}

/// The arguments of a call.
struct Call<'a> {
    path: &'a str,
    path_span: Span,
    match_pass: bool,
    default_pass: bool,
    unsupported: Unsupported,
}

impl<'a> Call<'a> {
    fn read(name: &Ident, args: &'a [Arg], span: Span, diags: &mut Diagnostics) -> Option<Self> {
        let mut path = None;
        let (mut match_pass, mut default_pass) = (None, None);
        let mut unsupported = None;
        let mut whole = true;
        for arg in args {
            let (key, is_set) = match arg.name.as_ref().map(|name| name.text.as_str()) {
                None => {
                    let ExprKind::Str(text) = &arg.value.kind else {
                        whole &= bad_argument("a file's name in quotes", arg.value.span, diags);
                        continue;
                    };
                    whole &= path.is_none() || bad_argument("one file", arg.value.span, diags);
                    path = Some((text.as_str(), arg.value.span));
                    continue;
                }
                Some("unsupported") if name.text == "signatures" => {
                    whole &= word(&mut unsupported, &arg.value, diags);
                    continue;
                }
                Some("match") if name.text == "classbench" => (&mut match_pass, "match"),
                Some("default") if name.text == "classbench" => (&mut default_pass, "default"),
                Some(other) => {
                    let known: &[&str] = match name.text.as_str() {
                        "classbench" => &["match", "default"],
                        "signatures" => &["unsupported"],
                        _ => &[],
                    };
                    let message = format!("`{}` has no argument `{other}`", name.text);
                    diags.push(
                        Diagnostic::new(codes::WRONG_ARGUMENTS, message, arg.value.span, "")
                            .help_if(did_you_mean_help(other, known.iter().copied())),
                    );
                    whole = false;
                    continue;
                }
            };
            if key.is_some() {
                whole &= bad_argument(&format!("`{is_set}` once"), arg.value.span, diags);
            }
            match verdict(&arg.value) {
                Some(pass) => *key = Some(pass),
                None => whole &= bad_argument("`pass` or `drop`", arg.value.span, diags),
            }
        }
        let Some((path, path_span)) = path else {
            if whole {
                bad_argument("a file's name in quotes", span, diags);
            }
            return None;
        };
        whole.then_some(Self {
            path,
            path_span,
            match_pass: match_pass.unwrap_or(true),
            default_pass: default_pass.unwrap_or(false),
            unsupported: unsupported.unwrap_or(Unsupported::Refuse),
        })
    }
}

/// Reads what happens to rules that are not supported. It is false after an error.
fn word(to: &mut Option<Unsupported>, value: &Expr, diags: &mut Diagnostics) -> bool {
    let word = match &value.kind {
        ExprKind::Path(path) => crate::ast::joined(path),
        _ => String::new(),
    };
    let unsupported = match word.as_str() {
        "refuse" => Unsupported::Refuse,
        "skip" => Unsupported::Skip,
        _ => return bad_argument("`skip` or `refuse`", value.span, diags),
    };
    match to.replace(unsupported) {
        None => true,
        Some(_) => bad_argument("`unsupported` once", value.span, diags),
    }
}

fn bad_argument(expected: &str, span: Span, diags: &mut Diagnostics) -> bool {
    let message = format!("expected {expected}");
    diags.push(Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, ""));
    false
}

fn verdict(expr: &Expr) -> Option<bool> {
    let ExprKind::Path(path) = &expr.kind else { return None };
    match path.parts.as_slice() {
        [word] if word.text == "pass" => Some(true),
        [word] if word.text == "drop" => Some(false),
        _ => None,
    }
}

fn read(
    path: &str,
    is_secret: bool,
    span: Span,
    env: &Env<'_>,
    diags: &mut Diagnostics,
) -> Option<String> {
    let from = env.sources.get(span.file).map_or("", |file| file.name());
    let bytes = match is_secret {
        true => env.loader.secret(path, from),
        false => env.loader.read(path, from),
    };
    let why = match bytes {
        Ok(bytes) if bytes.len() as u64 > import::MAX_TEXT_BYTES => "it is too large".to_owned(),
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => return Some(text),
            Err(_) => "it is not UTF-8 text".to_owned(),
        },
        Err(why) => why,
    };
    let message = format!("cannot read `{path}`: {why}");
    let help = match is_secret {
        true => {
            "paths are relative to the file that names them, and only the owner of a file with \
                 keys may have permissions for it"
        }
        false => "paths are relative to the file that names them",
    };
    diags.push(Diagnostic::new(codes::FILE_UNREADABLE, message, span, "this file").help(help));
    None
}

/// Reports one message for each line that cannot be used.
fn report(path: &str, errors: &ImportErrors, span: Span, diags: &mut Diagnostics) {
    for error in &errors.errors {
        let place = format!("{path}:{}:{}", error.line, error.column);
        let message = format!("{place}: expected {}, found {}", error.expected, error.found);
        let line = (!error.text.is_empty()).then(|| format!("the line is: {}", error.text));
        let wrong = Diagnostic::new(codes::FILE_CONTENT, message, span, place);
        diags.push(line.into_iter().fold(wrong, Diagnostic::note));
    }
    if errors.more > 0 {
        let message = format!("{path}: {} more lines cannot be used", errors.more);
        diags.push(Diagnostic::new(codes::FILE_CONTENT, message, span, "and more"));
    }
}
