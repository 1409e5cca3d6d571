# Makes namespaces of its own with unshare, alone and together.
# forms: node local
# expect: Success/Completed
FLAGS = [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00000080]
refused(*[("unshare", flag) for flag in FLAGS])
refused(*[("unshare", 0x10000000 | flag) for flag in FLAGS])
for flag in ("-U", "-r", "-m", "-n", "-p"):
    way(f"unshare {flag}", lambda: subprocess.run(["unshare", flag, "true"], capture_output=True).returncode == 0)
end()
