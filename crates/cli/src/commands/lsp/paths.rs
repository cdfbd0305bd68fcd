//! Paths of files as URIs.

use std::path::{Component, Path, PathBuf};

/// The path of a file's URI. `None` for other URIs.
pub fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let start = rest.find('/')?;
    let mut bytes = Vec::new();
    let mut rest = rest[start..].bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// The URI of a file.
pub fn uri(path: &Path) -> String {
    let mut text = String::from("file://");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// A path without `.` and `..`, as far as they can be resolved without looking at files.
pub fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if tidy.file_name().is_some() => {
                tidy.pop();
            }
            part => tidy.push(part),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_their_uris() {
        for name in ["/a/b.braid", "/with space/ü%.braid"] {
            assert_eq!(path(&uri(Path::new(name))), Some(PathBuf::from(name)));
        }
        assert_eq!(uri(Path::new("/a b")), "file:///a%20b");
        assert_eq!(path("file://host/a"), Some(PathBuf::from("/a")));
        for wrong in ["untitled:1", "file:///%zz", "file:///%ff", "file:///%", "file://", ""] {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn tidy_paths_have_no_dots() {
        assert_eq!(tidy(Path::new("/a/./b/../c")), PathBuf::from("/a/c"));
        assert_eq!(tidy(Path::new("../c")), PathBuf::from("../c"));
    }
}
