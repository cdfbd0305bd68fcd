//! Writes whole text files so that a full disk destroys nothing.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a new file beside the old one, if there is one, and moves it into place. A link is
/// followed, so that it stays a link. What is not a plain file, such as a pipe, is written as it
/// is.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let Ok(old) = std::fs::metadata(path) else {
        return std::fs::write(path, text);
    };
    if !old.is_file() {
        return std::fs::write(path, text);
    }
    let path = path.canonicalize()?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".braid-new");
    let beside = path.with_file_name(name);
    let done = (|| {
        let mut file = File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(old.permissions())?;
        std::fs::rename(&beside, &path)
    })();
    if done.is_err() {
        // The incomplete file is useless. If it cannot be removed, nothing else changes.
        let _ = std::fs::remove_file(&beside);
    }
    done
}
