# Makes its output file far larger than an output may be.
# forms: node
# expect: ParseError/OutputTooLarge | Error/OutputTooLarge | ParseError/InvalidOutput | Success/Completed
# require: huge
pathlib.Path(os.environ["AGENTRUN_OUTPUT"]).write_bytes(b'"' + b"x" * (64 << 20) + b'"')
print("huge", flush=True)
