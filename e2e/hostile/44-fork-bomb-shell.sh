# The classic bomb of a shell, that starts itself twice in the background.
# forms: node local
# expect: Error/TooManyProcesses | Timeout/DeadlineExceeded | Error/ExitCode
# timeout: 8s
# expect-local: Error/TooManyProcesses | Timeout/DeadlineExceeded
bomb() { bomb | bomb & }
bomb
bomb
sleep 1000
