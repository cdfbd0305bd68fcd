//! Rows of numbers as bytes, in which the functions save their memory.

/// Numbers as bytes.
pub fn bytes_of(words: impl IntoIterator<Item = u128>) -> Vec<u8> {
    words.into_iter().flat_map(u128::to_le_bytes).collect()
}

/// The rows of `N` numbers in bytes.
pub fn rows_of<const N: usize>(bytes: &[u8]) -> Result<Vec<[u128; N]>, String> {
    let (words, rest) = bytes.as_chunks();
    let words: Vec<u128> = words.iter().map(|word| u128::from_le_bytes(*word)).collect();
    let (rows, more) = words.as_chunks();
    match (rest, more) {
        ([], []) => Ok(rows.to_vec()),
        _ => Err("its memory is damaged".to_owned()),
    }
}

/// A number of another type.
pub fn narrow<T: TryFrom<u128>>(word: u128) -> Result<T, String> {
    T::try_from(word).map_err(|_| "its memory is damaged".to_owned())
}
