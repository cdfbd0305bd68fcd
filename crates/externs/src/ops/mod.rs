//! The operators, one file each, and their registry.

pub mod checksum;
pub mod crc32;
pub mod hash;
pub mod maglev;
pub mod pick;
pub mod random;
pub mod siphash;

use crate::signature::{self, Code, Extern, Loaded, Profile, Signature, Touch};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// All operators by name. A new operator is added here and nowhere else.
static ALL: [&Extern; 7] = [
    &checksum::CHECKSUM,
    &crc32::CRC32,
    &hash::HASH,
    &maglev::MAGLEV,
    &pick::PICK,
    &random::RANDOM,
    &siphash::SIPHASH,
];

/// All operators, sorted by name.
#[must_use]
pub fn all() -> &'static [&'static Extern] {
    &ALL
}

/// Operators from libraries, by name. They stay until the program ends.
static LOADED: RwLock<BTreeMap<&'static str, &'static Extern>> = RwLock::new(BTreeMap::new());

/// The operator with this name.
#[must_use]
pub fn lookup(name: &str) -> Option<&'static Extern> {
    let own = ALL.iter().find(|op| op.signature.name == name).copied();
    own.or_else(|| LOADED.read().unwrap_or_else(PoisonError::into_inner).get(name).copied())
}

/// Registers an operator from a library. The first one of a name stays.
pub fn register(name: String, loaded: Loaded) -> &'static Extern {
    let mut all = LOADED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(name.as_str()) {
        return known;
    }
    let payload = if loaded.reads_payload { Touch::Reads } else { Touch::No };
    let name: &'static str = name.leak();
    let profile = Profile { payload, ..Profile::PURE };
    let signature = Signature { name, profile, ..signature::LOADED };
    let found: &'static Extern =
        Box::leak(Box::new(Extern { signature, code: Code::Loaded(loaded) }));
    all.insert(name, found);
    found
}

#[cfg(test)]
mod tests {
    use super::{all, lookup};
    use crate::call::{Cache, CallCtx, MAX_RESULTS};
    use crate::rng::Rng;

    #[test]
    fn examples_hold() {
        for op in all() {
            let signature = &op.signature;
            assert!(!signature.examples.is_empty(), "{} has no example", signature.name);
            for example in signature.examples {
                let results = op.call(&mut CallCtx {
                    args: example.args,
                    payload: example.payload,
                    backends: signature.takes_param.is_some().then_some(&example.backends),
                    rng: &mut Rng::new(example.seed),
                    cache: &mut Cache::default(),
                });
                assert_eq!(
                    &results[..signature.results.len()],
                    example.results,
                    "{}",
                    example.call
                );
            }
        }
    }

    #[test]
    fn registry_is_sorted_and_finds_each_by_name() {
        assert!(all().is_sorted_by_key(|op| op.signature.name));
        for op in all() {
            let found = lookup(op.signature.name).expect("registered");
            assert_eq!(found.signature.name, op.signature.name);
        }
        assert!(lookup("Hash").is_none());
    }

    #[test]
    fn signatures_fit_the_calling_convention() {
        for op in all() {
            let signature = &op.signature;
            assert!((1..=MAX_RESULTS).contains(&signature.results.len()), "{}", signature.name);
            assert!(!signature.variadic || !signature.args.is_empty(), "{}", signature.name);
        }
    }

    #[test]
    fn usage_names_parameter_arguments_and_results() {
        let usage = |name| lookup(name).expect("registered").signature.usage();
        assert_eq!(usage("maglev"), "maglev(BACKENDS, hash: u32) -> found, index");
        assert_eq!(usage("hash"), "hash(value, …) -> hash: u32");
        assert_eq!(usage("checksum"), "checksum() -> checksum: u16");
    }

    #[test]
    fn missing_arguments_and_backends_give_results_not_panics() {
        for op in all() {
            op.call(&mut CallCtx {
                args: &[],
                payload: &[],
                backends: None,
                rng: &mut Rng::new(0),
                cache: &mut Cache::default(),
            });
        }
    }
}
