# Writes what breaks terminals, logs and parsers: escapes, zero bytes, broken UTF-8, no line ends.
# forms: node local
# expect: Success/Completed
# require: after
for stream in (1, 2):
    os.write(stream, b"\x00\x07\x1b]0;hostile\x07\x1b[2J\x1b[31m\r\xff\xfe\xc0\x80\xed\xa0\x80" * 1000)
    os.write(stream, "\u202e\u2028\ufeff\U0001f4a3".encode() * 1000 + b'"\\u0000"\x9b' + b"\n" * 1000)
print("after", flush=True)
