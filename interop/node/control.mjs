// What clients under remote control have in common: the package interop/remote
// says what stands on the lines.
import { createInterface } from "node:readline";

const running = new Map(); // AbortController by the command's id
const asked = new Map(); // {resolve, reject} by the question's number
let asks = 0;

export const timeout = 120_000; // the machine may be busy

const write = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const asError = (e) => ({ code: Number.isInteger(e?.code) ? e.code : 0, message: String(e?.message ?? e), data: e?.data });

/** notice tells of a notification; of is the command it belongs to, if any. */
export const notice = (method, params, of) => write({ method, of, params: params ?? {} });

/** ask puts a question of the server to the test and waits for the answer. */
export function ask({ method, params }, { signal } = {}) {
  const number = ++asks;
  return new Promise((resolve, reject) => {
    asked.set(number, { resolve, reject });
    signal?.addEventListener("abort", () => {
      if (!asked.delete(number)) return;
      write({ ask: number, method: "notifications/cancelled" });
      reject(new Error("the server took the question back"));
    });
    write({ ask: number, method, params });
  });
}

/** control runs commands by methods until the input ends; end ends the session, asRefusal makes an SDK's error of one. */
export async function control({ methods, end, asRefusal }) {
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    if (command.method === "close") await reply(command.id, end);
    else if (command.method === "cancel") running.get(command.of)?.abort("the user gave up");
    else if (command.method === "answer") answer(command, asRefusal);
    else void run(command, methods[command.method]); // writes its own failures
  }
  process.exit(0);
}

function answer({ of, result, error }, asRefusal) {
  const question = asked.get(of);
  asked.delete(of);
  if (error) question?.reject(asRefusal(error));
  else question?.resolve(result);
}

async function run({ id, method, params, progress }, does) {
  const abort = new AbortController();
  running.set(id, abort);
  const options = { timeout, signal: abort.signal, ...(progress && { onprogress: (p) => notice("notifications/progress", p, id) }) };
  await reply(id, async () => {
    if (!does) throw new Error(`unknown command ${method}`);
    return does(params ?? {}, options);
  });
  running.delete(id);
}

async function reply(id, does) {
  try {
    write({ id, result: (await does()) ?? {} });
  } catch (e) {
    write({ id, error: asError(e) });
  }
}
