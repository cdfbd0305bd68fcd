//! Compiles the calls to DPDK, if the crate is built with the feature `dpdk`.

fn main() {
    println!("cargo:rerun-if-changed=src/sys/dpdk/shim.c");
    #[cfg(feature = "dpdk")]
    dpdk::build();
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use std::process::{Command, exit};

    const REMEDY: &str = "install DPDK 22.11 or newer with its headers (Debian, Ubuntu: apt-get \
                          install libdpdk-dev pkg-config), or build without the feature `dpdk`";

    pub(super) fn build() {
        println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
        let mut shim = cc::Build::new();
        shim.file("src/sys/dpdk/shim.c").std("gnu11").define("_GNU_SOURCE", None);
        shim.opt_level(2).warnings(false);
        // `cc` does not know all of these options, which choose instructions of the processor and
        // a header with DPDK's configuration.
        for flag in ask(&["--cflags"]) {
            shim.flag(flag);
        }
        shim.compile("braid_dpdk");
        for flag in ask(&["--libs"]) {
            if let Some(library) = flag.strip_prefix("-l") {
                println!("cargo:rustc-link-lib=dylib={library}");
            } else if let Some(folder) = flag.strip_prefix("-L") {
                println!("cargo:rustc-link-search=native={folder}");
            }
        }
    }

    /// The words that `pkg-config` answers.
    fn ask(question: &[&str]) -> Vec<String> {
        let version = "libdpdk >= 22.11";
        let answer = Command::new("pkg-config").args(question).arg(version).output();
        match answer {
            Ok(answer) if answer.status.success() => {
                let words = String::from_utf8_lossy(&answer.stdout);
                words.split_whitespace().map(str::to_owned).collect()
            }
            Ok(answer) => {
                let why = String::from_utf8_lossy(&answer.stderr);
                fail(why.lines().next().unwrap_or("pkg-config finds no libdpdk"))
            }
            Err(why) => fail(&format!("pkg-config cannot be run: {why}")),
        }
    }

    fn fail(why: &str) -> ! {
        println!("cargo::error=DPDK was not found ({why}): {REMEDY}");
        exit(1);
    }
}
