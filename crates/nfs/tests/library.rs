//! Every folder of the library holds what a function needs.

#[test]
fn each_model_defines_the_function_that_its_folder_names() {
    for nf in braid_nfs::all() {
        let head = format!("nf {}(", nf.name);
        assert!(
            nf.source.lines().any(|line| line.starts_with(&head)),
            "crates/nfs/{}/model.braid has no line `{head}…`",
            nf.name
        );
    }
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
        let reasons = nf.source.split("drop \"").skip(1).filter_map(|rest| rest.split_once('"'));
        let model = nf.source.split_once(") {").map_or("", |(head, _)| head);
        let params = model.lines().skip_while(|line| !line.starts_with("nf "));
        let params =
            params.flat_map(|line| line.trim_start().split(['(', ','])).filter_map(|part| {
                let (name, _) = part.split_once(':')?;
                name.chars()
                    .all(|c| c.is_alphanumeric() || c == '_' || c == ' ')
                    .then(|| name.trim())
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
