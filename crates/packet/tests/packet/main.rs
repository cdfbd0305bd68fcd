//! Tests of the crate's public interface, in one binary: crafted packets, properties, oracle,
//! captures.

mod amounts;
mod build;
mod captures;
mod checksums;
mod diff;
mod docs;
mod fields;
mod lengths;
mod oracle;
mod parse;
mod samples;
mod speed;
mod versions;
