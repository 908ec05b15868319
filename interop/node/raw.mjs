/**
 * rawDispatch sends requests around the client of the TypeScript SDK 2.x, which refuses results of
 * types that it does not know. Their ids are strings, which the client's own never are.
 */
export function rawDispatch(transport) {
  const waiting = new Map();
  const { onmessage } = transport; // the client's own
  transport.onmessage = (message, ...rest) => {
    const answer = message.method === undefined && waiting.get(message.id);
    if (!answer) return onmessage(message, ...rest);
    waiting.delete(message.id);
    answer(message.error ? { kind: "error", error: message.error } : { kind: "result", result: message.result });
  };
  let last = 0;
  return async (request, { context } = {}) => {
    const id = `task-${++last}`;
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    await transport.send({ jsonrpc: "2.0", id, ...request }, { headers: context?.headers });
    return answered;
  };
}
