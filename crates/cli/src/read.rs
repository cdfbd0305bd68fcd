//! Reads the text files that programs name: plain or gzip, with a limit of their size.

use braid_lang::import::MAX_TEXT_BYTES;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system's error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is too long.
    #[error("more than {} MiB of text", MAX_TEXT_BYTES >> 20)]
    TooLong,
    /// Other users may use the file.
    #[error(
        "it holds secret keys, and its mode {mode:o} lets other users at them: `chmod 600` the file"
    )]
    Exposed {
        /// The permissions.
        mode: u32,
    },
    /// The file is not UTF-8 text.
    #[error("not UTF-8 text: line {line} has other bytes")]
    NotText {
        /// The first line that is not text, from 1.
        line: usize,
    },
}

/// Reads the text of a file. A file that starts with gzip's first bytes is decompressed.
///
/// # Errors
/// Returns an error when the file cannot be read, is longer than [`MAX_TEXT_BYTES`], or is not
/// UTF-8 text.
pub fn read_text(path: &Path) -> Result<String, ReadError> {
    text(File::open(path)?, MAX_TEXT_BYTES)
}

/// Reads the bytes of a file with secret keys like [`read_text`].
///
/// # Errors
/// As for [`read_text`]. Also if other users may read or write the file, unless `is_open` allows
/// this.
pub fn read_secret(path: &Path, is_open: bool) -> Result<Vec<u8>, ReadError> {
    let file = File::open(path)?;
    // The mode of the open file: another file may take its place at any time.
    let mode = file.metadata()?.permissions().mode();
    if mode & 0o077 != 0 && !is_open {
        return Err(ReadError::Exposed { mode: mode & 0o777 });
    }
    bytes(file, MAX_TEXT_BYTES)
}

/// Reads the bytes of a file like [`read_text`], but they need not be text.
///
/// # Errors
/// Returns an error when the file cannot be read or is longer than [`MAX_TEXT_BYTES`].
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    bytes(File::open(path)?, MAX_TEXT_BYTES)
}

fn bytes(mut input: impl Read, max: u64) -> Result<Vec<u8>, ReadError> {
    let mut magic = Vec::new();
    input.by_ref().take(2).read_to_end(&mut magic)?;
    let is_gzip = magic == [0x1f, 0x8b];
    let whole = magic.as_slice().chain(input);
    if is_gzip { bounded(MultiGzDecoder::new(whole), max) } else { bounded(whole, max) }
}

fn text(input: impl Read, max: u64) -> Result<String, ReadError> {
    String::from_utf8(bytes(input, max)?).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        ReadError::NotText { line: before.iter().filter(|&&b| b == b'\n').count() + 1 }
    })
}

fn bounded(input: impl Read, max: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    input.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(ReadError::TooLong) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::{ReadError, read_text, text};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    use std::path::Path;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("in memory");
        encoder.finish().expect("in memory")
    }

    #[test]
    fn gzip_and_plain_give_the_same_text() {
        assert_eq!(text(&b"a\nb\n"[..], 10).expect("short"), "a\nb\n");
        assert_eq!(text(gzip(b"a\nb\n").as_slice(), 10).expect("short"), "a\nb\n");
        assert_eq!(text(&b""[..], 10).expect("empty"), "");
    }

    #[test]
    fn limit_counts_decompressed_bytes() {
        assert_eq!(text(&b"1234"[..], 4).expect("at the limit"), "1234");
        assert!(matches!(text(&b"12345"[..], 4), Err(ReadError::TooLong)));
        let bomb = gzip(&vec![b'a'; 1 << 20]);
        assert!(bomb.len() < 1 << 14);
        assert!(matches!(text(bomb.as_slice(), 1 << 19), Err(ReadError::TooLong)));
    }

    #[test]
    fn bad_input_is_an_error_with_its_line() {
        assert!(matches!(text(&b"a\n\xff"[..], 9), Err(ReadError::NotText { line: 2 })));
        assert!(matches!(text(&b"\x1f\x8bxx"[..], 9), Err(ReadError::Io(_))));
        assert!(matches!(read_text(Path::new("/nonexistent")), Err(ReadError::Io(_))));
    }
}
