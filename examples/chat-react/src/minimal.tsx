import { useChat } from "@ai-sdk/react"
import {
  DefaultChatTransport, getToolName, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage,
} from "ai"
import { useEffect, useState } from "react"
import { createRoot } from "react-dom/client"

const api = "/api/chat"
const transport = new DefaultChatTransport({ api })
if (!location.hash) location.hash = crypto.randomUUID()
const id = location.hash.slice(1) // of the conversation; yours may be in the path, or from your database

let reads = 0 // what was read before the newest read, or before the user acts, is not shown

async function saved(): Promise<UIMessage[]> {
  const response = await fetch(`${api}/${id}`)
  return response.ok ? (await response.json()).messages : []
}

function Chat({ begin }: { begin: UIMessage[] }) {
  const [text, setText] = useState("")
  const chat = useChat({
    id, messages: begin, transport, resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onFinish: ({ finishReason, isAbort }) => {
      if (!finishReason && !isAbort) setTimeout(again, 1000) // the stream broke, or the answer is made again
    },
  })
  const again = async () => {
    const read = ++reads
    try {
      const messages = await saved()
      if (read !== reads) return
      chat.setMessages(messages)
      await chat.resumeStream()
    } catch {
      setTimeout(again, 1000) // no connection
    }
  }
  const busy = chat.status === "submitted" || chat.status === "streaming"
  const begun = chat.messages.length > 0
  useEffect(() => {
    if (busy || !begun) return // while nothing streams, hear what other tabs and devices do
    const source = new EventSource(`${api}/${id}/watch`)
    source.onmessage = again
    return () => source.close()
  }, [busy, begun])

  return (
    <main>
      {chat.messages.map(message => (
        <article key={message.id} className={message.role}>
          {message.parts.map((part, i) => {
            if (part.type === "text") return <p key={i}>{part.text}</p>
            if (!isToolUIPart(part)) return null
            return (
              <section key={part.toolCallId}>
                {getToolName(part)} {JSON.stringify(part.input)}: {part.state}
                {part.state === "approval-requested" && [true, false].map(approved => (
                  <button key={String(approved)} onClick={() => {
                    reads++
                    chat.addToolApprovalResponse({ id: part.approval.id, approved })
                  }}>
                    {approved ? "Approve" : "Reject"}
                  </button>
                ))}
              </section>
            )
          })}
        </article>
      ))}
      <p role="alert">{chat.error?.message}</p>
      <form onSubmit={e => {
        e.preventDefault()
        reads++
        chat.sendMessage({ text })
        setText("")
      }}>
        <input aria-label="Message" value={text} onChange={e => setText(e.target.value)} />
        {busy
          ? <button type="button" onClick={() => fetch(`${api}/${id}/stop`, { method: "POST" })}>Stop</button>
          : <button disabled={!text}>Send</button>}
      </form>
    </main>
  )
}

saved().then(begin => createRoot(document.getElementById("root")!).render(<Chat begin={begin} />))
