package wire

import (
	"encoding/base64"
	"fmt"
	"mime"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
)

// Kind says how a part can be given to a service.
type Kind int

// The kinds.
const (
	Other Kind = iota // nothing that services take, or bytes that are not there
	Plain             // text: see [PlainText]
	Image             // PNG, JPEG, GIF or WebP
	PDF
)

// KindOf is the kind of a part, by its media type if it has bytes.
func KindOf(p agent.Part) Kind {
	media, _, _ := mime.ParseMediaType(p.Media)
	switch {
	case p.Type == agent.PartText:
		return Plain
	case p.Type == agent.PartReasoning || len(p.Data) == 0:
		return Other
	case media == "image/png" || media == "image/jpeg" || media == "image/gif" || media == "image/webp":
		return Image
	case media == "application/pdf":
		return PDF
	case strings.HasPrefix(media, "text/") || media == "application/json" || strings.HasSuffix(media, "+json") ||
		media == "application/xml" || strings.HasSuffix(media, "+xml") || media == "application/yaml":
		return Plain
	}
	return Other
}

// Media is the media type of a part without parameters.
func Media(p agent.Part) string {
	media, _, _ := mime.ParseMediaType(p.Media)
	return media
}

// Base64 are the bytes of a part.
func Base64(p agent.Part) string { return base64.StdEncoding.EncodeToString(p.Data) }

// PlainText is the text of a part of kind [Plain]; a file has its name before it.
func PlainText(p agent.Part) string {
	if p.Type == agent.PartText {
		return p.Text
	}
	text := strings.ToValidUTF8(string(p.Data), "\uFFFD")
	if p.Name != "" {
		return p.Name + ":\n" + text
	}
	return text
}

// Left tells the model of a part that it does not get.
func Left(p agent.Part, why string) string {
	name := ""
	if p.Name != "" {
		name = " " + p.Name
	}
	return fmt.Sprintf("[%s%s (%s, %d bytes): %s]", p.Type, name, p.Media, max(p.Size, int64(len(p.Data))), why)
}

// NotTaken is why a part of kind [Other] is left out.
const NotTaken = "left out, this service does not take it"

// said are the parts of a message that a service is told: nothing blank, no reasoning.
func said(parts []agent.Part) (told []agent.Part) {
	for _, p := range parts {
		if p.Type != agent.PartReasoning && (p.Type != agent.PartText || strings.TrimSpace(p.Text) != "") {
			told = append(told, p)
		}
	}
	return told
}
