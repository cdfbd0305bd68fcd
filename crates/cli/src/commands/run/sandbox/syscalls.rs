//! The system calls that a live run may make. All others fail with "operation not permitted".

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, apply_filter, apply_filter_all_threads,
};

/// Memory, threads, locks, time, signals to itself.
const PROCESS: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_memfd_create,
    libc::SYS_clone3,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_getcpu,
    libc::SYS_prctl,
    libc::SYS_getrandom,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrusage,
    libc::SYS_prlimit64,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Files. Which ones the run may open is for Landlock to say.
const FILES: &[i64] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_openat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_fstatfs,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_mkdirat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_ioctl,
];

/// Devices, the control socket, and waiting for them.
const SOCKETS: &[i64] = &[
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_socketpair,
    libc::SYS_shutdown,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    // To know whether the process of a server lives; not to send it signals.
    libc::SYS_pidfd_open,
];

/// What the process of an isolated function does with the files that it has.
const TALK: &[i64] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_fstat,
    libc::SYS_close,
];

/// Calls that isolated functions make for themselves alone, or not at all: they could reach other
/// processes, or get memory that no limit counts.
const LIMITED: &[i64] =
    &[libc::SYS_prlimit64, libc::SYS_prctl, libc::SYS_sched_setaffinity, libc::SYS_memfd_create];

/// What an isolated function does while it is loading: it reads files, and the process gives up
/// more rights.
const READING: &[i64] = &[
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_fstatfs,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
];

/// The older forms of some of these calls, which the C library still uses.
#[cfg(target_arch = "x86_64")]
const OLDER: &[i64] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_readlink,
    libc::SYS_access,
    libc::SYS_mkdir,
    libc::SYS_rename,
    libc::SYS_unlink,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_wait,
    libc::SYS_time,
    libc::SYS_getrlimit,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[i64] = &[];

/// The kinds of sockets: of the control socket, of devices, and for questions about devices.
const DOMAINS: [libc::c_int; 5] =
    [libc::AF_UNIX, libc::AF_PACKET, libc::AF_NETLINK, libc::AF_XDP, libc::AF_INET];

/// Lets this thread and the threads that it starts make no other system calls. `has_xdp` allows
/// what AF_XDP devices need.
pub fn limit(has_xdp: bool) -> Result<(), Error> {
    hide_newer_calls()?;
    apply_filter(&allowed(has_xdp)?)
}

/// Lets the process of an isolated function make no other system calls. While it is loading, it may
/// read files and start threads, and its one thread is limited. Afterwards all its threads are.
pub fn limit_function(is_loading: bool) -> Result<(), Error> {
    let filter = function_calls(is_loading)?;
    match is_loading {
        true => {
            hide_newer_calls()?;
            apply_filter(&filter)
        }
        false => apply_filter_all_threads(&filter),
    }
}

fn function_calls(is_loading: bool) -> Result<BpfProgram, Error> {
    let own: Vec<i64> = PROCESS.iter().copied().filter(|call| !LIMITED.contains(call)).collect();
    let mut rules = rules(&[&own, TALK])?;
    // Of this process only: other processes of its user could be starved.
    rules.insert(libc::SYS_prlimit64, vec![argument(SeccompCmpOp::Eq, 0)?]);
    let names = [libc::PR_SET_NAME, libc::PR_SET_VMA];
    let mut options: Vec<u64> = names.map(|option| option.unsigned_abs().into()).to_vec();
    if is_loading {
        rules.extend(READING.iter().map(|call| (*call, Vec::new())));
        rules.insert(libc::SYS_openat, vec![reading(2)?]);
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_open, vec![reading(1)?]);
        options.push(libc::PR_SET_NO_NEW_PRIVS.unsigned_abs().into());
    } else {
        // No new threads.
        rules.remove(&libc::SYS_clone);
    }
    let options = options.into_iter().map(|option| argument(SeccompCmpOp::Eq, option));
    rules.insert(libc::SYS_prctl, options.collect::<Result<_, _>>()?);
    filter(rules, REFUSED, SeccompAction::Allow)
}

/// A rule that the flags in an argument open a file for reading only.
fn reading(argument: u8) -> Result<SeccompRule, BackendError> {
    let other = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC).unsigned_abs().into();
    let compare = SeccompCmpOp::MaskedEq(other);
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, 0)?])
}

/// The C library then uses `clone`, whose flags can be seen.
fn hide_newer_calls() -> Result<(), Error> {
    let newer = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let none = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    apply_filter(&filter(newer, SeccompAction::Allow, none)?)
}

fn allowed(has_xdp: bool) -> Result<BpfProgram, Error> {
    let mut rules = rules(&[PROCESS, FILES, SOCKETS, OLDER])?;
    if has_xdp {
        rules.insert(libc::SYS_bpf, Vec::new());
    }
    let domains = DOMAINS.map(|domain| argument(SeccompCmpOp::Eq, domain.unsigned_abs().into()));
    rules.insert(libc::SYS_socket, domains.into_iter().collect::<Result<_, _>>()?);
    filter(rules, REFUSED, SeccompAction::Allow)
}

const REFUSED: SeccompAction = SeccompAction::Errno(libc::EPERM.unsigned_abs());

/// Calls without conditions, and what threads and `abort` call.
fn rules(calls: &[&[i64]]) -> Result<BTreeMap<i64, Vec<SeccompRule>>, Error> {
    let calls = calls.concat().into_iter();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = calls.map(|call| (call, Vec::new())).collect();
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    let is_thread = argument(SeccompCmpOp::MaskedEq(thread), thread)?;
    rules.insert(libc::SYS_clone, vec![is_thread]);
    // To itself, as `abort` does.
    let own = argument(SeccompCmpOp::Eq, std::process::id().into())?;
    rules.insert(libc::SYS_tgkill, vec![own]);
    Ok(rules)
}

/// A rule about the first argument of a call.
fn argument(compare: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    let first = SeccompCondition::new(0, SeccompCmpArgLen::Dword, compare, value)?;
    SeccompRule::new(vec![first])
}

fn filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    named: SeccompAction,
) -> Result<BpfProgram, Error> {
    let machine = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, others, named, machine)?.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::{TcpListener, UdpSocket};
    use std::process::Command;

    /// Runs in a process of its own, which it limits.
    #[test]
    #[ignore = "limits its process"]
    fn child_that_is_limited() {
        limit(false).unwrap();
        let refused = |kind| assert_eq!(kind, ErrorKind::PermissionDenied);
        refused(Command::new("true").status().unwrap_err().kind());
        refused(TcpListener::bind("[::1]:0").unwrap_err().kind());
        UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(std::thread::spawn(|| 7).join().unwrap(), 7);
        // Signal 0: only the question whether there may be a signal.
        let asked = rustix::process::test_kill_process(rustix::process::getpid());
        assert_eq!(asked, Err(rustix::io::Errno::PERM));
    }

    #[test]
    fn other_programs_and_sockets_are_refused_and_threads_are_not() {
        let child = "commands::run::sandbox::syscalls::tests::child_that_is_limited";
        let test = std::env::current_exe().unwrap();
        let args = ["--ignored", "--exact", child, "--nocapture"];
        let ended = Command::new(test).args(args).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"), "{ended:?}");
    }
}
