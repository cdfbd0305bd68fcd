//! Where code lies and runs.

use crate::calls::{lookup, named, numbered, run};
use crate::host::Recorder;
use braid_jit::{Code, Ended, compile};

#[test]
fn code_runs_on_whatever_thread_has_it() {
    let builder = lookup(false);
    let often = |tag: u128| {
        let code = compile(&builder.residual, &mut numbered).unwrap();
        let builder = &builder;
        move || {
            let ended = |_| {
                let mut host = Recorder { tags: vec![tag], ..Recorder::new(&builder.residual) };
                host.entries.insert((100, vec![7]), (0, vec![1, 2, 3, 4]));
                run(&code, &mut host, &mut named("udp")).0
            };
            (0..50).map(ended).collect::<Vec<_>>()
        }
    };
    let ends = std::thread::scope(|scope| {
        let found = scope.spawn(often(7));
        [found, scope.spawn(often(8))].map(|thread| thread.join().unwrap())
    });
    assert_eq!(ends, [vec![Ended::End(1); 50], vec![Ended::End(2); 50]]);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_of_code_is_freed_with_it() {
    let builder = lookup(false);
    // Bytes of memory that can be run.
    let executable = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let lines = maps.lines().filter(|line| line.contains(" r-xp "));
        let sizes = lines.filter_map(|line| {
            let (start, end) = line.split_once(' ')?.0.split_once('-')?;
            let number = |hex: &str| u64::from_str_radix(hex, 16).ok();
            Some(number(end)? - number(start)?)
        });
        sizes.sum::<u64>()
    };
    let kept: Vec<Code> =
        (0..400).map(|_| compile(&builder.residual, &mut numbered).unwrap()).collect();
    let before = executable();
    drop(kept);
    // Other tests make code at the same time, but not as much.
    let after = executable();
    assert!(before > after + 200 * 4096, "{before} before, {after} after");
}
