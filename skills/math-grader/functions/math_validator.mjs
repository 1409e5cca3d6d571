// Parsed question in, right or wrong out. Rational numbers are pairs of BigInt: nothing is ever rounded.

class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function gcd(a, b) {
  while (b !== 0n) [a, b] = [b, a % b];
  return a < 0n ? -a : a;
}

// Reduced, with a positive denominator, so that equal numbers have equal parts.
function ratio(top, bottom) {
  if (bottom === 0n) throw new Refused("DIVISION_BY_ZERO", "the question divides by zero");
  const by = gcd(top, bottom) * (bottom < 0n ? -1n : 1n);
  return [top / by, bottom / by];
}

function number(text) {
  const match = /^(-?\d+)(?:\/(\d+))?$/.exec(text);
  if (!match) throw new Refused("INPUT_VALIDATION_ERROR", `'${text}' is no rational number such as 5/6`);
  return ratio(BigInt(match[1]), BigInt(match[2] ?? 1));
}

const OPERATORS = {
  "+": ([a, b], [c, d]) => ratio(a * d + c * b, b * d),
  "-": ([a, b], [c, d]) => ratio(a * d - c * b, b * d),
  "*": ([a, b], [c, d]) => ratio(a * c, b * d),
  "/": ([a, b], [c, d]) => ratio(a * d, b * c),
  "^": ([a, b], [c]) => ratio(a ** c, b ** c),
  neg: ([a, b]) => [-a, b],
};

export function evaluate(tree) {
  if (typeof tree === "string") return number(tree);
  if (!Array.isArray(tree) || !Object.hasOwn(OPERATORS, tree[0])) {
    throw new Refused("INPUT_VALIDATION_ERROR", `${JSON.stringify(tree)} is neither a number nor an operation`);
  }
  const [operator, ...operands] = tree;
  return OPERATORS[operator](...operands.map(evaluate));
}

const print = ([top, bottom]) => (bottom === 1n ? `${top}` : `${top}/${bottom}`);

export function run({ id, student, answer, tree }) {
  try {
    const expected = print(evaluate(tree));
    const given = answer === undefined ? undefined : print(number(answer));
    return { id, student, expected, answer: given, right: given === expected };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.error(JSON.stringify({ code: error.code, message: error.message }));
    process.exit(1);
  }
}
