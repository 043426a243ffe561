package mcptools

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go/agent"
)

// partsOf is a result as the model gets it; a failed one is an error.
func partsOf(r *sdk.CallToolResult) ([]agent.Part, error) {
	if r.NeedsInput() {
		return nil, errors.New("the tool was not run: " + asksFor(r.InputRequests))
	}
	var parts []agent.Part
	for _, c := range r.Content {
		parts = append(parts, partOf(c))
	}
	if r.StructuredContent != nil && !said(parts, r.StructuredContent) {
		text, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return nil, err
		}
		parts = append(parts, agent.Text(string(text))...)
	}
	if r.IsError {
		var texts []string
		for _, p := range parts {
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
		}
		if len(texts) == 0 {
			texts = []string{"the tool failed and did not say why"}
		}
		return nil, errors.New(strings.Join(texts, "\n"))
	}
	return parts, nil
}

func partOf(c sdk.Content) agent.Part {
	switch c := c.(type) {
	case *sdk.TextContent:
		return agent.Part{Type: agent.PartText, Text: c.Text}
	case *sdk.ImageContent:
		return dataPart(agent.PartImage, c.Data, c.MIMEType, "")
	case *sdk.AudioContent:
		return dataPart(agent.PartFile, c.Data, c.MIMEType, "")
	case *sdk.ResourceLink:
		text := "a resource: " + c.URI
		for _, more := range []string{c.Name, c.MIMEType, c.Description} {
			if more != "" {
				text += ", " + more
			}
		}
		return agent.Part{Type: agent.PartText, Text: text}
	case *sdk.EmbeddedResource:
		if r := c.Resource; r != nil && r.Blob == nil {
			return agent.Part{Type: agent.PartText, Text: r.Text}
		} else if r != nil {
			kind := agent.PartFile
			if strings.HasPrefix(r.MIMEType, "image/") {
				kind = agent.PartImage
			}
			return dataPart(kind, r.Blob, r.MIMEType, path.Base(r.URI))
		}
	}
	return agent.Part{Type: agent.PartText, Text: fmt.Sprintf("(content of a kind that is not known: %T)", c)}
}

// dataPart is a part with bytes. Without bytes there is only its place.
func dataPart(kind agent.PartType, data []byte, media, name string) agent.Part {
	if len(data) == 0 {
		return agent.Part{Type: agent.PartText, Text: fmt.Sprintf("(an empty %s, %s)", kind, media)}
	}
	return agent.Part{Type: kind, Data: data, Media: media, Name: name}
}

// said reports that one of the texts is a value: its JSON, or, of one that is no object and so is the member result of
// one, the text that it is.
func said(parts []agent.Part, value any) bool {
	object, _ := value.(map[string]any)
	result, wrapped := object["result"]
	wrapped = wrapped && len(object) == 1
	return slices.ContainsFunc(parts, func(p agent.Part) bool {
		if p.Type != agent.PartText {
			return false
		}
		if wrapped && reflect.DeepEqual(result, p.Text) {
			return true
		}
		var v any
		return json.Unmarshal([]byte(p.Text), &v) == nil &&
			(reflect.DeepEqual(v, value) || wrapped && reflect.DeepEqual(v, result))
	})
}

// asksFor says what a server wants to know from a user.
func asksFor(requests sdk.InputRequestMap) string {
	text := "it asks for input from a user, which cannot be given here"
	for _, q := range requests {
		if form, ok := q.(*sdk.ElicitParams); ok && form.Message != "" {
			text += ": " + form.Message
		}
	}
	return cut(text, 4<<10)
}
