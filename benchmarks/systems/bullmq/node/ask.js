'use strict';
// Submits one run of the agent of the crash benchmark, says that it is there, and waits for its result: two lines of JSON. The first argument is
// JSON: where the server is, and the messages that the run begins with.

const { Queue, QueueEvents } = require('bullmq');

const { path, messages } = JSON.parse(process.argv[2]);
const connection = { path };
const say = line => process.stdout.write(JSON.stringify(line) + '\n');

(async () => {
  const events = new QueueEvents('agent', { connection });
  await events.waitUntilReady();
  const queue = new Queue('agent', { connection });
  const job = await queue.add('run', { messages }, { jobId: 'run' });
  say({ submitted: true });
  try {
    say({ result: await job.waitUntilFinished(events) });
  } catch (err) {
    say({ error: String(err?.message ?? err) });
  }
  process.exit(0);
})();

process.stdin.on('end', () => process.exit(0)).resume();
