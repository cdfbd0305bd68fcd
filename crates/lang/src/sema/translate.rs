//! Lowers what translates between the versions of IP: `to_ip4(SRC, DST) else …`,
//! `to_ip6(SRC, DST) else …`, and both with the addresses of the packet that an ICMP error quotes.

use braid_ir::model::{Op, ValueId, Version};

use super::lower::Lower;
use super::needs;
use super::types::{BOOL, IP4, IP6};
use crate::ast::{Arg, Expr, Ident, Span, Stmt};
use crate::diag::{Diagnostic, codes};

/// The version that a function with this name translates to.
pub fn version(name: &str) -> Option<Version> {
    match name {
        "to_ip4" => Some(Version::Ip4),
        "to_ip6" => Some(Version::Ip6),
        _ => None,
    }
}

/// Lowers `to_ip4(SRC, DST) else STMT;` and its kin.
pub fn translate<'a>(
    lower: &mut Lower<'a>,
    (name, to): (&Ident, Version),
    args: &[Arg],
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let (own, quoted) = match args {
        [src, dst] => ([&src.value, &dst.value], None),
        [src, dst, quoted_src, quoted_dst] => {
            ([&src.value, &dst.value], Some([&quoted_src.value, &quoted_dst.value]))
        }
        _ => {
            let message = format!("`{}` takes 2 or 4 arguments, found {}", name.text, args.len());
            let wrong = Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, "");
            let help = "give the source and the destination, then those of the packet that an ICMP \
                        error quotes";
            return lower.fail(wrong.help(help));
        }
    };
    if !needs::packet(lower, span) {
        return None;
    }
    let ty = if to == Version::Ip4 { IP4 } else { IP6 };
    let mut both = |[src, dst]: [&Expr; 2]| -> Option<[ValueId; 2]> {
        let (src, dst) = (lower.typed(src, ty), lower.typed(dst, ty));
        Some([src?, dst?])
    };
    let own = both(own)?;
    let quoted = match quoted {
        None => None,
        Some(quoted) => Some(both(quoted)?),
    };
    let Some(otherwise) = otherwise else {
        let message = "the packet may not be one that both versions have";
        let wrong = Diagnostic::new(codes::NEEDS_ELSE, message, span, "and then nothing changes");
        return lower.fail(wrong.help(format!("write `{}(…) else drop;`", name.text)));
    };
    let ok = lower.b.value(BOOL);
    lower.b.op(Op::Translate { ok, to, own, quoted });
    lower.b.facts.changed_outer();
    lower.or_else(ok, otherwise);
    Some(())
}
