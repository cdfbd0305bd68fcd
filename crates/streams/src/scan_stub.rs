//! Provisional.
use braid_externs::patterns::PatternSet;
#[derive(Clone, Debug, Default)]
pub struct Scan(Vec<u8>);
impl Scan {
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.clone()
    }
    pub fn from_bytes(_set: &PatternSet, bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.to_vec()))
    }
    pub fn skip(&mut self) {
        self.0.clear();
    }
}
pub fn scan(set: &PatternSet, scan: &mut Scan, bytes: &[u8]) -> Option<u32> {
    let before = set.lowest_match(&scan.0);
    scan.0.extend_from_slice(bytes);
    let now = set.lowest_match(&scan.0);
    now.filter(|_| before != now)
}
