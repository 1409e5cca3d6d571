import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { run } from "../functions/math_validator.mjs";

const expected = (tree) => run({ tree }).expected;

test("a right answer is right whatever its form was", () => {
  const checked = run({ id: "a1", student: "Ada", tree: ["+", "1/2", "1/3"], answer: "5/6" });
  assert.deepEqual(checked, { id: "a1", student: "Ada", expected: "5/6", answer: "5/6", right: true });
});

test("a nearly right answer is wrong", () => {
  assert.equal(run({ tree: ["*", "1/3", "3"], answer: "999/1000" }).right, false);
});

test("one tenth and two tenths are exactly three tenths", () => {
  assert.equal(expected(["+", "1/10", "1/5"]), "3/10");
});

test("numbers beyond 64 bits stay exact", () => {
  assert.equal(expected(["+", "10000000000000000000000", "1"]), "10000000000000000000001");
});

test("signs, powers and divisions are worked out", () => {
  assert.equal(expected(["neg", ["-", "3", "5"]]), "2");
  assert.equal(expected(["^", "-1/2", "3"]), "-1/8");
  assert.equal(expected(["/", "3", "-4"]), "-3/4");
});

test("a division by zero ends with its code on stderr and exit code 1", () => {
  const module = fileURLToPath(new URL("../functions/math_validator.mjs", import.meta.url));
  const call = `import(${JSON.stringify(module)}).then((m) => m.run({ tree: ["/", "1", "0"] }))`;
  const { status, stderr, stdout } = spawnSync(process.execPath, ["-e", call], { encoding: "utf8" });
  assert.equal(status, 1);
  assert.equal(stdout, "");
  assert.equal(JSON.parse(stderr).code, "DIVISION_BY_ZERO");
});

test("an operator that nobody defined ends with a code", () => {
  const module = fileURLToPath(new URL("../functions/math_validator.mjs", import.meta.url));
  const call = `import(${JSON.stringify(module)}).then((m) => m.run({ tree: ["constructor", "1"] }))`;
  const { status, stderr } = spawnSync(process.execPath, ["-e", call], { encoding: "utf8" });
  assert.equal(status, 1);
  assert.equal(JSON.parse(stderr).code, "INPUT_VALIDATION_ERROR");
});
