//! Every folder of the library has all parts of a function.

#[test]
fn each_model_defines_the_function_that_its_folder_names() {
    for nf in braid_nfs::all() {
        let head = format!("nf {}(", nf.name);
        assert!(
            nf.source
                .lines()
                .any(|line| { line.strip_prefix("stream ").unwrap_or(line).starts_with(&head) }),
            "crates/nfs/{}/model.braid has no line `{head}…`",
            nf.name
        );
    }
}

#[test]
fn documents_say_how_many_functions_there_are() {
    let count = braid_nfs::all().len();
    let readme = include_str!("../../../README.md");
    assert!(readme.contains(&format!("- **{count} functions** to start from")), "{count}");
    let changes = include_str!("../../../CHANGELOG.md");
    assert!(changes.contains(&format!("A library of {count} network functions")), "{count}");
}

#[test]
fn each_folder_has_a_page_with_a_summary() {
    for nf in braid_nfs::all() {
        assert!(!nf.summary().is_empty(), "crates/nfs/{}/README.md says nothing", nf.name);
    }
}

#[test]
fn each_page_names_what_a_user_meets_in_the_model() {
    for nf in braid_nfs::all() {
        let ends = ["drop \"", "reset \""].into_iter();
        let reasons = ends.flat_map(|end| nf.source.split(end).skip(1));
        let reasons = reasons.filter_map(|rest| rest.split_once('"'));
        // The parameters, without the fields of records.
        let start = nf.source.find(&format!("nf {}(", nf.name)).unwrap_or_default();
        let head = nf.source[start..].split_once("\n) {").unwrap_or((&nf.source[start..], "")).0;
        let head = head.lines().next().filter(|line| line.ends_with('{')).unwrap_or(head);
        let outside = head.split('{').map(|part| part.rsplit_once('}').map_or(part, |ends| ends.1));
        let params = outside.flat_map(|part| part.split(['(', ',', '\n'])).filter_map(|part| {
            let (name, _) = part.split_once(':')?;
            // Regular expressions have colons, too.
            let is_name = |name: &&str| name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
            Some(name.trim()).filter(is_name)
        });
        for word in reasons.map(|(reason, _)| reason).chain(params) {
            assert!(
                nf.page.contains(&format!("`{word}`")),
                "crates/nfs/{}/README.md does not say `{word}`",
                nf.name
            );
        }
    }
}

#[test]
fn names_are_found_and_others_are_not() {
    for nf in braid_nfs::all() {
        assert_eq!(braid_nfs::by_name(nf.name), Some(nf));
    }
    assert_eq!(braid_nfs::by_name("no_such_function"), None);
}

#[test]
fn table_of_lengths_is_right() {
    let page = include_str!("../../../docs/add-a-function.md");
    let (_, table) = page.split_once("|---|---|---|\n").expect("a table");
    let mut rows = 0;
    for row in table.lines() {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let (name, lines) = (cells.next().expect("a name"), cells.next().expect("a number"));
        let nf = braid_nfs::by_name(name).unwrap_or_else(|| panic!("no function `{name}`"));
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let count = nf.source.lines().filter(is_code).count();
        assert_eq!(lines, count.to_string(), "{name}");
        rows += 1;
    }
    assert_eq!(rows, 12);
}
