//! How the text form refers to a model's parts: by name if that is unambiguous, otherwise by
//! number.

use crate::model::{EventId, TagId};
use crate::model::{Model, ParamId, PortId, QueueId, StateId};

/// Binary operators by name.
pub(super) const BIN_OPS: &[(crate::model::BinOp, &str)] = {
    use crate::model::BinOp::*;
    &[
        (AddSat, "add_sat"),
        (SubSat, "sub_sat"),
        (MulSat, "mul_sat"),
        (AddWrap, "add_wrap"),
        (SubWrap, "sub_wrap"),
        (MulWrap, "mul_wrap"),
        (Div, "div"),
        (Rem, "rem"),
        (And, "and"),
        (Or, "or"),
        (Xor, "xor"),
        (Shl, "shl"),
        (Shr, "shr"),
        (Min, "min"),
        (Max, "max"),
    ]
};

/// Comparisons by name.
pub(super) const CMP_OPS: &[(crate::model::CmpOp, &str)] = {
    use crate::model::CmpOp::*;
    &[(Eq, "eq"), (Ne, "ne"), (Lt, "lt"), (Le, "le"), (Gt, "gt"), (Ge, "ge")]
};

/// The words of terminators.
pub(super) const TERMS: &[&str] = &[
    "jump", "branch", "output", "drop", "consume", "hold", "resubmit", "reset", "bypass", "resume",
    "return",
];
/// Shapes of new packets by name.
pub(super) const SHAPES: &[(crate::model::Shape, &str)] = {
    use crate::model::Shape::*;
    &[
        (Icmp, "icmp"),
        (Icmp6, "icmp6"),
        (Tcp4, "tcp"),
        (Tcp6, "tcp6"),
        (Udp4, "udp"),
        (Udp6, "udp6"),
        (Arp, "arp"),
    ]
};

/// What tunnels carry, by name.
pub(super) const INNERS: &[(crate::model::Inner, &str)] = {
    use crate::model::Inner::*;
    &[(Frame, "frame"), (Packet, "packet")]
};

/// Orders of pools by name.
pub(super) const POOL_ORDERS: &[(crate::model::PoolOrder, &str)] = {
    use crate::model::PoolOrder::*;
    &[(Lowest, "lowest"), (Fifo, "fifo"), (Random, "random")]
};

/// The name of `item` in one of the tables above.
pub(super) fn name_of<T: PartialEq>(table: &[(T, &'static str)], item: &T) -> &'static str {
    table.iter().find(|(other, _)| other == item).map_or("?", |(_, name)| name)
}

/// The item with this name in one of the tables above.
pub(super) fn by_name<T: Copy>(table: &[(T, &'static str)], name: &str) -> Option<T> {
    table.iter().find(|(_, other)| *other == name).map(|(item, _)| *item)
}

/// Whether a text can be a word: a letter or `_`, then letters, digits, `_`.
pub(super) fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text != "true"
        && text != "false"
}

/// The number in a reference such as `state12`.
pub(super) fn numbered(prefix: &str, text: &str) -> Option<u32> {
    let digits = text.strip_prefix(prefix)?;
    let plain = digits == "0" || !digits.starts_with('0');
    (plain && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}

/// A word for the part with this number. The name is used if it is a word, is unique, and does not
/// look like a number of its category. Otherwise the number is used.
pub(crate) fn refer<'a>(
    prefix: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    index: u32,
) -> String {
    let name = usize::try_from(index).ok().and_then(|index| names.clone().nth(index));
    match name {
        Some(name)
            if is_word(name)
                && numbered(prefix, name).is_none()
                && names.filter(|other| *other == name).count() == 1 =>
        {
            name.to_owned()
        }
        _ => format!("{prefix}{index}"),
    }
}

/// The part that a word refers to.
pub(crate) fn resolve<'a>(
    prefix: &str,
    names: impl Iterator<Item = &'a str>,
    word: &str,
) -> Option<u32> {
    let mut found = None;
    let mut count: u32 = 0;
    for name in names {
        if name == word && found.is_none() {
            found = Some(count);
        }
        count += 1;
    }
    numbered(prefix, word).filter(|index| *index < count).or(found)
}

/// Words for the parts of a model.
impl Model {
    pub(crate) fn param_word(&self, id: ParamId) -> String {
        refer("param", self.params.iter().map(|decl| &*decl.name), id.0)
    }

    pub(crate) fn state_word(&self, id: StateId) -> String {
        refer("state", self.state.iter().map(|decl| &*decl.name), id.0)
    }

    pub(crate) fn queue_word(&self, id: QueueId) -> String {
        refer("queue", self.queues.iter().map(|decl| &*decl.name), id.0)
    }

    pub(super) fn event_word(&self, id: EventId) -> String {
        refer("event", self.events.iter().map(|decl| &*decl.name), id.0)
    }

    pub(super) fn tag_word(&self, id: TagId) -> String {
        refer("tag", self.tags.iter().map(|decl| &*decl.name), id.0)
    }

    pub(super) fn port_word(&self, id: PortId) -> String {
        refer("port", self.ports.iter().map(|name| &**name), id.0)
    }
}
