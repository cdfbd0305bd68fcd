//! `braid doctor`: whether this machine and its devices are ready for live runs.

mod device;
mod machine;

use serde::Serialize;
use serde_json::json;

use crate::answer::{Answer, Outcome};
use crate::output::Output;

/// Check whether this machine is ready for live runs, with a remedy for each problem
#[derive(clap::Args)]
pub struct Args {
    /// A network device to check, too; may be given for several
    #[arg(long = "if", value_name = "DEVICE")]
    devices: Vec<String>,
}

/// How well something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Ok,
    /// It works. It could work better, or it is good to know.
    Note,
    /// Something does not work.
    Problem,
}

/// What was found about a subject.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Finding {
    subject: &'static str,
    health: Health,
    text: String,
    remedy: Option<String>,
}

impl Finding {
    fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, health: Health::Ok, text: text.into(), remedy: None }
    }

    fn note(
        subject: &'static str,
        text: impl Into<String>,
        remedy: impl Into<Option<String>>,
    ) -> Self {
        Self { subject, health: Health::Note, text: text.into(), remedy: remedy.into() }
    }

    fn problem(subject: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { subject, health: Health::Problem, text: text.into(), remedy }
    }
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

/// A line for each finding, and one for its remedy.
fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { subject, health, text: found, remedy } in findings {
        let health = match health {
            Health::Ok => "ok",
            Health::Note => "note",
            Health::Problem => "PROBLEM",
        };
        text += &format!("{health:<7}  {subject:<12}  {found}\n");
        if let Some(remedy) = remedy {
            text += &format!("{:23}→ {remedy}\n", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_is_below_its_finding() {
        let findings =
            [Finding::ok("kernel", "6.1"), Finding::problem("af_xdp", "missing", "get it")];
        let expected = "\
ok       kernel        6.1
PROBLEM  af_xdp        missing
                       → get it
";
        assert_eq!(text(&findings), expected);
    }
}
