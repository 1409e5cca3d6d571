# Changes the machine: modules, kernels, swap, accounts, quotas, names, ports, restart.
# forms: node local
# expect: Success/Completed
refused(
    ("init_module", None, 0, b""), ("finit_module", 0, b"", 0), ("delete_module", b"nothing", 0),
    ("create_module", b"nothing", 4096), ("query_module", None, 0, None, 0, None), ("get_kernel_syms", None),
    ("kexec_load", 0, 0, None, 0), ("kexec_file_load", 0, 0, 0, b"", 0),
    ("swapon", b"/dev/null", 0), ("swapoff", b"/dev/null"), ("acct", None),
    ("quotactl", 0x800007 << 8, None, 0, None), ("quotactl_fd", 0, 0, 0, None),
    ("reboot", 0xfee1dead, 672274793, 0, None), ("vhangup",), ("nfsservctl", 0, None, None),
    ("sethostname", b"hostile", 7), ("setdomainname", b"hostile", 7),
    ("iopl", 3), ("ioperm", 0x80, 1, 1), ("uselib", b"/bin/true"), ("ustat", 0, None), ("sysfs", 3, 0, 0), ("_sysctl", None),
    ("mbind", 0, 0, 0, None, 0, 0), ("set_mempolicy", 0, None, 0), ("set_mempolicy_home_node", 0, 0, 0, 0),
    ("get_mempolicy", None, None, 0, 0, 0), ("modify_ldt", 0, None, 0),
)
end()
