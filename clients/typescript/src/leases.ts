import { Backoff, mayRetry } from "./api.js"
import { onAbort, pause } from "./cancel.js"
import { Suspended } from "./errors.js"
import type * as m from "./models.js"
import type { Task } from "./task.js"

const MOST_WAIT_MS = 20_000

/** What the leases of a worker need of it. */
export interface LeaseHolder {
  readonly leaseMs: number
  /** tasks whose handler runs */
  readonly working: ReadonlySet<Task>
  /** aborted when no more calls are made */
  readonly closed: AbortSignal
  /** one try of a claim that takes nothing, and renews leases */
  renew(body: m.ClaimBody, signal: AbortSignal, timeoutMs: number): Promise<m.ClaimAnswer>
  lose(task: Task, code: string): void
  log(level: "info" | "warn", text: string, error?: unknown): void
}

/**
 * Keeps the leases of all handlers that run for a while, with one call that renews them and then waits for news: that
 * one is lost, or was asked to stop. The call is made again at least every third of a lease, and when a handler has
 * come that it does not mind. A handler that is done sooner costs nothing.
 */
export class Leases {
  readonly #holder: LeaseHolder
  readonly #tickMs: number
  readonly #timer: ReturnType<typeof setInterval>
  #minded: { control: AbortController; tasks: Set<Task> } | undefined

  constructor(holder: LeaseHolder) {
    this.#holder = holder
    this.#tickMs = Math.min(Math.max(holder.leaseMs / 12, 150), 2_500)
    this.#timer = setInterval(() => this.#tick(), this.#tickMs)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#minded?.control.abort(new Suspended())
  }

  /** Gives up what nobody renewed in time, and sees to it that all others are minded. */
  #tick(): void {
    const now = performance.now()
    for (const task of this.#holder.working) {
      if (task.until < now + this.#tickMs) this.#holder.lose(task, "lease_expired")
    }
    const old = this.#old(now)
    if (!this.#minded) {
      if (old.length > 0) void this.#mind()
    } else if (old.some(task => !this.#minded?.tasks.has(task))) {
      this.#minded.control.abort(new Suspended())
    }
  }

  #old(now: number): Task[] {
    return [...this.#holder.working].filter(task => !task.signal.aborted && now - task.began >= this.#tickMs / 2)
  }

  async #mind(): Promise<void> {
    const { leaseMs, closed } = this.#holder
    let backoff: Backoff | undefined
    for (;;) {
      const began = performance.now()
      const tasks = this.#old(began)
      if (tasks.length === 0 || closed.aborted) break
      const control = new AbortController()
      this.#minded = { control, tasks: new Set(tasks) }
      const off = onAbort(closed, () => control.abort(new Suspended()))
      const wait_ms = backoff ? 0 : Math.floor(Math.min(leaseMs / 3, MOST_WAIT_MS))
      const leases = tasks.map(({ claim, heard }) => ({ lease: claim.lease, ...(heard ? { stopping: heard } : {}) }))
      try {
        const timeoutMs = wait_ms + Math.max(leaseMs / 6, 300)
        const answer = await this.#holder.renew({ max: 0, wait_ms, leases }, control.signal, timeoutMs)
        backoff = undefined
        for (const task of tasks) task.until = Math.max(task.until, began + leaseMs)
        this.#hear(tasks, answer.leases ?? [])
      } catch (e) {
        if (e instanceof Suspended) continue
        this.#holder.log(mayRetry(e) ? "info" : "warn", "leases were not renewed", e)
        if (mayRetry(e)) await (backoff ??= new Backoff(Infinity)).pause(e, closed).catch(() => {})
        else await pause(this.#tickMs, closed).catch(() => {})
      } finally {
        off()
      }
    }
    this.#minded = undefined
  }

  #hear(tasks: Task[], list: m.LeaseAnswer[]): void {
    for (const news of list) {
      const task = tasks.find(one => one.claim.lease === news.lease)
      if (!task || !this.#holder.working.has(task)) continue
      if (news.held) task.hear(news.stopping)
      else this.#holder.lose(task, news.code ?? "stale_lease")
    }
  }
}
