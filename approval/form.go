package approval

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

const (
	// pageKey is the idempotency key of what people decide on the page. It is the same for every decision, so that a
	// second one, by any person, is answered by the first instead of standing beside it.
	pageKey  = "page"
	pageType = "person"

	nonceBytes = 8
)

// actForm delivers what a person decides.
func (x *exchange) actForm(body []byte) *reply {
	fields, err := url.ParseQuery(string(body))
	if err != nil {
		return x.invalid("The form could not be read.")
	}
	t, a := x.onlyToken(fields["token"], bearerTokens(x.r), queryTokens(x.r))
	if a != nil {
		return a
	}
	p, _ := x.posted(t)
	answer, problem := readAnswer(fields, p)
	if x.name != "" {
		answer.By = x.name
	}
	if problem == nil {
		problem = textProblem(answer)
	}
	if problem != nil {
		a := x.invalid(problem(english))
		a.page = x.form(p, t)
		a.page.Problem, a.page.Answer = problem(x.texts), answer
		a.page.Edit = answer.Arguments != nil && !json.Valid(answer.Arguments)
		return a
	}
	payload, err := json.Marshal(answer)
	if err != nil {
		return x.failed(t, err)
	}
	s := suspend.SentSignal{ID: decision(t, answer.Choice, fields.Get("nonce")), Name: answer.Choice,
		SourceType: pageType, Source: answer.By, IdempotencyKey: pageKey, DedupTTL: limits.MaxDedupTTL,
		Encoding: "json", Payload: payload}
	if err := s.Validate(); err != nil {
		return x.failed(t, err)
	}
	if a = x.decide(t, p, s); a.status == http.StatusBadRequest && answer.Arguments != nil { // they do not fit
		a.page = x.form(p, t)
		a.page.Problem, a.page.Answer, a.page.Edit = a.body.Message, answer, true
	}
	return a
}

// decide delivers a decision and says which one stands.
func (x *exchange) decide(t suspend.Token, p page, s suspend.SentSignal) *reply {
	d, a := x.deliver(t, s)
	if a == nil && d.Duplicate && ignored(d.Effect) { // what came first does not stand, and must not keep others out
		s.IdempotencyKey = pageKey + ":" + hex.EncodeToString(mark(t, s.Name))
		d, a = x.deliver(t, s)
	}
	if a != nil {
		return a
	}
	switch label := p.label(s.Name); {
	case ignored(d.Effect):
		return x.delivered(d, x.texts.NotAccepted, answerIn(x.texts.NotWaitedFor, label))
	case d.Duplicate:
		stands := x.texts.SomeStands
		if i := slices.IndexFunc(p.Choices, func(c suspend.Choice) bool {
			return decided(t, c.Name,
				d.Signal)
		}); i >= 0 {
			stands = answerIn(x.texts.OtherStands, p.label(p.Choices[i].Name))
		}
		return x.delivered(d, x.texts.AlreadyAnswered, stands)
	default:
		return x.delivered(d, x.texts.ThankYou, answerIn(x.texts.Recorded, label))
	}
}

// ignored tells an effect by which nothing was decided.
func ignored(effect suspend.Effect) bool {
	return effect == waitwords.EffectNone || effect == waitwords.EffectUnmatched
}

// problem says, in a language, what is wrong.
type problem func(Texts) string

// readAnswer reads the fields of the form. What is wrong with its texts is for Answer.problem to say.
func readAnswer(fields url.Values, p page) (a suspend.Answer, wrong problem) {
	for _, name := range []string{"choice", "comment", "by", "arguments"} {
		if len(fields[name]) > 1 {
			return a, func(Texts) string { return "The form has the field " + name + " twice." }
		}
	}
	text := func(name string) string {
		return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(fields.Get(name), string(utf8.RuneError)),
			"\r\n", "\n"))
	}
	a = suspend.Answer{Choice: fields.Get("choice"), Comment: text("comment"), By: text("by")}
	if !p.offers(a.Choice) {
		return a, func(t Texts) string { return t.ChooseOne }
	}
	if changed := []byte(text("arguments")); fields.Has("arguments") && !bytes.Equal(changed, p.details()) {
		a.Arguments = changed
	}
	if a.Arguments != nil && !json.Valid(a.Arguments) {
		return a, func(t Texts) string { return t.NoDetails }
	}
	return a, nil
}

// details are the arguments that an answer may change, for people; nil for none.
func (p page) details() []byte {
	var b bytes.Buffer
	if p.Arguments == nil || json.Indent(&b, p.Arguments, "", "  ") != nil {
		return nil
	}
	return b.Bytes()
}

// textProblem says what is wrong with the texts of an answer, nil for nothing.
func textProblem(a suspend.Answer) problem {
	switch {
	case len(a.Comment) > maxComment:
		return func(t Texts) string {
			return strings.ReplaceAll(t.CommentTooLong, "{bytes}", strconv.Itoa(len(a.Comment)))
		}
	case checkName(a.By) != nil:
		return func(t Texts) string { return t.NameTooLong }
	}
	return nil
}

// checkName refuses a name that cannot be the source of a signal.
func checkName(name string) error {
	return suspend.SentSignal{Name: postedName, Source: name}.Validate()
}

// offers tells whether a choice is on the page.
func (p page) offers(name string) bool {
	return slices.ContainsFunc(p.Choices, func(c suspend.Choice) bool { return c.Name == name })
}

// names lists the choices for programs.
func (p page) names() string {
	var names []string
	for _, c := range p.Choices {
		names = append(names, strconv.Quote(c.Name))
	}
	return strings.Join(names, ", ")
}

// label is what the button of a choice says.
func (p page) label(name string) string {
	for _, c := range p.Choices {
		if c.Name == name && c.Label != "" {
			return c.Label
		}
	}
	return name
}

// newNonce tells one rendering of the page from another, so that a click that is repeated is not taken for a second
// decision.
func newNonce() string {
	var nonce [nonceBytes]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return hex.EncodeToString(nonce[:])
}

// decision is the id of the signal that a choice on one rendering of the page sends. Its first half tells the choice
// to those who come later and get the id in answer; the second half is the nonce.
func decision(t suspend.Token, choice, nonce string) (id flowfabric.UUID) {
	random, err := hex.DecodeString(nonce)
	if err != nil || len(random) != nonceBytes {
		random, _ = hex.DecodeString(newNonce())
	}
	copy(id[:], mark(t, choice))
	copy(id[8:], random)
	id[8] = id[8]&0x3f | 0x80 // RFC 9562 variant
	return id
}

func decided(t suspend.Token, choice string, id flowfabric.UUID) bool {
	return string(mark(t, choice)) == string(id[:8])
}

// mark is eight bytes that name a choice of one waitpoint; as the beginning of a UUID they have its version, 8.
func mark(t suspend.Token, choice string) []byte {
	waitpoint := t.Waitpoint()
	sum := sha256.Sum256(append(waitpoint[:], choice...))
	sum[6] = sum[6]&0x0f | 0x80
	return sum[:8]
}
