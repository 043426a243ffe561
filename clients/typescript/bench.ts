// Measures one worker process against a server: jobs that do nothing, and jobs that wait 100 ms in 64 slots. Both are
// submitted before the worker runs. FLOWFABRIC_API names the server: flowfabric serve on Redis, say.
//
//   FLOWFABRIC_API=http://127.0.0.1:7788 npm run bench
import { Client, Worker } from "./src/index.js"

declare const process: { env: Record<string, string | undefined> }

const client = new Client({ url: process.env.FLOWFABRIC_API ?? "http://127.0.0.1:7788" })

async function measure(name: string, jobs: number, concurrency: number, handler: () => Promise<void>): Promise<number> {
  const kind = `bench-${Date.now()}`
  await client.submitMany(Array.from({ length: jobs }, () => ({ kind })))
  const worker = new Worker({ client, concurrency })
  let left = jobs
  let began = 0
  let allDone!: () => void
  const done = new Promise<void>(resolve => (allDone = resolve))
  worker.handle(kind, async () => {
    began ||= performance.now()
    await handler()
    if (--left === 0) allDone()
  })
  const running = worker.run()
  await done
  const rate = jobs / ((performance.now() - began) / 1000)
  worker.stop()
  await running // all completions were answered, else it warns
  console.log(`${name}: ${Math.round(rate)}/s`)
  return rate
}

await measure("warm-up, no-op", 2_000, 100, async () => {})
await measure("no-op, 64 slots", 20_000, 64, async () => {})
await measure("no-op, 200 slots", 20_000, 200, async () => {})
const waited = await measure("100 ms, 64 slots", 6_400, 64, () => new Promise(resolve => setTimeout(resolve, 100)))
console.log(`100 ms, 64 slots: ${(waited / 640).toFixed(3)} of 640/s`)
