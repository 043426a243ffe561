import { html, useState } from "../vendor/preact-htm.js"
import { get, post } from "../api.js"
import { loadAll, may, me, namespace, serverNow, useBeat, useLoad, useStore } from "../live.js"
import { ago, act, become, Chip, Empty, Field, instant, Loaded, Payload, plural, shortID, Since, tell, to, useDraft, visible } from "../ui.js"
import { Answer } from "../answer.js"
import { mailboxOf } from "../message.js"

const most = 500 // waits that are loaded to be sorted by their deadline
const keyOf = i => i.execution + i.waitpoints.map(w => w.id).join()
const due = i => i.timeout_at ? Date.parse(i.timeout_at) : Infinity
const orders = [["", "by deadline"], ["since", "by age"]]

export default function Approvals({ query }) {
  const ns = useStore(namespace), who = useStore(me)
  const f = { kind: query.get("kind") || "", lane: query.get("lane") || "", assignee: query.get("assignee") || "", root: query.get("root") || "", order: query.get("order") || "" }, { order, ...asked } = f
  const [draft, change] = useDraft(f, typed => become(["approvals"], typed))
  const [want, setWant] = useState(order ? 50 : most), [chosen, choose] = useState(new Set())
  const page = useLoad(signal => loadAll("approvals", { ...asked, namespace: ns, limit: 50 }, Math.max(want, order ? 0 : most), signal), [JSON.stringify(f), ns, want])
  const [shown, show] = useState(false) // on a phone they take the room of the list
  const mine = f.assignee === who.name
  return html`<div><div class="title"><div><h1>Approvals</h1></div><div class="actions"><button type="button" class=${"pill" + (mine ? " on" : "")} aria-pressed=${mine} onClick=${() => become(["approvals"], { ...f, assignee: mine ? "" : who.name })}>Mine</button></div></div>
    <form class="filters slim" onSubmit=${e => e.preventDefault()} aria-label="Filters"><button type="button" class="unfold" aria-expanded=${shown} onClick=${() => show(!shown)}>Filters and order</button><div class=${"fields" + (shown ? " shown" : "")}>
      <${Field} label="Assigned to" value=${draft.assignee} onInput=${change("assignee")} placeholder="anybody" />
      <${Field} label="Kind" value=${draft.kind} onInput=${change("kind")} /><${Field} label="Lane" value=${draft.lane} onInput=${change("lane")} />
      <${Field} label="Below execution" value=${draft.root} onInput=${change("root")} placeholder="id" />
      <${Field} label="Order" kind="choice" options=${orders} value=${draft.order} onInput=${change("order")} /></div></form>
    <${Loaded} of=${page}>${data => {
      const items = order ? data.items : [...data.items].sort((a, b) => due(a) - due(b) || (a.since < b.since ? -1 : 1))
      const questions = items.filter(i => i.question), others = items.filter(i => !i.question)
      const picked = questions.filter(i => chosen.has(keyOf(i)))
      const flip = i => choose(was => { const next = new Set(was), k = keyOf(i); next.has(k) ? next.delete(k) : next.add(k); return next })
      return data.items.length === 0 ? html`<${Empty} title="Nobody waits for an answer"><p>A handler asks with <code>Task.Ask</code>. Its question appears here, and in the link that it mails.</p><//>`
      : html`<div>${may("answerWaitpoint") && questions.length > 1 && html`<${Bulk} all=${questions} picked=${picked} choose=${choose} reload=${page.reload} />`}
        <ul class="plain inbox cards">${questions.map(i => html`<${Item} key=${keyOf(i)} item=${i} reload=${page.reload} picked=${chosen.has(keyOf(i))} onPick=${may("answerWaitpoint") && questions.length > 1 && (() => flip(i))} />`)}</ul>
        ${others.length > 0 && html`<h2 class="between">Other waits</h2><p class="dim">They wait without a question: for a message, a callback, a program, or an operator.</p>
          <ul class="plain inbox cards">${others.map(i => html`<${Item} key=${i.execution} item=${i} reload=${page.reload} />`)}</ul>`}
        <p class="foot dim">${plural(questions.length, "question")} and ${plural(others.length, "other wait")} shown. Nothing runs, and nothing is held, while it waits for you. ${data.cursor && html`<button type="button" onClick=${() => setWant(Math.max(want, items.length) + 50)}>Show more</button>`}</p></div>`
    }}<//></div>`
}

// Bulk answers several questions alike, with the choices that all of them have.
function Bulk({ all, picked, choose, reload }) {
  const same = (picked[0]?.question.choices ?? []).filter(c => picked.every(i => i.question.choices.some(x => x.name === c.name)))
  const answer = c => act({ title: `${visible(c.label || c.name)}: ${plural(picked.length, "question")}`, action: visible(c.label || c.name), danger: c !== picked[0].question.choices[0], reason: false,
    text: () => html`<ul class="plain tall">${picked.map(i => html`<li key=${keyOf(i)}>${visible(i.question.title)} <span class="dim">${i.kind}</span></li>`)}</ul>`,
    fields: [{ name: "comment", label: "Comment", maxlength: 2000, hint: "Each handler gets it with your name." }],
    run: async v => {
      const rest = [...picked], bad = [], one = async () => {
        for (let i = rest.shift(); i; i = rest.shift()) {
          try { await post(`executions/${i.execution}/waitpoints/${encodeURIComponent(i.waitpoints[0].key)}:answer`, { name: c.name, payload: { choice: c.name, comment: v.comment || undefined } }) } catch (e) { bad.push(`${i.question.title}: ${e.message}`) }
        }
      }
      await Promise.all([one(), one(), one(), one()])
      if (bad.length) tell(`${plural(bad.length, "answer")} not delivered. ${bad[0]}`, "bad")
      return picked.length - bad.length
    }, done: n => `${plural(n, "answer")} delivered.`, then: () => { choose(new Set()); reload() } })
  const every = picked.length === all.length
  return html`<div class=${"picked" + (picked.length ? "" : " idle")}><label><input type="checkbox" checked=${every} onChange=${() => choose(every ? new Set() : new Set(all.map(keyOf)))} /> ${picked.length ? `${plural(picked.length, "question")} chosen` : "Choose all"}</label>
    ${picked.length > 0 && (same.length ? same.map(c => html`<button key=${c.name} type="button" onClick=${() => answer(c)}>${visible(c.label || c.name)}…</button>`) : html`<span>They have no choice in common.</span>`)}</div>`
}

// Deadline is until when an answer counts; a near one stands out.
function Deadline({ at }) {
  useBeat()
  return html`<${Chip} kind=${Date.parse(at) - serverNow() < 3600000 ? "bad" : ""} title=${`Answers count until ${instant(at)}`}>due ${ago(at)}<//>`
}

const tail = 4000 // characters of output, the last ones

// Run is what the execution was given and has put out so far.
function Run({ id }) {
  const got = useLoad(async signal => {
    const [input, output, steps] = await Promise.all(["input", "transcript", "steps"].map(part => get(`executions/${id}/${part}`, {}, signal).catch(e => { if (e.status >= 400 && e.status < 500) return null; throw e })))
    return { input, output, steps }
  }, [id], { live: false })
  return html`<div class="run"><${Loaded} of=${got}>${({ input, output, steps }) => {
    const said = (output?.frames ?? []).map(f => f.text ?? (f.value === undefined ? "" : typeof f.value === "string" ? f.value : JSON.stringify(f.value) + "\n")).join("")
    return html`<div><h3>Input</h3><${Payload} of=${input} name="input" />
      ${steps?.items?.length > 0 && html`<h3>Steps</h3><p>${steps.items.map(s => visible(s.name)).join(", ")}</p>`}
      <h3>Output</h3>${said ? html`<pre tabindex="0" dir="auto" aria-label="output">${visible(said.length > tail ? "…" + said.slice(-tail) : said)}</pre>` : html`<p class="none">No output yet.</p>`}</div>`
  }}<//></div>`
}

function Item({ item: i, reload, picked, onPick }) {
  const [open, set] = useState(false)
  const title = visible(i.question?.title || (mailboxOf(i.name) ? `${i.kind} waits for a message` : i.reason === "waiting_for_children" ? `${i.kind} waits for its children` : `${i.kind} waits under “${i.name}”`))
  const more = html`<button type="button" class="quiet more" aria-expanded=${open} onClick=${() => set(!open)} aria-label=${`${open ? "Hide" : "Show"} the run of ${title}`}>${open ? "Hide the run" : "Show the run"}</button>`
  return html`<li class=${"card" + (picked ? " chosen" : "") + (open ? " whole" : "")}><article aria-label=${title}>
    <div class="head"><h2>${onPick ? html`<label><input type="checkbox" checked=${!!picked} onChange=${onPick} /> ${title}</label>` : title}</h2>${i.timeout_at && html`<${Deadline} at=${i.timeout_at} />`}</div>
    <p class="dim meta">${i.kind} <a class="mono" href=${to(["executions", i.execution])}>${shortID(i.execution)}</a> ${i.lane === "default" ? "" : `in lane ${visible(i.lane)}, `}waits for <${Since} at=${i.since} /> ${i.question?.assignee && html`<${Chip}>for ${visible(i.question.assignee)}<//> `}
      ${i.question && i.waitpoints[0] && html`key <code>${visible(i.waitpoints[0].key)}</code> `}${i.path && html`<span>below <a class="mono" href=${to(["executions", i.root])}>${shortID(i.root)}</a>: ${visible(i.path.join(" › "))}</span> `}${i.flow && !i.path && html`<a href=${to(["flows", i.flow])}>flow ${shortID(i.flow)}</a>`}</p>
    <div class="beside"><${Answer} item=${i} onDone=${reload} brief=${!open} more=${more} />${open && html`<${Run} id=${i.execution} />`}</div>${(!i.question || !may("answerWaitpoint")) && more}</article></li>`
}
