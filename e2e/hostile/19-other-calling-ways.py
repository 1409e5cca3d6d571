# Makes the same system calls by the 32-bit and the x32 interface, and ones newer than any filter.
# forms: node local
# expect: Success/Completed
def by_int80(number, *arguments):
    """mov eax, number; mov ebx/ecx/edx, arguments; int 0x80; ret"""
    ebx, ecx, edx = (*arguments, 0, 0, 0)[:3]
    code = b"\x53\xb8" + struct.pack("I", number) + b"\xbb" + struct.pack("I", ebx) + b"\xb9" + struct.pack("I", ecx)
    code += b"\xba" + struct.pack("I", edx) + b"\xcd\x80\x5b\xc3"
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    return function() >= 0


if X86:
    # getpid, ptrace(TRACEME), unshare(NEWUSER), socket by socketcall, keyctl, personality
    for number, *arguments in ((20,), (26, 0, 0, 0), (310, 0x10000000), (359, 2, 1, 0), (288, 0, -3 & 0xffffffff, 1), (136, 0x40000)):
        way(f"int 0x80 with {number}", in_child, by_int80, number, *arguments)
    X32 = 0x40000000
    # getpid; then those that have a number of their own there: ptrace, kexec_load, move_pages, process_vm_readv, io_setup
    for number in (39, 101, 521, 528, 533, 539, 540, 543, 514, 165, 272):
        way(f"x32 call {number}", raw, X32 | number, 0, 0, 0, 0)
for number in (480, 500, 511, 600, 1000, 0x7fffffff):
    error = way(f"call {number}", raw, number, 0, 0, 0, 0)
    if getattr(error, "errno", None) not in (errno.ENOSYS, errno.EPERM):
        escaped(f"call {number} answered {error}")
end()
