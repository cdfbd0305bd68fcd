//! Generates chains of generated functions: two-way paths, one-way paths, branches over named
//! ports, policy.

use super::function::Function;
use super::source::Options;
use super::text::Text;
use crate::generate::Rng;

/// Generates a chain over all of these functions.
pub(super) fn generate(rng: &mut Rng, functions: &[Function], options: Options) -> String {
    let mut text = Text::default();
    if options.pass_through.is_some() {
        text.line("nf pass_everything() {");
        text.line("output;");
        text.line("}");
    }
    let ports: usize = functions.iter().map(|function| function.ports.len()).sum();
    text.line("chain generated {");
    text.line("interface lan { behind 10.0.0.0/8, 2001:db8::/125 }");
    text.line("interface wan;");
    if ports > 0 {
        text.line("interface log;");
    }
    for (number, function) in functions.iter().enumerate() {
        // An argument that equals its default is omitted sometimes.
        let given: Vec<_> = function
            .args
            .iter()
            .filter(|(_, default)| !*default || rng.one_in(2))
            .map(|(arg, _)| arg.clone())
            .collect();
        text.line(&format!("n{number} = {}({});", function.name, given.join(", ")));
    }
    path(rng, &mut text, functions, options);
    let (logs, mut entered) = links(rng, &mut text, functions);
    // An entry between the first two functions would keep them from running in parallel.
    let entry = functions.iter().enumerate().find_map(|(number, to)| {
        let side = to.ports.first().filter(|_| to.has_sides && number != 1)?;
        Some((number, format!("link log -> n{number}.{side};")))
    });
    if let Some((number, entry)) = entry {
        entered.push(number);
        text.line(&entry);
    } else if ports > 0 && logs == 0 {
        text.line("path log -> wan;");
    }
    let parallel = rng.one_in(4) && !functions.iter().take(2).any(|function| function.holds);
    let (a, b) = if rng.one_in(2) { ("n0", "n1") } else { ("n1", "n0") };
    // Neighbours remain neighbours only without a function between them.
    if parallel && functions.len() >= 2 && options.pass_through != Some(0) {
        text.line(&format!("policy {{ Priority({a} > {b}); }}"));
    } else {
        let mut own = Rng::new(rng.clone().bits() ^ 0x6469_7374_616e_6365);
        if let Some(policy) = distant(&mut own, functions, &entered) {
            text.line(&policy);
        }
    }
    if rng.one_in(3) {
        text.line("malformed pass;");
    }
    text.line(&format!("seed {};", rng.below(1000)));
    if rng.one_in(4) {
        text.line(&format!("workers {};", 1 + rng.below(3)));
    }
    text.line("}");
    text.finish()
}

/// Links the ports of functions. Returns how many links lead to the interface `log`, and the
/// functions to which others lead.
fn links(rng: &mut Rng, text: &mut Text, functions: &[Function]) -> (usize, Vec<usize>) {
    let (mut logs, mut entered) = (0, Vec::new());
    for (number, function) in functions.iter().enumerate() {
        for port in &function.ports {
            // The link leads to a later function past others, or out at the side. An entry between
            // the first two functions would keep them from running in parallel.
            let later = (number + 1).max(2);
            let skip = later < functions.len() && rng.one_in(2);
            let side =
                functions.get(later).filter(|to| to.has_sides).and_then(|to| to.ports.first());
            let to = match side {
                _ if !skip => "log".to_owned(),
                Some(side) => format!("n{later}.{side}"),
                None => format!("n{later}"),
            };
            logs += usize::from(!skip);
            entered.extend(skip.then_some(later));
            text.line(&format!("link n{number}.{port} -> {to};"));
        }
    }
    (logs, entered)
}

/// Relates two functions that are not neighbours by `Priority`, in some chains. No packets may
/// enter between them, and none of the functions may hold packets.
fn distant(rng: &mut Rng, functions: &[Function], entered: &[usize]) -> Option<String> {
    let fits = |(first, last): &(usize, usize)| {
        !entered.iter().any(|at| (first + 1..=*last).contains(at))
            && !functions[*first..=*last].iter().any(|function| function.holds)
    };
    let all = 0..functions.len();
    let pairs = all.clone().flat_map(|first| all.clone().skip(first + 2).map(move |l| (first, l)));
    let pairs: Vec<(usize, usize)> = pairs.filter(fits).collect();
    if pairs.is_empty() || !rng.one_in(2) {
        return None;
    }
    let (first, last) = *rng.pick(&pairs);
    let (a, b) = if rng.one_in(2) { (first, last) } else { (last, first) };
    Some(format!("policy {{ Priority(n{a} > n{b}); }}"))
}

/// Generates the main path. It is one-way only if no function needs the reverse path.
fn path(rng: &mut Rng, text: &mut Text, functions: &[Function], options: Options) {
    let one_way = rng.one_in(6) && !functions.iter().any(|function| function.both_sides);
    let arrow = if one_way { " -> " } else { " <-> " };
    let mut stops = vec!["lan".to_owned()];
    for number in 0..functions.len() {
        stops.push(format!("n{number}"));
        if options.pass_through == Some(number) {
            stops.push("pass_everything()".to_owned());
        }
    }
    stops.push("wan".to_owned());
    text.line(&format!("path {};", stops.join(arrow)));
}
