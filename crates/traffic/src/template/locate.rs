//! Finds the captures that a template file names.
//!
//! Names are relative to a folder of the generator's distribution. Collections often keep all
//! captures in one folder and write the original paths into their names: `cap2/dns.pcap` is also
//! found as `cap2__dns.pcap` and as `anything__cap2__dns.pcap`.

use std::fs;
use std::path::{Path, PathBuf};

/// The most entries of a folder that are read.
const MAX_ENTRIES: usize = 100_000;

/// The folders to search, in order.
pub fn roots(file: &Path, captures: Option<&Path>) -> Vec<PathBuf> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut roots: Vec<PathBuf> = captures.map(Path::to_owned).into_iter().collect();
    // A file at scripts/cap2/dns.yaml names scripts/cap2/dns.pcap as cap2/dns.pcap.
    roots.extend([folder.clone(), folder.join("..")]);
    roots
}

/// The capture with this name, or an error message for the user.
pub fn find(name: &str, roots: &[PathBuf]) -> Result<PathBuf, String> {
    let flat = name.trim_start_matches("./").replace('/', "__");
    for root in roots {
        let direct = root.join(name);
        if direct.is_file() {
            return Ok(direct);
        }
        let mut found = flattened(root, &flat);
        match found.len() {
            0 => {}
            1 => return Ok(found.remove(0)),
            _ => {
                let names: Vec<String> = found.iter().map(|p| p.display().to_string()).collect();
                return Err(format!("`{name}` may be any of {}", names.join(", ")));
            }
        }
    }
    let places: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    Err(format!("no capture `{name}` in {} (--captures DIR says where to look)", places.join(", ")))
}

/// The files of a folder whose name is the flat name, or ends with `__` and the flat name.
fn flattened(root: &Path, flat: &str) -> Vec<PathBuf> {
    let suffix = format!("__{flat}");
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .take(MAX_ENTRIES)
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name == flat || name.ends_with(&suffix)
        })
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    // If a file has the exact name, it is the right one.
    match found.iter().position(|path| path.file_name().is_some_and(|name| name == flat)) {
        Some(exact) => vec![found.swap_remove(exact)],
        None => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn found(files: &[&str], name: &str) -> Result<String, String> {
        let folder = folder(files);
        let yaml = folder.path().join("cap2/x.yaml");
        let path = find(name, &roots(&yaml, None))?.canonicalize().unwrap();
        let base = folder.path().canonicalize().unwrap();
        Ok(path.strip_prefix(base).unwrap().display().to_string())
    }

    #[test]
    fn names_are_relative_to_the_file_and_to_the_folder_above() {
        let files = ["cap2/x.yaml", "cap2/cap2/dns.pcap", "cap2/dns.pcap"];
        assert_eq!(found(&files, "cap2/dns.pcap").unwrap(), "cap2/cap2/dns.pcap");
        assert_eq!(found(&files[..1], "cap2/dns.pcap").unwrap_err().lines().count(), 1);
        assert_eq!(found(&["cap2/dns.pcap"], "cap2/dns.pcap").unwrap(), "cap2/dns.pcap");
    }

    #[test]
    fn flattened_names_are_found_by_their_end() {
        let files = ["cap2/t__s__cap2__dns.pcap", "cap2/t__s__avl__dns.pcap"];
        assert_eq!(found(&files, "cap2/dns.pcap").unwrap(), files[0]);
        assert_eq!(
            found(&["cap2/cap2__dns.pcap"], "cap2/dns.pcap").unwrap(),
            "cap2/cap2__dns.pcap"
        );
        assert!(found(&["cap2/xcap2__dns.pcap"], "cap2/dns.pcap").is_err());
    }

    #[test]
    fn flattened_name_that_fits_several_is_refused() {
        let files = ["cap2/a__cap2__dns.pcap", "cap2/b__cap2__dns.pcap"];
        let error = found(&files, "cap2/dns.pcap").unwrap_err();
        assert!(error.contains("may be any of") && error.contains("b__cap2"), "{error}");
    }

    #[test]
    fn folder_of_captures_comes_first() {
        let folder = folder(&["a/x.yaml", "a/dns.pcap", "b/dns.pcap"]);
        let captures = folder.path().join("b");
        let yaml = folder.path().join("a/x.yaml");
        let path = find("dns.pcap", &roots(&yaml, Some(&captures))).unwrap();
        assert_eq!(path, captures.join("dns.pcap"));
    }
}
