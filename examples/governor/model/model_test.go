package model_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric-go/examples/governor/model"
)

// ask asks for so many tokens, and returns the status and the pause that is asked for.
func ask(s *model.Service, tokens int64) (status int, used int64, after time.Duration) {
	body, _ := json.Marshal(model.Question{Tenant: "a", MaxTokens: tokens})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body))))
	var got model.Answer
	_ = json.Unmarshal(w.Body.Bytes(), &got)
	seconds, _ := strconv.Atoi(w.Header().Get("Retry-After"))
	return w.Code, got.Tokens, time.Duration(seconds) * time.Second
}

func all(most int64) int64 { return most }

// A minute slides: what was used a minute ago is free again, and Retry-After says when there is room.
func TestMinute(t *testing.T) {
	for name, limits := range map[string]model.Limits{"requests": {Requests: 2}, "tokens": {Tokens: 20}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := model.New(limits, 0, all)
				for range 2 {
					if status, used, _ := ask(s, 10); status != http.StatusOK || used != 10 {
						t.Fatalf("%d, %d tokens", status, used)
					}
					time.Sleep(10 * time.Second)
				}
				status, _, after := ask(s, 10)
				if status != http.StatusTooManyRequests || after != 40*time.Second {
					t.Errorf("%d after %v", status, after)
				}
				time.Sleep(after)
				if status, _, _ := ask(s, 10); status != http.StatusOK {
					t.Errorf("%d", status)
				}
				by, _ := s.Counts()
				if by[""] != (model.Count{Calls: 3, Tokens: 30, Refused: 1}) || by["a"] != by[""] {
					t.Errorf("%+v", by)
				}
			})
		})
	}
}

// No more calls than allowed are under way, one that is overloaded refuses all, and a bad request is no call.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model.New(model.Limits{Calls: 2}, time.Minute, nil)
		heard := 0
		s.OnCall(func(model.Question) { heard++ })
		for range 3 {
			go ask(s, 10)
		}
		synctest.Wait()
		by, peak := s.Counts()
		if peak != 2 || by[""].Refused != 1 || heard != 2 || by[""].Tokens < 4 {
			t.Errorf("%d at once, %+v, heard of %d", peak, by, heard)
		}
		time.Sleep(2 * time.Minute)
		s.Close(3 * time.Second)
		if status, _, after := ask(s, 10); status != http.StatusTooManyRequests || after != 3*time.Second {
			t.Errorf("%d after %v", status, after)
		}
		if status, _, _ := ask(s, 0); status != http.StatusBadRequest {
			t.Errorf("%d", status)
		}
	})
}
