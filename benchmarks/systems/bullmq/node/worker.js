'use strict';
// Works: any number of workers with connections of their own, each with a number.

const { Worker } = require('bullmq');
const { queueName, connection, now, encode, decode, answer, say, serve } = require('./lines');

const workers = new Map();
const asked = new Map(); // by number: what lets a handler return that waits for the driver's
let questions = 0;

// counting is a handler that does nothing for so long. What it handled in one turn of the event loop is told by one message: how many jobs, and when the
// first of them began.
function counting(worker, workMS) {
  let handled = 0;
  let at = 0;
  const tell = () => {
    say({ worker, handled, at });
    handled = 0;
  };
  return async job => {
    if (typeof job.data === 'string') decode(job.data);
    if (workMS) await new Promise(resolve => setTimeout(resolve, workMS));
    if (handled++ === 0) {
      at = now();
      setImmediate(tell);
    }
    return answer(job.data);
  };
}

// asking is a handler that hands the payload to the driver's, and returns when that has returned.
function asking(worker) {
  return async job => {
    const at = now();
    const payload = decode(job.data);
    const ask = ++questions;
    await new Promise(resolve => {
      asked.set(ask, resolve);
      say({ worker, ask, at, payload: encode(payload) });
    });
    return answer(job.data);
  };
}

async function stop(worker) {
  const w = workers.get(worker);
  workers.delete(worker);
  await w?.close();
}

serve({
  ready: () => {},

  start: async ({ worker, concurrency, counts, workMS }) => {
    const w = new Worker(queueName, counts ? counting(worker, workMS) : asking(worker), { connection, concurrency });
    w.on('error', err => say({ worker, trouble: err.message }));
    w.on('failed', (job, err) => say({ worker, trouble: `job ${job?.id} failed: ${err.message}` }));
    workers.set(worker, w);
    await w.waitUntilReady();
  },

  handled: ({ ask }) => {
    asked.get(ask)();
    asked.delete(ask);
  },

  stop: ({ worker }) => stop(worker),

  // close stops what was not stopped; handlers that still wait have nobody to wait for.
  close: async () => {
    for (const answer of asked.values()) answer();
    asked.clear();
    await Promise.all(Array.from(workers.keys(), stop));
  },
});
