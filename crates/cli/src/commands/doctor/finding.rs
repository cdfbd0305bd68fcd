//! What was found about a subject, and how it is printed.

use serde::Serialize;

/// How well something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Health {
    Ok,
    /// It works. It could work better, or it is good to know.
    Note,
    /// Something does not work.
    Problem,
}

/// What was found about a subject.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) subject: &'static str,
    pub(super) health: Health,
    pub(super) text: String,
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, health: Health::Ok, text: text.into(), remedy: None }
    }

    pub(super) fn note(
        subject: &'static str,
        text: impl Into<String>,
        remedy: impl Into<Option<String>>,
    ) -> Self {
        Self { subject, health: Health::Note, text: text.into(), remedy: remedy.into() }
    }

    pub(super) fn problem(
        subject: &'static str,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { subject, health: Health::Problem, text: text.into(), remedy }
    }
}

/// A line for each finding, and one for its remedy.
pub(super) fn text(findings: &[Finding]) -> String {
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
