package crash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Roles of messages.
const (
	user      = "user"
	assistant = "assistant"
	tool      = "tool"
)

// message is one entry of the conversation, as the model service takes it.
type message struct {
	Role string `json:"role"`
	Text string `json:"text"`
	Call *call  `json:"call,omitempty"` // of an answer that wants the tool
}

// call is what the model says when it wants a seat to be booked.
type call struct {
	ID   string `json:"id"`
	Seat string `json:"seat"`
}

// piece is a line of the service's stream: a token, or the end of the answer.
type piece struct {
	Token  string `json:"token,omitempty"`
	Call   *call  `json:"call,omitempty"`
	End    bool   `json:"end,omitempty"`
	Input  int64  `json:"input,omitempty"`
	Output int64  `json:"output,omitempty"`
}

// question is what every run begins with.
var question = message{Role: user, Text: "Book two seats and tell me which."}

// ask makes one call of the model. token is told each token as it comes.
func ask(ctx context.Context, service string, messages []message, token func(string) error) (message, piece, error) {
	var end piece
	answer := message{Role: assistant}
	body, err := post(ctx, service+"/model", messages)
	if err != nil {
		return answer, end, err
	}
	defer body.Close()
	lines := json.NewDecoder(bufio.NewReader(body))
	for !end.End {
		end = piece{}
		if err := lines.Decode(&end); err != nil {
			return answer, end, fmt.Errorf("read the answer: %w", err)
		}
		if end.Token != "" {
			answer.Text += end.Token
			if err := token(end.Token); err != nil {
				return answer, end, err
			}
		}
	}
	answer.Call = end.Call
	return answer, end, nil
}

// booking is what the bank takes. Key is the same whenever this call is repeated.
type booking struct {
	Key  string `json:"key"`
	Seat string `json:"seat"`
}

// book is the tool: its effect is outside of every store.
func book(ctx context.Context, service string, b booking) (receipt string, err error) {
	body, err := post(ctx, service+"/bank", b)
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	return string(text), err
}

func post(ctx context.Context, url string, in any) (io.ReadCloser, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// over is whether the conversation has its last answer.
func over(messages []message) bool {
	last := messages[len(messages)-1]
	return last.Role == assistant && last.Call == nil
}

// next is one step of the agent as every peer written in Go makes it: a model call, or the call of the tool that the
// last answer wants. The key of a tool's call is its place in the conversation.
func next(ctx context.Context, service string, messages []message, token func(string) error) (message, error) {
	last := messages[len(messages)-1]
	if last.Role != assistant {
		answer, _, err := ask(ctx, service, messages, token)
		return answer, err
	}
	receipt, err := book(ctx, service, booking{Key: fmt.Sprint("call ", len(messages)), Seat: last.Call.Seat})
	return message{Role: tool, Text: receipt}, err
}
