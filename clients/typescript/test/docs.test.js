// The examples of the pages, checked and run as they are, in a folder where the packed package is installed.
import assert from "node:assert/strict"
import { execFile, spawn } from "node:child_process"
import { mkdtemp, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import test from "node:test"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { setUp } from "./base.js"

const run = promisify(execFile)
const tool = name => fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url))

/** Runs the worker of a page, its first program, and then each client, which says what is wanted. */
async function runPage(t, page, ...said) {
  const { address } = await setUp(t)
  const text = await readFile(join(process.env.FLOWFABRIC_ROOT, page), "utf8")
  const programs = [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(m => m[1].replaceAll("http://127.0.0.1:8080", address))
  assert.equal(programs.length, 1 + said.length)
  const dir = await mkdtemp(join(process.env.FLOWFABRIC_INSTALLED, "page-"))
  const files = programs.map((_, i) => join(dir, `program${i}.ts`))
  await Promise.all(programs.map((program, i) => writeFile(files[i], program)))
  const compilerOptions = {
    strict: true, noEmit: true, noUncheckedIndexedAccess: true, module: "nodenext", target: "es2022",
    lib: ["es2023", "dom", "dom.iterable"], types: [],
  }
  await writeFile(join(dir, "tsconfig.json"), JSON.stringify({ compilerOptions, files }))
  await run(tool("tsc"), ["-p", dir]).catch(e => assert.fail(e.stdout))
  await run(tool("esbuild"), [...files, `--outdir=${dir}`])
  const worker = spawn(process.execPath, [files[0].replace(".ts", ".js")], { stdio: "inherit" })
  t.after(() => worker.kill("SIGKILL"))
  const ended = new Promise(resolve => worker.once("exit", (code, signal) => resolve(code ?? signal)))
  for (const [i, want] of said.entries()) {
    const { stdout, stderr } = await run(process.execPath, [files[i + 1].replace(".ts", ".js")], { env: { ...process.env, NO_COLOR: "1" } })
    assert.deepEqual([stdout, stderr], [want, ""])
  }
  worker.kill("SIGTERM")
  assert.equal(await ended, 0)
}

test("the examples of the README", t =>
  runPage(t, "clients/typescript/README.md", "Once upon a time\n{ title: 'About a lighthouse' }\n"))

test("the examples of the how-to", t =>
  runPage(t, "docs/how-to/typescript.md", "HELLO\n{ published: 'HELLO' }\nQUIET\ncompleted\n400 invalid_input\n"))
