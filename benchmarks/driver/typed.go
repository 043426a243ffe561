package driver

// Document is what a typed job carries: JSON with the payload as text, as applications have.
type Document struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

// Answer is the result of a typed job, about 40 B of JSON.
type Answer struct {
	Number int    `json:"number"`
	Bytes  int    `json:"bytes"`
	State  string `json:"state"`
}

// Envelope is how many bytes a document has besides its payload.
const Envelope = len(`{"number":100000,"text":""}`)

// Typed is the document of a payload, which must be printable.
func Typed(payload []byte) Document { return Document{Number: 100_000, Text: string(payload)} }

// Answered is what the handler of a typed job returns.
func (d Document) Answered() Answer {
	return Answer{Number: d.Number, Bytes: len(d.Text), State: "done"}
}
