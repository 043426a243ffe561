'use strict';
// The agent of the crash benchmark, as a worker of BullMQ. The first argument is JSON: where the server is, and where model service and bank are.
// It is the pattern of BullMQ's documents for jobs of several steps: what is done is saved in the job's data. Tokens are the job's progress, which
// readers get from the queue's events.

const { Worker } = require('bullmq');

const { path, service } = JSON.parse(process.argv[2]);
const connection = { path };

const post = async (to, body) => {
  const response = await fetch(service + to, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${to}: ${response.status}`);
  return response;
};

// ask makes one model call, and tells each token.
async function ask(messages, token) {
  const answer = { role: 'assistant', text: '' };
  const response = await post('/model', messages);
  let rest = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines.filter(Boolean)) {
      const piece = JSON.parse(line);
      if (piece.token) {
        answer.text += piece.token;
        await token(piece.token);
      }
      if (piece.end) return piece.call ? { ...answer, call: piece.call } : answer;
    }
  }
  throw new Error('the answer broke off');
}

async function work(job) {
  const { messages } = job.data;
  for (;;) {
    const last = messages.at(-1);
    if (last.role === 'assistant' && !last.call) return last.text;
    if (last.role === 'assistant') {
      const response = await post('/bank', { key: `call ${messages.length}`, seat: last.call.seat });
      messages.push({ role: 'tool', text: await response.text() });
    } else {
      messages.push(await ask(messages, token => job.updateProgress({ token })));
    }
    await job.updateData({ messages });
  }
}

// A lock lasts 30 s and is looked for every 30 s unless told otherwise. The benchmark does not wait so long.
const worker = new Worker('agent', work, { connection, lockDuration: 1000, stalledInterval: 500 });
worker.on('error', () => {});

// Whoever started this process holds its input open.
process.stdin.on('end', () => process.exit(0)).resume();
