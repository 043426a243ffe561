package stream

import (
	"encoding/json"
	"time"
)

// LogLine is one line that a handler logged with its task's logger, as an attempt keeps it: of each the last 1,000
// lines and 256 KiB. A line has at most 8 KiB; what was longer was cut, which "…" at its end tells. A line with
// Dropped and no Message only says that lines are missing here.
type LogLine struct {
	Cursor     string          `json:"cursor"` // its place in the log of the execution, for LogRange.After
	Attempt    uint32          `json:"attempt"`
	At         time.Time       `json:"at"` // by the worker's clock
	Level      string          `json:"level" jsonschema:"debug, info, warn or error"`
	Message    string          `json:"message,omitempty"`
	Attributes json.RawMessage `json:"attributes,omitempty" jsonschema:"an object; names in groups have dots"`
	// Dropped is how many lines before this one the worker could not store in time.
	Dropped int `json:"dropped,omitempty" jsonschema:"lines before this one that the worker could not store"`
}

// LogRange says which lines of an execution are read. The zero value is all that are stored, the oldest first.
type LogRange struct {
	Attempt uint32 // only this one, 1 is the first; 0: all
	After   string // behind the line with this Cursor; "": from the first line
	Level   string // lines below it are left out: debug (default), info, warn or error
	Follow  bool   // waits for further lines, until the execution or the attempt has ended
}
