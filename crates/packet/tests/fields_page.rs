//! `docs/fields.md` is generated from the field table. `BLESS=1 cargo test -p braid-packet`
//! rewrites it.

use braid_packet::{Access, FIELDS, HEADERS, Header};
use std::fmt::Write as _;
use std::path::Path;

fn page() -> String {
    let mut text = String::from(
        "\
# Header fields

Every header that `has` can test for, and its fields. *read* marks fields that cannot be assigned:
structural fields, checksums (which follow by themselves) and attributes. A header's test includes
the headers that it needs.

This page is generated from the field table (`BLESS=1 cargo test -p braid-packet`).
",
    );
    for &(header, name) in HEADERS {
        let needs: Vec<_> =
            header.implies().iter().map(|needed| format!("`{}`", needed.name())).collect();
        let _ = write!(text, "\n## {name}\n\n");
        if header != Header::Pkt {
            let with = if needs.is_empty() {
                String::new()
            } else {
                format!(", which includes {}", needs.join(", "))
            };
            let _ = write!(text, "`has {name}`{with}.\n\n");
        }
        let fields: Vec<_> = FIELDS.iter().filter(|info| info.header == header).collect();
        if !fields.is_empty() {
            text += "| field | bits | | meaning |\n|---|---|---|---|\n";
        }
        for info in fields {
            let access = if info.access == Access::Ro { "read" } else { "" };
            let _ =
                writeln!(text, "| `{}` | {} | {access} | {} |", info.name, info.width, info.doc);
        }
    }
    text
}

#[test]
fn page_of_fields_is_that_of_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fields.md");
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).expect("write docs/fields.md");
    }
    let on_disk = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(on_disk == page, "docs/fields.md is out of step: BLESS=1 cargo test -p braid-packet");
}
