# Types into terminals and takes one over.
# forms: node local
# expect: Success/Completed
TIOCSTI, TIOCSCTTY, TIOCLINUX, TIOCCONS = 0x5412, 0x540E, 0x541C, 0x541D
for path in ("/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ptmx", "/dev/pts/ptmx", "/dev/pts/0", "/proc/1/fd/0"):
    way(path, lambda: [os.open(path, os.O_RDWR | os.O_NOCTTY)])
for number in range(3):
    way(f"TIOCSTI {number}", lambda: fcntl.ioctl(number, TIOCSTI, b"x") is not None)
    way(f"TIOCLINUX {number}", lambda: fcntl.ioctl(number, TIOCLINUX, b"\x02") is not None)
    way(f"TIOCSCTTY {number}", lambda: fcntl.ioctl(number, TIOCSCTTY, 1) is not None)
    way(f"TIOCCONS {number}", lambda: fcntl.ioctl(number, TIOCCONS) is not None)
way("the upper half of a request", lambda: _libc.ioctl(0, ctypes.c_ulong(0x100000000 | TIOCSTI), b"x") == 0)
end()
