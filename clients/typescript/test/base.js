// A server for the tests: flowfabric dev, whose program FLOWFABRIC_BIN names. It dies with the tests.
import { spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { after } from "node:test"
import { Client, Worker } from "flowfabric"

const children = new Set()
process.on("exit", () => children.forEach(child => child.kill("SIGKILL")))
process.on("SIGTERM", () => process.exit(1)) // as the runner ends a file that takes too long

/** Starts a program of the server, and returns what it says in its first line, and end. */
export async function start(...flags) {
  const child = spawn(process.env.FLOWFABRIC_BIN, ["dev", "--http", "127.0.0.1:0", "--addr", "127.0.0.1:0", "--json", ...flags], {
    stdio: ["ignore", "pipe", "ignore"],
  })
  children.add(child)
  const ended = new Promise(resolve => child.once("exit", resolve))
  const lines = createInterface({ input: child.stdout })
  const line = await new Promise((resolve, reject) => {
    lines.once("line", resolve)
    ended.then(() => reject(new Error("the server ended")))
  })
  const end = async (signal = "SIGKILL") => {
    child.kill(signal)
    await ended
    children.delete(child)
  }
  return { api: JSON.parse(line).api, end }
}

const shared = start() // which all tests of a file share
after(async () => (await shared).end())

/** A folder that ends with the test. */
export async function folder(t) {
  const dir = await mkdtemp(join(tmpdir(), "flowfabric-"))
  t.after(() => rm(dir, { recursive: true, force: true }))
  return dir
}

let number = 0
/** What a test needs: a client, a kind of its own, and workers that end with the test. */
export async function setUp(t, address) {
  address ??= (await shared).api
  const kind = `kind-${process.pid}-${++number}`
  const client = new Client({ url: address })
  /** Runs a worker with handlers of kind, or of several kinds. */
  const serve = (handlers, options = {}) => {
    const worker = new Worker({ client, drainMs: 1000, leaseMs: 3000, log: () => {}, ...options })
    const all = typeof handlers === "function" ? { [kind]: handlers } : handlers
    for (const [name, handler] of Object.entries(all)) worker.handle(name, handler)
    const running = worker.run()
    running.catch(() => {})
    t.after(() => (worker.stop(), running.catch(() => {})))
    return { worker, running }
  }
  const output = async (id, withinMs = 60_000) => {
    const answer = await client.result(id, { withinMs })
    if (answer.state !== "completed") throw new Error(JSON.stringify(answer))
    return answer.output?.value
  }
  const runOne = async (input, options) => output((await client.submit(kind, input, options)).id)
  const frames = async (id, options) => {
    const out = []
    for await (const event of client.tail(id, options)) if (event.kind === "frame") out.push(event.frame)
    return out
  }
  return { address, kind, client, serve, output, runOne, frames }
}

/** Waits until something is so; the time of the test bounds it. */
export async function until(holds) {
  for (;;) {
    const found = await holds()
    if (found) return found
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** Something that happens once, which a test waits for. */
export function event() {
  let happen
  const happened = new Promise(resolve => (happen = resolve))
  return { happen, happened }
}

export async function all(list) {
  const out = []
  for await (const one of list) out.push(one)
  return out
}

/** A proxy that cuts connections: each nth piece of an answer after so many bytes. every = Infinity cuts nothing. */
export async function cutter(t, target, { every = 3, bytes = 120 } = {}) {
  const at = new URL(target)
  const proxy = { every, bytes, pieces: 0, cuts: 0, requests: 0, url: "" }
  const open = new Set()
  const server = createServer(down => {
    const up = connect(Number(at.port), at.hostname)
    const end = () => (down.destroy(), up.destroy())
    for (const socket of [down, up]) {
      open.add(socket)
      socket.on("error", end).on("close", () => (open.delete(socket), end()))
    }
    down.on("data", piece => (proxy.requests++, up.write(piece)))
    up.on("data", data => { // a fast machine sends much at once
      for (let i = 0; i < data.length; i += 1024) {
        const piece = data.subarray(i, i + 1024)
        if (++proxy.pieces % proxy.every === 0) {
          proxy.cuts++
          up.destroy()
          return down.end(piece.subarray(0, proxy.bytes))
        }
        down.write(piece)
      }
    })
  })
  await new Promise(resolve => server.listen(0, "127.0.0.1", resolve))
  proxy.url = `http://127.0.0.1:${server.address().port}`
  proxy.cutAll = () => open.forEach(socket => socket.destroy())
  t.after(() => (server.close(), proxy.cutAll()))
  return proxy
}
