//! Makes saved states from a fuzzer's bytes: the state of a chain with changed bytes, or any bytes.

use crate::compare::difference;
use crate::harness::{self, Engine, HOSTILE};
use crate::hostile::{chains, stimuli};
use crate::record::{Detail, record};
use braid_ir::snapshot::Snapshot;
use braid_runtime::state_files::{decode, encode};
use std::sync::OnceLock;

/// The engine beside the reference engine: flow records without machine code.
const FUSED: Engine = HOSTILE[1];

/// The traffic before a state, as [`stimuli`] reads it.
const TRAFFIC: &[u8] = &[
    0, 1, 0, 1, 1, 1, 0, 1, 2, 1, 1, 2, 0, 1, 3, 0, 1, 4, 1, 1, 5, 0, 1, 6, 0, 1, 7, 0, 1, 2, 1, 1,
    1,
];

/// The state of each chain after some traffic, in bytes.
fn states() -> &'static [Vec<u8>] {
    static STATES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    STATES.get_or_init(|| {
        let state = |number: u8| {
            let (chain, mut traffic) = stimuli(&[&[number], TRAFFIC].concat()).expect("a chain");
            // Without the long time at the end, in which entries would end.
            traffic.pop();
            let mut engine = harness::reference(chain);
            record(engine.as_mut(), &traffic, Detail::End);
            engine.export().to_bytes()
        };
        (0..).take(chains().len()).map(state).collect()
    })
}

/// Reads a state and goes on from it. The first byte selects the chain. If the second one is even,
/// each further three are a place in the chain's state and the byte there. Otherwise the others are
/// the state.
///
/// # Errors
/// A state that is read back otherwise than it was written, that only one engine takes, or from
/// which two engines go on differently.
pub fn check(bytes: &[u8]) -> Result<(), String> {
    let [pick, kind, rest @ ..] = bytes else { return Ok(()) };
    let number = usize::from(*pick) % chains().len();
    let state = if kind % 2 == 1 {
        // The header and the checksum of a file hide what is behind them from a fuzzer.
        drop(decode(rest));
        rest.to_vec()
    } else {
        let mut state = states()[number].clone();
        for change in rest.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % state.len();
            state[at] = change[2];
        }
        state
    };
    let Ok(snapshot) = Snapshot::from_bytes(&state) else { return Ok(()) };
    if decode(&encode(&snapshot)).ok().as_ref() != Some(&snapshot) {
        return Err(format!("a state is read back otherwise: {snapshot:?}"));
    }
    let chain = &chains()[number];
    let (mut left, mut right) = (harness::reference(chain), FUSED.compiled(chain));
    match (left.import(snapshot.clone()), braid_ir::engine::Engine::import(&mut right, snapshot)) {
        (Ok(()), Ok(())) => {}
        (Err(_), Err(_)) => return Ok(()),
        (left, right) => return Err(format!("reference: {left:?}, {FUSED}: {right:?}")),
    }
    let (_, traffic) = stimuli(&[&[*pick], TRAFFIC].concat()).expect("a chain");
    let expected = record(left.as_mut(), &traffic, Detail::End);
    match difference(&expected, &record(&mut right, &traffic, Detail::End)) {
        None => Ok(()),
        Some(found) => Err(format!("{found:?}")),
    }
}
