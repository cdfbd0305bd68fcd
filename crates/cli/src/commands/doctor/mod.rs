//! `braid doctor`: whether this machine and its devices are ready for live runs.

mod device;
mod finding;
mod machine;

use serde_json::json;

use crate::answer::{Answer, Outcome};
use crate::output::Output;
use finding::{Finding, Health, text};

/// Check whether this machine is ready for live runs, with a remedy for each problem
#[derive(clap::Args)]
pub struct Args {
    /// A network device to check, too; may be given for several
    #[arg(long = "if", value_name = "DEVICE", num_args = 1..)]
    devices: Vec<String>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let machine = machine::findings();
    let devices: Vec<_> =
        args.devices.iter().map(|name| (name.as_str(), device::findings(name))).collect();
    let all = || machine.iter().chain(devices.iter().flat_map(|(_, findings)| findings));
    let is_well = all().all(|finding| finding.health != Health::Problem);
    if output.json {
        let device = |(name, findings): &(&str, Vec<Finding>)| json!({ "device": name, "findings": findings });
        output.value(&json!({
            "ok": is_well,
            "machine": machine,
            "devices": devices.iter().map(device).collect::<Vec<_>>(),
        }));
    } else {
        output.text(text(&machine));
        for (name, findings) in &devices {
            output.text(format!("\ndevice {name}\n{}", text(findings)));
        }
    }
    Ok(Answer::of(is_well))
}
