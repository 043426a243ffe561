'use strict';
// What the processes of this directory and the driver say to each other: one JSON message a line. A request comes in on stdin with an id
// and gets an answer with the same id; news go out without one. The end of stdin ends the process.

const readline = require('node:readline');

// queueName is the one queue of a round, and jobName the name of all its jobs.
const queueName = 'bench';
const jobName = 'job';

// settings are told by the first argument: where the server is.
const settings = JSON.parse(process.argv[2]);

// now is in nanoseconds of the machine's monotonic clock, which is the same in every process.
const now = () => Number(process.hrtime.bigint());

// A job's data are JSON in BullMQ, so bytes travel in base64, and typed jobs as they are. Both directions are part of what is measured.
const encode = payload => payload.toString('base64');
const decode = data => (typeof data === 'string' ? Buffer.from(data, 'base64') : Buffer.from(data.text));
const document = payload => ({ number: 100000, text: payload.toString() });

// answer is the result of a job: typed ones have one.
const answer = data => (typeof data === 'string' ? undefined : { number: data.number, bytes: data.text.length, state: 'done' });

// say puts out one message. Pipes are written synchronously, so messages keep their order and none is lost at the end.
function say(message) {
  process.stdout.write(JSON.stringify(message) + '\n');
}

// serve answers requests by the operation of that name.
function serve(operations) {
  readline
    .createInterface({ input: process.stdin })
    .on('line', async line => {
      const request = JSON.parse(line);
      try {
        const result = await operations[request.op](request);
        if (request.id) say({ id: request.id, ...result });
      } catch (err) {
        say({ id: request.id, error: String(err?.message ?? err) });
      }
    })
    .on('close', () => process.exit(0));
}

module.exports = { queueName, jobName, connection: settings.connection, now, encode, decode, document, answer, say, serve };
