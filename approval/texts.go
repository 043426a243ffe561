package approval

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/suspend"
)

// Texts are all words of the page but those of a question. An empty one has its English default, which
// is shown behind it, so an application gives those of its language. {answer} stands for the label of a choice,
// {name} for a name, {time} for what Time writes, {bytes} for a number. All is plain text. What programs are told
// stays English.
type Texts struct {
	Lang string // of the page, as in HTML: en
	Dir  string // how it is written: ltr, or rtl

	Site        string // whose page it is, above everything: FlowFabric
	Title       string // of a page without one: Your answer is needed
	AnswerUntil string // above the form, where an answer has an end: Please answer until {time}.
	Afterwards  string // below the buttons: The work goes on with your answer at once. It cannot be changed.
	Approve     string // the label of the default choice approve: Approve
	Reject      string // and of reject: Reject
	Details     string // labels the field with what an answer may change: Details, which you may change
	Comment     string // labels a field: Comment
	Name        string // labels a field: Your name
	Optional    string // stands behind both: (optional)
	YourAnswer  string // what a screen reader calls the buttons: Your answer
	AnsweringAs string // instead of the field for the name, if Config.By knows it: You answer as {name}.

	ThankYou   string // a heading: Thank you
	Recorded   string // Your answer “{answer}” was recorded. You can close this page.
	SignalSent string // after a callback: The signal was delivered.

	Answered  string // on an answered link: This was answered. The answer stands.
	Decision  string // labels what was decided: Answer
	DecidedBy string // by whom: By
	DecidedAt string // when: At
	// Time writes when. Default "2006-01-02 15:04 UTC".
	Time func(time.Time) string

	AlreadyAnswered string // a heading: Already answered
	OtherStands     string // An answer was already recorded: “{answer}”. It stands, and yours was not recorded.
	SomeStands      string // An answer was already recorded. It stands, and yours was not recorded.
	NotAccepted     string // a heading: Not accepted
	NotWaitedFor    string // “{answer}” was received, but it is not among the answers that are waited for.
	Closed          string // a heading: Already closed
	NotNeeded       string // This was already answered, or an answer is not needed any more. Nothing was recorded.

	ChooseOne      string // Please choose one of the answers.
	CommentTooLong string // The comment is too long: it has {bytes} bytes, at most 8192 are possible.
	NoDetails      string // The details are not JSON.
	NameTooLong    string // The name must be a single line of at most 256 bytes.

	BadLink string // a heading: This link does not work
	// It may be incomplete, or a newer one has replaced it. Please ask the person who sent it for a new link.
	AskForAnother  string
	ExpiredLink    string // a heading: This link has expired
	AskForNew      string // Please ask the person who sent it for a new link.
	SignIn         string // a heading: Please sign in
	SignInFirst    string // Sign in to the application, then open the link again.
	NotAllowed     string // a heading: You may not answer this
	AskWhoMay      string // Please ask the person who sent the link.
	DoesNotWork    string // a heading: This does not work
	OtherSite      string // The form must be sent from the page itself.
	TooMuch        string // a heading: That is too much
	TooLarge       string // The payload has more than 65536 bytes.
	TooManyAnswers string // a heading: Too many answers
	NothingMore    string // Nothing more is taken here.
	NotAvailable   string // a heading: Not available at the moment
	Wrong          string // a heading: Something is wrong
	TryLater       string // Please try again later.
}

// english are the defaults.
var english = Texts{
	Lang: "en", Dir: "ltr", Site: "FlowFabric", AnswerUntil: "Please answer until {time}.",
	Afterwards: "The work goes on with your answer at once. It cannot be changed.",
	Title:      "Your answer is needed", Approve: "Approve", Reject: "Reject", Comment: "Comment", Name: "Your name",
	Details: "Details, which you may change", NoDetails: "The details are not JSON.",
	Optional: "(optional)", YourAnswer: "Your answer", AnsweringAs: "You answer as {name}.",
	ThankYou: "Thank you", Recorded: "Your answer “{answer}” was recorded. You can close this page.",
	SignalSent: "The signal was delivered.",
	Answered:   "This was answered. The answer stands.", Decision: "Answer", DecidedBy: "By", DecidedAt: "At",
	Time:            func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	AlreadyAnswered: "Already answered",
	OtherStands:     "An answer was already recorded: “{answer}”. It stands, and yours was not recorded.",
	SomeStands:      "An answer was already recorded. It stands, and yours was not recorded.",
	NotAccepted:     "Not accepted",
	NotWaitedFor:    "“{answer}” was received, but it is not among the answers that are waited for.",
	Closed:          "Already closed",
	NotNeeded:       "This was already answered, or an answer is not needed any more. Nothing was recorded.",
	ChooseOne:       "Please choose one of the answers.",
	CommentTooLong: "The comment is too long: it has {bytes} bytes, at most " + strconv.Itoa(maxComment) +
		" are possible.",
	NameTooLong:   "The name must be a single line of at most 256 bytes.",
	BadLink:       "This link does not work",
	AskForAnother: "It may be incomplete, or a newer one has replaced it. Please ask the person who sent it for a new link.",
	ExpiredLink:   "This link has expired", AskForNew: "Please ask the person who sent it for a new link.",
	SignIn: "Please sign in", SignInFirst: "Sign in to the application, then open the link again.",
	NotAllowed: "You may not answer this", AskWhoMay: "Please ask the person who sent the link.",
	DoesNotWork: "This does not work", OtherSite: "The form must be sent from the page itself.",
	TooMuch: "That is too much", TooLarge: "The payload has more than 65536 bytes.",
	TooManyAnswers: "Too many answers", NothingMore: "Nothing more is taken here.",
	NotAvailable: "Not available at the moment", Wrong: "Something is wrong", TryLater: "Please try again later.",
}

// complete fills in the defaults.
func (t Texts) complete() Texts {
	own, usual := reflect.ValueOf(&t).Elem(), reflect.ValueOf(english)
	for i := range own.NumField() {
		if own.Field(i).IsZero() {
			own.Field(i).Set(usual.Field(i))
		}
	}
	return t
}

func answerIn(text, label string) string { return strings.ReplaceAll(text, "{answer}", label) }

// choices are the default ones, in this language.
func (t Texts) choices() []suspend.Choice {
	return []suspend.Choice{{Name: "approve", Label: t.Approve}, {Name: "reject", Label: t.Reject}}
}
