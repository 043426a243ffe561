package crash

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// operations names the calls that a journal keeps, by function.
var operations = map[string]string{
	"ff_claim_next": "claim", "ff_complete_execution": "complete", "ff_fail_execution": "fail",
	"ff_delay_execution": "delay", "ff_release_execution": "release", "ff_record_step": "step",
	"ff_append_frames": "append",
}

// Journal is a file that only grows, one line a fact, each written before anybody acts on it. Safe for concurrent
// use; a process that is killed loses no line.
//
//	claim  <ns of the request> <ns of the answer> <execution> <session> <claim> <epoch> <attempt>
//	write  <ns of the request> <operation> <ok|again|refusal> <execution> <epoch> <attempt>
//	sent|acked|unknown <first> <count>          of a producer
//
// Operations: complete, fail (a retry follows), dead (none does), delay, release, step, append.
type Journal struct {
	mu   sync.Mutex
	file *os.File
}

// OpenJournal opens or creates the file.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Journal{file: f}, nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// Note writes one line. A journal that cannot be written proves nothing, so it panics.
func (j *Journal) Note(format string, args ...any) { j.write(fmt.Sprintf(format+"\n", args...)) }

func (j *Journal) write(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.WriteString(text); err != nil {
		panic(err)
	}
}

// answered writes down what the server answered to a call: [status code slots…].
func (j *Journal) answered(r request, reply [][]byte) {
	if len(reply) < 2 {
		return
	}
	op, root, args := operations[r.args[1]], r.args[3], r.args[5:] // FCALL name 1 root protocol …
	partition, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(root, "ff:{fp:"), "}"), 10, 16)
	if err != nil {
		panic(fmt.Sprintf("journal: key %q", root))
	}
	in := strconv.FormatUint(partition, 10) + "-"
	answer := string(reply[1])
	switch op {
	case "claim":
		if answer == "OK" {
			j.claims(in, r, reply[2:])
		}
	case "complete":
		if answer != "OK" {
			return // refused as a whole: nothing was judged
		}
		var b strings.Builder
		for i := range min((len(args)-2)/6, len(reply)-3) {
			line(&b, r.sent, op, verdict(string(reply[3+i])), in, args[1+6*i:])
		}
		j.write(b.String())
	default:
		if op == "fail" && answer == "OK" && string(reply[2]) == "failed" {
			op = "dead" // the last failure: the end
		}
		var b strings.Builder
		line(&b, r.sent, op, map[string]string{"OK": "ok", "ALREADY_SATISFIED": "again"}[answer]+refusal(reply), in,
			args)
		j.write(b.String())
	}
}

// verdict reads one item's answer: "+…", "=…" or "-code detail".
func verdict(text string) string {
	switch {
	case strings.HasPrefix(text, "+"):
		return "ok"
	case strings.HasPrefix(text, "="):
		return "again"
	}
	code, _, _ := strings.Cut(strings.TrimPrefix(text, "-"), " ")
	return code
}

func refusal(reply [][]byte) string {
	if string(reply[0]) == "0" {
		return string(reply[1])
	}
	return ""
}

// line writes the facts of one fenced write; fence begins with id session claim epoch attempt.
func line(b *strings.Builder, sent time.Time, op, answer, in string, fence []string) {
	fmt.Fprintf(b, "write %d %s %s %s%s %s %s\n", sent.UnixNano(), op, answer, in, fence[0], fence[3], fence[4])
}

// claims walks a claim reply: duplicate registered more overdue gated full version, the table rows, the claims.
func (j *Journal) claims(in string, r request, slots [][]byte) {
	next := func() string {
		if len(slots) == 0 {
			panic("journal: a claim reply is too short")
		}
		s := slots[0]
		slots = slots[1:]
		return string(s)
	}
	number := func() int {
		n, err := strconv.Atoi(next())
		if err != nil {
			panic(fmt.Sprintf("journal: a claim reply: %v", err))
		}
		return n
	}
	slots = slots[7:]
	slots = slots[2*number():]
	var b strings.Builder
	now := time.Now().UnixNano()
	for range number() {
		header := strings.Fields(next())
		fmt.Fprintf(&b, "claim %d %d %s%s %s %s %s %s\n", r.sent.UnixNano(), now, in, header[0], r.args[5], r.args[6],
			header[2], header[1])
		flags := header[len(header)-4:] // input, tags, steps, resume
		if flags[0] == "1" {
			next()
		}
		for _, pairs := range flags[1:3] {
			if pairs == "1" {
				slots = slots[2*number():]
			}
		}
		if flags[3] == "1" {
			next()
		}
	}
	if b.Len() > 0 {
		j.write(b.String())
	}
}

// Claimed is one claim that was acknowledged; Sent is when the request left and At when its answer arrived.
type Claimed struct {
	Sent, At time.Time
	Fence    flowfabric.Fence
}

// Written is one fenced write that was answered; Sent is when the request left. Answer is ok, again or a code.
type Written struct {
	Sent      time.Time
	Operation string
	Answer    string
	Execution flowfabric.ExecutionID
	Epoch     uint64
	Attempt   uint32
}

// Batch is a line of a producer: What is sent, acked or unknown.
type Batch struct {
	What         string
	First, Count int
}

// ReadJournal calls back for every line of a journal; a nil function skips its kind. A line that a kill has cut
// short, necessarily the last, is left out.
func ReadJournal(path string, claimed func(Claimed), written func(Written), batch func(Batch)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, 1<<16)
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			return nil
		}
		p := parser{words: strings.Fields(text)}
		switch what := p.word(); what {
		case "claim":
			c := Claimed{Sent: time.Unix(0, int64(p.number())), At: time.Unix(0, int64(p.number()))}
			c.Fence.Execution, c.Fence.Session, c.Fence.Claim = p.id(), p.word(), p.number()
			c.Fence.Epoch, c.Fence.Attempt = p.number(), uint32(p.number())
			if p.err == nil && claimed != nil {
				claimed(c)
			}
		case "write":
			w := Written{Sent: time.Unix(0, int64(p.number())), Operation: p.word(), Answer: p.word(),
				Execution: p.id()}
			w.Epoch, w.Attempt = p.number(), uint32(p.number())
			if p.err == nil && written != nil {
				written(w)
			}
		case "sent", "acked", "unknown":
			b := Batch{What: what, First: int(p.number()), Count: int(p.number())}
			if p.err == nil && batch != nil {
				batch(b)
			}
		default:
			p.err = fmt.Errorf("unknown word %q", what)
		}
		if p.err != nil {
			return fmt.Errorf("%s: line %q: %w", path, text, p.err)
		}
	}
}

// parser walks the words of a line and remembers the first that is wrong.
type parser struct {
	words []string
	err   error
}

func (p *parser) word() string {
	if len(p.words) == 0 {
		p.err = fmt.Errorf("a word is missing")
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *parser) number() uint64 {
	n, err := strconv.ParseUint(p.word(), 10, 64)
	if err != nil && p.err == nil {
		p.err = err
	}
	return n
}

func (p *parser) id() flowfabric.ExecutionID {
	id, err := flowfabric.ParseExecutionID(p.word())
	if err != nil && p.err == nil {
		p.err = err
	}
	return id
}
