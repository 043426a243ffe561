package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Of two namespaces that put a schedule of one name at the same time one gets it, and the other is refused.
func TestScheduleOfTwoNamespaces(t *testing.T) {
	a := newAPI(t)
	for i := range 60 {
		status := map[string]int{}
		var mu sync.Mutex
		var both sync.WaitGroup
		for _, who := range []string{"blue", "red"} {
			both.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), "PUT", a.server.URL+fmt.Sprintf("/v1/schedules/s%d",
					i), strings.NewReader(`{"every_ms":3600000,"kind":"echo"}`))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+secrets[who])
				r.Header.Set("Content-Type", "application/json")
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				answer.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				status[who] = answer.StatusCode
			})
		}
		both.Wait()
		if status["blue"]+status["red"] != http.StatusOK+http.StatusConflict {
			t.Fatalf("%v, want that one is refused", status)
		}
	}
}
