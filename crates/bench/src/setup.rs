//! Cases ready to be measured: a chain, and packets in memory.

use std::collections::BTreeMap;
use std::time::Instant;

use braid_ir::chain::Chain;
use braid_packet::Packet;

use crate::definition::{Case, Definition, Kind};
use crate::frames::{Headers, Ring};
use crate::sequence::Sequence;
use crate::trace::Trace;
use crate::{Error, inputs, traffic};

/// The text of a chain with the files that it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// The name for messages.
    pub name: String,
    /// The text, in the Braid language.
    pub text: String,
    /// Files by name.
    pub files: BTreeMap<String, String>,
}

/// Compiles a source to the only chain in it. A parameter, because this crate does not depend on
/// the language.
pub type Compile<'a> = dyn Fn(&Source) -> Result<Chain, String> + 'a;

/// Inputs from the user that replace generated ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// The text of a ClassBench filter set. Chains get its first lines.
    pub rules: Option<String>,
    /// The text of a route file for all routers.
    pub routes: Option<String>,
    /// The number of packets to measure where flows come and go.
    pub measured: Option<u64>,
    /// Packets that replace generated traces.
    pub capture: Option<Vec<Packet>>,
}

/// A case ready to be measured.
pub struct Setup {
    /// The chain.
    pub chain: Chain,
    /// The chain's packets, if they are kept in memory and sent repeatedly.
    pub ring: Ring,
    /// The headers of flows, if their packets are made only when they are sent.
    pub headers: Vec<Headers>,
    /// The packets of a trace, which are sent once.
    pub trace: Option<Trace>,
    /// The packets of a mix of flows, which are sent once.
    pub sequence: Option<Sequence>,
    /// The source that the chain was compiled from.
    pub source: Source,
    /// Number of rules of the chain.
    pub rules: usize,
    /// Number of routes of its first router.
    pub routes: usize,
    /// Time to read the text and its files (s).
    pub load_seconds: f64,
}

impl Definition {
    /// The text of a case's chain, with its files.
    ///
    /// # Errors
    /// Returns an error when the given file has fewer rules than the case needs.
    pub fn source(&self, case: &Case, given: &Given) -> Result<Source, Error> {
        let mut files = BTreeMap::new();
        if case.rules > 0 {
            let rules = self.rules(case, given)?;
            let several = self.text(case).contains("rules{");
            for number in (1..=case.functions + 1).filter(|_| several) {
                files.insert(format!("rules{number}"), inputs::wider(&rules, number));
            }
            files.insert("rules".to_owned(), rules);
        }
        for (name, text) in &self.files {
            let last = if name.contains("{i}") { case.functions } else { 1 };
            for number in 1..=last {
                files.insert(numbered(name, number), numbered(text, number));
            }
        }
        if case.routes > 0 {
            for router in 1..=case.functions {
                let made = || inputs::routes(case.routes, router);
                let text = given.routes.clone().unwrap_or_else(made);
                files.insert(format!("routes{router}"), text);
            }
        }
        let text = expand(self.text(case), case.functions).map_err(|why| self.wrong(why))?;
        Ok(Source { name: format!("bench {}", self.name), text, files })
    }

    fn rules(&self, case: &Case, given: &Given) -> Result<String, Error> {
        let made = || inputs::rules(self.rules_to_make(case));
        let all = given.rules.clone().unwrap_or_else(made);
        let mut text = String::new();
        let mut count = 0;
        for line in all.lines().filter(|line| line.starts_with('@')).take(case.rules as usize) {
            text.push_str(line);
            text.push('\n');
            count += 1;
        }
        if count < case.rules {
            return Err(
                self.wrong(format!("{} rules are asked for, there are {count}", case.rules))
            );
        }
        Ok(text)
    }

    fn wrong(&self, why: impl ToString) -> Error {
        Error::Chain { name: self.name.clone(), why: why.to_string() }
    }

    /// Prepares a case.
    ///
    /// # Errors
    /// Returns an error when the chain's text is wrong, or when the chain lacks something that the
    /// traffic needs.
    pub fn set_up(&self, case: &Case, given: &Given, compile: &Compile) -> Result<Setup, Error> {
        let source = self.source(case, given)?;
        let start = Instant::now();
        let chain = compile(&source).map_err(|why| self.wrong(why))?;
        let load_seconds = start.elapsed().as_secs_f64();
        let (mut headers, mut trace, mut sequence) = (Vec::new(), None, None);
        if let Some(made) = &self.trace {
            let capture = given.capture.as_deref();
            trace = Some(Trace::new(self, made, case, capture).map_err(|why| self.wrong(why))?);
        } else if let Some(mix) = self.mix.get(case.mix) {
            let captured = |packets: &Vec<Packet>| Sequence::captured(packets, &chain);
            let generated = || Sequence::new(mix, case, &chain, &self.payloads, given.measured);
            let made = given.capture.as_ref().map_or_else(generated, captured);
            sequence = Some(made.map_err(|why| self.wrong(why))?);
        } else {
            headers = traffic::flows(self, case, &chain).map_err(|why| self.wrong(why))?;
        }
        let lying = if self.kind == Kind::Memory { &[] } else { &headers[..] };
        let ring = Ring::new(lying, case.frame_bytes as usize, case.train, &self.payloads);
        // If packets are made when they are sent, one round of flows is enough.
        headers.truncate(if self.kind == Kind::Memory { case.flows as usize } else { 0 });
        let lines = |name: &str, comment: char| {
            let text = source.files.get(name).map_or("", String::as_str);
            text.lines().filter(|line| !line.is_empty() && !line.starts_with(comment)).count()
        };
        let (rules, routes) = (lines("rules", '#'), lines("routes1", '#'));
        Ok(Setup { chain, ring, headers, trace, sequence, rules, routes, source, load_seconds })
    }
}

/// The text with `{i}` replaced by a number.
fn numbered(text: &str, number: u64) -> String {
    text.replace("{i}", &number.to_string()).replace("{i+1}", &(number + 1).to_string())
}

/// The chain's text with its functions repeated `functions` times.
fn expand(text: &str, functions: u64) -> Result<String, String> {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, repeated)) = rest.split_once("{each}") {
        let Some((each, after)) = repeated.split_once("{end}") else {
            return Err("chain: {each} without {end}".to_owned());
        };
        done.push_str(before);
        for number in 1..=functions {
            done.push_str(&numbered(each, number));
        }
        rest = after;
    }
    done.push_str(rest);
    let done = done.replace("{n+1}", &(functions + 1).to_string());
    Ok(done.replace("{hops}", &inputs::hops()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_each_and_end_is_repeated() {
        let text = "a {each}r{i} = x;\n{end}b {each}r{i} <-> {end}c";
        assert_eq!(expand(text, 2).unwrap(), "a r1 = x;\nr2 = x;\nb r1 <-> r2 <-> c");
        let text = "{each}f{i} -> {i+1}, {end}f{n+1}";
        assert_eq!(expand(text, 2).unwrap(), "f1 -> 2, f2 -> 3, f3");
        assert_eq!(expand("no { braces } matter", 3).unwrap(), "no { braces } matter");
        assert!(expand("{each} a", 1).is_err());
    }

    #[test]
    fn given_rules_are_cut_to_the_first_and_must_be_enough() {
        let definition = Definition::parse(
            "x",
            "summary = ''\naxis = 'rules'\nfloor = 'touch'\nchain = ''\n[[traffic]]\n[[sweep]]\nrules = [2, 3]\n",
        );
        let definition = definition.unwrap();
        let given = Given { rules: Some("# two\n@a\n@b\n".to_owned()), ..Given::default() };
        let cases = definition.cases(false);
        assert_eq!(definition.source(&cases[0], &given).unwrap().files["rules"], "@a\n@b\n");
        let why = definition.source(&cases[1], &given).unwrap_err().to_string();
        assert!(why.contains("3 rules are asked for, there are 2"), "{why}");
    }
}
