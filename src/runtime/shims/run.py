"""Runs a function's file: python3 -u -c SHIM FILE.

A file that defines `run` is loaded, `run` gets the JSON on stdin, and what it returns is written as the one
JSON document on stdout; whatever it prints goes to stderr. Any other file runs as a plain program.

With AGENTRUN_WARM=1 it says {"ready":true} when `run` is loaded, and answers one line after another.
"""
import os
import sys

ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without the cost of importing ast


def defines_run(code, source, path):
    if "run" not in code.co_names:
        return False
    for constant in code.co_consts:
        if type(constant) is type(code) and constant.co_name == "run":
            # A `def` that begins its line stands at the program's own level. The tree would say so too, but costs more.
            if source.splitlines()[constant.co_firstlineno - 1].startswith((b"def", b"async")):
                return True
    for node in compile(source, path, "exec", ONLY_AST, dont_inherit=True).body:
        kind = type(node).__name__
        if kind in ("FunctionDef", "AsyncFunctionDef") and node.name == "run":
            return True
        if kind in ("Import", "ImportFrom") and any((a.asname or a.name) == "run" for a in node.names):
            return True
        if kind == "Assign" and any(getattr(target, "id", None) == "run" for target in node.targets):
            return True
    return False


def load(path, code, name):
    sys.path.insert(0, os.path.dirname(path))
    module = type(sys)(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(code, module.__dict__)
    return module


def main(path):
    sys.argv = [path]
    sys.path.pop(0)  # the working folder; the function's own comes after our imports
    with open(path, "rb") as file:
        source = file.read()
    code = compile(source, path, "exec", dont_inherit=True)
    if not defines_run(code, source, path):
        load(path, code, "__main__")
        return
    import json

    def answer(run, request):
        result = run(json.loads(request))
        if hasattr(result, "__await__"):
            import asyncio

            async def wait():
                return await result

            result = asyncio.run(wait())
        return json.dumps(result, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()

    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if os.environ.pop("AGENTRUN_WARM", "") != "1":
        request = sys.stdin.buffer.read()
        output.write(answer(load(path, code, "agentrun_function").run, request))
        output.close()
        return
    requests = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # a `run` that reads stdin takes no other call's input
    os.close(nothing)
    run = load(path, code, "agentrun_function").run
    output.write(b'{"ready":true}\n')
    output.flush()
    for request in requests:
        output.write(answer(run, request) + b"\n")
        output.flush()


main(os.path.abspath(sys.argv[1]))
