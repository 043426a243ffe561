// A worker that is killed: it streams, and pays once in a step, which it notes in a ledger outside.

import { appendFileSync } from "node:fs"
import { randomUUID } from "node:crypto"
import { Client, Worker } from "flowfabric"

const worker = new Worker({ client: new Client({ url: process.env.URL }), concurrency: 16, leaseMs: 2000, log() {} })
worker.handle("fire-typescript", async task => {
  const say = async (from, to) => {
    for (let i = from; i < to; i++) await task.frame(`${i} `)
  }
  await task.step("first", () => say(0, 10))
  const token = await task.step("pay", () => {
    const token = randomUUID()
    appendFileSync(process.env.LEDGER, `${task.id} ${token}\n`)
    return token
  })
  await task.step("last", () => say(10, 20))
  return token
})
await worker.run()
