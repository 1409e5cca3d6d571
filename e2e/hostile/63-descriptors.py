# Uses up descriptors, watches, timers and event queues, of which the user has only so many.
# forms: node local
# expect: Success/Completed
# require: used up
def use_up(make, most=4096):
    made = []
    try:
        for _ in range(most):
            made.append(make())
    except OSError as error:
        return f"{len(made)} and {error}", made
    return f"{len(made)}", made


import select
for name, make in (("event queues", select.epoll), ("inotify", lambda: _libc.inotify_init() if _libc.inotify_init() >= 0 else [][0]), ("event counters", lambda: os.eventfd(0)),
                   ("memory files", lambda: call("memfd_create", b"x", 0)[0]), ("socket pairs", socket.socketpair)):
    try:
        said, made = use_up(make)
    except IndexError:
        said, made = "used up at once", []
    print(name, said, flush=True)
    del made
    for number in range(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0]):
        try:
            os.close(number)
        except OSError:
            pass
print("used up", flush=True)
os._exit(0)
