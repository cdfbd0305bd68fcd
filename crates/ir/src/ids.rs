//! The numbers by which a model refers to its parts.

/// Index newtypes of a model's parts.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// The number as an index. A number that does not fit becomes an index that no vector
            /// has.
            #[must_use]
            pub fn index(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}
ids! {
    /// A value of a program.
    ValueId "v";
    /// A block of a program.
    BlockId "b";
    /// A parameter of a model.
    ParamId "param";
    /// A state table of a model.
    StateId "state";
    /// A queue of held packets of a model.
    QueueId "queue";
    /// An event type that a model emits.
    EventId "event";
    /// A row (or other counted place) of a model.
    RowId "row";
    /// A drop reason of a model.
    ReasonId "reason";
    /// A tag that a model puts on packets.
    TagId "tag";
    /// An output port of a model.
    PortId "port";
}
