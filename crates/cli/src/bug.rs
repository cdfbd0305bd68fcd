//! Panics. Every panic is a bug. Its message tells this, and it has its own exit code.

use std::panic::PanicHookInfo;

use crate::answer::BUG;
use crate::output::tell;

/// Makes every panic, on any thread, end the process with the exit code [`BUG`] and a message that
/// asks for a report.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        tell(report(info) + "\n");
        std::process::exit(i32::from(BUG));
    }));
}

fn report(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(String::new, |at| format!(" at {at}"));
    let message = info.payload_as_str().unwrap_or("no message");
    format!(
        "braid {version}: a bug{place}: {message}\n\
         Please report this line with the command and, if you can, its files.",
        version = env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Runs in a process of its own, which the other test starts.
    #[test]
    #[ignore = "ends its process"]
    fn child_that_panics() {
        super::install();
        std::thread::spawn(|| panic!("out of cheese")).join().ok();
    }

    #[test]
    fn panic_on_any_thread_exits_with_70_and_asks_for_a_report() {
        let child = "bug::tests::child_that_panics";
        let test = std::env::current_exe().unwrap();
        let args = ["--ignored", "--exact", child, "--nocapture"];
        let ended = Command::new(test).args(args).output().unwrap();
        let message = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(i32::from(super::BUG)), "{message}");
        assert!(message.contains("a bug at") && message.contains("out of cheese"), "{message}");
        assert!(message.contains("Please report"), "{message}");
    }
}
