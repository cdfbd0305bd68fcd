//! Both engines of the IDS find the same signatures, on random signatures and payloads. With the
//! feature `hyperscan` this compares Hyperscan with the portable engine; without it, the portable
//! engine with a naive search.

use braid_native_five::{ENGINE, Search, Signature};

/// The random generator of chains, with the draws for these tests.
struct Rng(braid_externs::Rng);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.next_u64() % n as u64).unwrap_or(0)
    }

    fn text(&mut self, most: usize) -> Vec<u8> {
        let letters = b"abAB\x00\xff\n";
        (0..=self.below(most)).map(|_| letters[self.below(letters.len())]).collect()
    }
}

fn signature(rng: &mut Rng, number: u32) -> Signature {
    const EXPRESSIONS: [&str; 8] =
        ["a+b", "a[^b]b", "(ab|ba)a", "a.b", "^ab", "ba$", r"\x00[ab]{2,3}", "(?i)abab"];
    let (regex, nocase) = (rng.below(3) == 0, rng.below(3) == 0);
    let text = if regex {
        EXPRESSIONS[rng.below(EXPRESSIONS.len())].as_bytes().to_vec()
    } else {
        rng.text(3)
    };
    Signature { number, regex, nocase, text }
}

/// Whether a literal occurs in a payload.
fn occurs(signature: &Signature, payload: &[u8]) -> bool {
    let same = |window: &[u8]| match signature.nocase {
        true => window.eq_ignore_ascii_case(&signature.text),
        false => window == signature.text,
    };
    payload.windows(signature.text.len()).any(same)
}

#[test]
fn engines_find_the_same() {
    let mut rng = Rng(braid_externs::Rng::new(7));
    for _ in 0..braid_cases::cases(400) {
        let count = 1 + rng.below(5);
        let signatures: Vec<_> = (0..count)
            .map(|_| {
                let n = rng.below(9);
                signature(&mut rng, n as u32)
            })
            .collect();
        let (Ok(built), Ok(portable)) = (Search::new(&signatures), Search::portable(&signatures))
        else {
            continue;
        };
        for _ in 0..40 {
            let payload = rng.text(20);
            let found = built.lowest(&payload);
            assert_eq!(found, portable.lowest(&payload), "{ENGINE}: {signatures:?} in {payload:?}");
            if signatures.iter().all(|one| !one.regex) {
                let hits = signatures.iter().filter(|one| occurs(one, &payload));
                assert_eq!(
                    found,
                    hits.map(|one| one.number).min(),
                    "{signatures:?} in {payload:?}"
                );
            }
        }
    }
}

#[test]
fn signatures_that_make_no_sense_are_refused() {
    let empty = Signature { number: 1, regex: false, nocase: false, text: Vec::new() };
    assert!(Search::new(&[empty]).is_err());
    let open = Signature { number: 1, regex: true, nocase: false, text: b"(a".to_vec() };
    assert!(Search::new(&[open]).is_err());
}
