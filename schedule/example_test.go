package schedule_test

import (
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/schedule"
)

func ExampleCron() {
	s := schedule.Cron("30 2 * * SUN", "Europe/Berlin")
	for _, at := range s.Upcoming(time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC), 3) {
		fmt.Println(at.Format(time.RFC3339)) // on 29 March the clock jumps from 2 to 3
	}
	fmt.Println(schedule.Cron("30 26 * * *", "").Err())
	// Output:
	// 2026-03-22T01:30:00Z
	// 2026-03-29T01:00:00Z
	// 2026-04-05T00:30:00Z
	// invalid_input: a value is not valid: schedule: cron "30 26 * * *": field hour is "26": end of range (26) above maximum (23): "26"
}
