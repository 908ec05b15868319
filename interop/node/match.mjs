// The patterns of matrix.json; go/match_test.go has the same, with tests.
import { createHash } from "node:crypto";

const patterns = ["$re", "$sha256", "$base64", "$has"];

/** mismatch says how got differs from want, or returns "". */
export function mismatch(path, want, got) {
  if (want !== null && typeof want === "object") {
    if (Array.isArray(want)) return arrayMismatch(path, want, got);
    const keys = Object.keys(want);
    if (keys.length === 1 && patterns.includes(keys[0])) return patternMismatch(path, keys[0], want[keys[0]], got);
    return objectMismatch(path, want, got);
  }
  return want === got ? "" : `${path} = ${brief(got)}, want ${brief(want)}`;
}

function arrayMismatch(path, want, got) {
  if (!Array.isArray(got) || got.length !== want.length) {
    return `${path} = ${brief(got)}, want ${want.length} elements: ${brief(want)}`;
  }
  return first(want.map((w, i) => () => mismatch(`${path}[${i}]`, w, got[i])));
}

function objectMismatch(path, want, got) {
  if (got === null || typeof got !== "object" || Array.isArray(got)) return `${path} = ${brief(got)}, want an object`;
  return first(Object.keys(want).map((key) => () => (key in got && got[key] !== undefined ? mismatch(`${path}.${key}`, want[key], got[key]) : `${path}.${key} is missing, want ${brief(want[key])}`)));
}

function patternMismatch(path, name, arg, got) {
  if (name === "$has") {
    const items = Array.isArray(got) ? got : [];
    const lost = arg.find((w) => !items.some((v) => mismatch(path, w, v) === ""));
    return lost === undefined ? "" : `${path} = ${brief(got)}, want an element like ${brief(lost)}`;
  }
  if (typeof got !== "string") return `${path} = ${brief(got)}, want a string`;
  switch (name) {
    case "$re": {
      const inline = arg.startsWith("(?i)"); // Go writes the flag inside the expression
      if (new RegExp(inline ? arg.slice(4) : arg, inline ? "i" : "").test(got)) return "";
      break;
    }
    case "$sha256":
      if (createHash("sha256").update(got).digest("hex") === arg) return "";
      break;
    case "$base64":
      return mismatch(`base64(${path})`, arg, Buffer.from(got, "base64").toString());
  }
  return `${path} = ${brief(got)}, want ${name} ${brief(arg)}`;
}

function first(checks) {
  for (const check of checks) {
    const why = check();
    if (why !== "") return why;
  }
  return "";
}

export function brief(v) {
  const s = JSON.stringify(v) ?? "undefined";
  return s.length > 400 ? s.slice(0, 400) + "…" : s;
}
