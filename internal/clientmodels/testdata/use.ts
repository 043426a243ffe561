import type { Kind2faInput, Kinds, PayInput, PayResult, SendMailInput, SendMailInput2, TreeInput } from "./kinds"

const mail: SendMailInput = {
  to: ["a"], from: "b", class: "first", lines: [{ sku: "x", count: 1, price: 1.5 }], "reply-to": null, "1st": true,
  labels: { a: [1, null] }, anything: { deep: [1] }, pair: ["a", 1], row: ["a", 1, null], flag: true, size: 2,
}
// @ts-expect-error lines is missing
const short: SendMailInput = { to: [], from: "b", class: "first" }
// @ts-expect-error no such value
const other: SendMailInput = { ...mail, class: "third" }
// @ts-expect-error a number in a list of texts
const wrong: SendMailInput = { ...mail, to: [7] }
// @ts-expect-error a third item
const pair: SendMailInput["pair"] = ["a", 1, 2]

const node: TreeInput = { value: ["x", [1, { box: 2 }]], children: [{ value: 1, children: [], parent: null }] }
// @ts-expect-error a child without children
const leaf: TreeInput = { value: 1, children: [{ value: 1 }] }

const card: PayInput = { amount: 1, by: "card", card: "4" }
// @ts-expect-error neither of the two
const none: PayInput = { amount: 1 }
const paid: PayResult = { id: "x", done: true, more: "y" }
const factor: Kind2faInput = { any: "text" }
const text: SendMailInput2 = null
const result: Kinds["send-mail"]["result"] = 3
const last: Kinds["класс"]["result"] = false

export const all = [mail, short, other, wrong, pair, node, leaf, card, none, paid, factor, text, result, last]
