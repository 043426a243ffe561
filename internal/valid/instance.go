package valid

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// NewInstance names a worker process: the name is unique without coordination, and tells a reader of logs where the process ran.
func NewInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	host = strings.Map(func(r rune) rune {
		if r <= 0x20 || r > 0x7e || r == '{' || r == '}' || r == '~' {
			return '-'
		}
		return r
	}, host)
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	tail := fmt.Sprintf("-%d-%s", os.Getpid(), hex.EncodeToString(random[:]))
	return host[:min(len(host), limits.MaxInstance-len(tail))] + tail
}
