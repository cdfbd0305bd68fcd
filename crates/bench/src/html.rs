//! Results as one HTML page without external files.

use std::fmt::Write as _;

use crate::definition::Definition;
use crate::plot::plot;
use crate::report::Row;
use crate::tables::{Cells, by_packets, cells, notes};

const STYLE: &str = "\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 84em; margin: 2em auto; padding: 0 1em; color: #222; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
p { max-width: 60em; } figure { margin: 1em 0; }
th, td { padding: .15em .6em; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.facts th { text-align: left; font-weight: normal; color: #666; } .facts td { text-align: left; white-space: normal; }
svg { max-width: 100%; height: auto; }";

/// The page: the machine, and then each bench with its plot and its table.
#[must_use]
pub fn page(facts: &[(&str, String)], benches: &[(&Definition, &[Row])]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Braid bench</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>Braid bench</h1>\n\
         <p>Packets lie in memory; engines take turns on one core, each for a trial of \
         some milliseconds. Times are medians of the trials, without the time to copy a frame into \
         a packet.</p>\n\
         <table class=\"facts\">\n"
    );
    for (name, value) in facts {
        let _ = writeln!(page, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value));
    }
    page.push_str("</table>\n");
    for (definition, rows) in benches {
        section(&mut page, definition, rows);
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn section(page: &mut String, definition: &Definition, rows: &[Row]) {
    let (name, summary) = (escaped(&definition.name), escaped(&definition.summary));
    let _ = writeln!(page, "<h2 id=\"{name}\">{name}: {summary}</h2>");
    if !definition.about.trim().is_empty() {
        let _ = writeln!(page, "<p>{}</p>", escaped(definition.about.trim()));
    }
    if let Some(svg) = plot(definition, rows) {
        let _ = writeln!(page, "<figure>\n{}\n</figure>", svg.trim());
    }
    table(page, cells(definition, rows));
    if let Some(cells) = by_packets(rows) {
        table(page, cells);
    }
    for note in notes(definition, rows) {
        let _ = writeln!(page, "<p>{}</p>", escaped(&note));
    }
}

fn table(page: &mut String, (head, body): Cells) {
    let row = |tag: &str, cells: &[String]| -> String {
        let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let head: Vec<String> = head.into_iter().map(str::to_owned).collect();
    let body: String = body.iter().map(|cells| row("td", cells)).collect();
    let _ = write!(
        page,
        "<table>\n<thead>\n{}</thead>\n<tbody>\n{body}</tbody>\n</table>\n",
        row("th", &head)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row without results.
    pub(crate) fn row() -> Row {
        Row {
            bench: "b".to_owned(),
            chain: "c".to_owned(),
            functions: 1,
            engine: "synth".to_owned(),
            flows: 1,
            frame_bytes: 60,
            train: 1,
            ..Row::default()
        }
    }

    #[test]
    fn page_is_whole_and_escapes_what_it_shows() {
        let text = "summary = 'a < b'\naxis = 'flows'\nfloor = 'touch'\nchain = ''\n[[traffic]]\n[[sweep]]\n";
        let definition = Definition::parse("x", text).unwrap();
        let rows = [Row { ns_per_packet_median: Some(12.25), ..row() }];
        let facts = [("processor", "\"A\" & B".to_owned())];
        let page = page(&facts, &[(&definition, &rows)]);
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        assert!(page.contains("a &lt; b") && page.contains("&quot;A&quot; &amp; B"));
        assert!(page.contains("<td>12.2</td>") && page.contains("<svg"));
        for tag in ["table", "tr", "th", "td", "figure", "thead", "tbody", "body", "h2"] {
            let count = |text: &str| page.matches(text).count();
            let opened = count(&format!("<{tag}>")) + count(&format!("<{tag} "));
            assert_eq!(opened, count(&format!("</{tag}>")), "{tag}");
        }
        assert!(!page.contains("http-equiv") && !page.contains("src="));
    }

    #[test]
    fn json_has_every_key_with_null_where_nothing_applies() {
        let filled = Row { ns_per_packet_median: Some(1.0 / 3.0), runs: Some(3), ..row() };
        let value: serde_json::Value = serde_json::from_str(&filled.json()).unwrap();
        let object = value.as_object().unwrap();
        for key in [
            "bench",
            "chain",
            "functions",
            "engine",
            "flows",
            "frame_bytes",
            "rules",
            "runs",
            "ns_per_packet_median",
            "ns_per_packet_min",
            "ns_per_packet_max",
            "cycles_per_packet",
            "floor_ns",
            "ratio_to_floor",
            "ratio_to_sequential",
        ] {
            assert!(object.contains_key(key), "{key}");
        }
        assert_eq!(object["ns_per_packet_median"], 0.333);
        assert_eq!(object["runs"], 3);
        assert!(object["ratio_to_floor"].is_null());
        assert!(!filled.json().contains('\n'));
    }
}
