# Takes open files from the executor, its supervisor and the neighbour.
# forms: node local
# expect: Success/Completed
def take(pid, number):
    return call("pidfd_getfd", call("pidfd_open", pid, 0)[0], number, 0)


for pid in others():
    for number in range(8):
        way(f"pidfd_getfd {pid} {number}", take, pid, number)
        way(f"open fd {number} of {pid}", lambda: [os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR)])
    for name in ("fdinfo", "map_files"):
        way(f"list {name} of {pid}", lambda: os.listdir(f"/proc/{pid}/{name}"))
    for name in ("exe", "cwd", "root", "fd/0", "fd/3"):
        way(f"link {name} of {pid}", os.readlink, f"/proc/{pid}/{name}")
    way(f"robust list of {pid}", call, "get_robust_list", pid, ctypes.create_string_buffer(8), ctypes.create_string_buffer(8))
end()
