//! The walk of a packet of a live run. It is made again by the reference engine, from a copy of the
//! state that the chain had before the packet.

use braid_engine::PacketPath;
use braid_ir::chain::Chain;
use braid_ir::engine::{Engine as _, Event, Outputs};
use braid_packet::Packet;
use braid_runtime::live::Traced;
use serde_json::{Value, json};

use super::steps::{Recorder, text, value};
use super::why;
use crate::engines;

/// What left, each with its interface and its bytes.
#[derive(Default)]
struct Left(Vec<(u16, Vec<u8>)>);

impl Outputs for Left {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.0.push((interface, packet.data().to_vec()));
    }

    fn event(&mut self, _: Event) {}
}

/// Shows the walk of a packet, as text for people or as JSON.
///
/// # Errors
/// The reference engine cannot take the state, or makes something else of the packet.
pub fn traced(number: u64, traced: Traced, as_text: bool) -> Result<Value, String> {
    let Traced { chain, worker, before, packet, path, left: expected, pause_us } = traced;
    let part = Chain { only: worker, ..(*chain).clone() };
    let mut engine = engines::reference(&part).map_err(|failure| failure.text)?;
    engine.import(before()).map_err(|why| why.to_string())?;
    let mut recorder = Recorder::new(packet.ingress, &packet);
    let mut left = Left::default();
    engine.trace(packet.ingress, packet, &mut left, &mut recorder);
    let walk = recorder.finish();
    if left.0 != expected {
        let text = text(number, &walk, &chain);
        return Err(format!(
            "this is a bug: the packet left differently from the engine `reference`:\n{text}"
        ));
    }
    let path = path.and_then(|path| path.downcast::<PacketPath>().ok());
    let path = path.map_or_else(String::new, |path| why::line(&path, &chain));
    if as_text {
        let mut text = text(number, &walk, &chain);
        if !path.is_empty() {
            text.push_str(&format!("with flow records\n  {path}\n"));
        }
        return Ok(json!({ "text": text }));
    }
    let mut value = value(number, &walk, &chain);
    value["path"] = Value::from(path);
    value["pause_us"] = Value::from(pause_us);
    Ok(value)
}
