//! Every folder of the library holds what a function needs.

use std::path::Path;

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
fn each_folder_has_a_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for nf in braid_nfs::all() {
        let cases = root.join(nf.name).join("cases");
        let count = std::fs::read_dir(&cases).map_or(0, Iterator::count);
        assert!(count > 0, "{} holds no case", cases.display());
    }
}

#[test]
fn names_are_found_and_others_are_not() {
    for nf in braid_nfs::all() {
        assert_eq!(braid_nfs::by_name(nf.name), Some(nf));
    }
    assert_eq!(braid_nfs::by_name("no_such_function"), None);
}
