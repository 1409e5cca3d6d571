# Touches one page of every two megabytes: the tables cost more than the pages.
# forms: node
# expect: Error/OOMKilled | Error/ExitCode
# timeout: 35s
maps = []
while True:
    area = mmap.mmap(-1, 16 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    maps.append(area)
    for offset in range(0, 16 << 30, 2 << 20):
        area[offset] = 1
