// Markdown of strangers as nodes: paragraphs, headings, lists, quotes, code, emphasis and links. There is no way from a text to markup: each
// piece becomes a node of the page, or stays the text that it is. Images, HTML and tables stay text. A link leads to a web or mail address only,
// and tells where, if its words do not.
import { html } from "./vendor/preact-htm.js"
import { visible } from "./ui.js"

const longest = 20000 // characters; a longer text is shown as it is
const deepest = 6

// links are what a link may lead to.
const links = /^(?:https?:\/\/|mailto:)[^\s<>"'`\\\u0000-\u001f\u202a-\u202e\u2066-\u2069]{1,1000}$/i

const marks = [["**", "strong"], ["__", "strong"], ["*", "em"], ["_", "em"]]
const word = c => c !== undefined && /[\p{L}\p{N}]/u.test(c)

function link(words, to, key, deep) {
  let place = to
  try { place = /^mailto:/i.test(to) ? to.slice(7) : new URL(to).host } catch { return null }
  return html`<a key=${key} href=${to} target="_blank" rel="noopener noreferrer nofollow" title=${to}>${words === null ? visible(to) : inline(words, deep + 1, true)}</a>${words !== null && !words.includes(place) ? html` <span class="dim">(${visible(place)})</span>` : ""}`
}

// inline reads what is in a line. It goes through the text once for each level of emphasis.
function inline(text, deep = 0, linked = false) {
  if (deep > deepest) return visible(text)
  const out = [], open = new Set() // marks that nothing closes from here on: they are not looked for again
  let plain = ""
  const flush = () => { if (plain) out.push(visible(plain)); plain = "" }
  for (let i = 0; i < text.length;) {
    const c = text[i]
    if (c === "\\" && /[\\`*_[\]()#+\-.!>]/.test(text[i + 1] ?? "")) { plain += text[i + 1]; i += 2; continue }
    if (c === "`") {
      const end = text.indexOf("`", i + 1)
      if (end > i + 1) { flush(); out.push(html`<code key=${i}>${visible(text.slice(i + 1, end))}</code>`); i = end + 1; continue }
    }
    if (c === "[" && !linked && text[i - 1] !== "!") {
      const m = /^\[([^[\]]{1,500})\]\(([^\s()]{1,1000})\)/.exec(text.slice(i, i + 1600))
      const made = m && links.test(m[2]) && link(m[1], m[2], i, deep)
      if (made) { flush(); out.push(made); i += m[0].length; continue }
    }
    if (c === "h" && !linked && !word(text[i - 1])) {
      const m = /^https?:\/\/[^\s<>"'`\\]{1,1000}/i.exec(text.slice(i, i + 1100)), to = m?.[0].replace(/[.,;:!?)\]*_]+$/, "")
      const made = to && links.test(to) && link(null, to, i, deep)
      if (made) { flush(); out.push(made); i += to.length; continue }
    }
    const mark = (c === "*" || c === "_") && marks.find(([m]) => text.startsWith(m, i))
    if (mark && !open.has(mark[0]) && !word(text[i - 1]) && /\S/.test(text[i + mark[0].length] ?? "")) {
      let end = text.indexOf(mark[0], i + mark[0].length)
      while (end > 0 && (/\s/.test(text[end - 1]) || word(text[end + mark[0].length]))) end = text.indexOf(mark[0], end + 1)
      if (end > i + mark[0].length) { flush(); out.push(html`<${mark[1]} key=${i}>${inline(text.slice(i + mark[0].length, end), deep + 1, linked)}<//>`); i = end + mark[0].length; continue }
      if (end < 0) open.add(mark[0])
    }
    plain += c
    i++
  }
  flush()
  return out
}

const item = /^\s{0,3}(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/
const fence = /^\s{0,3}(```|~~~)/
const starts = line => item.test(line) || fence.test(line) || /^\s{0,3}(?:#{1,6}\s|>)/.test(line)

// blocks reads lines.
function blocks(lines, deep = 0) {
  const out = []
  for (let i = 0; i < lines.length;) {
    const line = lines[i], key = i, code = fence.exec(line), head = /^\s{0,3}#{1,6}\s+(.*)$/.exec(line)
    if (!line.trim()) { i++; continue }
    if (code) {
      let end = i + 1
      while (end < lines.length && !lines[end].trim().startsWith(code[1])) end++
      out.push(html`<pre key=${key} tabindex="0" aria-label="code">${visible(lines.slice(i + 1, end).join("\n"))}</pre>`)
      i = end + 1
    } else if (head) {
      out.push(html`<p key=${key} class="strong">${inline(head[1])}</p>`)
      i++
    } else if (/^\s{0,3}(?:[-*_]\s*){3,}$/.test(line)) {
      out.push(html`<hr key=${key} />`)
      i++
    } else if (/^\s{0,3}>/.test(line) && deep < deepest) {
      let end = i
      while (end < lines.length && /^\s{0,3}>/.test(lines[end])) end++
      out.push(html`<blockquote key=${key}>${blocks(lines.slice(i, end).map(l => l.replace(/^\s{0,3}> ?/, "")), deep + 1)}</blockquote>`)
      i = end
    } else if (item.test(line)) {
      const numbered = !!item.exec(line)[2], from = Number(item.exec(line)[2] ?? 1), all = []
      for (let m; i < lines.length && (m = item.exec(lines[i])) && !!m[2] === numbered; ) {
        let text = m[3]
        for (i++; i < lines.length && lines[i].trim() && !starts(lines[i]); i++) text += "\n" + lines[i].trim()
        all.push(text)
        if (!lines[i]?.trim() && item.test(lines[i + 1] ?? "")) i++
      }
      const list = all.map((text, n) => html`<li key=${n}>${inline(text)}</li>`)
      out.push(numbered ? html`<ol key=${key} start=${from}>${list}</ol>` : html`<ul key=${key}>${list}</ul>`)
    } else {
      let end = i + 1
      while (end < lines.length && lines[end].trim() && !starts(lines[end])) end++
      out.push(html`<p key=${key} class="pre">${inline(lines.slice(i, end).join("\n"))}</p>`)
      i = end
    }
  }
  return out
}

// Prose shows a text that may be Markdown.
export function Prose({ text }) {
  return html`<div class="prose" dir="auto">${text.length > longest ? html`<p class="pre">${visible(text)}</p>` : blocks(text.replace(/\r\n?/g, "\n").split("\n"))}</div>`
}
