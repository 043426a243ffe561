const hooks = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls a function when a signal is aborted, at once if it is, and returns what takes that back. All functions of a
 * signal share one listener: Node.js warns of a leak at the eleventh.
 */
export function onAbort(signal: AbortSignal | undefined, call: () => void): () => void {
  if (!signal) return () => {}
  if (signal.aborted) {
    call()
    return () => {}
  }
  let set = hooks.get(signal)
  if (!set) {
    const all = (set = new Set())
    hooks.set(signal, all)
    signal.addEventListener("abort", () => all.forEach(one => one()), { once: true })
  }
  set.add(call)
  return () => set.delete(call)
}

/** Waits some milliseconds. It throws the reason of the signal when that is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => (off(), resolve()), ms)
    const off = onAbort(signal, () => (clearTimeout(timer), reject(signal?.reason as Error)))
  })
}
