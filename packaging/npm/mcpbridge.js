#!/usr/bin/env node
// Runs mcpbridge, which is in the package of this platform.
'use strict';

const { spawn } = require('node:child_process');

const platform = `${process.platform}-${process.arch}`;
const file = process.platform === 'win32' ? 'mcpbridge.exe' : 'mcpbridge';

let program;
try {
  program = require.resolve(`@mcpbridge/${platform}/bin/${file}`);
} catch {
  console.error(`mcpbridge: the package @mcpbridge/${platform} is not installed. ` +
    'Install mcpbridge again, without --omit=optional; if that package does not exist, there is no mcpbridge for this platform.');
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit', windowsHide: true });

// A terminal sends SIGINT to the child, too, and a second one would end it at once.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (err) => {
  console.error(`mcpbridge: ${err.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
