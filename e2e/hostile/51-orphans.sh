# Leaves children behind in sessions of their own, and succeeds.
# forms: node local
# expect: Success/Completed
# require: left
setsid sh -c 'trap "" TERM; sleep 1000; sleep 1000' &
(setsid sleep 1000 &)
(setsid sh -c '(sleep 1000 &) ; (setsid sleep 1000 &)' &)
nohup sleep 1000 >/dev/null 2>&1 &
echo left
