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
fn names_are_found_and_others_are_not() {
    for nf in braid_nfs::all() {
        assert_eq!(braid_nfs::by_name(nf.name), Some(nf));
    }
    assert_eq!(braid_nfs::by_name("no_such_function"), None);
}
