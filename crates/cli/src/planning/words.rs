//! What a plan says about functions, in words.

use braid_ir::chain::Chain;
use braid_ir::service_graph::stages::Why;
use braid_sim::Overheads;

/// The names of functions.
pub fn names(chain: &Chain, functions: &[u16]) -> String {
    functions.iter().map(|node| name(chain, *node)).collect::<Vec<_>>().join(", ")
}

/// The name of a function.
pub fn name(chain: &Chain, node: u16) -> &str {
    chain.nodes.get(usize::from(node)).map_or("", |node| &node.name)
}

/// The reason why functions are one stage.
pub fn reason(chain: &Chain, why: &Why) -> String {
    match why {
        Why::Workers => "the workers of the chain must be apart first".to_owned(),
        Why::Holds(node) => format!("{} may hold packets", name(chain, *node)),
        Why::Circle => "packets may come back to a function".to_owned(),
        Why::Hops => "one packet may cause more visits than the hop limit allows".to_owned(),
        Why::Sends(node) => {
            format!("{} sends the others more than the packet itself", name(chain, *node))
        }
        Why::Priority => "Priority relates them, or they are between such functions".to_owned(),
        Why::Handlers => "one takes events of another".to_owned(),
        Why::Events => "timers or ended entries publish events, whose order is one".to_owned(),
        Why::Between => "a path leaves a stage only once".to_owned(),
        Why::Merge => "no merger can put their results together".to_owned(),
        Why::Threads => "no more stages were asked for".to_owned(),
        Why::Unfit(why) => why.clone(),
    }
}

/// What stages cost, in lines.
pub fn overheads(found: &Overheads) -> String {
    let all = [
        ("the hub, for a burst", found.burst_ns),
        ("the hub, for a bundle of up to 8 packets", found.bundle_ns),
        ("the hub, for a packet", found.packet_ns),
        ("a hop of a bundle to another thread", found.hop_ns),
        ("a bundle that comes from another thread", found.taken_ns),
        ("a packet that comes from another thread", found.moved_ns),
        ("a copy and merge of a bundle", found.copy_ns),
        ("a copy and merge of the headers of a packet", found.copied_ns),
        ("a copy of a whole packet, for each byte more", found.byte_ns),
        ("a merge of a written part", found.write_ns),
        ("until a thread without work sleeps", found.sleeps_after_ns),
        ("until a thread that sleeps goes on", found.wake_ns),
        ("the thread that wakes it", found.unpark_ns),
    ];
    all.iter().map(|(what, ns)| format!("  {ns:>8.2} ns  {what}\n")).collect()
}
