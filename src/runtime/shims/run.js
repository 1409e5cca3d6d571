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

const file = path.resolve(process.argv[1]);
const text = fs.readFileSync(file, 'utf8');
const isModule = [/^\s*export\s+(async\s+)?(function\s*\*?|const|let|var)\s+run\b/m, /^\s*export\s*\{[^}]*\brun\b[^}]*\}/m]
  .some((pattern) => pattern.test(text));
const isScript = [/\bexports\s*\.\s*run\s*=/, /\bmodule\s*\.\s*exports\s*=\s*\{[^}]*\brun\b/]
  .some((pattern) => pattern.test(text));

function finite(key, value) {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new TypeError(`run returned ${value} at "${key}", which JSON does not have`);
  }
  return value;
}

// The loader of modules takes milliseconds to start, which a script does not need.
async function loaded() {
  if (isScript && !isModule && !file.endsWith('.mjs')) {
    try {
      return require(file);
    } catch (error) {
      if (!error?.code?.startsWith?.('ERR_REQUIRE_')) throw error;
    }
  }
  return import(require('node:url').pathToFileURL(file));
}

async function load() {
  const { run = undefined, default: all = undefined } = await loaded();
  const found = run ?? all?.run;
  if (typeof found !== 'function') throw new TypeError(`${file} exports run, but it is no function`);
  return found;
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

// Without the stream of stdout, which takes its time to be made; the pipe waits for its reader.
function write(text) {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(1, bytes, at);
}

async function call() {
  Object.defineProperty(process, 'stdout', { get: () => process.stderr, configurable: true });
  const warm = process.env.AGENTRUN_WARM === '1';
  delete process.env.AGENTRUN_WARM;
  if (warm) {
    const run = await load();
    write('{"ready":true}\n');
    for await (const request of lines(process.stdin)) write(`${await answer(run, request)}\n`);
    process.exit();
  }
  const request = fs.readFileSync(0, 'utf8');
  write(await answer(await load(), request));
  process.exit();
}

if (isModule || isScript) {
  call().catch((error) => {
    process.exitCode = 1;
    const text = error instanceof Error ? error.stack : `rejected with ${String(error)}`;
    process.stderr.write(`${text}\n`, () => process.exit(1));
  });
} else {
  process.argv[1] = file;
  require('node:module').runMain();
}
