# Closes its streams and stays.
# forms: node local
# expect: Timeout/DeadlineExceeded
# timeout: 2s
for number in (0, 1, 2):
    os.close(number)
while True:
    time.sleep(1000)
