// Filters that pass everything, then one that drops it. Packets are counted where they enter; none is to be left.
@SOURCE@ -> MarkIPHeader(14) -> count :: Counter -> @FILTERS@ -> left :: Counter -> Discard
