//! The values that a step of a residual program defines and uses, and the targets of its blocks.

use super::program::{End, RuleFields, What};
use crate::model::{Target, ValueId};

/// Visitors of a step's values, by shared or by exclusive reference.
macro_rules! visitors {
    ($outs:ident, $uses:ident, $op_outs:ident, $op_uses:ident, $rules:ident, $end:ident,
     $targets:ident, $($reference:tt)+) => {
        impl What {
            /// Visits the values that the step defines.
            pub fn $outs(self: $($reference)+ Self, each: &mut dyn FnMut($($reference)+ ValueId)) {
                match self {
                    What::Op(op) => op.$op_outs(each),
                    What::Classify { pass: a, rule: b, .. }
                    | What::Find { found: a, entry: b, .. } => {
                        each(a);
                        each(b);
                    }
                    What::Read { outs, .. } => outs.into_iter().for_each(each),
                    What::Enter
                    | What::CountRule { .. }
                    | What::Write(_)
                    | What::Parse
                    | What::Count(_) => {}
                }
            }

            /// Visits the values that the step uses.
            pub fn $uses(self: $($reference)+ Self, each: &mut dyn FnMut($($reference)+ ValueId)) {
                match self {
                    What::Op(op) => op.$op_uses(each),
                    What::Classify { packet, .. } => {
                        if let Some(packet) = packet {
                            packet.$rules(each);
                        }
                    }
                    What::CountRule { rule: a, .. } | What::Read { entry: a, .. } => each(a),
                    What::Find { key, .. } => key.into_iter().for_each(each),
                    What::Write(fields) => fields.into_iter().for_each(|field| {
                        let (_, value) = field;
                        each(value);
                    }),
                    What::Enter | What::Parse | What::Count(_) => {}
                }
            }
        }

        impl RuleFields {
            /// Visits the values of the fields.
            pub fn $rules(self: $($reference)+ Self, each: &mut dyn FnMut($($reference)+ ValueId)) {
                let RuleFields { src, dst, proto, ports, tcp_flags, icmp, .. } = self;
                each(src);
                each(dst);
                each(proto);
                for pair in [ports, icmp] {
                    if let Some((a, b)) = pair {
                        each(a);
                        each(b);
                    }
                }
                if let Some(flags) = tcp_flags {
                    each(flags);
                }
            }
        }

        impl End {
            /// Visits the values that the end uses, except the values that it passes to a block.
            pub fn $end(self: $($reference)+ Self, each: &mut dyn FnMut($($reference)+ ValueId)) {
                match self {
                    End::Branch { cond: a, .. } | End::Hold { delay: a, .. } => each(a),
                    End::Jump(_) | End::Exit(_) => {}
                }
            }

            /// Visits the targets.
            pub fn $targets(
                self: $($reference)+ Self,
                each: &mut dyn FnMut($($reference)+ Target),
            ) {
                match self {
                    End::Jump(target) | End::Hold { full: target, .. } => each(target),
                    End::Branch { yes, no, .. } => {
                        each(yes);
                        each(no);
                    }
                    End::Exit(_) => {}
                }
            }
        }
    };
}
visitors!(visit_outs, visit_uses, visit_outs, visit_uses, visit_values, visit_uses, visit_targets, &);
visitors!(
    visit_outs_mut, visit_uses_mut, visit_outs_mut, visit_uses_mut, visit_values_mut, visit_uses_mut,
    visit_targets_mut, &mut
);

impl What {
    /// The values that the step defines.
    #[must_use]
    pub fn outs(&self) -> Vec<ValueId> {
        let mut found = Vec::new();
        self.visit_outs(&mut |value| found.push(*value));
        found
    }

    /// The values that the step uses.
    #[must_use]
    pub fn uses(&self) -> Vec<ValueId> {
        let mut found = Vec::new();
        self.visit_uses(&mut |value| found.push(*value));
        found
    }
}

impl End {
    /// The targets.
    #[must_use]
    pub fn targets(&self) -> Vec<&Target> {
        match self {
            End::Jump(target) | End::Hold { full: target, .. } => vec![target],
            End::Branch { yes, no, .. } => vec![yes, no],
            End::Exit(_) => Vec::new(),
        }
    }
}
