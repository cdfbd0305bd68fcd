//! Changes of VLAN tags that wait to be made in the packet's bytes.

use super::cells::Cell;
use braid_ir::model::ValueId;
use braid_ir::residual::Site;
use braid_packet::{Field, Header};

/// The length of a tag in bytes.
pub(super) const LEN: i32 = 4;
/// All fields of tags.
pub(super) const TAGS: [Field; 7] = [
    Field::VlanTpid,
    Field::VlanId,
    Field::VlanPcp,
    Field::VlanDei,
    Field::Vlan2Id,
    Field::Vlan2Pcp,
    Field::Vlan2Dei,
];

/// The contents of the cells of tags before a change.
pub(super) type Before = Vec<(Field, Option<Cell>)>;

/// Tag changes that the packet's bytes do not have yet.
#[derive(Clone, Default)]
pub(super) struct Waiting {
    /// The packet's only tag has been removed.
    pub(super) popped: Option<Popped>,
    /// Tags that have been added, the outermost last.
    pub(super) pushed: Vec<Pushed>,
}

/// The part of a list of waiting changes that decides whether two lists are equal.
pub(super) type Outline = (Option<(ValueId, Before)>, Vec<(bool, Before)>);

/// A removal of a tag that waits.
#[derive(Clone)]
pub(super) struct Popped {
    pub(super) site: Site,
    pub(super) tpid: ValueId,
    pub(super) before: Before,
}

/// An addition of a tag that waits.
#[derive(Clone)]
pub(super) struct Pushed {
    pub(super) site: Site,
    /// Whether the packet has another tag after this one.
    pub(super) tagged: bool,
    pub(super) before: Before,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.popped.is_none() && self.pushed.is_empty()
    }

    /// The length of the packet with its waiting changes, minus the length of its actual bytes.
    pub(super) fn length(&self) -> i32 {
        let pushed = i32::try_from(self.pushed.len()).unwrap_or(0);
        LEN * (pushed - i32::from(self.popped.is_some()))
    }

    pub(super) fn outline(&self) -> Outline {
        let popped = self.popped.as_ref().map(|one| (one.tpid, one.before.clone()));
        (popped, self.pushed.iter().map(|one| (one.tagged, one.before.clone())).collect())
    }
}

/// Whether a field belongs to a VLAN tag.
pub(super) fn is_tag(field: Field) -> bool {
    matches!(field.info().header, Header::Vlan | Header::Vlan2)
}
