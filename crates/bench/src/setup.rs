//! A case made ready: its chain, and its packets in memory.

use std::collections::BTreeMap;
use std::time::Instant;

use braid_ir::chain::Chain;

use crate::definition::{Case, Definition};
use crate::frames::Ring;
use crate::{Error, inputs, traffic};

/// A chain's text with the files that it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Name for messages.
    pub name: String,
    /// The text, in the language.
    pub text: String,
    /// Files by name.
    pub files: BTreeMap<String, String>,
}

/// Compiles a source to the one chain that it has. (The language is not this crate's business.)
pub type Compile<'a> = dyn Fn(&Source) -> Result<Chain, String> + 'a;

/// Rules and routes from files instead of generated ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// A ClassBench filter set; chains get its first lines.
    pub rules: Option<String>,
    /// A route file, for all routers.
    pub routes: Option<String>,
}

/// A case made ready.
pub struct Setup {
    /// The chain.
    pub chain: Chain,
    /// Its packets.
    pub ring: Ring,
    /// What the chain was made from.
    pub source: Source,
    /// Rules and routes that the chain has.
    pub rules: usize,
    /// Routes of its first router.
    pub routes: usize,
    /// How long reading the text and its files took (s).
    pub load_seconds: f64,
}

impl Definition {
    /// The chain of a case, with its files.
    ///
    /// # Errors
    /// When the file of rules that was given has fewer than the case asks for.
    pub fn source(&self, case: &Case, given: &Given) -> Result<Source, Error> {
        let mut files = BTreeMap::new();
        if case.rules > 0 {
            files.insert("rules".to_owned(), self.rules(case, given)?);
        }
        if case.routes > 0 {
            for router in 1..=case.functions {
                let made = || inputs::routes(case.routes, router);
                let text = given.routes.clone().unwrap_or_else(made);
                files.insert(format!("routes{router}"), text);
            }
        }
        let text = expand(&self.chain, case.functions).map_err(|why| self.wrong(why))?;
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

    /// Makes a case ready.
    ///
    /// # Errors
    /// When the chain's text is wrong, or has not what the traffic asks for.
    pub fn set_up(&self, case: &Case, given: &Given, compile: &Compile) -> Result<Setup, Error> {
        let source = self.source(case, given)?;
        let start = Instant::now();
        let chain = compile(&source).map_err(|why| self.wrong(why))?;
        let load_seconds = start.elapsed().as_secs_f64();
        let headers = traffic::flows(self, case, &chain).map_err(|why| self.wrong(why))?;
        let ring = Ring::new(&headers, case.frame_bytes as usize, case.train);
        let lines = |name: &str, comment: char| {
            let text = source.files.get(name).map_or("", String::as_str);
            text.lines().filter(|line| !line.is_empty() && !line.starts_with(comment)).count()
        };
        let (rules, routes) = (lines("rules", '#'), lines("routes1", '#'));
        Ok(Setup { chain, ring, rules, routes, source, load_seconds })
    }
}

/// The chain's text for so many functions in a row.
fn expand(text: &str, functions: u64) -> Result<String, String> {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, repeated)) = rest.split_once("{each}") {
        let Some((each, after)) = repeated.split_once("{end}") else {
            return Err("chain: {each} without {end}".to_owned());
        };
        done.push_str(before);
        for number in 1..=functions {
            done.push_str(&each.replace("{i}", &number.to_string()));
        }
        rest = after;
    }
    done.push_str(rest);
    Ok(done.replace("{hops}", &inputs::hops()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_each_and_end_is_repeated() {
        let text = "a {each}r{i} = x;\n{end}b {each}r{i} <-> {end}c";
        assert_eq!(expand(text, 2).unwrap(), "a r1 = x;\nr2 = x;\nb r1 <-> r2 <-> c");
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
        let given = Given { rules: Some("# two\n@a\n@b\n".to_owned()), routes: None };
        let cases = definition.cases(false);
        assert_eq!(definition.source(&cases[0], &given).unwrap().files["rules"], "@a\n@b\n");
        let why = definition.source(&cases[1], &given).unwrap_err().to_string();
        assert!(why.contains("3 rules are asked for, there are 2"), "{why}");
    }
}
