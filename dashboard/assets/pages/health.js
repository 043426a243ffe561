import { html, useState } from "../vendor/preact-htm.js"
import { get, post } from "../api.js"
import { may, useLoad } from "../live.js"
import { act, Bound, Chip, Empty, Loaded, number, plural, Section, span, Table, to, visible } from "../ui.js"

const sign = { ok: "✓", warn: "!", fail: "✕", skip: "–" }

const forbidden = e => { if (e.status === 403 || e.status === 404) return null; throw e }

export default function Health() {
  const [all, setAll] = useState(false)
  const page = useLoad(async signal => {
    const ask = (operation, path) => may(operation) ? get(path, {}, signal).catch(forbidden) : null
    const [doctor, partitions, keys] = await Promise.all([ask("examine", "doctor"), ask("listPartitions", "partitions"), ask("listTokenKeys", "token-keys")])
    return { doctor, partitions: partitions?.items, keys: keys?.items }
  }, [], { live: false })
  const freeze = p => act({ title: `Freeze partition ${p.partition}`, text: `Every call to it is refused until it is thawed: nothing in it runs, is submitted or ends. Do this to move it.`, action: "Freeze", danger: true, run: v => post(`partitions/${p.partition}:freeze`, { reason: v.reason }), done: "Frozen.", then: page.reload })
  const thaw = p => act({ title: `Thaw partition ${p.partition}`, text: `It was frozen: ${p.frozen_reason || "no reason was given"}.`, action: "Thaw", run: v => post(`partitions/${p.partition}:thaw`, { reason: v.reason }), done: "Thawed.", then: page.reload })
  const rotate = keys => act({ title: "Rotate the token keys", text: "Waitpoint tokens are signed with another key from now on. Those of the key before stay good for a day.", action: "Rotate", fields: [{ name: "kid", label: "Key", required: true, maxlength: 64, hint: `A key that this process has. Now: ${[...new Set(keys.map(k => k.current).filter(Boolean))].join(", ") || "none"}` }],
    run: async v => {
      const bad = (await post("token-keys:rotate", { kid: v.kid.trim(), reason: v.reason })).items.filter(i => i.error)
      if (bad.length) throw new Error(`${plural(bad.length, "partition")} refused: ${bad[0].error}`)
    }, done: "Rotated.", then: page.reload })
  return html`<div><div class="title"><h1>Health</h1><div class="actions">${may("listTrail") && html`<a href=${to(["trail"])}>Audit trail</a>`}${may("examine") && html`<button type="button" onClick=${page.reload}>Look again</button>`}</div></div>
    <${Loaded} of=${page}>${({ doctor, partitions, keys }) => {
      const bad = (doctor?.checks ?? []).filter(c => c.status === "fail" || c.status === "warn")
      const skipped = (doctor?.checks ?? []).filter(c => c.status === "skip").length
      const odd = (partitions ?? []).filter(p => p.error || p.frozen || p.tick_overdue || p.lag_ms > 1000)
      return html`<div>${!doctor && html`<${Bound} what="checks, partitions and token keys" />`}${doctor && html`<${Section} id="doctor" title="Checks" note=${doctor.healthy ? (bad.length ? plural(bad.length, "warning") : skipped ? `nothing is wrong, ${plural(skipped, "check")} not made` : "all is well") : "something has failed"}>
        <ul class="plain checks">${[...doctor.checks].sort((a, b) => ["fail", "warn", "skip", "ok"].indexOf(a.status) - ["fail", "warn", "skip", "ok"].indexOf(b.status)).map((c, i) => html`<li key=${i}><span class=${"check k-" + c.status}><span aria-hidden="true">${sign[c.status]}</span> ${c.status}</span> <b>${c.check}</b> ${c.node && html`<span class="mono dim">${visible(c.node)}</span> `}<span>${visible(c.found)}</span>
          ${c.do && c.status !== "ok" && html`<p>${visible(c.do)}</p>`}</li>`)}</ul><//>`}
      ${partitions && html`<${Section} id="partitions" title="Partitions" note=${`${plural(partitions.length, "partition")}, ${odd.length ? `${number(odd.length)} need a look` : "all are well"}`}
        actions=${html`<button type="button" aria-expanded=${all} onClick=${() => setAll(!all)}>${all ? "Show only those that need a look" : "Show all"}</button>`}>${(all ? partitions : odd).length > 0 && html`<${Table} label="Partitions" rows=${all ? partitions : odd} id=${p => p.partition} columns=${[
        { name: "Partition", class: "num", cell: p => p.partition },
        { name: "State", cell: p => p.error ? html`<${Chip} kind="bad" title=${visible(p.error)}>silent<//>` : p.frozen ? html`<${Chip} kind="bad" title=${visible(p.frozen_reason || "")}>frozen<//>` : p.tick_overdue ? html`<${Chip} kind="warn" title="No process runs its timers">overdue<//>` : html`<${Chip} kind="good">well<//>` },
        { name: "Ready", class: "num", cell: p => number(p.ready) }, { name: "Delayed", class: "num", cell: p => number(p.delayed.count) }, { name: "Suspended", class: "num", cell: p => number(p.suspended.count) }, { name: "Ended", class: "num", cell: p => number(p.ended.count) },
        { name: "Late", class: "num", cell: p => p.lag_ms > 1000 ? html`<b>${span(p.lag_ms)}</b>` : span(p.lag_ms) }, { name: "Timers run by", class: "wide", cell: p => visible(p.owner || "nobody") },
        ...(may("freezePartition") ? [{ name: "Actions", class: "end", cell: p => p.frozen ? html`<button type="button" onClick=${() => thaw(p)} aria-label=${`Thaw partition ${p.partition}`}>Thaw…</button>` : html`<button type="button" class="quiet" onClick=${() => freeze(p)} aria-label=${`Freeze partition ${p.partition}`}>Freeze…</button>` }] : [])]} />`}<//>`}
      ${keys && html`<${Section} id="keys" title="Token keys" note="they sign the links with which people answer" actions=${may("rotateTokenKeys") && html`<button type="button" onClick=${() => rotate(keys)}>Rotate…</button>`}>
        ${keys.every(k => k.keys.length === 0) ? html`<${Empty} title="No token keys"><p>Set FLOWFABRIC_TOKEN_KEYS for the workers, so that handlers can wait for people.</p><//>` : html`<ul class="plain">${Object.values(Object.fromEntries(keys.flatMap(k => k.keys.map(x => [x.kid, { kid: x.kid, fingerprint: x.fingerprint, current: keys.filter(y => y.current === x.kid).length, open: keys.flatMap(y => y.keys).filter(y => y.kid === x.kid).reduce((n, y) => n + (y.open_waitpoints ?? 0), 0) }])))).map(k => html`<li key=${k.kid}><b>${k.kid}</b> <span class="mono dim">${k.fingerprint}</span> ${k.current ? html`<${Chip} kind="good">signs${k.current < keys.length ? ` in ${plural(k.current, "partition")}` : ""}<//>` : html`<${Chip}>old<//>`} <span class="dim">${plural(k.open, "open waitpoint")}</span></li>`)}</ul>`}<//>`}</div>`
    }}<//>
    </div>`
}
