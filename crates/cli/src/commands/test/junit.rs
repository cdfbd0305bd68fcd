//! Reports in the XML format of JUnit, which continuous integration reads.

use std::fmt::Write as _;

use super::tested::{End, Tested};

/// The report of all cases.
pub fn report(tested: &[Tested]) -> String {
    let failures = tested.iter().filter(|one| matches!(one.end, End::Differs(_))).count();
    let errors = tested.iter().filter(|one| matches!(one.end, End::Failed(_))).count();
    let time: f64 = tested.iter().map(|one| one.time.as_secs_f64()).sum();
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{time:.3}\"",
        tested.len()
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n\
         <testsuite name=\"braid test\" {counts}>\n"
    );
    for one in tested {
        let (name, engine) = (escaped(&one.name), &one.engine);
        let time = one.time.as_secs_f64();
        let head = format!("<testcase classname=\"{engine}\" name=\"{name}\" time=\"{time:.3}\"");
        let _ = match &one.end {
            End::Holds | End::Blessed => writeln!(text, "{head}/>"),
            End::Differs(found) => {
                let lines = found.iter().map(|found| format!("line {}: {found}", found.line));
                let shown = escaped(&lines.collect::<String>());
                let message = format!("{} of its steps differ", found.len());
                writeln!(
                    text,
                    "{head}>\n<failure message=\"{message}\">{shown}</failure>\n</testcase>"
                )
            }
            End::Failed(why) => {
                let message = escaped(why.lines().next().unwrap_or(""));
                let shown = escaped(why);
                writeln!(text, "{head}>\n<error message=\"{message}\">{shown}</error>\n</testcase>")
            }
        };
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// Text for XML. Characters that XML does not allow become the replacement character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn report_counts_and_escapes() {
        let one = |name: &str, end| Tested {
            name: name.to_owned(),
            engine: "reference".to_owned(),
            time: Duration::from_millis(2),
            end,
        };
        let text = report(&[one("a", End::Holds), one("<b>", End::Failed("x & \"y\"\x01".into()))]);
        assert!(text.contains("<testsuites tests=\"2\" failures=\"0\" errors=\"1\""), "{text}");
        assert!(text.contains("name=\"&lt;b&gt;\""), "{text}");
        assert!(text.contains(">x &amp; &quot;y&quot;\u{fffd}</error>"), "{text}");
    }
}
