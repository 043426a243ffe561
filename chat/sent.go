package chat

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// maxInline is how many bytes of a file stay in a message, if there is a store for more; as agents have it.
const maxInline = 1 << 10

// front is a message as a front end has it.
type front struct {
	id      string
	role    agent.Role
	text    string       // of all its parts that are a text
	parts   []agent.Part // of the user
	answers []decision   // of the assistant: decisions of people about its calls
}

// decision is the decision of a person, independent of protocols.
type decision struct {
	ask       string // id or key of the waitpoint
	choice    string
	comment   string
	arguments json.RawMessage // as they have changed them; nil: as they were
}

// decide is a decision about a call.
func decide(ask string, approved bool, comment string, arguments json.RawMessage) decision {
	d := decision{ask: ask, choice: choiceReject, comment: comment}
	if approved {
		d.choice, d.arguments = choiceApprove, arguments
	}
	if string(d.arguments) == "null" {
		d.arguments = nil
	}
	return d
}

// key is the idempotency key of a decision with changed arguments: it tells the same ones from others.
func (d decision) key() string {
	sum := sha256.Sum256([]byte(compacted(string(d.arguments))))
	return "arguments " + hex.EncodeToString(sum[:])
}

// The choices of a question about a call of an agent.
const (
	choiceApprove = "approve"
	choiceReject  = "reject"
)

// The roles of messages of front ends.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// uiMessage is a message of the AI SDK, as far as it is read.
type uiMessage struct {
	ID    string   `json:"id"`
	Role  string   `json:"role"`
	Parts []uiPart `json:"parts"`
}

type uiPart struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	MediaType string `json:"mediaType"`
	Filename  string `json:"filename"`
	URL       string `json:"url"`
	State     string `json:"state"`
	Approval  *struct {
		ID        string          `json:"id"`
		Approved  *bool           `json:"approved"`
		Reason    string          `json:"reason"`
		Arguments json.RawMessage `json:"arguments"` // that a person has changed, of our own transport
	} `json:"approval"`
}

// decodeBody reads a request's body as JSON. It ignores unknown members, which are the front end's own.
func decodeBody(c *request, into any) error {
	data, err := io.ReadAll(c.q.Body)
	if err != nil {
		return err
	}
	media, _, err := mime.ParseMediaType(c.q.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		p := bad("Content-Type", "the Content-Type is %.80q, want application/json", c.q.Header.Get("Content-Type"))
		p.Status = http.StatusUnsupportedMediaType
		return p
	}
	if err := json.Unmarshal(data, into); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return bad(wrong.Field, "%s is a JSON %s, want another type", cmp.Or(wrong.Field, "the body"), wrong.Value)
		}
		return bad("", "the body is not JSON")
	}
	return nil
}

// front reads a message of the AI SDK. The bytes of its files are stored by store, later.
func (m uiMessage) front(field string) (f front, err error) {
	if err := checkMessageID(field+".id", m.ID); err != nil {
		return f, err
	}
	f = front{id: m.ID, role: agent.Role(m.Role)}
	switch m.Role {
	case roleUser, roleAssistant:
	case "system":
		return f, bad(field+".role", "%s.role is system: the server has the instructions", field)
	default:
		return f, bad(field+".role", "%s.role is %.40q, want user or assistant", field, m.Role)
	}
	for i, p := range m.Parts {
		at := fmt.Sprintf("%s.parts[%d]", field, i)
		switch {
		case p.Type == "text":
			f.text += p.Text
			f.parts = append(f.parts, agent.Text(p.Text)...)
		case m.Role == roleAssistant:
			if p.State == "approval-responded" && p.Approval != nil && p.Approval.Approved != nil {
				f.answers = append(f.answers, decide(p.Approval.ID, *p.Approval.Approved, p.Approval.Reason,
					p.Approval.Arguments))
			}
		case p.Type == "file":
			part, err := p.file(at)
			if err != nil {
				return f, err
			}
			f.parts = append(f.parts, part)
		default:
			return f, bad(at+".type", "%s.type is %.40q, want text or file", at, p.Type)
		}
	}
	return f, nil
}

var fileURL = regexp.MustCompile(`/files/([^/?#]+)$`)

// file reads a part that is a file: with its bytes, or one that is in the conversation already.
func (p uiPart) file(field string) (agent.Part, error) {
	out := agent.Part{Type: agent.PartFile, Media: p.MediaType, Name: p.Filename}
	if ref := fileURL.FindStringSubmatch(p.URL); ref != nil && !strings.HasPrefix(p.URL, "data:") {
		name, err := url.PathUnescape(ref[1])
		if err != nil {
			return out, bad(field+".url", "%s.url is no address of a file of this conversation", field)
		}
		out.Blob = name
	} else {
		media, data, err := dataURL(p.URL)
		if err != nil {
			return out, bad(field+".url", "%s.url %v, want a data: URL, or the address of a file of this conversation",
				field, err)
		}
		out.Media, out.Data = cmp.Or(out.Media, media), data
	}
	if strings.HasPrefix(out.Media, "image/") {
		out.Type = agent.PartImage
	}
	return out, nil
}

// dataURL reads a data: URL (RFC 2397).
func dataURL(text string) (media string, data []byte, err error) {
	rest, ok := strings.CutPrefix(text, "data:")
	head, body, found := strings.Cut(rest, ",")
	if !ok || !found {
		return "", nil, errors.New("is no data: URL")
	}
	media, encoded := strings.CutSuffix(head, ";base64")
	if encoded {
		data, err = base64.StdEncoding.DecodeString(body)
	} else {
		var plain string
		plain, err = url.PathUnescape(body)
		data = []byte(plain)
	}
	if err != nil {
		return "", nil, errors.New("does not decode")
	}
	if len(data) == 0 {
		return "", nil, errors.New("has no bytes")
	}
	if media, _, err = mime.ParseMediaType(media); err != nil {
		media = ""
	}
	return media, data, nil
}

// files counts images and files.
func files(parts []agent.Part) (n int) {
	for _, p := range parts {
		if p.Type == agent.PartImage || p.Type == agent.PartFile {
			n++
		}
	}
	return n
}

// payload is the mailbox message for a message of the user: its ID and its parts, whose large bytes are stored. Had
// says which blobs the conversation has.
func (h *Handler) payload(ctx context.Context, field string, m front, had func(ref string) bool) (json.RawMessage,
	error) {
	if len(m.parts) == 0 {
		return nil, bad(field+".parts", "%s has neither text nor a file", field)
	}
	parts := make([]agent.Part, len(m.parts))
	size := 0
	for i, p := range m.parts {
		at := fmt.Sprintf("%s.parts[%d]", field, i)
		switch {
		case p.Blob != "" && (h.cfg.Blobs == nil || !had(p.Blob)):
			return nil, bad(at+".url", "%s.url is no file of this conversation", at)
		case h.cfg.Blobs != nil && len(p.Data) > maxInline:
			ref, err := h.cfg.Blobs.Put(ctx, p.Data)
			if err != nil {
				return nil, fmt.Errorf("chat: store a file: %w", err)
			}
			p.Blob, p.Size, p.Data = ref, int64(len(p.Data)), nil
		}
		size += len(p.Data)
		parts[i] = p
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		ID    string       `json:"id"`
		Parts []agent.Part `json:"parts"`
	}{m.id, parts})
	if err != nil {
		return nil, fmt.Errorf("a message does not encode: %w", err)
	}
	data := bytes.TrimSpace(b.Bytes())
	if len(data) > limits.MaxMessage {
		why := ""
		if size > 0 {
			why = ", and files stay in it, because the application has no store for them (Config.Blobs)"
		}
		return nil, large(field+".parts", "%s has %d bytes, more than %d%s", field, len(data), limits.MaxMessage, why)
	}
	return data, nil
}
