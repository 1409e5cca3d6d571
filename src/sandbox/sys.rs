//! System calls that no safe crate wraps. Everything `unsafe` of this crate is here.

use rustix::process::{Pid, Signal};
use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

/// Turns the signals into readable bytes: they are blocked, and the descriptor becomes readable.
pub(crate) fn signal_fd(signals: &[Signal]) -> io::Result<OwnedFd> {
    let set = signal_set(signals);
    // SAFETY: `set` is initialised and outlives both calls; the result is a new descriptor nobody owns.
    unsafe {
        check(libc::sigprocmask(
            libc::SIG_BLOCK,
            &raw const set,
            ptr::null_mut(),
        ))?;
        let fd = check(libc::signalfd(
            -1,
            &raw const set,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// The signals that came since the last call.
pub(crate) fn received(fd: &OwnedFd) -> Vec<i32> {
    const SIZE: usize = size_of::<libc::signalfd_siginfo>();
    let mut buffer = [0; SIZE * 8];
    let mut signals = Vec::new();
    while let Ok(count) = rustix::io::read(fd, &mut buffer) {
        // The first field of each record is `ssi_signo`, a `u32`.
        let numbers = buffer[..count]
            .chunks_exact(SIZE)
            .filter_map(|record| record.first_chunk());
        signals.extend(numbers.map(|bytes| i32::from_ne_bytes(*bytes)));
        if count == 0 {
            break;
        }
    }
    signals
}

/// Gives a new program the signal handling that it expects: nothing blocked, `SIGPIPE` as usual (Rust's
/// start-up code ignores it).
pub(crate) fn reset_signals() -> io::Result<()> {
    let none = signal_set(&[]);
    // SAFETY: `none` is initialised; SIG_DFL installs no handler of ours.
    unsafe {
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const none,
            ptr::null_mut(),
        ))?;
        if libc::signal(libc::SIGPIPE, libc::SIG_DFL) == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Runs `child` in a copy of this process, which ends when it returns.
///
/// Must be called from a process with a single thread only: then the copy may do all that the original
/// could. The caller is that by design, and `debug_assert`s it.
pub(crate) fn fork(child: impl FnOnce()) -> io::Result<Pid> {
    debug_assert!(is_single_threaded(), "fork needs a process with one thread");
    // SAFETY: no other thread can hold a lock, so the child may allocate and use the standard library;
    // it leaves by `_exit`, which runs neither destructors nor exit handlers of the parent's state.
    unsafe {
        let pid = check(libc::fork())?;
        if let Some(pid) = Pid::from_raw(pid) {
            return Ok(pid);
        }
        child();
        libc::_exit(127)
    }
}

fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").map_or(true, |tasks| tasks.count() == 1)
}

/// Replaces this process. Returns only when that fails.
pub(crate) fn execve(program: &CStr, argv: &[&CStr], environment: &[&CStr]) -> io::Error {
    let argv = terminated(argv);
    let environment = terminated(environment);
    // SAFETY: both arrays end with a null pointer, and all strings outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

fn terminated(strings: &[&CStr]) -> Vec<*const c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr());
    pointers.chain([ptr::null()]).collect()
}

/// Puts a descriptor where a new program looks for its stdin (0), stdout (1) or stderr (2).
pub(crate) fn become_stdio(fd: &OwnedFd, number: c_int) -> io::Result<()> {
    // SAFETY: called in a forked child on the standard streams, which no Rust value owns.
    check(unsafe { libc::dup2(fd.as_raw_fd(), number) }).map(drop)
}

/// Makes every descriptor but the standard streams vanish at the next `exec`.
pub(crate) fn close_others_on_exec() -> io::Result<()> {
    // SAFETY: sets a flag only; no descriptor is closed while this program runs.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Landlock ABI of the running kernel, 0 without it.
pub(crate) fn landlock_abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with a null attribute and this flag the call only reports a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(abi).unwrap_or(0)
}

/// What all waited-for descendants used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Largest resident size of one process, in bytes.
    pub(crate) peak_memory_bytes: u64,
    /// User and system time of all.
    pub(crate) cpu: Duration,
}

/// Sums up the descendants that were waited for.
pub(crate) fn usage_of_children() -> Usage {
    // SAFETY: all zero is a valid `rusage`, and the call fills it.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time = |time: libc::timeval| {
        let micros = time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_usec);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    Usage {
        peak_memory_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
    }
}

/// Signals every process that this one may signal, but itself and PID 1, in one step that no fork escapes.
///
/// The caller knows that these are only its own: it is PID 1 of a pid namespace, or confined to signals
/// for its descendants.
pub(crate) fn signal_everyone(signal: Signal) {
    // SAFETY: touches no memory.
    unsafe { libc::kill(-1, signal.as_raw()) };
}

fn signal_set(signals: &[Signal]) -> libc::sigset_t {
    // SAFETY: `sigemptyset` initialises the set before anything reads it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, signal.as_raw());
        }
        set
    }
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
