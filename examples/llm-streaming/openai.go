package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/handler"
)

const (
	defaultOpenAIModel = "gpt-4o-mini"
	maxEvent           = 1 << 20 // bytes of one server-sent event
	headerTimeout      = time.Minute
)

// OpenAI streams chat completions from an OpenAI-compatible API. It may be used concurrently.
type OpenAI struct {
	base, key, model string
	client           *http.Client
}

// NewOpenAI talks to the API at base, for example https://api.openai.com/v1, with the given key.
func NewOpenAI(base, key, model string) *OpenAI {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = headerTimeout // the body may take as long as the attempt's timeout allows
	return &OpenAI{
		base: strings.TrimRight(base, "/"), key: key, model: cmp.Or(model, defaultOpenAIModel),
		client: &http.Client{Transport: transport},
	}
}

// Name implements LLM.
func (o *OpenAI) Name() string { return o.model }

type chatRequest struct {
	Model     string        `json:"model"`
	Messages  []chatMessage `json:"messages"`
	MaxTokens int           `json:"max_tokens"`
	Seed      int64         `json:"seed"`
	Stream    bool          `json:"stream"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Stream implements LLM: the whole answer is one part, because a chat completion cannot be continued.
//
// A refused request (4xx) is permanent, "too many requests" (429) is retried when the API says so, and what may
// pass (5xx, 408, a broken connection) is retried by the definition's policy.
func (o *OpenAI) Stream(ctx context.Context, in Prompt, _ string, emit func(string) error) (Part, error) {
	begin := time.Now()
	body, err := json.Marshal(chatRequest{
		Model: o.model, Messages: []chatMessage{{Role: "user", Content: in.Text}},
		MaxTokens: in.MaxTokens, Seed: int64(in.Seed >> 1), Stream: true,
	})
	if err != nil {
		return Part{}, handler.Permanent(fmt.Errorf("encode request: %w", err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return Part{}, handler.Permanent(fmt.Errorf("OPENAI_BASE_URL: %w", err))
	}
	req.Header.Set("Authorization", "Bearer "+o.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := o.client.Do(req)
	if err != nil {
		return Part{}, reason(ctx, fmt.Errorf("chat completion: %w", err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Part{}, refusal(resp, time.Now())
	}
	part, err := readChat(resp.Body, emit)
	if err != nil {
		return Part{}, reason(ctx, fmt.Errorf("chat completion: %w", err))
	}
	part.Took = time.Since(begin)
	return part, nil
}

// readChat emits the deltas of a completion until it is finished.
func readChat(body io.Reader, emit func(string) error) (Part, error) {
	part := Part{Done: true}
	var text strings.Builder
	finished := false
	err := readEvents(body, func(data []byte) error {
		if string(data) == "[DONE]" {
			finished = true
			return io.EOF
		}
		var chunk chatChunk
		if err := json.Unmarshal(data, &chunk); err != nil {
			return fmt.Errorf("decode event: %w", err)
		}
		if chunk.Error != nil {
			return fmt.Errorf("the API reports: %s", chunk.Error.Message)
		}
		for _, choice := range chunk.Choices {
			finished = finished || choice.FinishReason != ""
			if choice.Delta.Content == "" {
				continue
			}
			text.WriteString(choice.Delta.Content)
			part.Tokens++ // as good as exact: the API sends a delta per token
			if err := emit(choice.Delta.Content); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return Part{}, err
	}
	if !finished {
		return Part{}, fmt.Errorf("the stream ended early: %w", io.ErrUnexpectedEOF)
	}
	part.Text = text.String()
	return part, nil
}

// readEvents calls fn with the data of every server-sent event until the body ends or fn returns an error, which
// it returns. Data over several lines is joined; comments and other fields are skipped.
func readEvents(body io.Reader, fn func(data []byte) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	var data []byte
	dispatch := func() error {
		if len(data) == 0 {
			return nil
		}
		err := fn(bytes.TrimSuffix(data, []byte("\n")))
		data = data[:0]
		return err
	}
	for lines.Scan() {
		line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
		if len(line) == 0 {
			if err := dispatch(); err != nil {
				return err
			}
			continue
		}
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			if len(data) > maxEvent {
				return bufio.ErrTooLong
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return dispatch() // a last event without its blank line
}

// refusal turns a status other than 200 into the error that says what the worker should do.
func refusal(resp *http.Response, now time.Time) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	err := fmt.Errorf("chat completion: %s: %s", resp.Status, strings.TrimSpace(string(text)))
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests:
		return handler.RetryAfter(retryAfter(resp.Header.Get("Retry-After"), now), err)
	case code >= 500 || code == http.StatusRequestTimeout:
		return err
	}
	return handler.Permanent(err)
}

// retryAfter reads the header in either form; 2 s when it says nothing usable, at most 5 minutes.
func retryAfter(header string, now time.Time) time.Duration {
	pause := 2 * time.Second
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 && seconds <= 1e6 {
		pause = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		pause = at.Sub(now)
	}
	return min(max(pause, 0), 5*time.Minute)
}

// reason prefers why the context ended over the transport's view of it.
func reason(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
