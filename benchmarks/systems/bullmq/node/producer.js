'use strict';
// Submits jobs, and tells what the queue holds.

const { Queue } = require('bullmq');
const { queueName, jobName, connection, now, encode, document, serve } = require('./lines');

// bulk is how many jobs go into one call where a queue is only filled.
const bulk = 1000;

let queue; // of this round
let data = encode; // what a job carries of a payload
const prepared = new Map(); // payloads by the number of their batch

const buffers = payloads => payloads.map(text => Buffer.from(text, 'base64'));
const add = payload => queue.add(jobName, data(payload));
const addBulk = payloads => queue.addBulk(payloads.map(payload => ({ name: jobName, data: data(payload) })));

function* chunks(list, size) {
  for (let i = 0; i < list.length; i += size) yield list.slice(i, i + size);
}

serve({
  ready: () => {},

  open: async ({ typed }) => {
    data = typed ? document : encode;
    queue = new Queue(queueName, { connection });
    await queue.waitUntilReady();
  },

  // add submits one job, and answers when it began to.
  add: async ({ payloads }) => {
    const [payload] = buffers(payloads);
    const at = now();
    await add(payload);
    return { at };
  },

  fill: async ({ payloads }) => {
    for (const chunk of chunks(buffers(payloads), bulk)) await addBulk(chunk);
  },

  // prepare keeps payloads for send; several requests may add to one batch.
  prepare: ({ batch, payloads }) => {
    prepared.set(batch, (prepared.get(batch) ?? []).concat(buffers(payloads)));
  },

  // send submits a batch by concurrent submitters, each its share, and answers how long their calls took.
  send: async ({ batch, submitters, perCall }) => {
    const payloads = prepared.get(batch);
    prepared.delete(batch);
    const took = [];
    const submit = async share => {
      for (let i = 0; i < share.length; i += perCall) {
        const began = now();
        await (perCall === 1 ? add(share[i]) : addBulk(share.slice(i, i + perCall)));
        took.push(now() - began);
      }
    };
    await Promise.all(Array.from(chunks(payloads, Math.ceil(payloads.length / submitters)), submit));
    return { took };
  },

  done: async () => ({ count: await queue.getCompletedCount() }),

  close: async () => {
    prepared.clear();
    await queue?.close();
    queue = undefined;
  },
});
