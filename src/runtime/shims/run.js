// Runs a function's file: node -e SHIM FILE.
//
// A file that exports `run` is loaded, `run` gets the JSON on stdin, and what it returns (or its promise
// resolves to) is written as the one JSON document on stdout; whatever it prints goes to stderr, and the
// process ends with it. Any other file runs as a plain program.
//
// With AGENTRUN_WARM=1 it says {"ready":true} when `run` is loaded, and answers one line after another.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const file = path.resolve(process.argv[1]);
const exportsRun = [
  /^\s*export\s+(async\s+)?(function\s*\*?|const|let|var)\s+run\b/m,
  /^\s*export\s*\{[^}]*\brun\b[^}]*\}/m,
  /\bexports\s*\.\s*run\s*=/,
  /\bmodule\s*\.\s*exports\s*=\s*\{[^}]*\brun\b/,
];

function finite(key, value) {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new TypeError(`run returned ${value} at "${key}", which JSON does not have`);
  }
  return value;
}

async function load() {
  const loaded = await import(pathToFileURL(file));
  const run = loaded.run ?? loaded.default?.run;
  if (typeof run !== 'function') throw new TypeError(`${file} exports run, but it is no function`);
  return run;
}

async function answer(run, request) {
  const text = JSON.stringify((await run(JSON.parse(request))) ?? null, finite);
  if (text === undefined) throw new TypeError('run returned a value that JSON does not have');
  return text;
}

async function* lines(stream) {
  let parts = [];
  for await (const chunk of stream) {
    let start = 0;
    for (let end; (end = chunk.indexOf(10, start)) >= 0; start = end + 1) {
      yield Buffer.concat([...parts, chunk.subarray(start, end)]).toString('utf8');
      parts = [];
    }
    parts.push(chunk.subarray(start));
  }
}

async function call() {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  const warm = process.env.AGENTRUN_WARM === '1';
  delete process.env.AGENTRUN_WARM;
  if (warm) {
    const run = await load();
    write('{"ready":true}\n');
    for await (const request of lines(process.stdin)) write(`${await answer(run, request)}\n`);
    process.exit();
  }
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  const text = await answer(await load(), Buffer.concat(chunks).toString('utf8'));
  write(text, () => process.exit());
}

if (exportsRun.some((pattern) => pattern.test(fs.readFileSync(file, 'utf8')))) {
  call().catch((error) => {
    process.exitCode = 1;
    const text = error instanceof Error ? error.stack : `rejected with ${String(error)}`;
    process.stderr.write(`${text}\n`, () => process.exit(1));
  });
} else {
  process.argv[1] = file;
  require('node:module').runMain();
}
