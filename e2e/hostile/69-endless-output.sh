# Writes lines without an end.
# forms: node local
# expect: Timeout/DeadlineExceeded
# timeout: 3s
yes 'a line that nobody reads' &
exec yes >&2
