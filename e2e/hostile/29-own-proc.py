# Changes what the kernel keeps about itself: maps of users, scores, attributes.
# forms: node local
# expect: Success/Completed
for name, value in (("uid_map", "0 0 1"), ("gid_map", "0 0 1"), ("setgroups", "allow"), ("oom_score_adj", "-1000"), ("oom_adj", "-17"),
                    ("attr/current", "unconfined"), ("attr/exec", "exec unconfined"), ("loginuid", "0"), ("autogroup", "-20"), ("clear_refs", "5"),
                    ("coredump_filter", "0xff"), ("projid_map", "0 0 1"), ("timens_offsets", "monotonic 100 0"), ("make-it-fail", "1"), ("mem", "x")):
    way(f"/proc/self/{name}", lambda: pathlib.Path(f"/proc/self/{name}").write_text(value))
    way(f"/proc/thread-self/{name}", lambda: pathlib.Path(f"/proc/thread-self/{name}").write_text(value))
end()
