# Takes memory until there is none.
# forms: node
# expect: Error/OOMKilled
# timeout: 35s
data = []
while True:
    data.append(os.urandom(1 << 20))
