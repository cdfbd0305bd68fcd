//! E08xx: policy (the rules of NFP Table 1).

codes! {
    POLICY_UNKNOWN_FUNCTION = 801, Error, "unknown function in a policy rule",
    "The rules of a policy name functions of the chain by the names of their instances.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, h); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";

    POLICY_SELF = 802, Error, "a rule between a function and itself",
    "Order and Priority relate two different functions.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, f); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";

    POLICY_POSITION = 803, Error, "unknown position",
    "A function's position is `first` or `last`.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); path f; policy { Position(f, second); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); path f; policy { Position(f, first); } }";

    ORDER_CYCLE = 804, Error, "orders that contradict each other",
    "Followed one after the other, these Order rules say that a function runs before itself. Remove one of them.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, g); Order(g, before, f); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";

    ORDER_AGAINST_PATH = 805, Error, "an order against the path",
    "The links of the chain lead from the second function to the first, the rule says that the first runs before the second. The order of a path counts for forward packets; backward ones meet the functions the other way round.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path g <-> f; policy { Order(f, before, g); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";

    POSITION_CONFLICT = 806, Error, "positions that contradict each other",
    "Only one function can be first and only one last, and a function cannot be both.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(f, first); Position(g, first); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(f, first); Position(g, last); } }";

    POSITION_AGAINST_ORDER = 807, Error, "a position against an order",
    "A function that is first has none before it, and one that is last has none after it.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(g, first); Order(f, before, g); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(f, first); Order(f, before, g); } }";

    POSITION_AGAINST_PATH = 808, Error, "a position against the path",
    "The links of the chain put another function before the one that is to be first, or after the one that is to be last.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(g, first); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(f, first); } }";

    PRIORITY_CYCLE = 809, Error, "priorities that contradict each other",
    "Followed one after the other, these Priority rules say that a function wins over itself. Remove one of them.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); Priority(g > f); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); } }";

    PRIORITY_APART = 810, Error, "a priority between functions that are not neighbours",
    "Functions with a priority between them run in parallel: both see the packet as it arrived, and the winner's result stands where they conflict. For that one must follow the other directly on a path, from its right port to the other's left port, with nothing else entering between them.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); h = pass_on(); path f <-> g <-> h; policy { Priority(f > h); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); h = pass_on(); path f <-> h <-> g; policy { Priority(f > h); } }";

    PRIORITY_AGAINST_ORDER = 811, Error, "a priority against an order",
    "Priority lets both functions see the arriving packet, Order lets the second see what the first made of it. Decide for one of them.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); Order(f, before, g); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); } }";

    PRIORITY_AGAINST_POSITION = 812, Error, "a priority against a position",
    "A function that is first (or last) runs alone, before (or after) all others, so it cannot run in parallel with one of them.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); Position(f, first); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); } }";

    PRIORITY_HOLDS = 813, Error, "a priority of a function that holds packets",
    "Functions with a priority between them decide about a packet together. One that holds packets decides later, so there would be nothing to decide together.",
    wrong: "nf pass_on() { output; }\nnf late() { queue q capacity 10; match { pkt.held => output; else => hold q for 1 s else drop; } }\nchain c { f = late(); g = pass_on(); path f <-> g; policy { Priority(f > g); } }",
    right: "nf pass_on() { output; }\nnf late() { queue q capacity 10; match { pkt.held => output; else => hold q for 1 s else drop; } }\nchain c { f = late(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";

    PRIORITY_NATIVE = 814, Error, "a priority of a native function",
    "Functions with a priority between them run on copies of the packet, and what they wrote is put together field by field. What native code writes is not known field by field.",
    wrong: "nf pass_on() { output; }\nnative nf monitor() from \"five\";\nchain c { f = monitor(); g = pass_on(); path f <-> g; policy { Priority(f > g); } }",
    right: "nf pass_on() { output; }\nnative nf monitor() from \"five\";\nchain c { f = monitor(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";
}
