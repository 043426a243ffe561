import { useChat } from "@ai-sdk/react"
import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from "react"
import { list, load, remove, rename, watch, words, type Entry, type Saved } from "./api"
import { Follower } from "./follow"
import { MessageView } from "./view"

const root = "/react/"
// ?transport=ours takes the transport of clients/chat-transport, and any other the one of the AI SDK.
const ours = new URLSearchParams(location.search).get("transport") === "ours"
const addressOf = (id: string) => root + (id ? "c/" + encodeURIComponent(id) : "") + (ours ? "?transport=ours" : "")
const idInAddress = () => (location.pathname.startsWith(root + "c/") ? decodeURIComponent(location.pathname.slice(root.length + 2)) : "")

export function App() {
  const [id, setID] = useState(() => idInAddress() || crypto.randomUUID())
  const [saved, setSaved] = useState<Saved | null>()
  const [trouble, setTrouble] = useState("")
  const [entries, setEntries] = useState<Entry[]>([])

  const refresh = useCallback(() => {
    list().then(setEntries, () => {})
  }, [])
  useEffect(refresh, [refresh])
  useEffect(() => {
    const back = () => setID(idInAddress() || crypto.randomUUID())
    addEventListener("popstate", back)
    return () => removeEventListener("popstate", back)
  }, [])
  useEffect(() => {
    let over = false
    let timer = 0
    const read = async () => {
      try {
        const found = idInAddress() ? await load(id) : null
        if (!over) setSaved(found)
        if (!over) setTrouble("")
      } catch (error) {
        if (over) return
        setTrouble(error instanceof TypeError ? "No connection. The page tries again." : words((error as Error).message))
        if (error instanceof TypeError) timer = window.setTimeout(read, 1000)
      }
    }
    setSaved(undefined)
    read()
    return () => {
      over = true
      clearTimeout(timer)
    }
  }, [id])

  const go = (to: string) => {
    history.pushState(null, "", addressOf(to))
    setID(to || crypto.randomUUID())
  }
  return (
    <>
      <a className="skip" href="#text">Go to the message field</a>
      <header>
        <a className="brand" href={addressOf("")} onClick={e => (e.preventDefault(), go(""))}>FlowFabric chat</a>
        <button type="button" className="small" onClick={() => go("")}>New conversation</button>
      </header>
      <nav aria-label="Conversations">
        <details open={matchMedia("(min-width: 56rem)").matches}>
          <summary>Conversations</summary>
          <ul>
            {entries.map(e => (
              <li key={e.id}>
                <a href={addressOf(e.id)} aria-current={e.id === id ? "page" : undefined}
                  onClick={x => (x.preventDefault(), go(e.id))} dir="auto">{e.title || "No title yet"}</a>
              </li>
            ))}
          </ul>
        </details>
      </nav>
      {saved === undefined
        ? <main><p role="status" className="dim">{trouble || "Reading …"}</p></main>
        : <Conversation key={id} id={id} saved={saved} refresh={refresh} leave={() => go("")} />}
    </>
  )
}

function Conversation({ id, saved, refresh, leave }:
  { id: string; saved: Saved | null; refresh: () => void; leave: () => void }) {
  const follower = useMemo(() => new Follower(id, saved, ours), [id, saved])
  const [, redraw] = useReducer((n: number) => n + 1, 0)
  const { messages, status } = useChat({ chat: follower.chat })
  const scroll = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  const top = useRef(0)
  const { exists } = follower

  useEffect(() => {
    follower.changed = () => {
      redraw()
      refresh()
    }
    follower.open()
    return () => follower.close()
  }, [follower, id, refresh])
  useEffect(() => (exists ? watch(id, follower.look) : undefined), [exists, follower, id])
  useEffect(() => {
    if (atEnd.current && scroll.current) scroll.current.scrollTop = scroll.current.scrollHeight
  }, [messages, status])

  useEffect(() => {
    if (messages.length > 0 && !idInAddress()) history.replaceState(null, "", addressOf(id))
  }, [messages.length, id])

  const busy = status === "submitted" || status === "streaming"
  const ended = follower.saved?.state === "ended"
  const asks = messages.some(m => m.parts.some(p => "approval" in p && p.state === "approval-requested" ||
    p.type === "data-question" && (p.data as { state?: string }).state === "open"))
  const state = follower.trouble ? "" : busy ? "The agent answers …" : !follower.settled ? "The answer goes on …" : asks ? "The agent waits for your answer."
    : ended ? "The conversation has ended." : messages.length > 0 ? "Your turn." : ""
  useEffect(() => {
    document.title = (follower.saved?.title ? follower.saved.title + " · " : "") + "Chat · FlowFabric"
  })
  return (
    <main>
      <Title follower={follower} leave={() => (refresh(), leave())} redraw={() => (redraw(), refresh())} />
      <div id="scroll" role="region" aria-label="Conversation" tabIndex={0} ref={scroll}
        onScroll={e => {
          const box = e.currentTarget
          // What has grown since the page scrolled is not what somebody scrolled up.
          if (box.scrollHeight - box.scrollTop - box.clientHeight < 80) atEnd.current = true
          else if (box.scrollTop < top.current) atEnd.current = false
          top.current = box.scrollTop
        }}>
        {messages.length === 0 && <Welcome say={text => follower.send(text)} />}
        <ol id="messages">
          {messages.map(m => <MessageView key={m.id} message={m} follower={follower} busy={busy} />)}
        </ol>
        <p id="state" role="status">{state}</p>
      </div>
      <Composer follower={follower} busy={busy} />
    </main>
  )
}

const ideas = ["Search for the white rabbit and what is 12 * (3 + 4)?", "Tell me about the sea",
  "Publish a note: the shop is open on Sunday"]

function Welcome({ say }: { say: (text: string) => void }) {
  return (
    <div id="welcome">
      <h2>Talk to an agent that survives crashes</h2>
      <p>This page is useChat of the AI SDK. Reload it in mid-word, open it on a second device, or kill the worker: the text goes on.</p>
      <ul>{ideas.map(text => <li key={text}><button type="button" onClick={() => say(text)}>{text}</button></li>)}</ul>
    </div>
  )
}

function Title({ follower, leave, redraw }: { follower: Follower; leave: () => void; redraw: () => void }) {
  const [mode, setMode] = useState<"" | "rename" | "delete">("")
  const [text, setText] = useState("")
  const { saved, id } = follower
  if (!saved) return <h1 className="hidden">A new conversation</h1>
  const act = async (what: () => Promise<void>) => {
    try {
      await what()
    } catch (error) {
      follower.trouble = words((error as Error).message)
    }
    setMode("")
    redraw()
  }
  if (mode === "rename") {
    return (
      <form className="title" onSubmit={e => {
        e.preventDefault()
        act(async () => {
          await rename(id, text)
          follower.saved = { ...saved, title: text }
        })
      }}>
        <h1 className="hidden">{saved.title}</h1>
        <label htmlFor="title" className="hidden">Title</label>
        <input id="title" value={text} maxLength={200} dir="auto" autoFocus onChange={e => setText(e.target.value)} />
        <button type="submit" className="small">Save the title</button>
        <button type="button" className="small" onClick={() => setMode("")}>Cancel</button>
      </form>
    )
  }
  return (
    <div className="title">
      <h1 dir="auto">{saved.title || "No title yet"}</h1>
      {mode === "delete"
        ? <>
            <button type="button" className="small bad" onClick={() => act(async () => {
              await remove(id)
              leave()
            })}>Delete for good</button>
            <button type="button" className="small" onClick={() => setMode("")}>Keep</button>
          </>
        : <>
            <button type="button" className="small" onClick={() => (setText(saved.title), setMode("rename"))}>Rename</button>
            <button type="button" className="small" onClick={() => setMode("delete")}>Delete</button>
          </>}
    </div>
  )
}

function Composer({ follower, busy }: { follower: Follower; busy: boolean }) {
  const [text, setText] = useState("")
  const files = useRef<HTMLInputElement>(null)
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (!follower.draft) return
    setText(now => now || follower.draft)
    follower.draft = ""
  })
  useEffect(() => {
    const f = field.current
    if (!f) return
    f.style.height = "auto"
    f.style.height = Math.min(f.scrollHeight + 2, 160) + "px"
  }, [text])
  const send = () => {
    const chosen = files.current?.files ?? undefined
    if (busy || !text.trim() && !chosen?.length) return
    follower.send(text.trim(), chosen)
    setText("")
    if (files.current) files.current.value = ""
  }
  return (
    <form id="composer" onSubmit={e => (e.preventDefault(), send())}>
      <label className="hidden" htmlFor="text">Message</label>
      <textarea id="text" ref={field} rows={1} maxLength={10_000} placeholder="Write a message" dir="auto" value={text}
        onChange={e => setText(e.target.value === "\n" ? "" : e.target.value)}
        onKeyDown={e => {
          if (e.key !== "Enter" || e.shiftKey || e.nativeEvent.isComposing) return
          e.preventDefault()
          send()
        }} />
      {busy
        ? <button type="button" onClick={follower.stop}>Stop</button>
        : <button type="submit" className="main">Send</button>}
      <label className="files">Attach files <input type="file" multiple ref={files} /></label>
      <p id="trouble" role="alert">{follower.trouble}</p>
    </form>
  )
}
