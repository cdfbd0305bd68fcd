//! E08xx: policy (the rules of NFP Table 1).

codes! {
    POLICY_UNKNOWN_FUNCTION = 801, Error, "unknown function in a policy rule",
    "The rules of a policy must use the names that the chain gives to its instances.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, h); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";

    POLICY_SELF = 802, Error, "a rule between a function and itself",
    "`Order` and `Priority` need two different functions.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, f); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";

    POLICY_POSITION = 803, Error, "unknown position",
    "A function's position is `first` or `last`.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); path f; policy { Position(f, second); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); path f; policy { Position(f, first); } }";

    ORDER_CYCLE = 804, Error, "orders that contradict each other",
    "Together, these `Order` rules say that a function runs before itself. Remove one of them.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, g); Order(g, before, f); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";

    ORDER_AGAINST_PATH = 805, Error, "an order against the path",
    "The rule says that the first function runs before the second, but the links of the chain lead from the second to the first. The rule is about packets that go forward. Packets that go backward meet the functions in the opposite order.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path g <-> f; policy { Order(f, before, g); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";

    POSITION_CONFLICT = 806, Error, "positions that contradict each other",
    "Only one function can be first, and only one can be last. A function cannot be both.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(f, first); Position(g, first); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(f, first); Position(g, last); } }";

    POSITION_AGAINST_ORDER = 807, Error, "a position against an order",
    "An `Order` rule puts a function before the one that is first, or after the one that is last.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(g, first); Order(f, before, g); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(f, first); Order(f, before, g); } }";

    POSITION_AGAINST_PATH = 808, Error, "a position against the path",
    "The links of the chain put another function before the one that must be first, or after the one that must be last.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(g, first); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Position(f, first); } }";

    PRIORITY_CYCLE = 809, Error, "priorities that contradict each other",
    "Together, these `Priority` rules say that a function has priority over itself. Remove one of them.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); Priority(g > f); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); } }";

    PRIORITY_APART = 810, Error, "a priority between functions that are not on one path",
    "Functions with a priority between them run in parallel: both get the packet as it arrived, and where their results conflict, the result of the function with priority is taken. So they must be on one path: the right port of one leads to the left port of the other, directly or through other functions. The functions between them work on what the first one made of the packet. No other packets may enter between them, and two such rules may not overlap on the path.",
    wrong: "nf split() { port other; match { pkt.len > 100 B => output other; else => output; } }\nnf pass_on() { output; }\nchain c { interface a; interface b; f = split(); g = pass_on(); h = pass_on(); path a -> f -> g -> b; path f.other -> h -> b; policy { Priority(g > h); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); h = pass_on(); path f <-> g <-> h; policy { Priority(f > h); } }";

    PRIORITY_AGAINST_ORDER = 811, Error, "a priority against an order",
    "With `Priority`, both functions get the packet as it arrived. With `Order`, the second gets what the first made of it. Remove one of the two rules.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); Order(f, before, g); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); } }";

    PRIORITY_AGAINST_POSITION = 812, Error, "a priority against a position",
    "A function that is first runs before all others, and one that is last runs after all others. So it cannot run in parallel with one of them.",
    wrong: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); Position(f, first); } }",
    right: "nf pass_on() { output; }\nchain c { f = pass_on(); g = pass_on(); path f <-> g; policy { Priority(f > g); } }";

    PRIORITY_HOLDS = 813, Error, "a priority of a function that holds packets",
    "Functions with a priority between them decide about a packet at the same time. A function that holds packets decides later, so it cannot be one of them, or between them.",
    wrong: "nf pass_on() { output; }\nnf late() { queue q capacity 10; match { pkt.held => output; else => hold q for 1 s else drop; } }\nchain c { f = late(); g = pass_on(); path f <-> g; policy { Priority(f > g); } }",
    right: "nf pass_on() { output; }\nnf late() { queue q capacity 10; match { pkt.held => output; else => hold q for 1 s else drop; } }\nchain c { f = late(); g = pass_on(); path f <-> g; policy { Order(f, before, g); } }";

    POLICY_UNDECIDED = 815, Error, "a policy that leaves an order open",
    "The chain has rules in place of a path, but no rule says which of two functions comes first, and the result depends on it: for example, one writes a field that the other reads. The message names the functions and the reason. Add one of the rules that it shows. Functions whose order makes no difference need no rule.",
    wrong: "chain c { nat = static_nat(inside: 10.0.0.0, outside: 192.0.2.0, mask: 24); count = monitor(); policy { } }",
    right: "chain c { nat = static_nat(inside: 10.0.0.0, outside: 192.0.2.0, mask: 24); count = monitor(); policy { Order(nat, before, count); } }";
}
