package chat

import (
	"encoding/json"
	"fmt"
)

// thing writes a file, a source, or data of the application. Temporary data is an event that clients do not keep.
func (w *aguiWriter) thing(e event) {
	name, value := e.name, any(e.value)
	switch {
	case e.kind == kindData && e.preliminary:
		w.tell(aguiEvent{Type: aguiCustom, Name: e.name, Value: orNull(e.value)})
		return
	case e.kind == kindFile:
		name = "file"
		value = map[string]string{"url": w.link(e.file), "mediaType": e.file.Media, "filename": e.file.Name}
	case e.kind == kindSource:
		name = "source"
	}
	id := e.id
	if id == "" {
		w.things++
		id = fmt.Sprint(w.things)
	}
	m := aguiMessage{ID: w.reply + "." + name + "." + id, Role: aguiRoleActivity, ActivityType: name,
		Content: objectOf(value)}
	w.replace(m)
	w.tell(aguiEvent{Type: aguiActivity, MessageID: m.ID, ActivityType: name, Content: m.Content})
}

func (w *aguiWriter) notice(e event) {
	value := map[string]any{"text": e.text}
	if !e.when.IsZero() {
		value["when"] = e.when.UTC()
	}
	data, err := json.Marshal(value)
	if err != nil {
		return
	}
	w.tell(aguiEvent{Type: aguiCustom, Name: "notice." + e.name, Value: data})
}

// state writes a new summary document, as a patch where that is shorter.
func (w *aguiWriter) state(now json.RawMessage) {
	if !w.live {
		return
	}
	before := w.document
	w.document = now
	if before != nil {
		if patch, err := patchBetween(before, now); err == nil && patch != nil {
			w.tell(aguiEvent{Type: aguiStateDelta, Delta: patch})
			return
		}
		if sameJSON(before, now) {
			return
		}
	}
	w.tell(aguiEvent{Type: aguiState, Snapshot: orEmpty(now)})
}

// objectOf is a value as the content of an activity, which must be an object.
func objectOf(value any) any {
	raw, ok := value.(json.RawMessage)
	if !ok {
		return value
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && object != nil {
		return raw
	}
	return map[string]json.RawMessage{"value": orNull(raw)}
}

func orNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}

func orEmpty(document json.RawMessage) json.RawMessage {
	if len(document) == 0 {
		return json.RawMessage("{}")
	}
	return document
}

// sameJSON says that two documents are equal; an empty one is {}.
func sameJSON(a, b json.RawMessage) bool {
	x, err := documentOf(a)
	y, bad := documentOf(b)
	return err == nil && bad == nil && same(x, y)
}
