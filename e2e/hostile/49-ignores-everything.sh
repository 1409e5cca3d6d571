# Ignores every signal that can be ignored, and so do its children.
# forms: node local
# expect: Timeout/DeadlineExceeded
# timeout: 2s
trap '' HUP INT QUIT TERM USR1 USR2 ALRM PIPE TSTP TTIN TTOU
(trap '' TERM; setsid sleep 1000) &
sleep 1000 &
while :; do sleep 1000; done
