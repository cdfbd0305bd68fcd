//! Helpers of the tests of native functions: libraries built by the C compiler, packets.

#![allow(dead_code, reason = "each test uses some of it")]

use braid_native::{Checks, Config, Instance, Reference, Value};
use braid_packet::{Field, Link, Packet, Shape, build_fresh};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a C file of `tests/c` as a shared library in a folder.
pub fn library(folder: &Path, name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out: PathBuf = folder.join(format!("{name}.so"));
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-shared"])
        .args(["-fPIC", "-I"])
        .arg(root.join("include"))
        .arg(root.join(format!("tests/c/{name}.c")))
        .arg("-o")
        .arg(&out)
        .output()
        .expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    out.to_string_lossy().into_owned()
}

pub fn reference(library: &str, function: &str, checks: Checks) -> Reference {
    Reference { library: library.to_owned(), function: function.to_owned(), checks, isolated: None }
}

pub const RECORDS: Checks = Checks { records: true, observe: false };

pub fn config(values: &[(&str, u128)]) -> Config {
    let value = |(name, value): &(&str, u128)| ((*name).to_owned(), Value::scalar(*value));
    values.iter().map(value).collect()
}

/// A UDP packet from a port.
pub fn udp(sport: u128) -> Packet {
    let fields = [
        (Field::IpSrc, 0x0a00_0001),
        (Field::IpDst, 0x0a00_0002),
        (Field::L4Sport, sport),
        (Field::L4Dport, 53),
    ];
    build_fresh(Link::Ethernet, 0, Shape::Udp4, &fields, b"some text").expect("a packet")
}

/// Problems as the report shows them.
pub fn problems(instance: &Instance) -> Vec<String> {
    instance.problems().iter().map(ToString::to_string).collect()
}

/// An error's text.
pub fn error(result: Result<Instance, String>) -> String {
    match result {
        Ok(_) => String::new(),
        Err(why) => why,
    }
}
