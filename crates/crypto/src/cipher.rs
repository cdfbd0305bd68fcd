//! One key with its cipher.

use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt,
    BlockSizeUser, InnerIvInit, KeyInit,
    typenum::{U12, U16},
};
use aes::{Aes128, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::{AeadInOut, inout::InOutBuf};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The bytes of the check value behind encrypted bytes.
pub const TAG: usize = 16;
/// The most bytes of an initialisation vector.
pub const MAX_IV: usize = 16;
/// The most bytes that encrypted bytes must be a multiple of.
pub const MAX_BLOCK: usize = 16;

/// The bytes of a key of AES-GCM that begin each nonce (RFC 4106 §4).
const SALT: usize = 4;
/// The bytes of a key of HMAC-SHA-256 (RFC 4868 §2.1.1).
const MAC_KEY: usize = 32;

/// Readable bytes that a check value covers: in front of the vector, and behind the encrypted
/// bytes.
pub type Clear<'a> = (&'a [u8], &'a [u8]);

/// A secret key with its cipher. Copies share it. It is never printed, and its bytes are wiped when
/// the last copy is dropped.
#[derive(Clone)]
pub struct Key(Arc<Secret>);

struct Secret {
    cipher: Cipher,
    /// The name of the cipher.
    name: &'static str,
    bytes: Zeroizing<Vec<u8>>,
}

/// The ciphers. Their states are long, so they lie on the heap.
enum Cipher {
    Gcm128(Box<AesGcm<Aes128, U12>>, [u8; SALT]),
    Gcm256(Box<AesGcm<Aes256, U12>>, [u8; SALT]),
    Cbc128(Box<(Aes128, Hmac<Sha256>)>),
    Cbc256(Box<(Aes256, Hmac<Sha256>)>),
    Mac(Box<Hmac<Sha256>>),
}

/// The names of the ciphers, with the number of bytes of their keys: AES-GCM with 16 bytes of check
/// value (RFC 4106), AES-CBC (RFC 3602) with HMAC-SHA-256-128 (RFC 4868), and HMAC-SHA-256-128
/// alone, which encrypts nothing (RFC 2410).
pub(crate) const CIPHERS: [(&str, usize); 5] = [
    ("aes-128-gcm", 16 + SALT),
    ("aes-256-gcm", 32 + SALT),
    ("aes-128-cbc-hmac-sha-256-128", 16 + MAC_KEY),
    ("aes-256-cbc-hmac-sha-256-128", 32 + MAC_KEY),
    ("hmac-sha-256-128", MAC_KEY),
];

impl Key {
    /// The key of a cipher with these bytes: for AES-GCM the key and 4 bytes of salt, for AES-CBC
    /// the key of AES and the 32 bytes of HMAC's, for HMAC alone 32 bytes. `None` if there is no
    /// such cipher, or if its keys have another length.
    #[must_use]
    pub fn new(cipher: &str, bytes: Zeroizing<Vec<u8>>) -> Option<Self> {
        let (name, len) = *CIPHERS.iter().find(|(name, _)| *name == cipher)?;
        if bytes.len() != len {
            return None;
        }
        let cipher = match (name, len) {
            ("aes-128-gcm", _) => Cipher::Gcm128(part(&bytes)?, bytes.last_chunk().copied()?),
            ("aes-256-gcm", _) => Cipher::Gcm256(part(&bytes)?, bytes.last_chunk().copied()?),
            ("hmac-sha-256-128", _) => Cipher::Mac(Box::new(hmac(&bytes)?)),
            (_, 48) => Cipher::Cbc128(with_mac(&bytes)?),
            _ => Cipher::Cbc256(with_mac(&bytes)?),
        };
        Some(Self(Arc::new(Secret { cipher, name, bytes })))
    }

    /// The bytes of the initialisation vector.
    #[must_use]
    pub fn iv_len(&self) -> usize {
        match self.0.cipher {
            Cipher::Gcm128(..) | Cipher::Gcm256(..) => 8,
            Cipher::Cbc128(_) | Cipher::Cbc256(_) => 16,
            Cipher::Mac(_) => 0,
        }
    }

    /// Whether bytes are encrypted with this key. Otherwise, it only gives them a check value.
    #[must_use]
    pub fn encrypts(&self) -> bool {
        !matches!(self.0.cipher, Cipher::Mac(_))
    }

    /// The number that the bytes to encrypt must be a multiple of.
    #[must_use]
    pub fn block(&self) -> usize {
        match self.0.cipher {
            Cipher::Gcm128(..) | Cipher::Gcm256(..) | Cipher::Mac(_) => 1,
            Cipher::Cbc128(_) | Cipher::Cbc256(_) => 16,
        }
    }

    /// The initialisation vector for a number that this key has not been used with before, in the
    /// first [`Key::iv_len`] bytes. AES-GCM takes the number itself. AES-CBC needs a vector that
    /// nobody can predict, so it takes the encrypted number (NIST SP 800-38A, appendix C).
    #[must_use]
    pub fn iv(&self, number: u64) -> [u8; MAX_IV] {
        let number = number.to_be_bytes();
        let mut block = [0; MAX_IV];
        match &self.0.cipher {
            Cipher::Gcm128(..) | Cipher::Gcm256(..) => {
                for (place, byte) in block.iter_mut().zip(number) {
                    *place = byte;
                }
            }
            Cipher::Cbc128(keys) => block = one_block(&keys.0, number),
            Cipher::Cbc256(keys) => block = one_block(&keys.0, number),
            Cipher::Mac(_) => {}
        }
        block
    }

    /// Whether the cipher computes the check value while it encrypts: a combined mode algorithm of
    /// RFC 4303 §3.2.3. It covers bytes in front of the encrypted ones only.
    #[must_use]
    pub fn is_combined(&self) -> bool {
        matches!(self.0.cipher, Cipher::Gcm128(..) | Cipher::Gcm256(..))
    }

    /// Encrypts `data` in place. Returns the check value, which covers the readable bytes in front,
    /// the vector, the encrypted bytes, and the readable bytes behind. `None`, and nothing changes,
    /// if `data` is no multiple of [`Key::block`], if the vector has another length, or if a
    /// combined cipher ([`Key::is_combined`]) gets bytes behind.
    #[must_use]
    pub fn encrypt(&self, iv: &[u8], clear: Clear<'_>, data: &mut [u8]) -> Option<[u8; TAG]> {
        if !self.takes(iv, clear, data) {
            return None;
        }
        match &self.0.cipher {
            Cipher::Gcm128(gcm, salt) => gcm_encrypt(&**gcm, (salt, iv), clear.0, data),
            Cipher::Gcm256(gcm, salt) => gcm_encrypt(&**gcm, (salt, iv), clear.0, data),
            Cipher::Cbc128(keys) => cbc_encrypt(keys, iv, clear, data),
            Cipher::Cbc256(keys) => cbc_encrypt(keys, iv, clear, data),
            Cipher::Mac(key) => Some(check(key, clear, iv, data)),
        }
    }

    /// Decrypts `data` in place, if the check value is right. False, and nothing changes, if it is
    /// not, and where [`Key::encrypt`] would return `None`. The time that the comparison takes does
    /// not depend on where the check values differ.
    #[must_use]
    pub fn decrypt(&self, iv: &[u8], clear: Clear<'_>, data: &mut [u8], tag: &[u8; TAG]) -> bool {
        if !self.takes(iv, clear, data) {
            return false;
        }
        match &self.0.cipher {
            Cipher::Gcm128(gcm, salt) => gcm_decrypt(&**gcm, (salt, iv), clear.0, data, tag),
            Cipher::Gcm256(gcm, salt) => gcm_decrypt(&**gcm, (salt, iv), clear.0, data, tag),
            Cipher::Cbc128(keys) => cbc_decrypt(keys, (iv, clear), data, tag),
            Cipher::Cbc256(keys) => cbc_decrypt(keys, (iv, clear), data, tag),
            Cipher::Mac(key) => mac(key, clear, iv, data).verify_truncated_left(tag).is_ok(),
        }
    }

    /// Whether the cipher can encrypt these bytes, or can have encrypted them.
    fn takes(&self, iv: &[u8], clear: Clear<'_>, data: &[u8]) -> bool {
        let is_covered = clear.1.is_empty() || !self.is_combined();
        iv.len() == self.iv_len() && data.len().is_multiple_of(self.block()) && is_covered
    }
}

/// The cipher whose key is the first bytes.
fn part<C: KeyInit>(bytes: &[u8]) -> Option<Box<C>> {
    C::new_from_slice(bytes.get(..C::key_size())?).ok().map(Box::new)
}

/// The cipher whose key is the first bytes, and HMAC with the key behind it.
fn with_mac<C: KeyInit>(bytes: &[u8]) -> Option<Box<(C, Hmac<Sha256>)>> {
    let (key, mac) = bytes.split_at_checked(C::key_size())?;
    Some(Box::new((C::new_from_slice(key).ok()?, hmac(mac)?)))
}

fn hmac(key: &[u8]) -> Option<Hmac<Sha256>> {
    <Hmac<Sha256> as KeyInit>::new_from_slice(key).ok()
}

/// A number in the low half of a block, encrypted.
fn one_block<C>(cipher: &C, number: [u8; 8]) -> [u8; MAX_IV]
where
    C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>,
{
    let mut block = [0; MAX_IV];
    if let Some(low) = block.last_chunk_mut() {
        *low = number;
    }
    let mut block = block.into();
    cipher.encrypt_block(&mut block);
    block.into()
}

/// The nonce of AES-GCM (RFC 4106 §4).
fn nonce((salt, iv): (&[u8; SALT], &[u8])) -> [u8; 12] {
    let mut nonce = [0; 12];
    for (place, byte) in nonce.iter_mut().zip(salt.iter().chain(iv)) {
        *place = *byte;
    }
    nonce
}

fn gcm_encrypt(
    gcm: &impl AeadInOut<NonceSize = U12, TagSize = U16>,
    vector: (&[u8; SALT], &[u8]),
    clear: &[u8],
    data: &mut [u8],
) -> Option<[u8; TAG]> {
    let tag = gcm.encrypt_inout_detached(&nonce(vector).into(), clear, InOutBuf::from(data));
    tag.ok().map(Into::into)
}

fn gcm_decrypt(
    gcm: &impl AeadInOut<NonceSize = U12, TagSize = U16>,
    vector: (&[u8; SALT], &[u8]),
    clear: &[u8],
    data: &mut [u8],
    tag: &[u8; TAG],
) -> bool {
    let (nonce, tag) = (nonce(vector).into(), (*tag).into());
    gcm.decrypt_inout_detached(&nonce, clear, InOutBuf::from(data), &tag).is_ok()
}

fn cbc_encrypt<C>(
    keys: &(C, Hmac<Sha256>),
    iv: &[u8],
    clear: Clear<'_>,
    data: &mut [u8],
) -> Option<[u8; TAG]>
where
    C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>,
{
    let vector = iv.try_into().ok()?;
    cbc::Encryptor::inner_iv_init(&keys.0, vector)
        .encrypt_blocks(Array::slice_as_chunks_mut(data).0);
    Some(check(&keys.1, clear, iv, data))
}

fn cbc_decrypt<C>(
    keys: &(C, Hmac<Sha256>),
    (iv, clear): (&[u8], Clear<'_>),
    data: &mut [u8],
    tag: &[u8; TAG],
) -> bool
where
    C: BlockCipherDecrypt + BlockSizeUser<BlockSize = U16>,
{
    let Ok(vector) = iv.try_into() else { return false };
    let is_right = mac(&keys.1, clear, iv, data).verify_truncated_left(tag).is_ok();
    if is_right {
        cbc::Decryptor::inner_iv_init(&keys.0, vector)
            .decrypt_blocks(Array::slice_as_chunks_mut(data).0);
    }
    is_right
}

/// HMAC over the bytes.
fn mac(key: &Hmac<Sha256>, (front, behind): Clear<'_>, iv: &[u8], data: &[u8]) -> Hmac<Sha256> {
    let mut mac = key.clone();
    [front, iv, data, behind].into_iter().for_each(|part| mac.update(part));
    mac
}

/// The check value of HMAC-SHA-256-128.
fn check(key: &Hmac<Sha256>, clear: Clear<'_>, iv: &[u8], data: &[u8]) -> [u8; TAG] {
    let whole = mac(key, clear, iv, data).finalize().into_bytes();
    whole.first_chunk().copied().unwrap_or([0; TAG])
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name && self.0.bytes == other.0.bytes
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.name, &*self.0.bytes).hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(byte).collect()
    }

    fn key(cipher: &str, digits: &str) -> Key {
        Key::new(cipher, Zeroizing::new(hex(digits))).unwrap()
    }

    #[test]
    fn aes_gcm_has_the_bytes_of_its_authors() {
        // McGrew and Viega, "The Galois/Counter Mode of Operation", test case 4.
        let key = key("aes-128-gcm", "feffe9928665731c6d6a8f9467308308cafebabe");
        let plain = hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
             1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
        let clear = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let iv = hex("facedbaddecaf888");
        let mut data = plain.clone();
        let tag = key.encrypt(&iv, (&clear, &[]), &mut data).unwrap();
        let expected = hex("42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
             21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091");
        assert_eq!((&data, tag.to_vec()), (&expected, hex("5bc94fbc3221a5db94fae95ae7121a47")));
        assert!(key.decrypt(&iv, (&clear, &[]), &mut data, &tag));
        assert_eq!(data, plain);
    }

    #[test]
    fn aes_cbc_has_the_bytes_of_rfc_3602() {
        // RFC 3602 §4, case 1. The key of HMAC does not matter for the encrypted bytes.
        let digits = format!("06a9214036b8a15b512e03d534120006{}", "00".repeat(32));
        let key = key("aes-128-cbc-hmac-sha-256-128", &digits);
        let iv = hex("3dafba429d9eb430b422da802c9fac41");
        let mut data = b"Single block msg".to_vec();
        assert!(key.encrypt(&iv, (&[], &[]), &mut data).is_some());
        assert_eq!(data, hex("e353779c1079aeb82708942dbe77181a"));
    }

    #[test]
    fn check_values_of_aes_cbc_have_the_bytes_of_rfc_4868() {
        // RFC 4868 §2.7.2.1, test case AUTH256-3: 50 bytes of 0xdd.
        let digits = format!(
            "{}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "00".repeat(32)
        );
        let key = key("aes-256-cbc-hmac-sha-256-128", &digits);
        let Cipher::Cbc256(keys) = &key.0.cipher else { panic!() };
        let tag = check(&keys.1, (&[0xdd; 20], &[]), &[0xdd; 20], &[0xdd; 10]);
        assert_eq!(tag.to_vec(), hex("cdcb1220d1ecccea91e53aba3092f962"));
    }

    #[test]
    fn a_key_of_hmac_alone_leaves_the_bytes_as_they_are() {
        // RFC 4868 §2.7.2.1, test case AUTH256-3: 50 bytes of 0xdd.
        let key = key("hmac-sha-256-128", &"aa".repeat(32));
        let mut data = [0xdd; 30];
        let tag = key.encrypt(&[], (&[0xdd; 20], &[]), &mut data).unwrap();
        assert_eq!(tag.to_vec(), hex("cdcb1220d1ecccea91e53aba3092f962"));
        assert_eq!(data, [0xdd; 30]);
        assert!(key.decrypt(&[], (&[0xdd; 20], &[]), &mut data, &tag) && !key.encrypts());
    }

    #[test]
    fn nothing_is_changed_if_the_check_value_or_a_length_is_wrong() {
        for (name, len) in CIPHERS {
            let key = key(name, &"42".repeat(len));
            let iv = key.iv(77);
            let iv = &iv[..key.iv_len()];
            let mut data = [5; 32];
            let tag = key.encrypt(iv, (b"clear", &[]), &mut data).unwrap();
            let before = data;
            let mut wrong = tag;
            wrong[15] ^= 1;
            assert!(!key.decrypt(iv, (b"clear", &[]), &mut data, &wrong));
            assert!(!key.decrypt(iv, (b"other", &[]), &mut data, &tag));
            assert!(!key.decrypt(&[0; 12], (b"clear", &[]), &mut data, &tag));
            assert_eq!(key.encrypt(&[0; 12], (b"clear", &[]), &mut data), None);
            assert_eq!(data, before);
            assert_eq!(key.encrypt(iv, (&[], &[]), &mut data[..31]).is_some(), key.block() == 1);
        }
    }

    #[test]
    fn keys_are_not_printed() {
        let key = key("aes-128-gcm", &"37".repeat(20));
        assert_eq!(format!("{key:?}"), "Key(aes-128-gcm)");
    }

    #[test]
    fn vectors_of_different_numbers_differ() {
        for (name, len) in CIPHERS {
            let key = key(name, &"42".repeat(len));
            assert_eq!(key.iv(1) != key.iv(2), key.encrypts());
            assert_eq!(key.iv(1) != key.iv(1 << 32), key.encrypts());
        }
    }
}
