# Nests its output deeper than any reader's stack.
# forms: node
# expect: ParseError/InvalidOutput
# require: deep
pathlib.Path(os.environ["AGENTRUN_OUTPUT"]).write_text("[" * 200_000 + "]" * 200_000)
print("deep", flush=True)
