package agent

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/digest"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// partsField is the field that errors about parts name.
const partsField = "Parts"

// PartType says what a part of a message is.
type PartType string

// The types of parts.
const (
	PartText      PartType = "text"
	PartImage     PartType = "image"
	PartFile      PartType = "file"      // a document, a sound, or anything else that has a media type
	PartReasoning PartType = "reasoning" // what the model thought, of its own messages
)

// Part is a piece of a message: a text, an image, a file, or what the model thought. Adapters give images and files to
// services that take them, and tell the model what was left out where one does not.
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitempty"` // of text and reasoning
	// Media is the MIME type of an image or a file, for example image/png. Default: what the bytes look like. Name is
	// that of the file, at most 255 bytes, longer ones are cut.
	Media string `json:"media,omitempty"`
	Name  string `json:"name,omitempty"`
	// Data are the bytes of an image or a file. With Config.Blobs more than 1 KiB of them are stored there, and the
	// transcript has only Blob, their reference as blob.Ref makes it, and Size. A model gets Data always. Who makes a
	// message sets either: Data, or Blob for bytes that are in the store. Of both, Data counts.
	Data []byte `json:"data,omitempty"`
	Blob string `json:"blob,omitempty"`
	Size int64  `json:"size,omitempty"` // of Data, in bytes
}

// Text makes the parts of a message that is a text; none of "".
func Text(text string) []Part {
	if text == "" {
		return nil
	}
	return []Part{{Type: PartText, Text: text}}
}

// Text is what the message says: its parts of type text, with nothing between them.
func (m Message) Text() string {
	if len(m.Parts) == 1 && m.Parts[0].Type == PartText {
		return m.Parts[0].Text
	}
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Type == PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// hasBytes says that it is an image or a file.
func (p Part) hasBytes() bool { return p.Type == PartImage || p.Type == PartFile }

// check says what is wrong with a part.
func (p Part) check() error {
	switch {
	case !slices.Contains([]PartType{PartText, PartImage, PartFile, PartReasoning}, p.Type):
		return fmt.Errorf("type %.40q is not valid, want %s, %s, %s or %s", p.Type, PartText, PartImage, PartFile,
			PartReasoning)
	case !p.hasBytes() || len(p.Data) > 0:
		return nil
	case p.Blob == "":
		return fmt.Errorf("type %s has neither Data nor Blob", p.Type)
	}
	_, err := digest.Of(p.Blob)
	return err
}

// checkParts says what is wrong with the first part that is not valid, if there is one.
func checkParts(parts []Part) error {
	for i, p := range parts {
		if err := p.check(); err != nil {
			return fmt.Errorf("%s[%d]: %w", partsField, i, err)
		}
	}
	return nil
}

const maxPartName = 255 // bytes

// cleaned are parts as a transcript has them, in a slice of its own: valid UTF-8, without empty texts and without
// fields that a type does not have.
func cleaned(parts []Part) (clean []Part) {
	for _, p := range parts {
		if !p.hasBytes() {
			if p.Text != "" {
				clean = append(clean, Part{Type: p.Type, Text: strings.ToValidUTF8(p.Text, "\ufffd")})
			}
			continue
		}
		p.Text = ""
		p.Name = cut(p.Name, maxPartName, 2*maxPartName)
		if p.Media = cut(p.Media, maxPartName, 2*maxPartName); len(p.Data) > 0 {
			p.Blob, p.Size = "", int64(len(p.Data))
		}
		clean = append(clean, p.typed())
	}
	return clean
}

// typed has a media type if there are bytes.
func (p Part) typed() Part {
	if p.Media == "" && len(p.Data) > 0 {
		p.Media = http.DetectContentType(p.Data)
	}
	return p
}

// size is how many bytes parts take in a transcript, but for what is around them.
func size(parts []Part) (n int) {
	for _, p := range parts {
		n += encodedText(p.Text) + encodedText(p.Name) + encodedText(p.Media) + len(p.Blob) + (len(p.Data)+2)/3*4
	}
	return n
}

// errNoBlobs is the error of a part that needs Config.Blobs.
var errNoBlobs = errors.New("Config.Blobs is nil: set it to a store of package blob")

// tooLarge names the part because of which parts do not fit into a step, if that is due to bytes.
func tooLarge(parts []Part) error {
	if size(parts) <= limits.MaxToolResult {
		return nil
	}
	largest := 0
	for i, p := range parts {
		if len(p.Data) > len(parts[largest].Data) {
			largest = i
		}
	}
	p := parts[largest]
	if len(p.Data) == 0 {
		return nil
	}
	return fmt.Errorf("%s[%d], of type %s, has %d bytes, more than fit into a message: %w (%w)", partsField, largest,
		p.Type, len(p.Data), errNoBlobs, flowfabric.ErrPayloadTooLarge)
}
